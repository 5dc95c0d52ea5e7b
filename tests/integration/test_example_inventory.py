"""The example inventories load, and the plan takes them as they stand: only the hosts are missing."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import pytest

from .playbook import ROOT, environment, play

EXAMPLE = ROOT / "inventories" / "example_multi_host.yml"
# nobody is reached, and nothing leaves this machine
NO_SSH = {"ANSIBLE_SSH_EXECUTABLE": "/bin/false", "ANSIBLE_SSH_TRANSFER_METHOD": "piped"}


def hosts_of(inventory: pathlib.Path) -> dict:
    tool = str(pathlib.Path(sys.executable).parent / "ansible-inventory")
    done = subprocess.run(
        [tool, "-i", str(inventory), "--list"], env=environment(), capture_output=True, text=True, check=True
    )
    assert "WARNING" not in done.stderr
    return json.loads(done.stdout)["_meta"]["hostvars"]


@pytest.fixture
def thin(tmp_path):
    """The variant without storage, as the comment tells to make it."""
    block = EXAMPLE.read_text().split("# ---\n")[1]
    path = tmp_path / "thin.yml"
    path.write_text("".join(f"{line[2:]}\n" for line in block.splitlines()))
    return path


def test_the_example_has_ten_clients_with_volumes():
    hosts = hosts_of(EXAMPLE)
    assert len(hosts) == 10
    assert all(host["hostmax_volumes"] and host["ansible_become"] for host in hosts.values())


def test_the_example_names_only_hosts_and_addresses_that_belong_to_nobody():
    text = EXAMPLE.read_text()
    assert all(address.startswith("192.0.2.") for address in re.findall(r"\d+\.\d+\.\d+\.\d+", text))
    assert all(name.endswith(".example.com") for name in hosts_of(EXAMPLE))


def test_check_mode_shows_the_plan_of_the_example_and_then_misses_its_hosts(tmp_path):
    done = play("host_max", {}, "-i", str(EXAMPLE), "--check", cwd=tmp_path, ANSIBLE_FORKS="4", **NO_SSH)
    said = " ".join(done.stdout.split())
    assert "host_max: 2 points on 10 hosts" in said
    assert "10 hosts are reached 4 at a time (forks)" in said
    assert "19 volumes together" in said
    # the template made each host's volumes its own
    assert "client02.example.com and 7 more hosts: 2 volumes of 1 TB" in said
    assert "400,000 IOPS within 5 % (offer of the storage's vendor, 2026-11-30)" in said
    assert "writes nothing" in said
    assert "client01.example.com" in said
    assert "unreachable" in said.lower()
    assert list(tmp_path.iterdir()) == []


def test_check_mode_shows_the_plan_of_the_variant_without_storage(tmp_path, thin):
    done = play("host_max", {}, "-i", str(thin), "--check", cwd=tmp_path, **NO_SSH)
    said = " ".join(done.stdout.split())
    assert "on 2 hosts" in said
    assert "4 thin volumes of 50 GB, each capped at 3,000 IOPS" in said
    assert "4k-randread: 24,000 IOPS within 2 %" in said
