"""The journal: on disk before the change, readable after any crash, undone backwards and once."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Journal,
    JournalError,
    Outcome,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .crash import dies_at_line

FILES = ("module_utils/journal.py",)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "run1").mkdir()
    return str(tmp_path / "run1" / "journal.jsonl")


@pytest.fixture
def no_sync(monkeypatch):
    """A process that dies, unlike a machine, loses nothing that was not synced; so hundreds of deaths cost little."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def text(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


class World:
    """Things that exist; a handler removes one, as idempotent as a real one."""

    def __init__(self, *things):
        self.things = set(things)
        self.order = []

    def handler(self, entry, check):
        if entry.key not in self.things:
            return Outcome(NOTHING)
        if not check:
            self.things.remove(entry.key)
            self.order.append(entry.key)
        return Outcome(RESTORED)

    @property
    def handlers(self):
        return {"thing": self.handler}


def test_a_record_is_synced_to_disk_when_record_returns_and_so_is_the_name_of_a_new_journal(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    Journal(path).record("file", key="/a")
    assert synced == [os.path.dirname(path), path]
    Journal(path).record("file", key="/b")
    assert synced[2:] == [path]


def test_the_first_line_says_whose_journal_it_is_and_of_which_boot(path):
    Journal(path).record("file", key="/a")
    first = json.loads(text(path).splitlines()[0])
    assert (first["schema"], first["run_id"], first["boot_id"]) == ("hostmax.journal/1", "run1", host_state.boot_id())
    assert first["created_utc"].endswith("Z")


def test_the_journal_is_private(path):
    Journal(path).record("file", key="/a")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_an_entry_gathers_what_was_recorded_done_and_restored(path):
    book = Journal(path)
    number = book.record("loop_device", key="/img", inode=7)
    book.done(number, path="/dev/loop3")
    (entry,) = book.entries()
    assert (entry.facts, entry.done, entry.result) == ({"inode": 7}, {"path": "/dev/loop3"}, None)
    assert entry.what == "loop device /img"
    book.restored(number)
    assert Journal(path).entries()[0].result == RESTORED


def test_the_first_original_is_kept_when_the_same_thing_is_recorded_again(path):
    book = Journal(path)
    first = book.record("sysctl", key="vm.x", before="1")
    assert book.record("sysctl", key="vm.x", before="2") == first
    assert [entry.facts for entry in book.entries()] == [{"before": "1"}]


def test_a_thing_that_was_restored_is_recorded_anew(path):
    book = Journal(path)
    book.restored(book.record("sysctl", key="vm.x", before="1"))
    book.record("sysctl", key="vm.x", before="3")
    assert [entry.facts["before"] for entry in book.entries()] == ["1", "3"]


def test_restore_walks_backwards_and_a_second_one_changes_nothing(path):
    world = World("a", "b", "c")
    book = Journal(path)
    for key in "abc":
        book.record("thing", key=key)
    assert book.restore(world.handlers) == {"restored": ["thing c", "thing b", "thing a"], "left": []}
    assert world.order == ["c", "b", "a"]
    before = text(path)
    assert Journal(path).restore(world.handlers) == {"restored": [], "left": []}
    assert text(path) == before


def test_restoring_a_run_without_a_journal_makes_none(path):
    assert Journal(path).restore({}) == {"restored": [], "left": []}
    assert not os.path.exists(path)


def test_check_mode_tells_the_same_and_touches_neither_the_world_nor_the_journal(path):
    world = World("a")
    Journal(path).record("thing", key="a")
    Journal(path).record("thing", key="gone")
    before = text(path)
    assert Journal(path).restore(world.handlers, check=True) == {"restored": ["thing a"], "left": []}
    assert (world.things, text(path)) == ({"a"}, before)


def test_what_is_left_is_named_does_not_stop_the_others_and_is_tried_again(path):
    world = World("a", "c")
    answers = [Outcome(LEFT, "somebody changed it."), Outcome(LEFT, "somebody changed it."), Outcome(RESTORED)]
    handlers = dict(world.handlers, other=lambda entry, check: answers.pop(0))
    book = Journal(path)
    book.record("thing", key="a")
    book.record("other", key="b")
    book.record("thing", key="c")
    left = [{"what": "other b", "why": "somebody changed it."}]
    assert book.restore(handlers) == {"restored": ["thing c", "thing a"], "left": left}
    before = text(path)
    assert book.restore(handlers) == {"restored": [], "left": left}
    assert text(path) == before
    assert book.restore(handlers) == {"restored": ["other b"], "left": []}


def test_a_handler_that_fails_leaves_its_entry_with_the_reason(path):
    def broken(entry, check):
        raise PermissionError(errno.EACCES, "Permission denied", "/sys/x")

    Journal(path).record("thing", key="a")
    assert Journal(path).restore({"thing": broken})["left"] == [
        {"what": "thing a", "why": "/sys/x: Permission denied."}
    ]


def test_a_kind_nobody_knows_is_left_and_said(path):
    Journal(path).record("quantum", key="a")
    (left,) = Journal(path).restore({})["left"]
    assert left["what"] == "quantum a"
    assert "does not know how" in left["why"]


def test_a_full_disk_does_not_stop_a_restore(path, monkeypatch):
    world = World("a", "b")
    book = Journal(path)
    book.record("thing", key="a")
    book.record("thing", key="b")

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert book.restore(world.handlers)["restored"] == ["thing b", "thing a"]
    monkeypatch.undo()
    assert Journal(path).restore(world.handlers) == {"restored": [], "left": []}


def test_a_full_disk_refuses_a_record_in_one_sentence_and_leaves_a_readable_journal(path, monkeypatch):
    Journal(path).record("thing", key="a")
    real = os.pwrite

    def half_full(fd, data, position):
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[:-10], position)

    monkeypatch.setattr(os, "pwrite", half_full)
    with pytest.raises(
        JournalError, match=r"cannot be written \(No space left on device\), so the change was not made"
    ):
        Journal(path).record("thing", key="b")
    monkeypatch.undo()
    Journal(path).record("thing", key="c")
    assert [entry.key for entry in Journal(path).entries()] == ["a", "c"]


