"""The guests are what they say: hosts with a kernel of their own that mount from each other, break and come back."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import host_state

from tests.lab.kernel import KernelLab

from .playbook import PLAYBOOK, ROOT, environment, soon

pytestmark = [pytest.mark.root, pytest.mark.guests, pytest.mark.thorough]


@pytest.fixture
def client(kernel_lab):
    """The first client, with nothing mounted after the test."""
    guest = kernel_lab.clients[0]
    guest.run("mkdir -p /mnt/lab")
    yield guest
    guest.run("while umount -f /mnt/lab 2>/dev/null; do :; done; rmdir /mnt/lab", 120)


def mount(guest, source: str, options: str) -> None:
    guest.run(["mount", "-t", "nfs", "-o", options, source, "/mnt/lab"])


def test_a_mount_has_as_many_connections_as_it_asks_for(kernel_lab, client):
    mount(client, kernel_lab.source("vol1"), "vers=3,nconnect=8")
    client.run("for n in 1 2 3 4 5 6 7 8 9; do echo $n >/mnt/lab/hello; done; rm /mnt/lab/hello")
    assert client.run("ss -Htn state established '( dport = 2049 )' | wc -l").strip() == "8"
    assert client.run("grep -c 'xprt:.tcp' /proc/self/mountstats").strip() == "8"


def test_version_4_1_is_served_with_blocks_of_a_megabyte(kernel_lab, client):
    mount(client, kernel_lab.source("vol2"), "vers=4.1")
    options = client.run("grep ' /mnt/lab ' /proc/mounts").split()[3].split(",")
    assert {"vers=4.1", "rsize=1048576", "wsize=1048576"} <= set(options)


def test_a_server_that_offers_smaller_blocks_lowers_those_of_a_mount(kernel_lab, client):
    with kernel_lab.server.serving_blocks_of(65536):
        mount(client, kernel_lab.source("vol1"), "vers=3,rsize=262144,wsize=262144")
        options = client.run("grep ' /mnt/lab ' /proc/mounts").split()[3].split(",")
        client.run("umount /mnt/lab")
    assert {"rsize=65536", "wsize=65536"} <= set(options)
    mount(client, kernel_lab.source("vol1"), "vers=3,rsize=262144,wsize=262144")
    assert "rsize=262144" in client.run("grep ' /mnt/lab ' /proc/mounts")


def test_both_addresses_of_the_server_give_the_same_volume(kernel_lab, client):
    mount(client, kernel_lab.source("vol1"), "vers=3")
    client.put("the same", "/mnt/lab/hello")
    client.run("umount /mnt/lab")
    mount(client, kernel_lab.source("vol1", endpoint=1), "vers=3")
    assert client.get("/mnt/lab/hello") == "the same"
    client.run("rm /mnt/lab/hello")


def test_an_export_for_others_and_one_to_read_only_are_refused_as_such(kernel_lab, client):
    refused = client.ssh(["mount", "-t", "nfs", "-o", "vers=3", kernel_lab.source("secret"), "/mnt/lab"])
    assert "access denied by server" in refused.stderr
    mount(client, kernel_lab.source("readonly"), "vers=3")
    assert client.get("/mnt/lab/file") == "content\n"
    assert "Read-only file system" in client.ssh("touch /mnt/lab/other").stderr


def test_a_delay_of_the_server_is_seen_by_every_answer(kernel_lab, client):
    def round_trip_ms() -> float:
        words = client.run(["ping", "-c", "3", "-i", "0.2", kernel_lab.server.address])
        return float(words.rsplit("= ", 1)[1].split("/")[0])

    before_ms = round_trip_ms()
    with kernel_lab.server.shaped(delay_ms=200):
        assert round_trip_ms() >= 200
    assert round_trip_ms() < 200 + before_ms


def test_a_server_that_hangs_or_is_cut_off_answers_again_afterwards(kernel_lab, client):
    reach = ["ping", "-c", "1", "-W", "2", kernel_lab.server.address]
    with kernel_lab.server.frozen():
        assert client.ssh(reach).returncode != 0
    assert client.ssh(["ping", "-c", "1", "-W", "20", kernel_lab.server.address]).returncode == 0
    kernel_lab.server.cut()
    try:
        assert client.ssh(reach).returncode != 0
    finally:
        kernel_lab.server.heal()
    assert client.ssh(["ping", "-c", "1", "-W", "20", kernel_lab.server.address]).returncode == 0


def test_a_client_comes_back_from_a_reboot_with_its_disk_and_without_its_mounts(kernel_lab, client):
    mount(client, kernel_lab.source("vol1"), "vers=3")
    client.put("kept", "/root/kept")
    client.run("sync")
    before, machine = client.boot_id(), client.get("/etc/machine-id")
    client.reboot(clean=False)
    assert client.boot_id() != before
    assert client.get("/etc/machine-id") == machine
    assert client.get("/root/kept") == "kept"
    assert "/mnt/lab" not in client.get("/proc/mounts")
    client.run("rm /root/kept")


def test_what_a_run_leaves_is_told(kernel_lab, client):
    assert kernel_lab.left_behind("r1") == {}
    client.run(
        "mkdir -p /var/lib/hostmax/r1; touch /etc/sysctl.d/90-hostmax.conf;"
        "HOSTMAX_RUN=r1 setsid sleep 300 >/dev/null 2>&1 & echo $! >/run/lab-pid"
    )
    pid = client.get("/run/lab-pid").strip()
    try:
        assert kernel_lab.left_behind("r1") == {
            client.name: sorted(
                [
                    "/etc/sysctl.d/90-hostmax.conf",
                    "/var/lib/hostmax",
                    "/var/lib/hostmax/r1",
                    f"process {pid}",
                ]
            )
        }
    finally:
        client.run(f"kill {pid}; rm -r /var/lib/hostmax /etc/sysctl.d/90-hostmax.conf /run/lab-pid")


def test_ansible_reaches_the_clients_by_the_inventory(kernel_lab):
    ansible = str(pathlib.Path(PLAYBOOK[0]).with_name("ansible"))
    done = subprocess.run(
        [ansible, "all", "-i", kernel_lab.inventory(), "-m", "ansible.builtin.ping", "--one-line"],
        env=environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.count("SUCCESS") == len(kernel_lab.clients), done.stdout + done.stderr


def processes_of(directory: pathlib.Path) -> list[dict]:
    """Who runs for a lab: its guests and what holds their network."""
    with contextlib.suppress(OSError, ValueError):
        state = json.loads((directory / "lab.json").read_text())
        found = [state["network"], *(guest["process"] for guest in state["guests"].values())]
        return [who for who in found if host_state.is_alive(who)]
    return []


def test_a_lab_that_was_taken_down_leaves_nothing(kernel_lab, tmp_path):
    with KernelLab(tmp_path, names=["client1"]) as lab:
        ours = processes_of(tmp_path)
        sockets = pathlib.Path(json.loads((tmp_path / "lab.json").read_text())["sockets"])
        assert len(ours) == 2
        assert list(sockets.iterdir())
        # the network of two labs is not one: the other's server is not there
        assert lab.clients[0].ssh(["ping", "-c", "1", "-W", "1", kernel_lab.server.address]).returncode != 0
        # also one that was switched off and on again is known
        lab.clients[0].power_off()
        assert len(processes_of(tmp_path)) == 1
        lab.clients[0].start()
        ours += processes_of(tmp_path)
        assert len(processes_of(tmp_path)) == 2
    assert not any(map(host_state.is_alive, ours))
    assert not sockets.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_guests_end_with_the_tests_that_started_them_even_if_these_are_killed(kernel_lab, tmp_path):
    program = "import pathlib, sys; from tests.lab.kernel import KernelLab; KernelLab(pathlib.Path(sys.argv[1])).up()"
    owner = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT)
    assert soon(lambda: len(processes_of(tmp_path)) == 4, limit_s=60)
    owner.kill()
    owner.wait()
    assert soon(lambda: not processes_of(tmp_path))
    # what is left on the disk goes with the next one
    KernelLab(tmp_path).down()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_lab_that_is_up_is_not_started_twice(kernel_lab):
    assert KernelLab().up() is False
