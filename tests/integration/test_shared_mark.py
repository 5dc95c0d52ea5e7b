"""Marks on real devices: two hosts with one device find each other, and the device is afterwards what it was."""

from __future__ import annotations

import os

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import guard, host_state, restore, shared_mark

from ..unit.plugins.module_utils.crash import dies_at_line
from .device_bench import NEEDS_ROOT, digest, made_bench, run, volume, write_at

pytestmark = NEEDS_ROOT

bench = pytest.fixture(made_bench)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path / "state"))


def filled(bench, *options):
    """A device whose last MiB is random."""
    device = bench.loop(None, *options)
    write_at(device, (63 << 20) - 1, os.urandom(1 << 20))
    return device


def marked(host, device, run_id="run1"):
    """What the agent of a host does before the barrier, with a journal of its own for each host."""
    work_dir = host_state.make_work_dir(f"{run_id}-{host}")
    verdicts = guard.judge_volumes([volume(device)], True, base_dir=work_dir)
    assert guard.refusals(verdicts) == []
    plan = {"run_id": run_id, "host": host, "points": [{"writes": True, "volumes": ["data"]}]}
    with guard.hold(verdicts, base_dir=work_dir):
        return shared_mark.write(restore.open_journal(f"{run_id}-{host}"), verdicts, plan, work_dir)


@pytest.mark.parametrize("options", [(), ("--sector-size", "4096"), ("--direct-io=on",)], ids=str)
def test_one_device_of_two_hosts_is_found_and_is_afterwards_what_it_was(bench, options):
    device = filled(bench, *options)
    before = digest(device)
    marks = marked("a", device)
    assert digest(device) != before
    with pytest.raises(shared_mark.SharedMarkError, match=f"volume data .{device}. is the volume data of host a"):
        marked("b", device)
    marks.check_and_remove()
    assert digest(device) == before


def test_two_loop_devices_on_one_file_are_one_volume_to_two_hosts(bench):
    image = bench.image()
    one, two = bench.loop(image, "--direct-io=on"), bench.loop(image, "--direct-io=on")
    work_dir = host_state.make_work_dir("run1-a")
    book = restore.open_journal("run1-a")
    plan = {"run_id": "run1", "host": "a", "points": [{"writes": True, "volumes": ["data"]}]}
    (first,) = guard.judge_volumes([volume(one)], True)
    (second,) = guard.judge_volumes([volume(two)], True)
    marks = shared_mark.write(book, [first], plan, work_dir)
    with pytest.raises(shared_mark.SharedMarkError, match="of host a"):
        shared_mark.write(book, [second], {**plan, "host": "b"}, work_dir)
    marks.check_and_remove()


def test_devices_of_their_own_pass(bench):
    devices = [filled(bench), filled(bench)]
    before = [digest(device) for device in devices]
    marks = [marked(host, device) for host, device in zip("ab", devices)]
    for each in marks:
        each.check_and_remove()
    assert [digest(device) for device in devices] == before


def test_a_run_that_died_between_mark_and_check_is_put_back_by_the_restore(bench):
    device = filled(bench)
    before = digest(device)
    for number in (120, 200, 280):
        dies_at_line(number, ("module_utils/shared_mark.py",), lambda: marked("a", device).check_and_remove())
        (result,) = restore.restore_host("run1-a", 0)
        assert (result["left"], digest(device)) == ([], before)
    marked("a", device)
    assert digest(device) != before
    (result,) = restore.restore_host("run1-a", 0)
    assert len(result["restored"]) == 1
    assert digest(device) == before


def test_a_name_that_leads_to_another_device_by_now_is_not_marked(bench):
    device, other = filled(bench), filled(bench)
    link = bench.directory / "link"
    link.symlink_to(device)
    work_dir = host_state.make_work_dir("run1-a")
    verdicts = guard.judge_volumes([volume(str(link))], True, base_dir=work_dir)
    verdicts[0]["real_path"] = other
    before = digest(other)
    plan = {"run_id": "run1", "host": "a", "points": [{"writes": True, "volumes": ["data"]}]}
    with pytest.raises(shared_mark.SharedMarkError, match="leads to another device than a moment ago"):
        shared_mark.write(restore.open_journal("run1-a"), verdicts, plan, work_dir)
    assert digest(other) == before


def test_a_device_that_went_away_is_told_by_the_restore_and_restored_when_it_is_back(bench):
    image = bench.image()
    write_at(image, (63 << 20) - 1, os.urandom(1 << 20))
    before = digest(image)
    device = bench.loop(image)
    marked("a", device)
    run("losetup", "-d", device)
    # the node of a loop device stays, without anything behind it
    (result,) = restore.restore_host("run1-a", 0)
    assert "attach it and restore again" in result["left"][0]["why"]
    again = run("losetup", "--show", device, image)
    bench.undo.callback(run, "losetup", "-d", again)
    (result,) = restore.restore_host("run1-a", 0)
    assert result["left"] == []
    os.sync()
    assert digest(image) == before
