"""Marks on volumes: two hosts with one volume find each other, and what stood there comes back byte for byte."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import shared_mark, thin_volumes
from ansible_collections.hostmax.storage.plugins.module_utils.guard import GuardError
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Journal
from ansible_collections.hostmax.storage.plugins.module_utils.shared_mark import SharedMarkError

from .crash import dies_at_line

SIZE_BYTES = 1 << 20
FILES = ("module_utils/shared_mark.py", "module_utils/journal.py")


class Host:
    """One host of a run: its own work directory and journal, and the volumes it sees."""

    def __init__(self, root, name, *paths, run_id="run1"):
        self.dir = root / name / run_id
        self.dir.mkdir(parents=True, exist_ok=True)
        self.book = Journal(str(self.dir / "journal.jsonl"))
        names = [f"vol{number:02}" for number in range(1, len(paths) + 1)]
        self.plan = {"run_id": run_id, "host": name, "points": [{"writes": True, "volumes": names}]}
        self.verdicts = [verdict(volume, path) for volume, path in zip(names, paths)]

    def write(self, **changes):
        return shared_mark.write(self.book, self.verdicts, {**self.plan, **changes}, str(self.dir))

    def restore(self, check=False):
        return self.book.restore(thin_volumes.HANDLERS, check=check)


def verdict(name, path):
    facts = {"major": None, "minor": None, "sector_bytes": None, "backing": None, "identities": []}
    size_bytes = os.stat(path).st_size if os.path.exists(path) else SIZE_BYTES
    return {"name": name, "path": str(path), "real_path": str(path), "kind": "file", "size_bytes": size_bytes, **facts}


@pytest.fixture
def volume(tmp_path):
    def make(name="disk", size_bytes=SIZE_BYTES):
        path = tmp_path / name
        path.write_bytes(os.urandom(size_bytes))
        return path

    return make


def refusal(call):
    with pytest.raises(SharedMarkError) as caught:
        call()
    return str(caught.value)


def test_hosts_with_volumes_of_their_own_find_nothing_and_change_nothing(tmp_path, volume):
    one, two = volume("one"), volume("two")
    before = one.read_bytes(), two.read_bytes()
    marks = [Host(tmp_path, "a", one).write(), Host(tmp_path, "b", two).write()]
    assert (one.read_bytes() != before[0], two.read_bytes() != before[1]) == (True, True)
    for each in marks:
        each.check_and_remove()
    assert (one.read_bytes(), two.read_bytes()) == before


def test_the_second_host_finds_the_mark_of_the_first_and_leaves_it(tmp_path, volume):
    disk = volume()
    before = disk.read_bytes()
    first = Host(tmp_path, "a", disk).write()
    marked = disk.read_bytes()
    told = refusal(Host(tmp_path, "b", disk).write)
    assert told.startswith(f"The volume vol01 ({disk}) is the volume vol01 of host a: name each volume for one host")
    assert disk.read_bytes() == marked
    first.check_and_remove()
    assert disk.read_bytes() == before


def both_read_before_either_wrote(tmp_path, disk):
    """The marks of two hosts, the second of which read the block before the first one's mark was there."""
    before = disk.read_bytes()
    a, b = Host(tmp_path, "a", disk), Host(tmp_path, "b", disk)
    marks_b = b.write()
    of_b = disk.read_bytes()
    disk.write_bytes(before)
    marks_a = a.write()
    disk.write_bytes(of_b)
    return a, marks_a, b, marks_b


def test_hosts_that_marked_at_the_same_moment_are_found_by_the_one_whose_mark_is_gone(tmp_path, volume):
    disk = volume()
    before = disk.read_bytes()
    a, marks_a, _b, marks_b = both_read_before_either_wrote(tmp_path, disk)
    assert "is the volume vol01 of host b" in refusal(marks_a.check_and_remove)
    assert a.restore()["left"] == []
    marks_b.check_and_remove()
    assert disk.read_bytes() == before


