"""Thin volumes without root: plain sparse files, journalled, and gone after a crash at any line."""

from __future__ import annotations

import errno
import os
import stat

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import cgroup, host_state, thin_volumes
from ansible_collections.hostmax.storage.plugins.module_utils.host_state import HostError
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Journal

from .crash import dies_at_line

FILES = ("module_utils/thin_volumes.py", "module_utils/journal.py")
TB = 10**12
CAP = {"iops": 3000, "bytes_per_s": 24576000}


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(host_state, "is_root", lambda: False)
    return tmp_path / "state"


@pytest.fixture
def book():
    return Journal(os.path.join(host_state.make_work_dir("run1"), "journal.jsonl"))


@pytest.fixture
def no_sync(monkeypatch):
    """A process that dies, unlike a machine, loses nothing that was not synced; so hundreds of deaths cost little."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def everything_in(path):
    return sorted(
        os.path.relpath(os.path.join(base, name), path) for base, dirs, files in os.walk(path) for name in dirs + files
    )


def test_without_root_the_volumes_are_sparse_files_that_take_no_space(state, book):
    made = thin_volumes.create("run1", 2, TB, None, book)
    assert [(v["name"], v["path"], v["kind"], v["size_bytes"]) for v in made["volumes"]] == [
        ("thin01", "volumes/thin01", "file", TB),
        ("thin02", "volumes/thin02", "file", TB),
    ]
    facts = os.stat(state / "run1/volumes/thin02")
    assert (facts.st_size, facts.st_blocks, stat.S_IMODE(facts.st_mode)) == (TB, 0, 0o600)


def test_without_root_there_is_no_cap_and_the_warning_says_what_is_measured(book):
    made = thin_volumes.create("run1", 1, TB, CAP, book)
    assert (made["cgroup"], made["cap_by"], made["volumes"][0]["cap"]) == (None, None, None)
    (warning,) = made["warnings"]
    assert "without a cap" in warning
    assert "this client and its file system" in warning


def test_the_volume_is_what_everybody_else_knows_as_a_volume(state, book):
    (volume,) = thin_volumes.create("run1", 1, TB, None, book)["volumes"]
    assert volume == {
        "name": "thin01",
        "path": "volumes/thin01",
        "size_bytes": TB,
        "size": str(TB),
        "identity": None,
        "overwrite": None,
        "kind": "file",
        "cap": None,
        "device": None,
        "backing": str(state / "run1/volumes/thin01"),
    }


def test_a_size_is_rounded_down_to_whole_blocks_and_said(book):
    (volume,) = thin_volumes.create("run1", 1, 10**9, None, book)["volumes"]
    assert volume["size_bytes"] == 10**9 // 4096 * 4096 == os.stat(volume["backing"]).st_size


def test_names_sort_in_their_order(book):
    names = thin_volumes.want("run1", 120, TB, None).names
    assert (names[0], names[-1]) == ("thin001", "thin120")
    assert names == sorted(names)


def test_a_cap_without_any_limit_is_no_cap():
    assert thin_volumes.want("run1", 1, TB, {"iops": None, "bytes_per_s": None}).cap is None
    assert thin_volumes.want("run1", 1, TB, {}).cap is None
    assert thin_volumes.want("run1", 1, TB, {"iops": 5}).cap == {"iops": 5, "bytes_per_s": None}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run1", 0, TB, None), "hostmax_thin_count is 0"),
        (("run1", 201, TB, None), "1 to 200"),
        (("run1", 1, 4096, None), "hostmax_thin_size"),
        (("run1", 1, TB, {"iops": 0}), "hostmax_thin_cap"),
        (("../run1", 1, TB, None), "run id"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused_before_anything_is_made(state, arguments, words):
    with pytest.raises(HostError, match=words):
        thin_volumes.create(*arguments, book=Journal(str(state / "run1" / "journal.jsonl")))
    assert not state.exists()


def test_a_file_larger_than_the_file_system_allows_is_one_sentence(state, book, monkeypatch):
    def too_large(*_args):
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(thin_volumes.os, "ftruncate", too_large)
    with pytest.raises(
        HostError, match=r"^The file system of .* does not allow a file of 1000000000000 bytes; [^.]*\.$"
    ):
        thin_volumes.planned("run1", 1, TB, None, book)
    monkeypatch.undo()
    assert everything_in(state) == ["run1", "run1/.machine"]


def test_a_file_system_without_sparse_files_is_refused(book, monkeypatch):
    real = os.fstat

    def dense(fd):
        fields = list(real(fd))
        return os.stat_result(fields, {"st_blocks": 2**15, "st_ino": fields[1]})

    monkeypatch.setattr(thin_volumes.os, "fstat", dense)
    with pytest.raises(HostError, match="no sparse files"):
        thin_volumes.planned("run1", 1, TB, None, book)


def free(monkeypatch, free_bytes):
    real = os.statvfs

    def with_so_much_free(path):
        fields = list(real(path))
        fields[4] = free_bytes // fields[1]
        return os.statvfs_result(fields)

    monkeypatch.setattr(thin_volumes.os, "statvfs", with_so_much_free)


def test_a_full_file_system_is_refused(book, monkeypatch):
    free(monkeypatch, 0)
    with pytest.raises(HostError, match="has 0 B free"):
        thin_volumes.planned("run1", 1, TB, None, book)


def test_a_file_system_without_room_for_all_that_may_be_written_is_refused(book, monkeypatch):
    free(monkeypatch, 2**30)
    assert thin_volumes.planned("run1", 1, TB, None, book, written_bytes=2**29)["volumes"]
    with pytest.raises(HostError, match="may come to hold 2"):
        thin_volumes.planned("run1", 1, TB, None, book, written_bytes=2**31)


def test_planning_changes_nothing_also_where_no_state_directory_is_there_yet(state):
    planned = thin_volumes.planned("run1", 2, TB, None, Journal(str(state / "run1" / "journal.jsonl")))
    assert [volume["name"] for volume in planned["volumes"]] == ["thin01", "thin02"]
    assert planned["changed"]
    assert not state.exists()


def test_the_same_call_again_changes_nothing_and_returns_the_same(book):
    first = thin_volumes.create("run1", 2, TB, CAP, book)
    second = thin_volumes.create("run1", 2, TB, CAP, book)
    assert (first.pop("changed"), second.pop("changed")) == (True, False)
    assert first == second


def test_another_wish_for_the_same_run_is_refused(book):
    thin_volumes.create("run1", 2, TB, None, book)
    with pytest.raises(HostError, match="other thin volumes"):
        thin_volumes.create("run1", 3, TB, None, book)


def test_what_failed_half_way_is_put_back_before_the_error_is_raised(state, book):
    os.makedirs(state / "run1/volumes")
    (state / "run1/volumes/thin02").write_text("of somebody else")
    with pytest.raises(HostError, match="thin02 is there already"):
        thin_volumes.create("run1", 3, TB, None, book)
    assert everything_in(state / "run1") == [".machine", "journal.jsonl", "volumes", "volumes/thin02"]
    assert (state / "run1/volumes/thin02").read_text() == "of somebody else"


def test_remove_puts_everything_back_and_a_second_one_changes_nothing(state, book):
    thin_volumes.create("run1", 2, TB, None, book)
    assert len(thin_volumes.remove(book)["restored"]) == 3
    assert everything_in(state / "run1") == [".machine", "journal.jsonl"]
    assert thin_volumes.remove(book) == {"restored": [], "left": []}


def test_a_file_that_is_not_ours_any_more_is_left_and_said(state, book):
    thin_volumes.create("run1", 1, TB, None, book)
    os.rename(state / "run1/volumes/thin01", state / "old")
    (state / "run1/volumes/thin01").write_text("of somebody else")
    left = {item["what"].split()[0]: item["why"] for item in thin_volumes.remove(book)["left"]}
    assert "not the file this run made" in left["file"]
    assert "cannot be removed" in left["directory"]
    assert (state / "run1/volumes/thin01").read_text() == "of somebody else"


def test_volumes_that_went_away_by_themselves_are_nothing_to_do(state, book):
    thin_volumes.create("run1", 1, TB, None, book)
    os.unlink(state / "run1/volumes/thin01")
    assert thin_volumes.remove(book)["left"] == []


def test_a_process_that_dies_at_any_line_of_creating_leaves_nothing_that_restore_does_not_find(state, no_sync):
    path = os.path.join(host_state.make_work_dir("run1"), "journal.jsonl")
    for number in range(1, 10_000):
        died = dies_at_line(number, FILES, lambda: thin_volumes.create("run1", 1, TB, CAP, Journal(path)))
        assert thin_volumes.remove(Journal(path))["left"] == []
        assert set(everything_in(state / "run1")) <= {".machine", "journal.jsonl"}
        if os.path.exists(path):
            os.unlink(path)
        if not died:
            break
    assert number > 150


def test_a_process_that_dies_at_any_line_of_restoring_leaves_the_rest_to_the_next_restore(state, no_sync):
    path = os.path.join(host_state.make_work_dir("run1"), "journal.jsonl")
    for number in range(1, 10_000):
        thin_volumes.create("run1", 1, TB, CAP, Journal(path))
        died = dies_at_line(number, FILES, lambda: thin_volumes.remove(Journal(path)))
        assert thin_volumes.remove(Journal(path))["left"] == []
        assert everything_in(state / "run1") == [".machine", "journal.jsonl"]
        os.unlink(path)
        if not died:
            break
    assert number > 100


def test_every_kind_a_thin_volume_writes_to_the_journal_has_a_handler():
    assert set(thin_volumes.HANDLERS) >= {
        "thin_volumes",
        "directory",
        "file",
        "loop_device",
        "symlink",
        *cgroup.HANDLERS,
    }
