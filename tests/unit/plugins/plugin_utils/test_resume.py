# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A run that goes on: whole points are kept as they were measured, all others are planned again."""

from __future__ import annotations

import datetime
import gzip
import json

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.fio_output import pack_sample
from ansible_collections.hostmax.storage.plugins.plugin_utils import host_plan, resume
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import clock_of_host
from ansible_collections.hostmax.storage.plugins.plugin_utils.plan import make_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_plan import describe_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.resume import ResumeError
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import create_run, open_run
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import host_settings

from .samples_example import direction, sample, volume

NOW = datetime.datetime(2026, 11, 30, 19, 40, 0, tzinfo=datetime.timezone.utc)
SETTINGS = {"hostmax_runtime_s": 10, "hostmax_ramp_s": 0, "hostmax_volume_counts": [1, 2, 3, 4]}
FACTS = {"fio_version": "fio-3.33", "kernel": "6.1.0", "cpus": 4, "root": True}
CLOCK = {"before": {"offset_s": 2.0, "uncertainty_s": 0.001, "at_s": 0.0}, "after": None}


def disks(host):
    return [{"path": f"/dev/disk/by-id/{host}-{number}"} for number in range(4)]


def settings_of(hosts, previous=None, **given):
    inventory = {host: {"inventory_hostname": host, "hostmax_volumes": disks(host), **given} for host in hosts}
    return {
        host: host_settings(variables, resume.settings_of(previous, host) if previous else None)
        for host, variables in inventory.items()
    }


def planned(run_id, hosts=("a", "b"), previous=None, **given):
    return make_plan(run_id, "host_max", settings_of(hosts, previous, **given), 7, "ansible-playbook", NOW)


def measured(point, start_s=100.0, **changes):
    given = {
        "point": point["id"],
        "hash": point["hash"],
        "window": {"start_s": start_s, "end_s": start_s + 10},
        "clock_shift_s": 0.0,
    }
    values = {name: volume(direction(1000, 32000)) for name in point["targets"]["a"]}
    return sample(values, **{**given, **changes})


def keep(run, host, point, **changes):
    run.add_sample(host, pack_sample(measured(point, **changes)), gzip.compress(b"{}" * 1000))


@pytest.fixture
def old(tmp_path):
    """Two hosts, four points: the first two were measured by both, the third by one of them."""
    run = create_run(str(tmp_path / "results"), "host_max-old", planned("host_max-old", **SETTINGS))
    for host in ("a", "b"):
        run.write_facts(host, {**FACTS, "clock": CLOCK, "volumes": []})
        for point in run.plan["points"][:2]:
            keep(run, host, point)
    keep(run, "a", run.plan["points"][2])
    return run


def resumed(old, **given):
    plan = planned("host_max-new", previous=old, **given)
    changed = resume.changed_settings(old, {host: s.values for host, s in settings_of("ab", old, **given).items()})
    return plan, resume.keep_points(plan, old, changed)


def kept_ids(old, **given):
    return sorted(resumed(old, **given)[1])


# -- what is kept ---------------------------------------------------------------------------------------------------


def test_points_that_every_host_measured_are_kept_and_the_others_follow_each_other(old):
    plan, kept = resumed(old)
    first, second, third, fourth = plan["points"]
    assert kept == {first["id"]: first["id"], second["id"]: second["id"]}
    assert [point.get("kept") for point in plan["points"]] == [True, True, None, None]
    assert [point["offset_s"] for point in plan["points"]] == [None, None, 0.0, 11.0]
    assert (plan["planned_s"], plan["resumed_from"], plan["changed_settings"]) == (22.0, "host_max-old", [])
    assert [point["id"] for point in host_plan.for_host(plan, "a", {})["points"]] == [third["id"], fourth["id"]]


def test_nothing_but_the_run_directory_has_to_be_given_again(old):
    plan, _kept = resumed(old)
    assert {key: plan["settings"][key] for key in SETTINGS} == SETTINGS


@pytest.mark.parametrize(
    "damage",
    [
        {"status": "failed"},
        {"faults": ["fio was killed"]},
        {"hash": "another"},
        {"window": None},
        # three of ten seconds are not shared with host a
        {"start_s": 103.0},
        {"clock_shift_s": 3.0},
        {"clock": {"offset_s": 5.0, "uncertainty_s": 0.0}},
    ],
    ids=str,
)
def test_a_point_is_measured_again_when_one_sample_of_it_is_not_whole(old, damage):
    first, second = old.plan["points"][:2]
    keep(old, "b", second, **damage)
    assert kept_ids(old) == [first["id"]]