def test_a_mark_that_another_host_took_away_is_missed(tmp_path, volume):
    disk = volume()
    before = disk.read_bytes()
    a, marks_a, _b, marks_b = both_read_before_either_wrote(tmp_path, disk)
    marks_b.check_and_remove()
    assert "was written by somebody else" in refusal(marks_a.check_and_remove)
    assert a.restore() == {"restored": [], "left": []}
    assert disk.read_bytes() == before


def test_one_storage_by_two_names_of_a_host_is_found_and_put_back(tmp_path, volume):
    disk = volume()
    before = disk.read_bytes()
    os.link(disk, tmp_path / "other")
    told = refusal(Host(tmp_path, "a", disk, tmp_path / "other").write)
    assert "volume vol02" in told
    assert "is the volume vol01 of host a" in told
    assert disk.read_bytes() == before


def test_nothing_is_marked_by_a_run_that_reads_or_may_share_nor_what_no_point_writes(tmp_path, volume):
    disk, spare = volume(), volume("spare")
    before, host = disk.read_bytes(), Host(tmp_path, "a", disk, spare)
    for changes in ({"points": [{"writes": False, "volumes": ["vol01"]}]}, {"shared_volumes": True}):
        host.write(**changes).check_and_remove()
        assert disk.read_bytes() == before
    untouched = spare.read_bytes()
    host.write(points=[{"writes": True, "volumes": ["vol01"]}])
    assert (disk.read_bytes() == before, spare.read_bytes() == untouched) == (False, True)


def test_the_mark_of_an_earlier_run_is_content_like_any_other(tmp_path, volume):
    disk = volume()
    Host(tmp_path, "a", disk, run_id="run0").write()
    stale = disk.read_bytes()
    Host(tmp_path, "b", disk).write().check_and_remove()
    assert disk.read_bytes() == stale


def test_the_original_is_on_disk_in_the_journal_before_the_mark_is_written(tmp_path, volume, monkeypatch):
    disk = volume()
    before, host = disk.read_bytes(), Host(tmp_path, "a", disk)

    def no_power(*_ignored):
        entries = Journal(host.book.path).entries()
        assert [entry.kind for entry in entries] == ["shared_mark"]
        raise OSError(5, "gone")

    monkeypatch.setattr(shared_mark, "_write", no_power)
    assert "cannot be marked" in refusal(host.write)
    assert disk.read_bytes() == before


def test_wherever_the_process_dies_the_restore_brings_every_byte_back(tmp_path, volume):
    disk = volume()
    before = disk.read_bytes()
    number, marked = 1, 0
    while True:
        host = Host(tmp_path, f"a{number}", disk)

        def work(host=host):
            host.write().check_and_remove()

        died = dies_at_line(number, FILES, work)
        marked += disk.read_bytes() != before
        assert host.restore()["left"] == []
        assert disk.read_bytes() == before
        if not died:
            break
        number += 9
    assert number > 100
    assert marked > 3


def test_a_restore_in_check_mode_changes_nothing_and_a_second_one_has_nothing_to_do(tmp_path, volume):
    disk = volume()
    before, host = disk.read_bytes(), Host(tmp_path, "a", disk)
    host.write()
    marked = disk.read_bytes()
    (what,) = host.restore(check=True)["restored"]
    assert what.startswith(f"shared mark {disk}")
    assert disk.read_bytes() == marked
    assert host.restore()["restored"] == [what]
    assert host.restore() == {"restored": [], "left": []}
    assert disk.read_bytes() == before


def test_a_restore_touches_no_block_that_was_written_since(tmp_path, volume):
    disk = volume()
    host = Host(tmp_path, "a", disk)
    host.write()
    disk.write_bytes(bytes(SIZE_BYTES))
    assert host.restore() == {"restored": [], "left": []}
    assert disk.read_bytes() == bytes(SIZE_BYTES)


def test_a_volume_that_is_away_keeps_the_restore_waiting_and_is_found_again_by_its_links(tmp_path, volume):
    disk = volume()
    before, host = disk.read_bytes(), Host(tmp_path, "a", disk)
    host.verdicts[0].update(kind="block", path=str(tmp_path / "by-id"))
    entry = marked_as_device(host)
    disk.rename(tmp_path / "sdz")
    assert "attach it and restore again" in host.restore()["left"][0]["why"]
    (tmp_path / "by-id").symlink_to(tmp_path / "sdz")
    assert host.restore() == {"restored": [entry], "left": []}
    assert (tmp_path / "sdz").read_bytes() == before


