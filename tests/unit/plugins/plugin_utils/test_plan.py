# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import datetime
import json

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import parse_job
from ansible_collections.hostmax.storage.plugins.plugin_utils.plan import log_interval_ms, make_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import SettingsError, host_settings
from ansible_collections.hostmax.storage.plugins.plugin_utils.stages import stable_number

NOW = datetime.datetime(2026, 11, 30, 19, 40, 0, tzinfo=datetime.timezone.utc)
RUN_ID = "host_max-20261130T194000Z-a1b2c3"


def disks(number):
    return [{"path": f"/dev/disk/by-path/ip-10.0.0.2:3260-lun-{n}", "size": "1TB"} for n in range(number)]


def plan(hosts=None, seed=7, run_id=RUN_ID, **variables):
    hosts = hosts or {"db1": {"hostmax_volumes": disks(6)}}
    settings = {host: host_settings({"inventory_hostname": host, **variables, **own}) for host, own in hosts.items()}
    return make_plan(run_id, "host_max", settings, seed, "ansible-playbook host_max.yml", NOW)


def counts(made):
    return [point["volumes"] for point in made["points"]]


def test_points_go_workload_by_workload_with_ascending_numbers_of_volumes():
    made = plan(hostmax_workloads=["4k-randread", "256k-read"], hostmax_volume_counts=[4, 1])
    assert [point["id"] for point in made["points"]] == [
        "p01-4k-randread-v01",
        "p02-4k-randread-v04",
        "p03-256k-read-v01",
        "p04-256k-read-v04",
    ]


@pytest.mark.parametrize(
    ("there_are", "wanted", "driven"),
    [
        (1, None, [1]),
        (6, None, [1, 2, 4, 6]),
        (20, None, [1, 2, 4, 8, 12, 16, 20]),
        (24, None, [1, 2, 4, 8, 12, 16, 20, 24]),
        (6, [1, 2], [1, 2]),
        (6, [4, 100], [4, 6]),
    ],
)
def test_the_numbers_of_volumes_are_trimmed_to_what_there_is(there_are, wanted, driven):
    settings = {} if wanted is None else {"hostmax_volume_counts": wanted}
    assert counts(plan({"db1": {"hostmax_volumes": disks(there_are)}}, **settings)) == driven


def test_each_point_starts_after_the_ramp_runtime_and_pause_of_the_one_before():
    made = plan(hostmax_runtime_s=10, hostmax_ramp_s=2, hostmax_settle_s=0.5)
    assert [point["offset_s"] for point in made["points"]] == [0.0, 12.5, 25.0, 37.5]
    assert (made["planned_s"], made["settle_s"]) == (50.0, 0.5)


def test_several_hosts_pause_longer_than_one():
    two = {host: {"hostmax_volumes": disks(1)} for host in ("a", "b")}
    assert (plan()["settle_s"], plan(two)["settle_s"]) == (0.3, 1.0)


def test_a_point_carries_the_exact_job_of_every_host():
    made = plan({"db1": {"hostmax_volumes": disks(2)}}, hostmax_runtime_s=10, hostmax_ramp_s=2)
    point = made["points"][1]
    sections = dict(parse_job(point["jobs"]["db1"]))
    assert list(sections) == ["global", "vol01", "vol02"]
    assert point["targets"] == {"db1": ["vol01", "vol02"]}
    options = dict(sections["global"])
    assert (options["runtime"], options["ramp_time"], options["ioengine"]) == ("10", "2", "io_uring")
    assert options["write_iops_log"] == "points/p02-4k-randread-v02.logs/fio"
    assert options["log_avg_msec"] == str(point["log_interval_ms"]) == "500"
    volume = dict(sections["vol02"])
    assert volume["filename"] == "/dev/disk/by-path/ip-10.0.0.2:3260-lun-1"
    assert volume["allow_file_create"] == "0"


