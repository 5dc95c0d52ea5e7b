"""Directory volumes in a plan: a directory of its own for each host and run, and as large as the workloads need."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils import directory_volumes, host_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import SettingsError

from .test_plan import RUN_ID, plan

MIB = 2**20
SMALL = {"name": "small", "rw": "randread", "block_size": "8k", "num_jobs": 4, "working_set": "64MiB"}
LARGE = {"name": "large", "rw": "write", "block_size": "64k", "num_jobs": 2, "working_set": "256MiB"}
DATA = [{"path": "/mnt/data"}]


def made(*workloads, **more):
    return plan(
        **({"hosts": {"db1": {"hostmax_volumes": DATA}}, "hostmax_workloads": list(workloads or (SMALL,))} | more)
    )


def test_a_path_outside_of_dev_is_a_directory_and_each_host_has_its_own_in_it():
    run = made(hosts={host: {"hostmax_volumes": DATA} for host in ("db1", "fe80::1")})
    assert {host: entry["volumes"][0]["path"] for host, entry in run["hosts"].items()} == {
        "db1": f"/mnt/data/hostmax-{RUN_ID}-db1",
        "fe80::1": f"/mnt/data/hostmax-{RUN_ID}-fe80%3A%3A1",
    }
    for host, entry in run["hosts"].items():
        assert f"directory={entry['volumes'][0]['path']}\n" in run["points"][0]["jobs"][host]
        assert entry["volumes"][0]["given_path"] == "/mnt/data"


def test_a_path_is_what_its_kind_says():
    volumes = [{"path": "/links/disk", "kind": "block"}, {"path": "/dev/shm", "kind": "directory"}]
    run = made(hosts={"db1": {"hostmax_volumes": volumes}})
    assert [volume["kind"] for volume in run["hosts"]["db1"]["volumes"]] == ["block", "directory"]
    assert "filename=/links/disk\n" in run["points"][-1]["jobs"]["db1"]


def test_a_slash_at_the_end_means_nothing():
    run = made(hosts={"db1": {"hostmax_volumes": [{"path": "/mnt/data/"}]}})
    assert run["hosts"]["db1"]["volumes"][0]["given_path"] == "/mnt/data"


def test_each_file_is_as_large_as_the_workload_that_uses_most_of_it():
    assert made(SMALL, LARGE)["hosts"]["db1"]["volumes"][0]["files"] == [128 * MIB, 128 * MIB, 16 * MIB, 16 * MIB]


def test_files_are_whole_pages_so_that_they_can_be_written_with_direct_io():
    odd = Workload.from_mapping(
        {"name": "odd", "rw": "read", "block_size": 512, "num_jobs": 3, "working_set": 512 * 10}
    )
    assert directory_volumes.file_sizes([odd]) == [4096, 4096, 4096]


def test_a_volume_on_a_test_mount_has_a_directory_of_the_run_for_all_hosts():
    volume = {"name": "nas", "path": "mounts/nas", "kind": "directory", "mount": "mounts/nas"}
    found = directory_volumes._placed(volume, [Workload.from_mapping(SMALL)], "run1", "db1")
    assert found["path"] == "mounts/nas/hostmax-run1/db1"


def test_a_workload_without_a_working_set_is_refused_and_the_sentence_says_what_to_set():
    with pytest.raises(SettingsError, match=r"host db1: The workload '4k-randread' has no working_set.* set it"):
        made("4k-randread")


@pytest.mark.parametrize(
    ("key", "value"),
    [("size", "1TB"), ("identity", "S1"), ("overwrite", "ext4")],
    ids=["size", "identity", "overwrite"],
)
def test_what_is_said_of_devices_only_is_refused_for_a_directory(key, value):
    with pytest.raises(SettingsError, match=rf"hostmax_volumes\[0\]: {key} is of a block device"):
        made(hosts={"db1": {"hostmax_volumes": [{"path": "/mnt/data", "kind": "directory", key: value}]}})


def test_what_is_measured_is_the_same_in_every_run_though_its_directory_is_not():
    one, two = made(run_id="host_max-1"), made(run_id="host_max-2")
    assert one["points"][0]["hash"] == two["points"][0]["hash"]
    assert one["points"][0]["jobs"] != two["points"][0]["jobs"]


def test_another_directory_is_another_measurement():
    other = made(hosts={"db1": {"hostmax_volumes": [{"path": "/mnt/other"}]}})
    assert other["points"][0]["hash"] != made()["points"][0]["hash"]


def test_a_host_waits_for_the_layout_of_the_host_that_has_most_to_lay_out():
    hosts = {"db1": {"hostmax_volumes": DATA}, "db2": {"hostmax_volumes": [*DATA, {"path": "/mnt/more"}]}}
    small, large = made(SMALL, hosts=hosts), made(dict(SMALL, working_set="1TiB"), hosts=hosts)
    waits = [host_plan.for_host(run, "db1", {}) for run in (small, large)]
    # at the slowest that is accepted
    slowest_s = 2 * 2**40 / (10 * MIB)
    assert waits[1]["go_wait_s"] > slowest_s > waits[0]["go_wait_s"]
    assert waits[1]["deadline_s"] > slowest_s


def test_the_agent_is_told_the_files_and_the_report_names_what_the_user_named():
    run = made()
    (volume,) = host_plan.for_host(run, "db1", {})["volumes"]
    assert volume["files"] == [16 * MIB] * 4
    found = [{"name": "vol01", "size_bytes": 64 * MIB, "identity": None, "backing": None}]
    (known,) = host_plan.known_volumes([volume], found, {})
    assert (known["path"], known["kind"], known["size_bytes"]) == ("/mnt/data", "directory", 64 * MIB)