def test_what_a_failed_sync_left_behind_does_not_damage_the_next_line(path, monkeypatch):
    Journal(path).record("thing", key="a")

    def broken(fd):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    book = Journal(path)
    with book.held():
        with pytest.raises(JournalError, match="Input/output error"):
            book.record("thing", key="long" * 50)
        monkeypatch.undo()
        book.record("thing", key="b")
    assert [entry.key for entry in Journal(path).entries()] == ["a", "b"]


def _full_journal(path):
    book = Journal(path)
    for key in ("a", "ü", "c"):
        book.done(book.record("thing", key=key, size_bytes=10**12), inode=1)
    book.restored(3)
    return text(path).encode()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_prefix_of_a_journal_can_be_read_written_on_and_restored(path, data):
    if os.path.exists(path):
        os.unlink(path)
    whole = _full_journal(path)
    cut = data.draw(st.integers(0, len(whole)))
    with open(path, "wb") as handle:
        handle.write(whole[:cut])
    entries = Journal(path).entries()
    assert [entry.key for entry in entries] == ["a", "ü", "c"][: len(entries)]
    Journal(path).record("thing", key="new")
    assert [entry.key for entry in Journal(path).entries()] == [*(entry.key for entry in entries), "new"]
    world = World("a", "ü", "c", "new")
    open_keys = [entry.key for entry in Journal(path).entries() if entry.result is None]
    Journal(path).restore(world.handlers)
    assert world.order == open_keys[::-1]


def test_blocks_of_zeros_that_a_power_loss_left_at_the_end_do_not_count(path):
    whole = _full_journal(path)
    with open(path, "ab") as handle:
        handle.write(bytes(4096))
    assert len(Journal(path).entries()) == 3
    Journal(path).record("thing", key="new")
    assert text(path).encode()[: len(whole)] == whole
    assert len(Journal(path).entries()) == 4


