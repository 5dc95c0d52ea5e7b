# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Conditions measured in blocks, stage by stage, on real fio and devices; what they change is in other tests."""

from __future__ import annotations

import json

import pytest

from .playbook import NEEDS_DEVICES, left_behind, play

pytestmark = NEEDS_DEVICES

TWO = [{"name": "as-it-is", "title": "nothing done"}, {"name": "again", "on": "as-it-is"}]
SMALL = {
    "hostmax_conditions": TWO,
    "hostmax_blocks": 2,
    "hostmax_thin_count": 1,
    "hostmax_thin_size": "10GB",
    "hostmax_thin_cap": {"iops": 2000},
    "hostmax_runtime_s": 2,
    "hostmax_ramp_s": 0,
    "hostmax_expect": "none",
    "hostmax_fail_on": [],
    "hostmax_seed": 5,
}


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """The host's state directory, for this module alone."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def compared(tmp_path_factory, state):
    """One run of two conditions in two blocks: what it printed, and its results directory."""
    results = tmp_path_factory.mktemp("results")
    return play("host_max", {**SMALL, "hostmax_results": str(results)}, HOSTMAX_STATE=str(state)), results


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_stage_is_measured_once_in_the_order_of_the_plan(compared):
    done, results = compared
    assert done.returncode == 0, done.stdout
    plan = json.loads((results / "latest" / "plan.json").read_text())
    samples = lines(results / "latest" / "samples.jsonl")
    assert [sample["point"] for sample in samples] == [point["id"] for point in plan["points"]]
    assert [sample["round"] for sample in samples] == [1, 3, 5, 7]
    assert {stage["block"] for stage in plan["stages"]} == {1, 2}


def test_the_plan_and_each_stage_are_told(compared):
    done, _results = compared
    assert "compares  as-it-is: nothing (nothing done)" in done.stdout
    assert "2 blocks, each of all 2 conditions in a random order of its own, from the seed:" in done.stdout
    assert done.stdout.count("(stage ") == 4
    assert "(stage 4 of 4, block 2 of 2)" in done.stdout


def test_nothing_counts_as_measured_again(compared):
    done, results = compared
    assert "repeated" not in done.stdout
    points = json.loads((results / "latest" / "results.json").read_text())["points"]
    assert {(point["block"], point["condition"]) for point in points} == {
        (block, each["name"]) for block in (1, 2) for each in TWO
    }
    assert {point["repeat"] for point in points} == {0}


def test_a_resumed_run_leaves_out_the_stages_that_were_measured(compared, tmp_path, state):
    _done, results = compared
    run = (results / "latest").resolve()
    kept = lines(run / "samples.jsonl")
    (run / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in kept[:2]))
    again = {"hostmax_resume": str(run), "hostmax_results": str(tmp_path)}
    done = play("host_max", again, HOSTMAX_STATE=str(state))
    assert "2 points kept" in done.stdout, done.stdout
    assert done.stdout.count("(stage ") == 2
    plan = json.loads((tmp_path / "latest" / "plan.json").read_text())
    assert [bool(point.get("kept")) for point in plan["points"]] == [True, True, False, False]
    assert {sample["point"] for sample in lines(tmp_path / "latest" / "samples.jsonl")} == {
        point["id"] for point in plan["points"]
    }


def test_check_mode_shows_the_plan_of_a_study_and_stops(tmp_path, state):
    settings = {"hostmax_nfs_volumes": [{"source": "192.0.2.1:/vol1"}], "hostmax_results": str(tmp_path)}
    for name, words in (("nfs_practices", "84 points on 1 host"), ("nfs_limits", "10 points on 1 host")):
        done = play(name, settings, "--check", HOSTMAX_STATE=str(state))
        assert done.returncode == 0, done.stdout
        assert f"{name}: {words}" in done.stdout
        assert "none: check mode stops here and changes nothing" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_cannot_be_set_up_is_named_with_the_reason(tmp_path, state):
    """Nobody answers at this address; the run ends bounded, with a report, and leaves nothing."""
    settings = {
        **{key: SMALL[key] for key in ("hostmax_runtime_s", "hostmax_ramp_s")},
        "hostmax_nfs_volumes": [{"source": "127.0.0.1:/none"}],
        "hostmax_conditions": ["baseline"],
        "hostmax_workloads": ["eda-8k-randread"],
        "hostmax_total_working_set": "1MiB",
        "hostmax_results": str(tmp_path),
        "hostmax_nfs_install": False,
    }
    done = play("nfs_practices", settings, HOSTMAX_STATE=str(state))
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    assert "it could not be set up for baseline: " in done.stdout or "mount.nfs is not installed" in done.stdout


def test_nothing_is_left_on_the_host(compared, state):
    assert left_behind(state) == []
