# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import datetime
import json

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import rounds, stages
from ansible_collections.hostmax.storage.plugins.plugin_utils.plan import make_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import SettingsError, host_settings
from ansible_collections.hostmax.storage.plugins.plugin_utils.studies import settings_of_study
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = datetime.datetime(2026, 11, 30, 19, 40, 0, tzinfo=datetime.timezone.utc)
RUN_ID = "nfs_practices-20261130T194000Z-a1b2c3"
NFS = [{"source": "10.0.0.4:/vol1", "servers": ["10.0.0.4", "10.0.0.5"]}]
WORKLOADS = ["4k-randread", "256k-read", "1m-write"]


def plan(hosts=("a",), seed=7, study=None, run_id=RUN_ID, **variables):
    variables = {"hostmax_thin_count": 1, **variables} if "hostmax_nfs_volumes" not in variables else variables
    found = {host: host_settings({"inventory_hostname": host, **variables}, None, study) for host in hosts}
    return make_plan(run_id, "nfs_practices", found, seed, "ansible-playbook", NOW)


def own(number):
    return [{"name": f"c{place}"} for place in range(number)]


def study(hosts=("a",), **variables):
    return plan(hosts, study=settings_of_study("nfs_practices"), hostmax_nfs_volumes=NFS, **variables)


def order(made):
    found: dict[int, list[str]] = {}
    for stage in made["stages"]:
        found.setdefault(stage["block"], []).append(stage["condition"])
    return found


# -- blocks ---------------------------------------------------------------------------------------------------------


@given(number=st.integers(1, 9), blocks=st.integers(1, 6), seed=st.integers(1, 2**31 - 1))
@settings(max_examples=40, deadline=None)
def test_every_block_holds_every_condition_once_in_an_order_that_follows_from_the_seed(number, blocks, seed):
    names = [each["name"] for each in own(number)]
    made = stages.make_stages(names, blocks, seed)
    assert made == stages.make_stages(names, blocks, seed)
    assert [stage["number"] for stage in made] == list(range(1, number * blocks + 1))
    for block in range(1, blocks + 1):
        assert sorted(stage["condition"] for stage in made if stage["block"] == block) == sorted(names)
    assert [stage["block"] for stage in made] == sorted(stage["block"] for stage in made)


def test_the_order_differs_between_blocks_and_seeds():
    orders = {tuple(stages.order_of("abcdef", block, seed)) for block in range(1, 6) for seed in range(1, 6)}
    assert len(orders) > 20


def test_every_condition_comes_first_about_as_often():
    first = [stages.order_of(("a", "b", "c"), 1, seed)[0] for seed in range(1, 3001)]
    assert all(900 < first.count(name) < 1100 for name in "abc")


@given(
    number=st.integers(1, 4),
    blocks=st.integers(1, 3),
    workloads=st.lists(st.sampled_from(WORKLOADS), min_size=1, max_size=3, unique=True),
    seed=st.integers(1, 1000),
)
@settings(max_examples=15, deadline=None)
def test_each_stage_runs_all_points_from_its_own_start(number, blocks, workloads, seed):
    made = plan(seed=seed, hostmax_conditions=own(number), hostmax_blocks=blocks, hostmax_workloads=workloads)
    by_id = {point["id"]: point for point in made["points"]}
    assert len(by_id) == len(made["points"]) == number * blocks * len(workloads)
    assert len({point["hash"] for point in made["points"]}) == len(made["points"])
    assert [name for stage in made["stages"] for name in stage["points"]] == list(by_id)
    for stage in made["stages"]:
        points = [by_id[name] for name in stage["points"]]
        assert [point["workload"]["name"] for point in points] == workloads
        assert [point["offset_s"] for point in points] == [
            round(place * stages.point_length_s(made), 6) for place in range(len(points))
        ]
        assert {(point["condition"], point["block"], point["stage"]) for point in points} == {
            (stage["condition"], stage["block"], stage["number"])
        }
    assert plan(seed=seed, hostmax_conditions=own(number), hostmax_blocks=blocks, hostmax_workloads=workloads) == made


