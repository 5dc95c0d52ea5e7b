"""The role nfs_client on real clients: mounts by name, told what differs, no change the second time, put back."""

from __future__ import annotations

import json
import subprocess

import pytest

from .playbook import PLAYBOOK, environment

pytestmark = [pytest.mark.root, pytest.mark.guests, pytest.mark.thorough]

PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"ansible.builtin.import_role": {"name": "hostmax.storage.nfs_client"}},
            {
                "ansible.builtin.debug": {"msg": "result: {{ __hostmax_nfs_mounted | to_json }}"},
                "when": "__hostmax_nfs_mounted is defined",
            },
        ],
    }
]
UNMOUNT = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"ansible.builtin.import_role": {"name": "hostmax.storage.nfs_client", "tasks_from": "unmount"}},
            {"hostmax.storage.restore": {"run_id": "prepared"}},
        ],
    }
]


@pytest.fixture
def play(kernel_lab, tmp_path):
    def run(plays, mounts, *words):
        path = tmp_path / "play.yml"
        path.write_text(json.dumps(plays))
        (tmp_path / "vars.json").write_text(json.dumps({"hostmax_nfs_mounts": mounts}))
        return subprocess.run(
            [*PLAYBOOK, "-i", kernel_lab.inventory(), str(path), "-e", f"@{tmp_path}/vars.json", *words],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    yield run
    run(UNMOUNT, [])


def results(done):
    """What the module returned on each host, in the order of the hosts."""
    lines = [line for line in done.stdout.splitlines() if '"msg": "result: ' in line]
    return [json.loads(json.loads("{" + line.strip().rstrip(",") + "}")["msg"].partition(" ")[2]) for line in lines]


def test_the_role_mounts_by_profile_each_host_at_its_endpoint_and_only_once(kernel_lab, play):
    servers = kernel_lab.server.addresses
    wanted = [
        {
            "source": kernel_lab.source("vol1"),
            "path": "/mnt/vol1",
            "profile": "azure_learn_eda",
            "options": "nconnect=4",
            "servers": servers,
        }
    ]
    would = play(PLAY, wanted, "--check", "--diff")
    assert would.returncode == 0, would.stdout
    assert "nconnect=4" in would.stdout
    done = play(PLAY, wanted)
    assert done.returncode == 0, done.stdout
    assert "The mount option intr is ignored by the kernel" in done.stderr + done.stdout
    for number, result in enumerate(results(done)):
        (mount,) = result["mounts"]
        assert result["changed"]
        assert mount["source"] == f"{servers[number % len(servers)]}:/export/vol1"
        assert (mount["connections"], mount["differences"], mount["unverified"]) == (4, [], ["intr"])
    assert [result["changed"] for result in results(play(PLAY, wanted))] == [False] * len(results(done))


def test_a_setting_that_cannot_be_is_one_sentence(kernel_lab, play):
    wrong = [{"source": kernel_lab.source("vol1"), "path": "/mnt/vol1", "profile": "azure_eda"}]
    done = play(PLAY, wrong)
    assert done.returncode == 2
    assert "no mount profile is named 'azure_eda', did you mean azure_eda_2025?" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
