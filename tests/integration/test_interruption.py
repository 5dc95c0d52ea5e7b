"""Whatever is killed, nothing is left behind, what was measured is kept, and what was not is never counted."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

from .playbook import NEEDS_DEVICES, Started, left_behind, play, processes_of, results_of, run_id_of, soon

pytestmark = NEEDS_DEVICES

SETTINGS = {
    "hostmax_thin_count": 2,
    "hostmax_thin_size": "50GB",
    "hostmax_thin_cap": {"iops": 3000},
    "hostmax_volume_counts": [1, 2],
    "hostmax_runtime_s": 4,
    "hostmax_ramp_s": 0,
    "hostmax_workloads": ["4k-randread", "4k-randwrite"],
}


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def started(tmp_path, state, results):
    """A run that is in the middle of its second point."""
    run = Started("host_max", {**SETTINGS, "hostmax_results": str(results)}, tmp_path / "log", HOSTMAX_STATE=str(state))
    run.wait_for("[1/4]")
    soon(lambda: processes_of(run_id_of(results)))
    yield run
    if run.process.poll() is None:
        run.kill_all()
    play("restore", {"hostmax_run": run_id_of(results)}, HOSTMAX_STATE=str(state))


def fill(path: pathlib.Path) -> None:
    """Write until the file system is full."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as handle:
        while True:
            handle.write(b"\0" * 65536)


def agent_of(state: pathlib.Path, run_id: str) -> int:
    return int(json.loads((state / run_id / "agent.json").read_text())["pid"])


def counted(results: pathlib.Path) -> list[bool]:
    return [point["counted"] for point in results_of(results)["points"]]


def test_a_killed_fio_costs_its_point_and_no_other(started, state, results):
    for pid in processes_of(run_id_of(results)):
        os.kill(pid, signal.SIGKILL)
    assert started.end() == 2
    found = results_of(results)
    assert counted(results) == [True, False, True, True]
    errors = next(gate for gate in found["points"][1]["gates"] if gate["name"] == "errors")
    assert "killed by signal 9" in errors["text"]
    assert "killed by signal 9" in started.output()
    assert left_behind(state, run_id_of(results)) == []


def test_a_killed_agent_ends_the_run_as_partial_and_its_fio_too(started, state, results):
    os.kill(agent_of(state, run_id_of(results)), signal.SIGKILL)
    assert started.end() == 2
    found = results_of(results)
    assert found["run"]["status"] == "partial"
    assert "was it killed" in found["hosts"][0]["reason"]
    assert counted(results) == [True, False, False, False]
    assert left_behind(state, run_id_of(results)) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_controller_leaves_nothing_on_the_host(started, state, results, number):
    started.send(number)
    assert started.end() != 0
    # on SIGTERM the controller's main process ends before its worker has cleaned up
    assert soon(lambda: left_behind(state, run_id_of(results)) == []), left_behind(state, run_id_of(results))
    again = play("report", {"hostmax_run": str(results / "latest")})
    assert again.returncode == 2
    found = results_of(results)
    assert found["run"]["status"] == "partial"
    assert counted(results) == [True, False, False, False]


def test_after_a_killed_controller_restore_ends_the_run_and_puts_the_host_back(started, state, results):
    started.kill_all()
    run_id = run_id_of(results)
    assert left_behind(state, run_id) != []
    done = play("restore", {"hostmax_run": str(results / "latest")}, HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert left_behind(state, run_id) == []
    again = play("restore", {"hostmax_run": str(results / "latest")}, HOSTMAX_STATE=str(state))
    assert "changed=0" in again.stdout


def test_the_next_run_puts_back_what_a_dead_run_left(started, state, results):
    started.kill_all()
    os.kill(agent_of(state, run_id_of(results)), signal.SIGKILL)
    dead = run_id_of(results)
    settings = {
        **SETTINGS,
        "hostmax_results": str(results),
        "hostmax_volume_counts": [1],
        "hostmax_workloads": ["4k-randread"],
    }
    done = play("host_max", settings, HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert left_behind(state, dead) == []


def test_a_second_run_on_the_same_host_is_refused_while_one_measures(started, state, results):
    done = play("host_max", {**SETTINGS, "hostmax_results": str(results)}, HOSTMAX_STATE=str(state))
    assert done.returncode == 2
    assert "two runs at once would measure each other" in done.stdout


def test_a_full_disk_on_the_host_ends_the_run_in_one_sentence(tmp_path, results, request):
    state = tmp_path / "small"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "hostmax-test", str(state)], check=True)
    request.addfinalizer(lambda: subprocess.run(["umount", str(state)], check=True))
    settings = {**SETTINGS, "hostmax_results": str(results), "hostmax_workloads": ["4k-randread"]}
    run = Started("host_max", settings, tmp_path / "log", HOSTMAX_STATE=str(state))
    run.wait_for("[1/2]")
    fill(state / "filler")
    code = run.end()
    (state / "filler").unlink()
    assert code == 2
    assert "No space left on device" in run.output() or "file system is full" in run.output()
    assert counted(results) == [True, False]
    assert [path.name for path in state.iterdir()] == []


def test_a_run_that_somebody_restores_meanwhile_says_so(started, state, results):
    done = play("restore", {"hostmax_run": str(results / "latest")}, HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert "ended, " in done.stdout
    assert started.end() == 2
    assert "somebody restored the host meanwhile" in started.output() or "the run was stopped" in started.output()
