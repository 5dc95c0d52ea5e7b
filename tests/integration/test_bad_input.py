"""What a user gets wrong ends in one sentence that names it, before anything was changed."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from .device_bench import run
from .playbook import NEEDS_DEVICES, left_behind, play

pytestmark = NEEDS_DEVICES


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def device(tmp_path):
    """A loop device of 64 MiB on a file of this test."""
    image = tmp_path / "disk.img"
    with image.open("wb") as handle:
        handle.truncate(64 << 20)
    path = run("losetup", "-f", "--show", str(image))
    yield path
    run("losetup", "-d", path)


def told(tmp_path, state, volumes, *options, workloads=("4k-randwrite",), **env):
    """What host_max says of these volumes; asserts that it said no and that nothing was made on the host."""
    settings = {
        "hostmax_results": str(tmp_path / "results"),
        "hostmax_volumes": volumes,
        "hostmax_workloads": list(workloads),
        "hostmax_runtime_s": 1,
    }
    done = play("host_max", settings, *options, HOSTMAX_STATE=str(state), **env)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stdout
    assert "changed=0" in done.stdout
    assert left_behind(state) == []
    return re.sub(r"\s+", " ", done.stdout)


def test_a_missing_volume_is_not_created(tmp_path, state):
    path = tmp_path / "not-there"
    assert f"volume vol01 ({path})" in told(tmp_path, state, [{"path": str(path), "kind": "block"}])
    assert not path.exists()


def test_a_volume_of_another_size_is_refused(tmp_path, state, device):
    assert "64 MiB" in told(tmp_path, state, [{"path": device, "size": "1TB"}])


def test_a_mounted_volume_is_not_written(tmp_path, state, device, request):
    run("mkfs.ext4", "-q", device)
    point = tmp_path / "mounted"
    point.mkdir()
    run("mount", device, str(point))
    request.addfinalizer(lambda: run("umount", str(point)))
    (point / "precious").write_text("data")
    assert "mounted" in told(tmp_path, state, [{"path": device}])
    assert (point / "precious").read_text() == "data"


def test_a_volume_with_a_file_system_is_not_written(tmp_path, state, device):
    run("mkfs.ext4", "-q", device)
    assert "carries the signature ext4" in told(tmp_path, state, [{"path": device}])


def test_a_volume_named_twice_through_a_link_is_refused(tmp_path, state, device):
    link = tmp_path / "alias"
    link.symlink_to(device)
    assert "vol01" in told(tmp_path, state, [{"path": device}, {"path": str(link), "kind": "block"}])


def test_a_directory_is_no_block_volume(tmp_path, state):
    assert "is not a block device" in told(tmp_path, state, [{"path": str(tmp_path), "kind": "block"}])


def test_a_directory_needs_a_workload_that_says_how_much_of_it_is_used(tmp_path, state):
    said = told(tmp_path, state, [{"path": str(tmp_path)}])
    assert "working_set" in said


def test_an_fio_that_is_too_old_is_refused(tmp_path, state, device):
    fake = tmp_path / "bin" / "fio"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho fio-3.1\n")
    fake.chmod(0o755)
    text = told(tmp_path, state, [{"path": device}], PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert "The installed fio 3.1 is too old: install fio 3.19 or newer." in text


def test_a_run_none_of_whose_hosts_can_be_reached_ends_before_anything_is_made(tmp_path, state):
    inventory = tmp_path / "hosts.yml"
    far = {"ansible_host": "127.0.0.1", "ansible_port": 1, "hostmax_volumes": [{"path": "/dev/disk/by-id/x"}]}
    inventory.write_text(json.dumps({"all": {"hosts": {"far": far}}}))
    settings = {"hostmax_results": str(tmp_path / "results")}
    done = play("host_max", settings, "-i", str(inventory), HOSTMAX_STATE=str(state))
    assert done.returncode == 2, done.stdout
    assert "far cannot be reached: connect to host 127.0.0.1 port 1: Connection refused" in done.stdout
    assert "No host of this run can be reached" in done.stdout
    assert "Make the thin volumes" not in done.stdout


def test_without_room_for_what_may_be_written_thin_volumes_are_refused(tmp_path, request):
    small = tmp_path / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=64m", "hostmax-test", str(small))
    request.addfinalizer(lambda: subprocess.run(["umount", str(small)], check=True))
    settings = {"hostmax_results": str(tmp_path / "r"), "hostmax_workloads": ["4k-randwrite"], "hostmax_runtime_s": 1}
    done = play("host_max", settings, HOSTMAX_STATE=str(small))
    assert done.returncode == 2
    assert "may come to hold" in done.stdout
    assert left_behind(small) == []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: (path / "plan.json").unlink(), "is not a run directory, it has no plan.json"),
        (lambda path: (path / "plan.json").write_text('{"schema": "hostmax.pl'), "is cut off or damaged"),
    ],
)
def test_a_run_directory_that_is_none_is_refused_by_report(tmp_path, damage, sentence):
    path = tmp_path / "run"
    path.mkdir()
    (path / "plan.json").write_text(json.dumps({"schema": "hostmax.plan/1"}))
    damage(path)
    done = play("report", {"hostmax_run": str(path)})
    assert done.returncode == 2
    assert sentence in re.sub(r"\s+", " ", done.stdout)
    assert "Traceback" not in done.stdout
