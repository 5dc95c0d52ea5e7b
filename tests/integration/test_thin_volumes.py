"""Thin volumes on real loop devices and cgroups: the cap is kept, and nothing is left, whatever happens between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import (
    cgroup,
    host_state,
    loop_device,
    restore,
    thin_volumes,
)
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Journal

from ..unit.plugins.module_utils.crash import dies_at_line
from .playbook import at_cap

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices and cgroups"),
    pytest.mark.skipif(loop_device.fault() is not None, reason="this host has no loop devices"),
]

TB = 10**12
CAP = {"iops": 3000, "bytes_per_s": 24576000}
RUN = f"hm-test-{os.getpid()}"
FILES = tuple(f"module_utils/{name}.py" for name in ("thin_volumes", "loop_device", "cgroup", "journal"))


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path / "state"))
    yield tmp_path / "state"
    for run_id in host_state.list_runs():
        restore.restore_run(run_id)
    for loop in ours(tmp_path):
        subprocess.run(["losetup", "-d", loop.path], check=True)


@pytest.fixture
def book(state):
    return Journal(os.path.join(host_state.make_work_dir(RUN), "journal.jsonl"))


def ours(tmp_path):
    return [loop for loop in loop_device.attached() if loop.backing.startswith(str(tmp_path))]


def group():
    return os.path.join(cgroup.detect().mount, "hostmax-" + RUN)


def nothing_is_left(tmp_path):
    return ours(tmp_path) == [] and not os.path.exists(group()) and not (tmp_path / "state" / RUN).exists()


def fio(made, work_dir, block_size, path=None, runtime_s=3):
    """(IOPS, bytes/s) of every volume, measured by fio in the cgroup of the run."""
    jobs = [part for v in made["volumes"] for part in (f"--name={v['name']}", f"--filename={v['path']}")]
    argv = ["fio", "--output-format=json", "--ioengine=libaio", "--direct=1", "--iodepth=32", "--readonly"]
    argv += ["--rw=randread", "--norandommap", f"--bs={block_size}", f"--runtime={runtime_s}", "--time_based", *jobs]
    join = (lambda: cgroup.join(made["cgroup"], os.getpid())) if made["cgroup"] else None
    out = subprocess.run(argv, cwd=work_dir, stdout=subprocess.PIPE, check=True, preexec_fn=join).stdout
    reads = [job["read"] for job in json.loads(out[out.index(b"{") :])["jobs"]]
    return [(read["iops"], read["bw_bytes"]) for read in reads]


@pytest.mark.fio
def test_fio_measures_the_cap_that_was_imposed(state, book):
    made = thin_volumes.create(RUN, 4, TB, CAP, book)
    assert made["cap_by"] in ("cgroup v1", "cgroup v2")
    small = [iops for iops, _rate in fio(made, state / RUN, 4096)]
    assert small == [at_cap(3000, 3)] * 4
    large = [rate for _iops, rate in fio(made, state / RUN, 262144)]
    assert large == pytest.approx([24576000] * 4, rel=0.03)


@pytest.mark.fio
def test_a_process_outside_the_group_is_not_capped(state, book):
    made = thin_volumes.create(RUN, 1, TB, CAP, book)
    ((iops, _rate),) = fio(dict(made, cgroup=None), state / RUN, 4096, runtime_s=1)
    assert iops > 2 * CAP["iops"]


def test_a_thin_volume_is_a_loop_device_with_direct_io_that_takes_no_space(state, book):
    (volume,) = thin_volumes.create(RUN, 1, TB, CAP, book)["volumes"]
    (loop,) = ours(state)
    assert (volume["kind"], volume["device"], loop.direct_io) == ("block", loop.path, True)
    assert os.path.realpath(state / RUN / volume["path"]) == loop.path
    with open(loop.path, "rb") as device:
        assert device.seek(0, os.SEEK_END) == TB
    assert os.stat(volume["backing"]).st_blocks == 0


def test_remove_leaves_devices_cgroups_and_files_as_they_were_and_a_second_one_changes_nothing(tmp_path, state, book):
    thin_volumes.create(RUN, 4, TB, CAP, book)
    assert len(ours(tmp_path)) == 4
    assert os.path.isdir(group())
    assert restore.restore_run(RUN)["left"] == []
    assert nothing_is_left(tmp_path)
    assert not restore.restore_run(RUN)["changed"]


def test_a_loop_device_on_another_file_is_not_touched(tmp_path, book):
    foreign = tmp_path / "foreign.img"
    foreign.write_bytes(bytes(2**20))
    device = subprocess.run(["losetup", "--find", "--show", foreign], stdout=subprocess.PIPE, check=True).stdout
    thin_volumes.create(RUN, 2, TB, None, book)
    restore.restore_run(RUN)
    assert [(loop.path, loop.backing) for loop in ours(tmp_path)] == [(device.decode().strip(), str(foreign))]


def test_a_loop_device_on_a_new_file_of_the_same_name_is_left(state, book):
    (volume,) = thin_volumes.create(RUN, 1, TB, None, book)["volumes"]
    subprocess.run(["losetup", "-d", volume["device"]], check=True)
    os.rename(volume["backing"], state / "old.img")
    with open(volume["backing"], "wb") as handle:
        handle.truncate(2**20)
    subprocess.run(["losetup", "--find", volume["backing"]], check=True)
    left = {item["what"].partition(" /")[0]: item["why"] for item in restore.restore_run(RUN)["left"]}
    assert "another file of that name" in left["loop device"]
    assert "not the file this run made" in left["file"]
    assert os.path.exists(volume["backing"])


def test_a_volume_in_use_is_left_with_its_file_and_goes_with_the_next_restore(tmp_path, book, monkeypatch):
    monkeypatch.setattr(loop_device, "_DETACH_WAIT_S", 0.1)
    (volume,) = thin_volumes.create(RUN, 1, TB, None, book)["volumes"]
    with open(volume["device"], "rb"):
        left = {item["what"].partition(" /")[0]: item["why"] for item in restore.restore_run(RUN)["left"]}
        assert "still in use" in left["loop device"]
        assert "still attached" in left["file"]
        assert os.path.exists(volume["backing"])
    assert restore.restore_run(RUN)["left"] == []
    assert nothing_is_left(tmp_path)


def test_a_device_whose_file_was_deleted_is_detached_all_the_same(tmp_path, book):
    (volume,) = thin_volumes.create(RUN, 1, TB, None, book)["volumes"]
    os.unlink(volume["backing"])
    assert restore.restore_run(RUN)["left"] == []
    assert nothing_is_left(tmp_path)


def test_after_a_reboot_only_the_files_are_there_to_be_removed(tmp_path, book):
    (volume,) = thin_volumes.create(RUN, 1, TB, CAP, book)["volumes"]
    subprocess.run(["losetup", "-d", volume["device"]], check=True)
    os.rmdir(group())
    run = restore.restore_run(RUN)
    assert run["left"] == []
    assert {what.partition(" /")[0] for what in run["restored"]} == {"file", "symlink", "directory"}
    assert nothing_is_left(tmp_path)


def test_a_process_of_the_run_in_the_group_is_ended_and_one_of_somebody_else_keeps_it(book, monkeypatch):
    monkeypatch.setattr(cgroup, "_EMPTY_WAIT_S", 0.2)
    made = thin_volumes.create(RUN, 1, TB, CAP, book)
    own = subprocess.Popen(["sleep", "60"], env=dict(os.environ, HOSTMAX_RUN=RUN))
    other = subprocess.Popen(["sleep", "60"])
    cgroup.join(made["cgroup"], own.pid)
    cgroup.join(made["cgroup"], other.pid)
    (left,) = restore.restore_run(RUN)["left"]
    assert f"processes {other.pid}, which are not of this run" in left["why"]
    assert (own.wait(), other.poll()) == (-signal.SIGTERM, None)
    other.kill()
    other.wait()
    assert restore.restore_run(RUN)["left"] == []


def test_a_process_that_dies_at_any_line_of_creating_leaves_nothing_that_restore_does_not_find(tmp_path, book):
    for number in range(1, 10_000, 7):
        host_state.make_work_dir(RUN)
        died = dies_at_line(number, FILES, lambda: thin_volumes.create(RUN, 1, TB, CAP, Journal(book.path)))
        assert restore.restore_run(RUN)["left"] == [], f"died at line {number}"
        assert nothing_is_left(tmp_path), f"died at line {number}"
        if not died:
            break
    assert number > 200


def test_a_process_that_dies_at_any_line_of_restoring_leaves_the_rest_to_the_next_restore(tmp_path, book):
    for number in range(1, 10_000, 11):
        host_state.make_work_dir(RUN)
        thin_volumes.create(RUN, 1, TB, CAP, Journal(book.path))
        died = dies_at_line(number, FILES, lambda: thin_volumes.remove(Journal(book.path)))
        assert restore.restore_run(RUN)["left"] == [], f"died at line {number}"
        assert nothing_is_left(tmp_path), f"died at line {number}"
        if not died:
            break
    assert number > 200


@pytest.mark.parametrize("devices", [1, 5])
def test_a_creator_that_is_killed_leaves_nothing_that_restore_does_not_find(tmp_path, book, devices):
    code = (
        "import sys; from ansible_collections.hostmax.storage.plugins.module_utils import journal, thin_volumes;"
        "thin_volumes.create(sys.argv[1], 40, 10**12, None, journal.Journal(sys.argv[2]))"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    creator = subprocess.Popen([sys.executable, "-c", code, RUN, book.path], env=environment)
    end_s = time.monotonic() + 30
    while len(ours(tmp_path)) < devices and time.monotonic() < end_s:
        pass
    creator.kill()
    assert creator.wait() == -signal.SIGKILL
    assert len(ours(tmp_path)) >= devices
    assert restore.restore_run(RUN)["left"] == []
    assert nothing_is_left(tmp_path)


def test_losetup_carries_the_mark_of_the_run_so_that_a_restore_ends_one_that_outlived_its_creator(book):
    argvs = []

    def watched(argv):
        argvs.append(argv)
        return host_state.run_command(argv)

    thin_volumes.create(RUN, 1, TB, None, book, run=watched)
    assert argvs[0][:2] == ["env", f"HOSTMAX_RUN={RUN}"]


def test_a_file_system_that_refuses_direct_io_gives_a_volume_with_a_warning(tmp_path, book):
    def refuses(argv):
        if "--direct-io=on" in argv:
            return 1, "", "losetup: failed to set up loop device: Invalid argument"
        return host_state.run_command(argv)

    made = thin_volumes.create(RUN, 1, TB, None, book, run=refuses)
    (warning,) = made["warnings"]
    assert "1 of 1 thin volumes have no direct I/O" in warning
    assert [loop.direct_io for loop in ours(tmp_path)] == [False]


def test_an_old_losetup_that_attaches_and_then_fails_over_direct_io_does_not_attach_twice(tmp_path, book):
    def attaches_and_fails(argv):
        host_state.run_command([part for part in argv if part != "--direct-io=on"])
        return 1, "", "losetup: set direct io failed"

    made = thin_volumes.create(RUN, 1, TB, None, book, run=attaches_and_fails)
    assert len(ours(tmp_path)) == 1
    assert "no direct I/O" in made["warnings"][0]


def test_no_free_loop_device_is_one_sentence_and_what_was_made_is_put_back(tmp_path, book):
    calls = []

    def runs_out(argv):
        calls.append(argv[-1])
        if len(set(calls)) > 2:
            return 1, "", "losetup: cannot find an unused loop device"
        return host_state.run_command(argv)

    with pytest.raises(host_state.HostError, match=r"thin03.img: losetup: cannot find an unused loop device; free"):
        thin_volumes.create(RUN, 4, TB, CAP, book, run=runs_out)
    assert ours(tmp_path) == []
    assert sorted(os.listdir(os.path.dirname(book.path))) == [".machine", "journal.jsonl"]


def test_a_host_that_cannot_cap_gets_volumes_without_a_cap_and_a_warning(book, monkeypatch):
    def cannot():
        raise cgroup.CgroupError("This host cannot cap volumes: no.")

    monkeypatch.setattr(cgroup, "detect", cannot)
    made = thin_volumes.create(RUN, 1, TB, CAP, book)
    assert (made["cap_by"], made["cgroup"], made["volumes"][0]["cap"]) == (None, None, None)
    assert made["warnings"] == ["This host cannot cap volumes: no. The thin volumes are made without a cap."]


def test_a_user_without_root_gets_files_and_restores_them_alone(tmp_path, monkeypatch):
    place = tmp_path / "nobody"
    place.mkdir()
    os.chown(place, 65534, 65534)
    for base in (tmp_path, *tmp_path.parents[:2]):
        os.chmod(base, 0o755)
    monkeypatch.setenv("HOSTMAX_STATE", str(place / "state"))
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            host_state.make_work_dir(RUN)
            made = thin_volumes.create(RUN, 2, TB, CAP, restore.open_journal(RUN))
            kinds = [(v["kind"], os.path.getsize(place / "state" / RUN / v["path"])) for v in made["volumes"]]
            run = restore.restore_run(RUN)
            status = 0 if kinds == [("file", TB)] * 2 and run["removed"] and not run["left"] else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.listdir(place / "state") == []
