"""Test files in a directory of the run's own: journalled first, random, and gone after a crash at any line."""

from __future__ import annotations

import os
import zlib

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import (
    device_uses,
    handlers,
    host_state,
    nfs_mount,
    random_files,
    test_file_places,
    test_file_removal,
    test_files,
)
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Journal
from ansible_collections.hostmax.storage.plugins.module_utils.random_files import LayoutError

from .crash import dies_at_line

FILES = ("module_utils/test_files.py", "module_utils/test_file_removal.py", "module_utils/journal.py")
MIB = 2**20


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def book():
    return Journal(os.path.join(host_state.make_work_dir("run1"), "journal.jsonl"))


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    (path / "user.txt").write_text("mine")
    return path


@pytest.fixture
def no_sync(monkeypatch):
    """A process that dies, unlike a machine, loses nothing that was not synced; so hundreds of deaths cost little."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


class Said(list):
    def __call__(self, event, **facts):
        self.append((event, facts["done_bytes"], facts["total_bytes"]))


def volume(data, *sizes, name="vol01", inside="hostmax-run1-db1", **more):
    return {"name": name, "path": str(data / inside), "kind": "directory", "files": list(sizes), **more}


def lay_out(book, *volumes, say=None, **more):
    return test_files.lay_out(book, volumes, "/", Said() if say is None else say, **more)


def restore(book):
    return book.restore(handlers.HANDLERS)


def everything_in(path):
    return sorted(
        os.path.relpath(os.path.join(base, name), path) for base, dirs, files in os.walk(path) for name in dirs + files
    )


# -- laid out ---------------------------------------------------------------------------------------------------------


def test_each_job_gets_a_file_of_its_size_and_nothing_else_is_touched(book, data):
    (path,) = lay_out(book, volume(data, 2 * MIB, MIB))
    assert path == str(data / "hostmax-run1-db1")
    assert {name: os.path.getsize(os.path.join(path, name)) for name in os.listdir(path)} == {
        "hostmax.0.0": 2 * MIB,
        "hostmax.1.0": MIB,
    }
    assert (data / "user.txt").read_text() == "mine"


def test_the_data_cannot_be_compressed_and_no_block_comes_twice(book, data):
    (path,) = lay_out(book, volume(data, 2 * MIB, 2 * MIB))
    content = b"".join((data / "hostmax-run1-db1" / name).read_bytes() for name in sorted(os.listdir(path)))
    assert len(zlib.compress(content)) >= len(content)
    assert len({content[place : place + 512] for place in range(0, len(content), 512)}) == len(content) // 512


def test_it_is_said_from_nothing_to_all_how_far_it_is(book, data):
    said = Said()
    lay_out(book, volume(data, 3 * MIB, 4096), say=said)
    assert {event for event, _done, _total in said} == {"layout"}
    assert {total for _event, _done, total in said} == {3 * MIB + 4096}
    assert said[-1][1] == 3 * MIB + 4096
    assert [done for _event, done, _total in said] == sorted(done for _event, done, _total in said)


def test_files_larger_than_one_part_are_whole(book, data, monkeypatch):
    monkeypatch.setattr(random_files, "PART_BYTES", 256 * 1024)
    monkeypatch.setattr(random_files, "CHUNK_BYTES", 64 * 1024)
    (path,) = lay_out(book, volume(data, MIB + 4096))
    content = (data / "hostmax-run1-db1" / "hostmax.0.0").read_bytes()
    assert len(content) == MIB + 4096
    assert b"\0" * 64 not in content
    assert os.listdir(path) == ["hostmax.0.0"]


def test_laying_out_again_writes_nothing(book, data):
    lay_out(book, volume(data, MIB))
    file = data / "hostmax-run1-db1" / "hostmax.0.0"
    before = file.read_bytes()
    said = Said()
    lay_out(book, volume(data, MIB), say=said)
    assert file.read_bytes() == before
    assert said == []


def test_a_directory_that_is_there_already_is_refused_and_stays(book, data):
    (data / "hostmax-run1-db1").mkdir()
    with pytest.raises(LayoutError, match="is there already: remove it, or make another run"):
        lay_out(book, volume(data, MIB))
    restore(book)
    assert everything_in(data) == ["hostmax-run1-db1", "user.txt"]


def test_too_little_room_is_told_before_anything_is_made(book, data):
    facts = os.statvfs(data)
    half = facts.f_bavail * facts.f_frsize * 6 // 10
    with pytest.raises(LayoutError, match=r"has too little room: the files of this run need .* its file system has"):
        lay_out(book, volume(data, half), volume(data, half, name="vol02", inside="hostmax-run1-b"))
    assert everything_in(data) == ["user.txt"]
    assert book.entries() == []


def test_who_asks_the_run_to_end_ends_the_layout(book, data, monkeypatch):
    monkeypatch.setattr(random_files, "CHUNK_BYTES", 4096)

    def stop():
        if os.path.exists(data / "hostmax-run1-db1" / "hostmax.0.0"):
            raise InterruptedError("the run was stopped")

    with pytest.raises(InterruptedError):
        lay_out(book, volume(data, 256 * MIB), check_stop=stop)
    restore(book)
    assert everything_in(data) == ["user.txt"]


def test_a_storage_that_stands_still_is_given_up_in_one_sentence(book, data, monkeypatch):
    monkeypatch.setattr(random_files, "STALL_S", 0.2)
    monkeypatch.setattr(random_files, "_JOIN_S", 0.1)
    # a source that never gives anything, like a server that never answers
    source = data / "never"
    os.mkfifo(source)
    monkeypatch.setattr(random_files, "_RANDOM", str(source))
    with pytest.raises(LayoutError, match=r"Nothing more was written to .* does its storage answer\?"):
        lay_out(book, volume(data, MIB))
    # let the worker go, which waits for the other end
    os.close(os.open(source, os.O_WRONLY))


def test_a_layout_that_takes_too_long_is_given_up(book, data, monkeypatch):
    monkeypatch.setattr(random_files, "SLACK_S", 0.0)
    monkeypatch.setattr(random_files, "SLOWEST_BYTES_PER_S", 10**15)
    with pytest.raises(LayoutError, match="took longer than"):
        lay_out(book, volume(data, 256 * MIB))


# -- looked at again --------------------------------------------------------------------------------------------------


def damaged(book, data, change):
    lay_out(book, volume(data, MIB, MIB))
    test_files.check(book, [volume(data, MIB, MIB)], "/")
    change(data / "hostmax-run1-db1" / "hostmax.1.0")
    with pytest.raises(LayoutError) as told:
        test_files.check(book, [volume(data, MIB, MIB)], "/")
    return str(told.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.unlink(),
        lambda file: os.truncate(file, 4096),
        lambda file: (file.with_name("other").write_bytes(b"x" * MIB), os.replace(file.with_name("other"), file)),
    ],
    ids=["removed", "shortened", "another's"],
)
def test_a_file_that_is_not_as_it_was_laid_out_is_found_before_a_point(book, data, change):
    assert "are not there as they were laid out" in damaged(book, data, change)


# -- removed ----------------------------------------------------------------------------------------------------------


def test_restore_removes_the_files_and_a_second_one_does_nothing(book, data):
    lay_out(book, volume(data, MIB, MIB))
    assert restore(book) == {"restored": [f"test directory {data}/hostmax-run1-db1"], "left": []}
    assert everything_in(data) == ["user.txt"]
    assert restore(book) == {"restored": [], "left": []}


def test_check_mode_removes_nothing_and_says_what_it_would(book, data):
    lay_out(book, volume(data, MIB))
    before = everything_in(data)
    assert book.restore(handlers.HANDLERS, check=True)["restored"] == [f"test directory {data}/hostmax-run1-db1"]
    assert everything_in(data) == before


def test_a_file_of_somebody_else_stays_and_is_told_until_it_is_gone(book, data):
    lay_out(book, volume(data, MIB))
    own = data / "hostmax-run1-db1"
    (own / "notes.txt").write_text("keep")
    (left,) = restore(book)["left"]
    assert "it holds notes.txt, which this run did not make" in left["why"]
    assert everything_in(own) == ["notes.txt"]
    (own / "notes.txt").unlink()
    assert restore(book)["left"] == []
    assert everything_in(data) == ["user.txt"]


def test_a_file_that_took_the_name_of_ours_stays(book, data):
    lay_out(book, volume(data, MIB))
    file = data / "hostmax-run1-db1" / "hostmax.0.0"
    other = file.with_name("other")
    other.write_text("theirs")
    other.replace(file)
    (left,) = restore(book)["left"]
    assert "hostmax.0.0, which this run did not make" in left["why"]
    assert file.read_text() == "theirs"


def test_a_file_that_has_the_name_before_ours_is_neither_taken_nor_removed(book, data, monkeypatch):
    made = test_files._make_directory

    def quick(place):
        made(place)
        (data / "hostmax-run1-db1" / "hostmax.1.0").write_text("theirs")

    monkeypatch.setattr(test_files, "_make_directory", quick)
    with pytest.raises(LayoutError, match=r"hostmax\.1\.0 is there already, and this run did not make it"):
        lay_out(book, volume(data, MIB, MIB))
    assert len(restore(book)["left"]) == 1
    assert everything_in(data / "hostmax-run1-db1") == ["hostmax.1.0"]


def test_a_link_with_the_name_of_our_directory_is_not_followed(book, data, tmp_path):
    lay_out(book, volume(data, MIB))
    elsewhere = tmp_path / "elsewhere"
    (data / "hostmax-run1-db1").rename(elsewhere)
    (data / "hostmax-run1-db1").symlink_to(elsewhere)
    assert "not the directory this run made" in restore(book)["left"][0]["why"]
    assert everything_in(elsewhere) == ["hostmax.0.0"]


def test_the_last_host_removes_the_directory_that_hosts_share(book, data, state):
    shared = {"inside": "hostmax-run1/db1", "mount": str(data)}
    lay_out(book, volume(data, MIB, **shared))
    other = Journal(os.path.join(host_state.make_work_dir("run2"), "journal.jsonl"))
    lay_out(other, volume(data, MIB, inside="hostmax-run1/db2", mount=str(data)))
    assert restore(book)["left"] == []
    assert everything_in(data) == ["hostmax-run1", "hostmax-run1/db2", "hostmax-run1/db2/hostmax.0.0", "user.txt"]
    assert restore(other)["left"] == []
    assert everything_in(data) == ["user.txt"]


def test_where_its_file_system_is_not_mounted_any_more_it_is_left_with_a_sentence(book, data, monkeypatch):
    lay_out(book, volume(data, MIB))
    (data / "hostmax-run1-db1").rename(data / "as if unmounted")
    monkeypatch.setattr(device_uses, "read_mounts", lambda proc="/proc": [])
    (left,) = restore(book)["left"]
    assert "is not mounted on" in left["why"]
    assert "mount it and restore again" in left["why"]


def test_a_server_that_does_not_answer_ends_a_restore_in_its_time(book, data, monkeypatch):
    lay_out(book, volume(data, MIB))
    hangs = data / "hangs"
    os.mkfifo(hangs)
    monkeypatch.setattr(device_uses, "is_remote", lambda fstype: True)
    monkeypatch.setattr(test_file_removal, "REMOVE_S", 0.2)
    monkeypatch.setattr(test_file_removal, "stat_of", lambda path: os.open(hangs, os.O_RDONLY))
    (left,) = restore(book)["left"]
    assert "does not answer; restore again when it does" in left["why"]


def test_on_a_remote_file_system_all_is_removed_too(book, data, monkeypatch):
    monkeypatch.setattr(device_uses, "is_remote", lambda fstype: True)
    lay_out(book, volume(data, MIB))
    assert restore(book)["left"] == []
    assert everything_in(data) == ["user.txt"]


# -- dying ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_sync")
def test_whatever_line_the_layout_dies_at_a_restore_leaves_nothing(book, data):
    shared = {"inside": "hostmax-run1/db1", "mount": str(data)}
    died, number = True, 0
    while died:
        number += 1
        died = dies_at_line(number, FILES, lambda: lay_out(Journal(book.path), volume(data, 8192, 4096, **shared)))
        assert restore(Journal(book.path))["left"] == [], number
        assert everything_in(data) == ["user.txt"], number
        if os.path.exists(book.path):
            os.unlink(book.path)
    assert number > 50


@pytest.mark.usefixtures("no_sync")
def test_whatever_line_the_removal_dies_at_the_next_one_leaves_nothing(book, data):
    shared = {"inside": "hostmax-run1/db1", "mount": str(data)}
    died, number = True, 0
    while died:
        number += 1
        lay_out(Journal(book.path), volume(data, 8192, 4096, **shared))
        died = dies_at_line(number, FILES, lambda: restore(Journal(book.path)))
        assert restore(Journal(book.path))["left"] == [], number
        assert everything_in(data) == ["user.txt"], number
        os.unlink(book.path)
    assert number > 20


def test_a_crash_before_the_files_have_their_names_leaves_none_of_them(book, data, monkeypatch):
    def crash(draft, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(test_files, "_give_name", crash)
    with pytest.raises(KeyboardInterrupt):
        lay_out(book, volume(data, MIB, MIB))
    assert len(everything_in(data / "hostmax-run1-db1")) == 2
    assert restore(book)["left"] == []
    assert everything_in(data) == ["user.txt"]


# -- places -----------------------------------------------------------------------------------------------------------


def test_a_path_that_leads_through_a_link_is_made_where_it_really_is(book, data, tmp_path):
    (tmp_path / "link").symlink_to(data)
    (path,) = lay_out(book, volume(tmp_path / "link", MIB))
    assert path == str(data / "hostmax-run1-db1")
    (tmp_path / "link").unlink()
    assert restore(book)["left"] == []


def test_a_path_that_leaves_its_mount_is_refused():
    where = {"name": "vol01", "path": "mounts/v/../../x", "mount": "mounts/v"}
    with pytest.raises(LayoutError, match="is not below"):
        test_file_places.where(where, "/work")


def test_of_a_mounts_options_those_are_kept_with_which_its_files_are_found_again():
    shown = "rw,relatime,vers=4.1,rsize=65536,proto=tcp,nconnect=16,sec=sys,clientaddr=10.0.0.2,addr=10.0.0.4"
    assert test_files._lasting(shown) == "vers=4.1,proto=tcp,sec=sys"


def test_an_nfs_volume_that_is_not_mounted_any_more_is_mounted_again_for_the_removal(book, data, monkeypatch, tmp_path):
    mounted = device_uses.Mount(str(data), (0, 50), "10.0.0.4:/vol1", "nfs", "/", "rw,vers=3,proto=tcp")
    monkeypatch.setattr(device_uses, "read_mounts", lambda proc="/proc": [mounted])
    lay_out(book, volume(data, MIB, inside="hostmax-run1/db1", mount=str(data)))
    # as after a restart: the mount point is empty, and the export is where it is mounted next
    again = tmp_path / "again"
    data.rename(again)
    data.mkdir()
    monkeypatch.setattr(device_uses, "read_mounts", lambda proc="/proc": [])
    asked = []

    class Temporary:
        def __init__(self, source, options):
            asked.append((source, options))

        def __enter__(self):
            return str(again)

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(nfs_mount, "temporary", Temporary)
    assert restore(book)["left"] == []
    assert asked == [("10.0.0.4:/vol1", "vers=3,proto=tcp")]
    assert everything_in(again) == ["user.txt"]