def marked_as_device(host):
    """Mark it although it is a file; the guard's check of the device number is tried on real devices."""
    original = shared_mark._is_device
    shared_mark._is_device = lambda *_ignored: True
    try:
        host.write()
    finally:
        shared_mark._is_device = original
    return host.book.entries()[0].what


def test_a_block_with_the_mark_of_another_run_waits_for_the_restore_of_that_run(tmp_path, volume):
    disk = volume()
    before, first = disk.read_bytes(), Host(tmp_path, "a", disk)
    first.verdicts[0]["kind"] = "block"
    marked_as_device(first)
    second = Host(tmp_path, "b", disk, run_id="run2")
    second.write()
    assert "carries the mark of run run2 on host b" in first.restore()["left"][0]["why"]
    assert second.restore()["left"] == first.restore()["left"] == []
    assert disk.read_bytes() == before


@pytest.mark.parametrize(
    ("size_bytes", "sector_bytes", "offset_bytes", "length_bytes"),
    [
        (SIZE_BYTES, None, SIZE_BYTES - 4096, 4096),
        (SIZE_BYTES + 512, 512, SIZE_BYTES - 4096, 4096),
        (SIZE_BYTES, 4096, SIZE_BYTES - 4096, 4096),
        (SIZE_BYTES, 16384, SIZE_BYTES - 16384, 16384),
        (4096, 512, 0, 4096),
    ],
)
def test_the_mark_is_the_last_whole_block_and_nothing_else(
    tmp_path, volume, size_bytes, sector_bytes, offset_bytes, length_bytes
):
    disk = volume(size_bytes=size_bytes)
    before, host = disk.read_bytes(), Host(tmp_path, "a", disk)
    host.verdicts[0]["sector_bytes"] = sector_bytes
    host.write()
    marked = disk.read_bytes()
    assert marked[offset_bytes:].startswith(shared_mark.MAGIC)
    assert len(marked) == size_bytes
    assert marked[:offset_bytes] == before[:offset_bytes]
    assert marked[offset_bytes + length_bytes :] == before[offset_bytes + length_bytes :]


def test_a_mark_names_run_host_and_volume_for_a_person_who_finds_it(tmp_path, volume):
    disk = volume()
    Host(tmp_path, "höst", disk).write()
    line = disk.read_bytes()[-4096:].split(b"\n")[2]
    assert json.loads(line) == {"run": "run1", "host": "höst", "volume": "vol01"}
    # what a restore looks for stands in the first sector, whatever a crash left of the block
    assert disk.read_bytes()[-4096:-3584].count(b"\n") >= 2


def test_a_volume_smaller_than_a_block_is_not_marked(tmp_path, volume):
    disk = volume(size_bytes=1024)
    before = disk.read_bytes()
    Host(tmp_path, "a", disk).write().check_and_remove()
    assert disk.read_bytes() == before


def test_a_volume_that_cannot_be_opened_is_one_sentence(tmp_path):
    told = refusal(Host(tmp_path, "a", tmp_path / "missing").write)
    assert "vol01" in told
    assert "No such file or directory" in told
    assert issubclass(SharedMarkError, GuardError)


def test_a_file_system_without_direct_io_is_used_through_its_cache(tmp_path, volume, monkeypatch):
    disk = volume()
    before = disk.read_bytes()
    opened, plain_open = [], os.open

    def refuse(path, flags, *more, **named):
        if str(path) == str(disk):
            opened.append(bool(flags & os.O_DIRECT))
            if opened[-1]:
                raise OSError(22, "Invalid argument")
        return plain_open(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    marks = Host(tmp_path, "a", disk).write()
    assert "is the volume vol01 of host a" in refusal(Host(tmp_path, "b", disk).write)
    marks.check_and_remove()
    assert disk.read_bytes() == before
    assert set(opened) == {True, False}
