"""The test hosts are what they say: machines of their own, broken on demand, gone afterwards."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.lab import Lab
from tests.lab.machine import loops

from .playbook import NEEDS_LAB, ROOT

pytestmark = NEEDS_LAB

WHO = """
import json, os, socket, time
def read(path):
    return open(path).read().strip()
print(json.dumps({
    "name": socket.gethostname(),
    "address": os.environ["SSH_CONNECTION"].split()[2],
    "boot": read("/proc/sys/kernel/random/boot_id"),
    "machine": read("/etc/machine-id"),
    "processes": os.readlink("/proc/self/ns/pid"),
    "state": os.path.realpath("/var/lib/hostmax"),
    "home": os.stat("/root").st_ino,
    "temporary": os.stat("/tmp").st_ino,
}))
"""


def ask(host, program: str):
    done = host.ssh(f"/usr/bin/python3 -c '{program}'")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def traces(name: str) -> list[str]:
    """What a lab of this name has on the machine."""
    groups = [str(path) for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/{name}*")]
    mounts = [line for line in pathlib.Path("/proc/self/mounts").read_text().splitlines() if name in line]
    files = [str(path) for path in pathlib.Path("/var/tmp").glob(name)]
    processes = [
        path.parent.name
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name != str(os.getpid()) and name in path.read_text()
    ]
    return groups + mounts + files + processes + loops(f"/{name}/")


def attach(host) -> str:
    """A loop device on a file in the host's state directory, as a run makes it."""
    return host.run(
        f"mkdir -p {host.state} && truncate -s 1M {host.state}/x.img && losetup -f --show {host.state}/x.img"
    ).strip()


def test_two_hosts_share_nothing_that_makes_a_machine(lab):
    said = [ask(lab.host(name), WHO) for name in ("a", "b")]
    assert [one["name"] for one in said] == ["a", "b"]
    shared = [key for key in said[0] if said[0][key] == said[1][key]]
    assert shared == []
    here = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert here not in (said[0]["boot"], said[1]["boot"])


def test_a_host_whose_clock_is_wrong_runs_fio_by_that_clock(lab):
    host = lab.host("a", clock_s=30)
    before_s = time.time()
    shown_s, python_s, fio_s = (
        float(host.ssh(command).stdout.split()[-1])
        for command in (
            "date +%s.%N",
            "/usr/bin/python3 -c 'import time; print(time.time())'",
            "fio --name=x --ioengine=null --size=4k --log_unix_epoch=1 --write_iops_log=/tmp/l --output=/tmp/o && "
            "head -n 1 /tmp/l_iops.1.log | tr -d , | { read ms rest; echo $((ms / 1000)); }",
        )
    )
    after_s = time.time()
    for host_s in (shown_s, python_s, fio_s):
        # fio's log is in whole seconds here
        assert before_s + 29 <= host_s <= after_s + 30


def test_a_refusing_host_goes_on_running_and_accepts_again(lab):
    host = lab.host("a")
    host.run("sleep 60 > /dev/null 2>&1 &")
    host.refuse()
    assert "refused" in host.ssh("true").stderr
    assert "sleep 60" in host.processes().values()
    host.accept()
    assert host.ssh("true").returncode == 0


def test_a_cut_connection_hangs_and_goes_on_when_it_is_healed(lab):
    host = lab.host("a")
    command = ["ssh", *host.ssh_words("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "1\n"
        host.cut()
        assert "timed out" in host.ssh("true").stderr
        assert running.poll() is None
        host.heal()
        assert running.stdout.read().split()[-1] == "8"
    assert host.ssh("true").returncode == 0


def test_a_rebooted_host_keeps_its_files_and_nothing_that_ran(lab):
    host = lab.host("a", disk_bytes=2**24)
    attach(host)
    host.run("sleep 60 > /dev/null 2>&1 &")
    before = ask(host, WHO)
    host.reboot()
    after = ask(host, WHO)
    assert after["boot"] != before["boot"]
    assert after["name"] == before["name"]
    assert after["machine"] == before["machine"]
    assert "sleep 60" not in host.processes().values()
    assert loops(host.mark) == []
    assert (host.state / "x.img").exists()


def test_what_a_run_leaves_on_a_host_is_named(lab):
    host = lab.host("a")
    assert host.left_behind("r1") == []
    device = attach(host)
    (host.cgroup / "hostmax-r1").mkdir()
    host.run(
        "HOSTMAX_RUN=r1 sleep 60 > /dev/null 2>&1 & mkdir -p /root/.ansible/tmp/x; touch /tmp/ansible_y /dev/shm/z"
    )
    found = host.left_behind("r1")
    for name in (device, "hostmax-r1", "x.img", "process ", ".ansible/tmp/x", "ansible_y", "/dev/shm/z"):
        assert any(name in one for one in found), (name, found)


def test_a_small_disk_is_full_when_it_is_full(lab):
    host = lab.host("a", disk_bytes=2**20)
    host.state.mkdir()
    assert "No space left" in host.ssh("head -c 2M /dev/zero > /var/lib/hostmax/x").stderr


@pytest.mark.parametrize("error", [KeyboardInterrupt, AssertionError])
def test_nothing_of_a_lab_is_left_after_it_however_it_ends(error):
    names = []

    def use() -> None:
        with Lab() as lab:
            names.append(lab.directory.name)
            attach(lab.host("a", disk_bytes=2**24))
            attach(lab.host("b"))
            assert len(traces(names[0])) > 6
            raise error

    with pytest.raises(error):
        use()
    assert traces(names[0]) == []


def test_the_next_lab_removes_what_a_killed_one_left():
    program = "from tests.lab import Lab; lab = Lab().__enter__(); lab.host('a'); print(lab.directory.name, flush=True)"
    dead = subprocess.Popen(
        [sys.executable, "-c", program + "; input()"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    name = dead.stdout.readline().strip()
    assert traces(name) != []
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    with Lab():
        assert traces(name) == []
