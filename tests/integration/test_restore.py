"""The modules and the playbook as a user calls them: thin volumes made, seen in check mode, and put back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import cgroup, loop_device

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices and cgroups"),
    pytest.mark.skipif(loop_device.fault() is not None, reason="this host has no loop devices"),
]

ROOT = Path(__file__).resolve().parents[2]
RUN = f"hm-modules-{os.getpid()}"
THIN = {"run_id": RUN, "count": 2, "size_bytes": 10**12, "cap": {"iops": 3000, "bytes_per_s": 24576000}}


@pytest.fixture
def call(tmp_path):
    (tmp_path / "ansible.cfg").touch()
    environment = dict(
        os.environ,
        HOSTMAX_STATE=str(tmp_path / "state"),
        ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".collections"),
        ANSIBLE_CONFIG=str(tmp_path / "ansible.cfg"),
        ANSIBLE_LOCAL_TEMP=str(tmp_path / "tmp"),
        ANSIBLE_STDOUT_CALLBACK="ansible.builtin.minimal",
        PATH=os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])),
    )

    def run(*argv):
        done = subprocess.run(
            argv, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        return done.returncode, done.stdout.decode()

    def module(name, arguments, *flags):
        rc, out = run("ansible", "localhost", "-m", f"hostmax.storage.{name}", "-a", json.dumps(arguments), *flags)
        start = out.index("{", out.index("localhost |"))
        return rc, json.loads(out[start:])

    module.run = run
    yield module
    module("restore", {"run_id": RUN})


def devices(tmp_path):
    return [loop.path for loop in loop_device.attached() if loop.backing.startswith(str(tmp_path))]


def test_check_mode_shows_the_volumes_and_makes_nothing(tmp_path, call):
    rc, said = call("thin_volumes", THIN, "--check")
    assert (rc, said["changed"]) == (0, True)
    assert [(v["name"], v["device"]) for v in said["thin"]["volumes"]] == [("thin01", None), ("thin02", None)]
    assert not (tmp_path / "state").exists()
    assert devices(tmp_path) == []


def test_volumes_are_made_once_and_put_back_once(tmp_path, call):
    rc, made = call("thin_volumes", THIN)
    assert (rc, made["changed"]) == (0, True)
    assert {volume["device"] for volume in made["thin"]["volumes"]} == set(devices(tmp_path))
    assert call("thin_volumes", THIN)[1]["changed"] is False

    rc, planned = call("restore", {"run_id": RUN}, "--check")
    assert (rc, planned["changed"], len(devices(tmp_path))) == (0, True, 2)
    rc, put_back = call("restore", {"run_id": RUN})
    assert (rc, put_back["runs"]) == (0, planned["runs"])
    assert devices(tmp_path) == []
    assert os.listdir(tmp_path / "state") == []
    assert not os.path.exists(made["thin"]["cgroup"])
    assert call("restore", {"run_id": RUN})[1]["changed"] is False


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"count": 201}, "hostmax_thin_count is 201; use 1 to 200 thin volumes."),
        ({"size_bytes": 10**19 // 2}, "does not allow a file of"),
        ({"cap": {"iops": 2**32}}, "in hostmax_thin_cap give a whole number"),
        ({"run_id": "../etc"}, "The run id '../etc' is not one"),
    ],
)
def test_a_wrong_wish_is_one_sentence_and_makes_nothing(tmp_path, call, wrong, words):
    rc, said = call("thin_volumes", dict(THIN, **wrong))
    assert rc == 2
    assert words in said["msg"]
    assert "Traceback" not in json.dumps(said)
    assert not (tmp_path / "state").exists()


def test_the_playbook_restores_a_run_by_the_path_of_its_results_also_through_latest(tmp_path, call):
    call("thin_volumes", THIN)
    (tmp_path / "results" / RUN).mkdir(parents=True)
    (tmp_path / "results" / "latest").symlink_to(RUN)
    rc, out = call.run("ansible-playbook", "hostmax.storage.restore", "-e", "hostmax_run=results/latest")
    assert rc == 0
    assert f"of {RUN} put back, nothing left." in out
    assert devices(tmp_path) == []
    assert not os.path.exists(os.path.join(cgroup.detect().mount, "hostmax-" + RUN))


def test_the_playbook_without_a_run_leaves_a_young_run_alone(tmp_path, call):
    call("thin_volumes", THIN)
    rc, out = call.run("ansible-playbook", "hostmax.storage.restore")
    assert (rc, len(devices(tmp_path))) == (0, 2)
    assert "No run on this host is waiting to be restored." in out


def test_the_playbook_fails_when_something_is_left(tmp_path, call):
    call("thin_volumes", THIN)
    (tmp_path / "state" / RUN / "volumes" / "mine").write_text("of somebody else")
    rc, out = call.run("ansible-playbook", "hostmax.storage.restore", "-e", f"hostmax_run={RUN}")
    assert rc == 2
    assert "1 left: directory" in out
    (tmp_path / "state" / RUN / "volumes" / "mine").unlink()
    assert call.run("ansible-playbook", "hostmax.storage.restore", "-e", f"hostmax_run={RUN}")[0] == 0