def test_hosts_that_began_together_by_their_own_clocks_have_measured_together(old):
    facts = {**FACTS, "clock_offset_s": 5.0, "clock_uncertainty_s": 0.002, "volumes": []}
    old.write_facts("b", facts)
    first = old.plan["points"][0]
    keep(old, "b", first, start_s=103.0)
    assert kept_ids(old) == [first["id"]]
    assert resume.clock_of(measured(first), clock_of_host(facts)) == {"offset_s": 5.0, "uncertainty_s": 0.002}


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_a_point_whose_raw_output_is_missing_or_cut_off_is_measured_again(old, damage):
    first, second = old.plan["points"][:2]
    damage(old.host_path("b") / f"{first['id']}.json.gz")
    assert kept_ids(old) == [second["id"]]


def test_a_setting_that_is_given_wins_and_the_plan_says_what_it_costs(old):
    plan, kept = resumed(old, hostmax_runtime_s=5)
    assert (kept, plan["runtime_s"], plan["planned_s"]) == ({}, 5, 4 * 7.0)
    text = describe_plan(plan, None, NOW)
    assert "resumes   0 points kept from host_max-old, 4 to measure, about 28 s" in text
    assert "given otherwise than in that run: hostmax_ramp_s, hostmax_runtime_s;" in text


def test_further_points_can_be_added_to_a_run_and_names_of_kept_ones_are_those_of_the_new_plan(old):
    plan, kept = resumed(old, hostmax_volume_counts=[2, 4])
    new_id = next(iter(kept))
    assert len(kept) == 1
    assert (new_id[:3], kept[new_id][:3]) == ("p01", "p02")
    job = plan["points"][0]["jobs"]["a"]
    assert job == old.plan["points"][1]["jobs"]["a"]
    # what was run is recorded as it was run
    assert f"{kept[new_id]}.logs" in job


def test_a_plan_tells_how_much_is_kept_and_how_long_the_rest_takes(old):
    plan, _kept = resumed(old, hostmax_workloads=["4k-randread", "4k-randwrite"], hostmax_volume_counts=[1, 2])
    text = describe_plan(plan, None, NOW)
    assert "resumes   2 points kept from host_max-old, 2 to measure, about 22 s" in text
    assert "DATA IS OVERWRITTEN by 4k-randwrite" in text


def test_kept_points_are_not_told_as_written(old):
    plan, _kept = resumed(old, hostmax_workloads=["4k-randread", "4k-randwrite"], hostmax_volume_counts=[1, 2])
    for point in plan["points"]:
        point["kept"] = point["writes"]
    assert "nothing: every workload reads only" in describe_plan(plan, None, NOW)


# -- taking over ----------------------------------------------------------------------------------------------------


def take_over(old, run_id, **given):
    plan, kept = resumed(old, **given)
    run = create_run(str(old.path.parent), run_id, {**plan, "run_id": run_id})
    resume.copy_points(old, run, kept)
    return open_run(run.path)


def test_samples_and_raw_output_come_along_with_the_clock_they_were_measured_by(old):
    run = take_over(old, "host_max-new")
    before, _faults = old.read_samples()
    after, faults = run.read_samples()
    assert faults == []
    assert sorted(after) == [point["id"] for point in run.plan["points"][:2]]
    for point_id, by_host in after.items():
        for host, taken in by_host.items():
            assert taken.pop("clock") == {"offset_s": 2.0, "uncertainty_s": 0.001}
            assert taken == before[point_id][host]
            raw = f"{point_id}.json.gz"
            assert (run.host_path(host) / raw).read_bytes() == (old.host_path(host) / raw).read_bytes()
    assert run.read_notes() == ["2 of 4 points were taken over from host_max-old."]


def test_a_resumed_run_can_be_resumed_before_and_after_it_reached_a_host(old):
    second = take_over(old, "host_max-second")
    assert second.read_facts("a") is None
    keep(second, "b", second.plan["points"][2])
    keep(second, "a", second.plan["points"][2])
    third = take_over(second, "host_max-third")
    assert third.plan["resumed_from"] == "host_max-second"
    assert len(third.read_samples()[0]) == 3
    assert resume.measured_with(third, "a")["fio_version"] == "fio-3.33"
    # measured by the clock of the first run, although the second knows none
    assert third.read_samples()[0][third.plan["points"][0]["id"]]["a"]["clock"]["offset_s"] == 2.0


def test_a_clock_that_moved_is_taken_at_the_time_of_the_sample(old):
    before = {"offset_s": 2.0, "uncertainty_s": 0.001, "at_s": 0.0}
    after = {"offset_s": 4.0, "uncertainty_s": 0.003, "at_s": 196.0}
    clock = clock_of_host({"clock": {"before": before, "after": after}})
    taken = resume.clock_of(measured(old.plan["points"][0], start_s=101.0), clock)
    assert taken == {"offset_s": pytest.approx(3.0, abs=0.02), "uncertainty_s": 0.003}