def test_points_say_where_they_stand():
    made = plan(hostmax_conditions=own(2), hostmax_blocks=1, hostmax_workloads=["4k-randread"])
    first, second = order(made)[1]
    assert [point["id"] for point in made["points"]] == [f"p01-b1-{first}-4k-randread", f"p02-b1-{second}-4k-randread"]
    several = plan(hostmax_thin_count=2, hostmax_conditions=own(1))
    assert [point["id"] for point in several["points"]] == ["p01-b1-c0-4k-randread-v01", "p02-b1-c0-4k-randread-v02"]


def test_without_conditions_there_is_one_stage():
    made = plan()
    assert made["conditions"] == []
    assert made["stages"] == [{"number": 1, "condition": None, "block": 0, "points": ["p01-4k-randread-v01"]}]
    assert made["points"][0]["condition"] is None


def test_three_blocks_are_made_of_several_conditions_and_one_of_one():
    assert list(order(plan(hostmax_conditions=own(2)))) == [1, 2, 3]
    assert list(order(plan(hostmax_conditions=own(1)))) == [1]


def test_the_hash_follows_the_condition_and_not_the_run():
    one = plan(hostmax_conditions=[{"name": "a", "tuning": {"net.core.somaxconn": 1024}}], hostmax_blocks=2)
    other = plan(hostmax_conditions=[{"name": "a", "tuning": {"net.core.somaxconn": 2048}}], hostmax_blocks=2)
    hashes = [{point["hash"] for point in made["points"]} for made in (one, other)]
    assert len(hashes[0]) == len(hashes[1]) == 2
    assert not hashes[0] & hashes[1]
    assert [p["hash"] for p in study()["points"]] == [p["hash"] for p in study(run_id="another", seed=7)["points"]]


# -- the study ------------------------------------------------------------------------------------------------------


def test_the_practices_of_the_study_run_in_three_blocks_of_four_workloads():
    made = study()
    assert len(made["conditions"]) == 7
    assert (len(made["stages"]), len(made["points"])) == (21, 84)
    assert {each["baseline"] for each in made["conditions"]} == {"baseline"}
    nconnect = next(each for each in made["conditions"] if each["name"] == "nconnect16")
    assert {"key": "net.core.rmem_max", "value": "16777216"}.items() <= next(
        key for key in nconnect["tuning_data"]["keys"] if key["key"] == "net.core.rmem_max"
    ).items()
    assert json.loads(json.dumps(made)) == made


def test_the_documented_commands_run_by_time_and_have_16_gib_a_host():
    made = study(hostmax_conditions=["baseline"], hostmax_blocks=1)
    assert [point["workload"]["name"] for point in made["points"]] == [
        "eda-8k-randread",
        "eda-8k-randwrite",
        "eda-64k-read",
        "eda-64k-write",
    ]
    for point in made["points"]:
        assert "time_based=1" in point["jobs"]["a"]
        assert point["workload"]["working_set_bytes"] == 16 * 2**30
    assert made["hosts"]["a"]["volumes"][0]["files"] == [4 * 2**30] * 4
    # four files of 4 GiB at the rate that is assumed of one host
    assert made["layout_s"] == pytest.approx(16 * 1024 / 500, abs=0.001)


def test_a_printed_length_counts_switches_and_layout():
    made = study(hostmax_runtime_s=60, hostmax_ramp_s=15)
    points_s = 84 * stages.point_length_s(made)
    assert made["planned_s"] == pytest.approx(points_s + 21 * made["switch_s"] + made["layout_s"], abs=0.01)
    assert made["switch_s"] > 0


