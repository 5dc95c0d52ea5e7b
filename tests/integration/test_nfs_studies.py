"""The NFS studies, whole, on real kernel mounts: what was set up, what was counted, and every client as it was before.

Guests are emulated: what is set up, counted and put back is real, and no rate means anything.
"""

from __future__ import annotations

import pytest

from .playbook import play, results_of, run_id_of

pytestmark = [pytest.mark.root, pytest.mark.guests]

# one request at a time, and the network as the limit: what an emulated guest can bear
LIGHT = {
    "hostmax_runtime_s": 6,
    "hostmax_ramp_s": 1,
    "hostmax_settle_s": 3,
    "hostmax_fail_on": "never",
}
LIGHT_IO = {"block_size": "8k", "io_depth": 1, "engine": "libaio"}
READ = {**LIGHT_IO, "name": "8k-light", "rw": "randread", "working_set": "8MiB"}
KEY = "net.core.rmem_max"


@pytest.fixture(scope="module")
def practices(kernel_lab, tmp_path_factory):
    """One run of the stacked conditions, in two blocks."""
    results = tmp_path_factory.mktemp("practices")
    settings = {
        **LIGHT,
        "hostmax_results": str(results),
        "hostmax_nfs_volumes": [{"source": kernel_lab.source("vol1")}],
        "hostmax_conditions": ["baseline", "nocto-actimeo", "tuned", "nconnect16"],
        "hostmax_blocks": 2,
        "hostmax_workloads": [READ],
    }
    before = {guest.name: guest.run(f"sysctl -n {KEY}").strip() for guest in kernel_lab.clients}
    with kernel_lab.server.shaped(delay_ms=20):
        done = play("nfs_practices", settings, "-i", kernel_lab.inventory(), limit_s=900)
    assert done.returncode == 0, done.stdout[-4000:]
    return kernel_lab, results, done, before


@pytest.fixture(scope="module")
def found(practices):
    return results_of(practices[1])


def test_every_condition_was_set_up_on_every_client_as_the_kernel_says(found):
    applied = {each["name"]: each["applied"] for each in found["conditions"]}
    assert list(applied) == ["baseline", "nocto-actimeo", "tuned", "nconnect16"]
    for client in ("client1", "client2"):
        mounts = {name: hosts[client]["mounts"][0] for name, hosts in applied.items()}
        assert [mount["connections"] for mount in mounts.values()] == [1, 1, 1, 16]
        assert [mount["effective"]["cto"] for mount in mounts.values()] == ["yes", "no", "no", "no"]
        assert [mount["effective"]["acregmin"] for mount in mounts.values()] == ["3", "600", "600", "600"]
        assert all(mount["effective"]["rsize"] == "262144" for mount in mounts.values())
        assert all(mount["differences"] == [] for mount in mounts.values())
        tuned = {name: [each["key"] for each in hosts[client]["tuning"]] for name, hosts in applied.items()}
        assert (tuned["baseline"], tuned["nocto-actimeo"]) == ([], [])
        assert KEY in tuned["tuned"]
        assert KEY in tuned["nconnect16"]


def test_each_block_holds_every_condition_once_and_all_were_measured(found):
    blocks: dict[int, list[str]] = {}
    for point in found["points"]:
        blocks.setdefault(point["block"], []).append(point["condition"])
        assert point["hosts_measured"] == ["client1", "client2"], point["gates"]
    assert {number: sorted(names) for number, names in blocks.items()} == {
        1: ["baseline", "nconnect16", "nocto-actimeo", "tuned"],
        2: ["baseline", "nconnect16", "nocto-actimeo", "tuned"],
    }


def test_the_kernel_counted_what_fio_read(found):
    for point in found["points"]:
        for client, counters in point["counters"].items():
            (nfs,) = counters["nfs"].values()
            reads = nfs["ops"]["READ"]
            assert nfs["xprt"]["connections"] == (16 if point["condition"] == "nconnect16" else 1)
            rate = point["per_host"][client]["read"]["iops"]
            assert reads["ops"] / nfs["seconds"] == pytest.approx(rate, rel=0.25), "its window lies inside the point's"
            # the delay that was imposed on the server's side
            assert reads["rtt_ms"] / reads["ops"] >= 20