def test_a_clock_that_was_set_during_the_run_has_not_drifted(old):
    after = {"offset_s": 62.0, "uncertainty_s": 0.001, "at_s": 200.0}
    for point in old.plan["points"][:2]:
        keep(old, "a", point, start_s=160.0, clock_shift_s=60.0)
    old.write_facts("a", {**FACTS, "clock": {**CLOCK, "after": after}, "volumes": []})
    run = take_over(old, "host_max-new")
    assert len(run.read_samples()[0]) == 2
    for by_host in run.read_samples()[0].values():
        assert by_host["a"]["clock"]["offset_s"] == pytest.approx(2.0)


# -- hosts that are not what they were ------------------------------------------------------------------------------


def found(**changes):
    return {host: {"host": {**FACTS, **changes}, "volumes": []} for host in ("a", "b")}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fio_version": "fio-3.40"}, "on a fio is fio-3.40 and was fio-3.33"),
        ({"fio_version": None}, "on a fio is not installed and was fio-3.33"),
        ({"kernel": "6.12.0"}, "on a the kernel is 6.12.0 and was 6.1.0"),
        ({"cpus": 8}, "on a the number of CPUs is 8 and was 4"),
        ({"root": False}, "on a running as root is no and was yes"),
    ],
)
def test_what_was_measured_with_something_else_is_not_kept(old, changes, words):
    assert resume.differences(old, found()) == []
    assert resume.differences(old, found(**changes))[0] == words


def test_another_disk_by_the_same_path_is_not_the_volume_that_was_measured(old):
    entry = {"name": "vol01", "path": "/dev/sdb", "identity": "naa.1", "size_bytes": 10}
    old.write_facts("a", {**FACTS, "volumes": [entry]})
    seen = {"name": "vol01", "path": "/dev/sdb", "identities": ["naa.1", "S1"], "size_bytes": 10}

    def told(**changes):
        return resume.differences(old, {"a": {"host": FACTS, "volumes": [{**seen, **changes}]}})

    assert told() == []
    expected = ["on a /dev/sdb is not the volume vol01 that was measured"]
    assert told(identities=["naa.2"]) == told(size_bytes=11) == expected


def test_a_run_whose_points_are_dropped_measures_all_of_them(old):
    run = take_over(old, "host_max-new")
    fresh = planned("host_max-new", previous=old)
    run.rewrite_plan(resume.keep_nothing(fresh, run.plan))
    again = open_run(run.path)
    assert [point["offset_s"] for point in again.plan["points"]] == [0.0, 11.0, 22.0, 33.0]
    assert (again.read_samples(), again.read_notes()) == (({}, []), [])
    assert list(run.path.glob("hosts/*/*.json.gz")) == []
    assert "resumes   0 points kept from host_max-old, 4 to measure" in describe_plan(again.plan, None, NOW)


# -- what cannot be resumed -----------------------------------------------------------------------------------------


def refusal(*arguments):
    with pytest.raises(ResumeError) as caught:
        resume.open_previous(*arguments)
    return str(caught.value)


def test_a_run_of_another_playbook_is_refused(old):
    assert refusal(old.path, "nfs_limits", ["a", "b"]) == (
        f"hostmax_resume {old.path} is a run of host_max and this is nfs_limits; name a run of this playbook."
    )


def test_a_run_of_other_hosts_is_refused_with_their_names(old):
    assert "made for other hosts, b of it is not in this run and c, d are not in it: points count only with all" in (
        refusal(old.path, "host_max", ["a", "c", "d"])
    )
    assert resume.open_previous(str(old.path), "host_max", ["b", "a"]).path == old.path


def test_a_run_with_nothing_left_to_measure_says_how_its_report_is_made(old):
    with pytest.raises(ResumeError) as caught:
        resumed(old, hostmax_volume_counts=[1, 2])
    assert str(caught.value) == (
        "Nothing of host_max-old is left to measure, all 2 points were measured by every host; make its report with "
        f"ansible-playbook hostmax.storage.report -e hostmax_run={old.path}"
    )


@pytest.mark.parametrize("damage", [{"points": [{}]}, {"points": 7}, {"hosts": []}, {"settings": "x"}], ids=str)
def test_a_damaged_plan_is_refused_in_one_sentence(old, damage):
    new = planned("host_max-new", **SETTINGS)
    (old.path / "plan.json").write_text(json.dumps({**old.plan, **damage}))
    with pytest.raises(ResumeError, match="damaged"):
        resume.keep_points(new, resume.open_previous(str(old.path), "host_max", ["a", "b"]), [])


def test_a_damaged_line_of_samples_costs_its_point_only(old):
    path = old.path / "samples.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0][:40] + "\n", *lines[1:]]))
    assert kept_ids(old) == [old.plan["points"][1]["id"]]