def test_each_host_mounts_its_endpoint_and_writes_in_its_own_directory():
    made = study(("a", "b", "c"))
    sources = [made["hosts"][host]["nfs"][0]["source"] for host in "abc"]
    assert sources == ["10.0.0.4:/vol1", "10.0.0.5:/vol1", "10.0.0.4:/vol1"]
    assert made["hosts"]["b"]["nfs"] == [{"name": "vol1", "source": "10.0.0.5:/vol1", "path": "mounts/vol1"}]
    volume = made["hosts"]["b"]["volumes"][0]
    assert (volume["kind"], volume["mount"], volume["path"]) == (
        "directory",
        "mounts/vol1",
        f"mounts/vol1/hostmax-{RUN_ID}/b",
    )
    assert f"directory=mounts/vol1/hostmax-{RUN_ID}/b" in made["points"][0]["jobs"]["b"]


def test_limits_split_one_tebibyte_over_hosts_in_ten_mixes():
    made = plan(("a", "b", "c", "d"), study=settings_of_study("nfs_limits"), hostmax_nfs_volumes=NFS)
    assert len(made["points"]) == 10
    assert {point["workload"]["working_set_bytes"] for point in made["points"]} == {2**40 // 4}
    assert sum(made["hosts"]["a"]["volumes"][0]["files"]) == 2**40 // 4


def test_what_the_user_sets_comes_before_the_study():
    assert len(study(hostmax_conditions=["baseline"], hostmax_workloads=["eda-64k-read"])["points"]) == 1


# -- shared working sets and mixes ----------------------------------------------------------------------------------


def test_a_total_working_set_replaces_those_of_named_workloads_only():
    mine = {"name": "mine", "rw": "randread", "block_size": "4k", "working_set": "1MiB"}
    made = study(("a", "b"), hostmax_total_working_set="64MiB", hostmax_workloads=["eda-8k-randread", mine])
    sizes = {point["workload"]["name"]: point["workload"]["working_set_bytes"] for point in made["points"]}
    assert sizes == {"eda-8k-randread": 32 * 2**20, "mine": 2**20}


def test_other_mixes_are_made_of_each_pattern():
    made = plan(study=settings_of_study("nfs_limits"), hostmax_nfs_volumes=NFS, hostmax_read_percents=[100, 70, 0])
    assert {(p["workload"]["name"], p["workload"]["rw"], p["workload"]["read_percent"]) for p in made["points"]} == {
        ("256k-seq-r100", "read", 100),
        ("256k-seq-r70", "rw", 70),
        ("256k-seq-r0", "write", 0),
        ("8k-rand-r100", "randread", 100),
        ("8k-rand-r70", "randrw", 70),
        ("8k-rand-r0", "randwrite", 0),
    }


def test_a_name_without_a_mix_gets_one_that_says_what_it_is():
    made = plan(hostmax_workloads=["4k-randread"], hostmax_read_percents=[30], hostmax_thin_count=1)
    assert made["points"][0]["workload"]["name"] == "4k-rand-r30"


# -- rounds ---------------------------------------------------------------------------------------------------------


def test_rounds_come_in_pairs_one_pair_a_stage():
    made = plan(hostmax_conditions=own(2), hostmax_blocks=2, hostmax_workloads=["4k-randread", "256k-read"])
    numbers = []
    for stage in made["stages"]:
        told = rounds.first_round(made, stage["number"], 100.0)
        assert [point["id"] for point in told["points"]] == stage["points"]
        again = rounds.repeat_round(made, told, [stage["points"][1]], 200.0)
        numbers += [told["round"], again["round"]]
        assert (rounds.time_of(told["round"]), rounds.time_of(again["round"])) == (1, 2)
        assert again["points"] == [{"id": stage["points"][1], "offset_s": 0.0}]
        assert told["after_s"] == again["after_s"]
    assert numbers == list(range(1, 9))


def test_what_later_stages_take_is_left_after_each():
    made = plan(hostmax_conditions=own(3), hostmax_blocks=1)
    after = [stages.after_s(made, number) for number in (1, 2, 3)]
    one_s = stages.point_length_s(made) + made["switch_s"]
    assert after == pytest.approx([2 * one_s, one_s, 0.0])


def test_a_stage_whose_points_are_all_kept_is_left_out():
    made = plan(hostmax_conditions=own(2), hostmax_blocks=2, hostmax_workloads=["4k-randread", "256k-read"])
    kept = {*made["stages"][1]["points"], made["stages"][2]["points"][0]}
    for point in made["points"]:
        if point["id"] in kept:
            point.update(kept=True, offset_s=None)
    stages.set_times(made)
    assert [stage["number"] for stage in stages.to_run(made)] == [1, 3, 4]
    # the one that is left of the third begins at its T0
    assert rounds.first_round(made, 3, 0.0)["points"] == [{"id": made["stages"][2]["points"][1], "offset_s": 0.0}]
    assert made["planned_s"] == pytest.approx(5 * stages.point_length_s(made) + 3 * made["switch_s"])


# -- refusing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"hostmax_conditions": ["baseline"]},
            "the condition baseline mounts NFS and hostmax_nfs_volumes names no volume",
        ),
        (
            {"hostmax_nfs_volumes": NFS, "hostmax_workloads": ["eda-64k-read"]},
            "hostmax_nfs_volumes names volumes and hostmax_conditions does not say how to mount them",
        ),
        (
            {"hostmax_nfs_volumes": NFS, "hostmax_conditions": [{"name": "a"}], "hostmax_workloads": ["eda-64k-read"]},
            "the condition a has no mount options and hostmax_nfs_volumes are mounted",
        ),
        (
            {"hostmax_nfs_volumes": NFS, "hostmax_conditions": ["baseline"], "hostmax_workloads": ["4k-randread"]},
            "has no working_set",
        ),
        (
            {"hostmax_nfs_volumes": [{"source": "10.0.0.4/vol1"}], "hostmax_conditions": ["baseline"]},
            "hostmax_nfs_volumes[0]: The source '10.0.0.4/vol1' is not one: give server:/export",
        ),
        (
            {"hostmax_nfs_volumes": [*NFS, *NFS], "hostmax_conditions": ["baseline"]},
            "hostmax_nfs_volumes[1]: the name vol1",
        ),
        (
            {"hostmax_nfs_volumes": NFS, "hostmax_volumes": [{"path": "/dev/sdb"}]},
            "hostmax_nfs_volumes and hostmax_volumes both name volumes",
        ),
        ({"hostmax_blocks": 0, "hostmax_conditions": own(2)}, "hostmax_blocks is 0; it must be 1 to 100"),
        ({"hostmax_blocks": 3}, "hostmax_blocks is 3, and there is nothing to repeat; name hostmax_conditions"),
        ({"hostmax_blocks": "two"}, "hostmax_blocks is 'two'; it must be a whole number"),
        ({"hostmax_conditions": ["nconnect"]}, "no condition is named 'nconnect', did you mean nconnect"),
        ({"hostmax_conditions": [{"name": "a", "on": "later"}]}, "which is not known before it"),
        (
            {"hostmax_conditions": [{"name": "a", "tuning": "azure_eda_2052"}]},
            "the tuning of a: no tuning profile is named",
        ),
        ({"hostmax_read_percents": [101]}, "hostmax_read_percents has 101; a share of reads is 0 to 100"),
        ({"hostmax_total_working_set": "1Tb"}, "hostmax_total_working_set: The size '1Tb' has a unit of bits"),
        (
            {"hostmax_total_working_set": "1kB"},
            "hostmax_total_working_set is 1 KB for 1 volume together: 4k-randread needs 4 KiB",
        ),
        ({"hostmax_nic_bytes_per_s": "fast"}, "hostmax_nic_bytes_per_s: The size 'fast'"),
        ({"hostmax_server_memory": 0}, "hostmax_server_memory: The size '0' is out of range"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(variables, words):
    with pytest.raises(SettingsError) as caught:
        plan(**variables)
    said = str(caught.value)
    assert words in said
    assert "\n" not in said
    assert said.endswith((".", "?"))
