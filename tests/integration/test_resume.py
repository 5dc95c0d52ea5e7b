"""A run that was killed in its middle goes on: what was measured is kept as it is, the rest is measured."""

from __future__ import annotations

import json
import os
import re

import pytest

from .playbook import NEEDS_DEVICES, Started, left_behind, play, processes_of, results_of, run_id_of
from .test_interruption import SETTINGS, soon

pytestmark = NEEDS_DEVICES


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def killed(tmp_path, state, results):
    """The id of a run of four points that was killed in its third, controller and agent."""
    run = Started("host_max", {**SETTINGS, "hostmax_results": str(results)}, tmp_path / "log", HOSTMAX_STATE=str(state))
    run.wait_for("[2/4]")
    run_id = run_id_of(results)
    soon(lambda: processes_of(run_id))
    run.kill_all()
    for pid in [*processes_of(run_id), json.loads((state / run_id / "agent.json").read_text())["pid"]]:
        os.kill(pid, 9)
    yield run_id
    play("restore", {"hostmax_run": run_id}, HOSTMAX_STATE=str(state))


def resume(state, results, *options, **settings):
    """Resume the latest run with nothing but its directory; the output on one line."""
    done = play("host_max", {"hostmax_resume": str(results / "latest"), **settings}, *options, HOSTMAX_STATE=str(state))
    return done, re.sub(r"\s+", " ", done.stdout)


def samples_of(path):
    return {line["point"]: line for line in map(json.loads, (path / "samples.jsonl").read_text().splitlines())}


def test_a_killed_run_goes_on_with_only_its_directory_given(state, results, killed):
    done, output = resume(state, results)
    assert done.returncode == 0, done.stdout
    new_id = run_id_of(results)
    assert new_id != killed
    assert f"2 points kept from {killed}, 2 to measure, about 8.6 s" in output
    assert "[1/2]" in output
    assert "[2/2]" in output

    before, after = samples_of(results / killed), samples_of(results / new_id)
    plan = json.loads((results / new_id / "plan.json").read_text())
    kept = [point["id"] for point in plan["points"] if point.get("kept")]
    assert kept == list(before) == list(after)[:2]
    for point_id in kept:
        clock = after[point_id].pop("clock")
        assert set(clock) == {"offset_s", "uncertainty_s"}
        assert after[point_id] == before[point_id]
        raw = f"hosts/localhost/{point_id}.json.gz"
        assert (results / new_id / raw).read_bytes() == (results / killed / raw).read_bytes()

    found = results_of(results)
    assert [point["counted"] for point in found["points"]] == [True] * 4
    assert found["run"]["status"] == "complete"
    assert found["warnings"][0] == f"2 of 4 points were taken over from {killed}."
    assert left_behind(state, killed) == left_behind(state, new_id) == []

    again, output = resume(state, results)
    assert again.returncode == 2
    assert f"Nothing of {new_id} is left to measure" in output
    assert "hostmax.storage.report -e hostmax_run=" in output


def test_what_was_measured_with_another_fio_is_measured_again(state, results, killed):
    facts_path = results / killed / "hosts/localhost/facts.json"
    facts_path.write_text(json.dumps({**json.loads(facts_path.read_text()), "fio_version": "3.1"}))
    done, output = resume(state, results, hostmax_runtime_s=4)
    assert done.returncode == 0, done.stdout
    assert f"No point of {killed} is kept, because on localhost fio is " in output
    assert f"0 points kept from {killed}, 4 to measure" in output
    assert [point["counted"] for point in results_of(results)["points"]] == [True] * 4


def test_check_mode_shows_what_would_be_kept_and_makes_nothing(state, results, killed):
    before = sorted(path.name for path in results.iterdir())
    done, output = resume(state, results, "--check")
    assert done.returncode == 0, done.stdout
    assert f"2 points kept from {killed}, 2 to measure" in output
    assert sorted(path.name for path in results.iterdir()) == before


def test_other_hosts_and_a_path_that_is_no_run_are_refused_before_anything_changes(tmp_path, state, results, killed):
    inventory = tmp_path / "hosts"
    inventory.write_text("other ansible_connection=local\n")
    done, output = resume(state, results, "-i", str(inventory))
    assert done.returncode == 2
    assert "made for other hosts, localhost of it is not in this run and other is not in it" in output
    done = play("host_max", {"hostmax_resume": str(tmp_path)}, HOSTMAX_STATE=str(state))
    assert done.returncode == 2
    assert "is not a run directory, it has no plan.json" in re.sub(r"\s+", " ", done.stdout)
    assert "Traceback" not in done.stdout