def test_the_limit_named_is_the_far_server(found):
    kinds = [point["limit"]["kind"] for point in found["points"] if point["limit"]]
    assert kinds.count("nfs_server") >= len(kinds) - 2, kinds


def test_conditions_are_summed_up_against_the_baseline(found, practices):
    summaries = {each["condition"]: each for each in found["summaries"]}
    assert list(summaries) == ["baseline", "nocto-actimeo", "tuned", "nconnect16"]
    assert "vs baseline" in practices[2].stdout
    assert (practices[1] / "latest" / "report.html").stat().st_size > 10_000


def test_every_client_and_the_volume_are_as_before(practices):
    lab, results, _done, before = practices
    assert lab.left_behind(run_id_of(results)) == {}
    assert {guest.name: guest.run(f"sysctl -n {KEY}").strip() for guest in lab.clients} == before
    assert lab.server.run("ls /export/vol1").strip() == ""


def test_the_limits_of_a_volume_are_measured_over_mixes_and_split_over_clients(kernel_lab, tmp_path):
    settings = {
        **LIGHT,
        "hostmax_runtime_s": 4,
        "hostmax_results": str(tmp_path),
        "hostmax_nfs_volumes": [{"source": kernel_lab.source("vol1")}],
        "hostmax_total_working_set": "32MiB",
        "hostmax_workloads": [
            {**LIGHT_IO, "name": "8k-mix-r100", "rw": "randread"},
            {**LIGHT_IO, "name": "8k-mix-r50", "rw": "randrw", "read_percent": 50},
        ],
        "hostmax_nic_bytes_per_s": "1562MB",
    }
    with kernel_lab.server.shaped(delay_ms=20):
        done = play("nfs_limits", settings, "-i", kernel_lab.inventory(), limit_s=600)
    assert done.returncode == 0, done.stdout[-4000:]
    found = results_of(tmp_path)
    assert {point["workload"]["working_set_bytes"] for point in found["points"]} == {16 * 2**20}
    mixes = {point["workload"]["read_percent"]: point for point in found["points"]}
    assert sorted(mixes) == [50, 100]
    assert mixes[50]["hosts_measured"] == ["client1", "client2"]
    assert mixes[50]["write"] is not None
    assert kernel_lab.left_behind(run_id_of(tmp_path)) == {}


PREPARED = {
    "hostmax_tuning": ["azure_eda_2025"],
    "hostmax_sunrpc_slots": "auto",
}


def test_clients_are_prepared_once_and_put_back_once(kernel_lab, tmp_path):
    mounts = [{"source": kernel_lab.source("vol1"), "path": "/mnt/vol1", "profile": "azure_eda_2025"}]
    settings = {**PREPARED, "hostmax_nfs_mounts": mounts}
    client = kernel_lab.clients[0]
    keys = "^(net.core|net.ipv4.tcp|vm.dirty|sunrpc)"
    look = f"sysctl -a 2>/dev/null | grep -E '{keys}'; ls /etc/sysctl.d /mnt; cat /etc/fstab"
    before = client.run(look)

    def run(playbook, *words):
        done = play(playbook, settings if playbook == "prepare" else {}, "-i", kernel_lab.inventory(), *words)
        assert done.returncode == 0, done.stdout[-3000:]
        return [line for line in done.stdout.splitlines() if "unreachable=" in line]

    run("prepare", "--check", "--diff")
    assert client.run(look) == before
    assert all("changed=2" in line for line in run("prepare"))
    assert "nconnect=8" in client.run("grep /mnt/vol1 /proc/mounts")
    assert client.run(f"sysctl -n {KEY}").strip() == "16777216"
    assert all("changed=0" in line for line in run("prepare"))
    # its baseline would be none
    study = {"hostmax_nfs_volumes": [{"source": kernel_lab.source("vol1")}], "hostmax_results": str(tmp_path)}
    refused = play("nfs_practices", study, "-i", kernel_lab.inventory())
    assert refused.returncode == 2
    assert "were prepared and are not put back since" in refused.stdout
    assert all("changed=1" in line for line in run("restore"))
    assert client.run(look) == before
    assert all("changed=0" in line for line in run("restore"))