@pytest.mark.parametrize("line", [b"{oops}", b"[]", b'{"op": "dance", "id": 1}', b'{"op": "record", "id": 9}', b"\xff"])
def test_a_damaged_line_in_the_middle_is_one_sentence_that_says_which(path, line):
    lines = _full_journal(path).split(b"\n")
    lines[2] = line
    with open(path, "wb") as handle:
        handle.write(b"\n".join(lines))
    with pytest.raises(JournalError, match=r"^The journal .*journal.jsonl is damaged in line 3; [^.]*\.$"):
        Journal(path).restore(World().handlers)


def test_a_journal_of_another_schema_is_refused_with_its_name(path):
    with open(path, "w") as handle:
        handle.write('{"schema": "hostmax.journal/9"}\n')
    with pytest.raises(JournalError, match=r"hostmax\.journal/9"):
        Journal(path).entries()


def test_two_processes_cannot_restore_at_once(path):
    Journal(path).record("thing", key="a")
    world = World("a")
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match="run run1 is being changed or restored by another process"):
            Journal(path).restore(world.handlers, wait_s=0)
        assert world.things == {"a"}
    assert Journal(path).restore(world.handlers, wait_s=0)["restored"] == ["thing a"]


def test_a_record_cannot_slip_into_a_restore(path, monkeypatch):
    refused = []

    def handler(entry, check):
        try:
            Journal(path).record("thing", key="late")
        except JournalError as exc:
            refused.append(str(exc))
        return Outcome(RESTORED)

    Journal(path).record("thing", key="a")
    real = Journal._open_locked
    monkeypatch.setattr(Journal, "_open_locked", lambda self, wait_s: real(self, 0))
    Journal(path).restore({"thing": handler})
    assert len(refused) == 1
    assert [entry.key for entry in Journal(path).entries()] == ["a"]


def test_a_journal_that_is_a_link_is_not_followed(path, tmp_path):
    os.symlink(tmp_path / "victim", path)
    with pytest.raises(JournalError, match="cannot be opened"):
        Journal(path).record("thing", key="a")
    assert not (tmp_path / "victim").exists()


def test_a_process_that_dies_at_any_line_of_the_journal_leaves_it_readable(path, no_sync):
    for number in range(1, 10_000):
        if os.path.exists(path):
            os.unlink(path)

        def work():
            book = Journal(path)
            book.done(book.record("thing", key="a"), inode=1)
            book.restore(World("a").handlers)

        died = dies_at_line(number, FILES, work)
        if os.path.exists(path):
            assert Journal(path).restore(World("a").handlers)["left"] == []
            assert all(entry.result for entry in Journal(path).entries())
        if not died:
            break
    assert number > 50


def test_the_document_for_the_run_directory_holds_the_header_and_every_entry(path):
    book = Journal(path)
    book.done(book.record("file", key="/a"), inode=5)
    document = book.as_document()
    assert (document["schema"], document["run_id"]) == ("hostmax.journal/1", "run1")
    assert [(entry["kind"], entry["key"], entry["done"]) for entry in document["entries"]] == [
        ("file", "/a", {"inode": 5})
    ]
    assert json.loads(json.dumps(document)) == document


def test_the_document_of_a_journal_that_was_never_begun_is_empty(path):
    assert Journal(path).as_document()["entries"] == []


def test_another_host_or_boot_adds_no_change_to_a_journal_but_may_put_back(path, monkeypatch):
    world = World("/a")
    Journal(path).record("thing", key="/a")
    monkeypatch.setattr(host_state, "boot_id", lambda: "another")
    with pytest.raises(JournalError, match="begun by another host, or before a restart"):
        Journal(path).record("thing", key="/b")
    assert Journal(path).restore(world.handlers)["restored"] == ["thing /a"]
    assert [entry.key for entry in Journal(path).entries()] == ["/a"]


def test_one_kind_of_change_can_be_put_back_alone(path):
    book = Journal(path)
    for kind in ("mount", "sysctl", "mount"):
        book.record(kind, key=f"{kind} {len(book.entries())}")
    undone = []

    def handler(entry, _check):
        undone.append(entry.key)
        return Outcome(RESTORED)

    handlers = {"mount": handler, "sysctl": handler}
    assert book.restore(handlers, kinds={"mount"})["left"] == []
    assert undone == ["mount 2", "mount 0"]
    book.restore(handlers)
    assert undone == ["mount 2", "mount 0", "sysctl 1"]