def test_jobs_that_read_in_sequence_share_a_volume_out():
    made = plan(hostmax_workloads=["oci-iops-read"], hostmax_volume_counts=[1])
    volume = dict(dict(parse_job(made["points"][0]["jobs"]["db1"]))["vol01"])
    assert volume["offset_increment"] == volume["size"] == str(10**12 // 4 // 4096 * 4096)


def seeds(made):
    return [
        dict(options)["randseed"]
        for point in made["points"]
        for job in point["jobs"].values()
        for name, options in parse_job(job)
        if name != "global"
    ]


def test_every_volume_of_every_host_and_point_has_a_seed_of_its_own():
    two = {host: {"hostmax_volumes": disks(4)} for host in ("a", "b")}
    found = seeds(plan(two))
    assert len(set(found)) == len(found) == 2 * (1 + 2 + 4)
    assert all(1 <= int(number) <= 2**31 - 1 for number in found)


def test_the_same_seed_gives_the_same_plan_and_another_one_other_blocks():
    assert plan() == plan()
    assert not set(seeds(plan(seed=7))) & set(seeds(plan(seed=8)))


def test_without_a_seed_each_run_has_one_of_its_own_and_it_is_recorded():
    one, other = plan(seed=0), plan(seed=0, run_id="host_max-20261130T194000Z-ffffff")
    assert one["seed"] == stable_number(RUN_ID) != other["seed"]
    assert plan(seed=one["seed"])["points"] == one["points"]


def test_a_stable_number_is_the_same_on_every_machine():
    assert stable_number(7, "p01", "h", "vol01") == 217269230


def hashes(made):
    return [point["hash"] for point in made["points"]]


def test_the_hash_of_a_point_follows_what_is_measured_and_nothing_else():
    base = hashes(plan())
    assert len(set(base)) == len(base)
    assert hashes(plan(seed=8, run_id="other", hostmax_expect="none", hostmax_settle_s=3)) == base
    assert not set(hashes(plan(hostmax_runtime_s=61))) & set(base)
    assert not set(hashes(plan(hostmax_ramp_s=1))) & set(base)
    assert not set(hashes(plan(hostmax_workloads=["8k-randread"]))) & set(base)
    other = disks(6)
    other[0]["size"] = "2TB"
    assert not set(hashes(plan({"db1": {"hostmax_volumes": other}}))) & set(base)


def test_a_point_keeps_its_hash_when_others_come_and_go():
    assert hashes(plan(hostmax_volume_counts=[2])) == [hashes(plan())[1]]


def test_a_host_with_fewer_volumes_drives_all_it_has():
    made = plan({"a": {"hostmax_volumes": disks(4)}, "b": {"hostmax_volumes": disks(1)}})
    assert counts(made) == [1, 2, 4]
    assert made["points"][2]["targets"] == {"a": ["vol01", "vol02", "vol03", "vol04"], "b": ["vol01"]}


def test_a_plan_says_which_points_write():
    made = plan(hostmax_workloads=["4k-randread", "4k-randrw-70"], hostmax_volume_counts=[1])
    assert [point["writes"] for point in made["points"]] == [False, True]


def test_the_bound_of_writes_is_no_more_than_a_small_thin_volume_holds():
    small = {"localhost": {"hostmax_thin_count": 2, "hostmax_thin_size": "100MB"}}
    made = plan(hosts=small, hostmax_workloads=["4k-randwrite"])
    assert made["points"][0]["workload"]["working_set_bytes"] == 100_000_000


def test_writes_to_thin_volumes_stay_within_a_bound_that_the_disk_is_asked_for():
    made = plan({"localhost": {"hostmax_thin_count": 4}}, hostmax_workloads=["4k-randwrite", "4k-randread"])
    write, read = made["points"][0], made["points"][-1]
    assert write["workload"]["working_set_bytes"] == 256 * 2**20
    assert "size=268435456\n" in write["jobs"]["localhost"]
    assert read["workload"]["working_set_bytes"] is None
    assert made["hosts"]["localhost"]["thin"]["written_bytes"] == 4 * 256 * 2**20


def test_a_working_set_that_was_asked_for_is_kept_and_raw_volumes_are_written_whole():
    own = {"name": "w", "rw": "randwrite", "block_size": "4k", "working_set": "1GiB"}
    made = plan({"localhost": {"hostmax_thin_count": 2}}, hostmax_workloads=[own])
    assert made["hosts"]["localhost"]["thin"]["written_bytes"] == 2 * 2**30
    assert plan(hostmax_workloads=["4k-randwrite"])["points"][0]["workload"]["working_set_bytes"] is None


def test_a_plan_records_its_settings_hosts_and_origin():
    made = plan({"localhost": {"hostmax_thin_count": 1, "hostmax_thin_size": "1GiB"}}, hostmax_runtime_s="5")
    assert (made["schema"], made["run_id"], made["created_utc"]) == ("hostmax.plan/1", RUN_ID, "2026-11-30T19:40:00Z")
    assert (made["command"], made["settings"]["hostmax_runtime_s"]) == ("ansible-playbook host_max.yml", 5)
    assert made["settings"]["hostmax_ramp_s"] == made["ramp_s"] == 1
    assert "hostmax_run" not in made["settings"]
    assert made["hosts"]["localhost"]["thin"]["size_bytes"] == 2**30
    assert made["hosts"]["localhost"]["volumes"][0]["name"] == "thin01"
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize(("runtime_s", "interval_ms"), [(1, 100), (2, 100), (5, 250), (20, 1000), (60, 1000)])
def test_iops_are_logged_twenty_times_a_point_within_bounds(runtime_s, interval_ms):
    assert log_interval_ms(runtime_s) == interval_ms


def test_hosts_that_disagree_are_refused_with_both_values():
    hosts = {
        "a": {"hostmax_volumes": disks(1), "hostmax_runtime_s": 60, "hostmax_ramp_s": 1},
        "b": {"hostmax_volumes": disks(2), "hostmax_runtime_s": 30, "hostmax_ramp_s": 1},
    }
    with pytest.raises(SettingsError) as caught:
        plan(hosts)
    assert str(caught.value) == (
        "hostmax_runtime_s differs between hosts: 60 on a and 30 on b; set it once for all hosts of a run."
    )


def test_a_plan_for_nobody_is_refused():
    with pytest.raises(SettingsError, match="No host is left to plan for"):
        make_plan(RUN_ID, "host_max", {}, 0, "", NOW)


def test_a_run_can_have_more_than_ninety_nine_points():
    made = plan({"db1": {"hostmax_volumes": disks(100)}}, hostmax_volume_counts=list(range(1, 101)))
    assert (made["points"][0]["id"], made["points"][99]["id"]) == ("p001-4k-randread-v01", "p100-4k-randread-v100")


def test_what_hosts_do_not_share_stands_with_each_of_them():
    made = plan({"a": {"hostmax_volumes": disks(1)}, "b": {"hostmax_volumes": disks(2)}})
    assert "hostmax_volumes" not in made["settings"]
    assert [len(made["hosts"][host]["settings"]["hostmax_volumes"]) for host in ("a", "b")] == [1, 2]
    assert "hostmax_resume" not in {**made["settings"], **made["hosts"]["a"]["settings"]}
