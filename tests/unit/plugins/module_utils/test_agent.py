"""The agent runs only jobs on volumes that the guard is asked about, and says why it ended."""

from __future__ import annotations

import json
import threading
import time

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import agent, progress
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import Target, render_job
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload

WORKLOAD = Workload.from_mapping({"name": "w", "rw": "randwrite", "block_size": "4k", "io_depth": 4})


def plan(*targets, volumes=None, job=None):
    targets = targets or (Target("vol01", "/dev/disk/by-path/pci-0:0-lun-1", 7, True),)
    known = [{"name": target.name, "path": target.filename} for target in targets]
    point = {"id": "p01", "volumes": [target.name for target in targets], "writes": True}
    point["job"] = job or render_job(WORKLOAD, targets, 1, 0, 100, "points/p01.logs/fio")
    return {"run_id": "r", "volumes": volumes or known, "own_files": [], "points": [point]}


def test_the_jobs_of_a_plan_name_the_volumes_that_are_judged(tmp_path):
    agent.Agent(str(tmp_path), plan())._check_jobs()
    agent.Agent(str(tmp_path), plan(Target("a", "volumes/a", 1, True), Target("b", "volumes/b", 2, True)))._check_jobs()


def a_directory(job_path="/mnt/data/hostmax-r-h", judged="/mnt/data/hostmax-r-h"):
    workload = Workload.from_mapping({"name": "w", "rw": "randread", "block_size": "4k", "working_set": "1MiB"})
    target = Target("vol01", job_path, 7, True, directory=True)
    job = render_job(workload, [target], 1, 0, 100, "points/p01.logs/fio")
    return plan(target, volumes=[{"name": "vol01", "path": judged, "kind": "directory"}], job=job)


def test_a_job_on_a_directory_names_the_one_that_is_judged(tmp_path):
    agent.Agent(str(tmp_path), a_directory())._check_jobs()
    with pytest.raises(agent.AgentError):
        agent.Agent(str(tmp_path), a_directory(job_path="/home"))._check_jobs()


@pytest.mark.parametrize(
    "changed",
    [
        lambda job: job.replace("lun-1", "lun-2"),
        lambda job: job + "[more]\nfilename=/dev/sda\n",
        lambda job: job.replace("[global]\n", "[global]\nfilename=/dev/sda\n"),
        lambda job: job + "filename=/dev/sda\n",
        lambda job: job + "directory=/\n",
        lambda job: job.replace("[vol01]", "[vol02]"),
    ],
)
def test_a_job_that_names_anything_else_is_not_run(tmp_path, changed):
    job = changed(plan()["points"][0]["job"])
    with pytest.raises(agent.AgentError, match="p01 names other files than the volumes that were checked"):
        agent.Agent(str(tmp_path), plan(job=job))._check_jobs()


def test_a_volume_the_guard_is_not_asked_about_is_not_used(tmp_path):
    with pytest.raises(agent.AgentError):
        agent.Agent(str(tmp_path), plan(volumes=[{"name": "vol09", "path": "/dev/sdb"}]))._check_jobs()


def test_a_fault_nobody_foresaw_is_told_and_not_silent(tmp_path, monkeypatch):
    def broken(self, held):
        raise ZeroDivisionError("no such thing")

    monkeypatch.setattr(agent.Agent, "_get_ready", broken)
    with pytest.raises(ZeroDivisionError):
        agent.Agent(str(tmp_path), plan()).run()
    (event,) = progress.read(str(tmp_path))
    assert event["event"] == "failed"
    assert "ZeroDivisionError: no such thing" in event["reason"]


def test_a_ring_is_probed_for_each_depth_and_a_deep_one_that_is_refused_falls_back(tmp_path, monkeypatch):
    def choose(wanted, available, io_depth):
        return ("io_uring", None) if io_depth <= 32 else ("libaio", "the ring is too deep.")

    monkeypatch.setattr(agent.fio_tool, "read_engines", lambda fio, run: ["io_uring", "libaio"])
    monkeypatch.setattr(agent.fio_tool, "choose_engine", choose)
    shallow = {"engine": "auto", "io_depth": 32, "direct": True}
    made = agent.Agent(str(tmp_path), {**plan(), "points": [shallow, {**shallow, "io_depth": 4096}]})
    made._choose_engines("fio")
    assert made._engines["auto", 32] == ("io_uring", None)
    assert made._engines["auto", 4096][0] == "libaio"


def test_a_fallback_that_would_be_synchronous_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(agent.fio_tool, "read_engines", lambda fio, run: ["libaio"])
    buffered = {"engine": "auto", "io_depth": 32, "direct": False}
    made = agent.Agent(str(tmp_path), {**plan(), "points": [buffered]})
    with pytest.raises(agent.AgentError, match="set direct"):
        made._choose_engines("fio")


# -- rounds ---------------------------------------------------------------------------------------------------------


class Rounds:
    """An agent whose fio takes as long as it is told, and whose controller speaks from a second thread."""

    def __init__(self, tmp_path, monkeypatch, alone=False):
        self.work_dir = tmp_path
        (tmp_path / "points").mkdir()
        base = {"ramp_s": 0, "runtime_s": 5, "engine": "auto", "io_depth": 1, "writes": False, "job": "", "hash": "h"}
        points = [{**base, "id": name, "volumes": []} for name in ("a", "b", "c")]
        self.agent = agent.Agent(
            str(tmp_path),
            {"run_id": "r", "volumes": [], "points": points, "go_wait_s": 5, "linger_s": 0.2, "alone": alone},
        )
        self.agent._engines["auto", 1] = ("io_uring", None)
        self.takes_s = dict.fromkeys("abc", 0.1)
        self.begun = []
        self.meanwhile = {}
        monkeypatch.setattr(agent.fio_run, "measure", self._measure)

    def _measure(self, _host, point, stop):
        begun_s = time.time()
        self.begun.append((point["id"], time.monotonic()))
        self.meanwhile.pop(point["id"], lambda: None)()
        while not stop() and time.time() < begun_s + self.takes_s[point["id"]]:
            time.sleep(0.005)
        return {
            **agent.fio_run.not_started(point, "no real fio"),
            "started_s": begun_s,
            "window": {"start_s": begun_s, "end_s": time.time()},
        }

    def tell(self, in_s, number=1, attempt=1, points=(("a", 0.0), ("b", 0.2), ("c", 0.4))):
        told = {
            "round": number,
            "attempt": attempt,
            "t0": time.time() + in_s,
            "points": [{"id": name, "offset_s": offset_s} for name, offset_s in points],
        }
        agent.write_json(str(self.work_dir / "go.json"), told)
        return time.monotonic() + in_s

    def run(self):
        self.agent._measure_rounds(None)
        return [event for event in progress.read(str(self.work_dir)) if event["event"] != "ready"]

    def sample(self, name):
        return json.loads((self.work_dir / "points" / f"{name}.sample.json").read_text())


def test_points_begin_at_their_offsets_from_t0_and_the_round_ends(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch)
    t0 = rounds.tell(0.3)
    events = rounds.run()
    assert [event["event"] for event in events] == ["point", "point", "point", "ended"]
    assert [name for name, _begun in rounds.begun] == ["a", "b", "c"]
    assert all(begun >= t0 + offset_s for (_name, begun), offset_s in zip(rounds.begun, (0.0, 0.2, 0.4)))
    sample = rounds.sample("b")
    assert sample["round"] == 1
    # late by what this machine took, measured on the very same clock
    assert sample["late_s"] == pytest.approx(rounds.begun[1][1] - t0 - 0.2, abs=0.02)


def test_a_point_whose_time_has_passed_is_left_out_and_the_next_one_is_in_step(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch)
    rounds.takes_s["a"] = 1.6
    t0 = rounds.tell(0.1, points=(("a", 0.0), ("b", 0.2), ("c", 3.0)))
    rounds.run()
    assert [name for name, _begun in rounds.begun] == ["a", "c"]
    assert rounds.begun[1][1] >= t0 + 3.0
    left_out = rounds.sample("b")
    assert left_out["status"] == "failed"
    assert "it was not started: the host was busy until " in left_out["faults"][0]
    assert left_out["late_s"] >= 5


def test_nobody_says_when_a_fio_would_have_begun_that_failed_before_its_first_io(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch)

    def fail(_host, point, _stop):
        return {**agent.fio_run.not_started(point, "fio was killed by signal 9"), "started_s": time.time()}

    monkeypatch.setattr(agent.fio_run, "measure", fail)
    rounds.tell(0.1, points=(("a", 0.0),))
    said = next(event for event in rounds.run() if event["event"] == "point")
    assert said["late_s"] is None


def test_a_host_that_measures_alone_leaves_nothing_out(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch, alone=True)
    rounds.takes_s["a"] = 1.6
    rounds.tell(0.1)
    rounds.run()
    assert [name for name, _begun in rounds.begun] == ["a", "b", "c"]
    assert rounds.sample("b")["late_s"] < 1.0


def test_moving_t0_while_a_point_runs_begins_the_round_again(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch)
    rounds.takes_s["a"] = 5.0
    moved = []

    def move():
        rounds.takes_s["a"] = 0.1
        moved.append(rounds.tell(0.3, attempt=2, points=(("a", 0.0), ("b", 0.6))))

    rounds.tell(0.0, points=(("a", 0.0), ("b", 0.6)))
    rounds.meanwhile["a"] = move
    events = rounds.run()
    assert [name for name, _begun in rounds.begun] == ["a", "a", "b"]
    assert rounds.begun[1][1] >= moved[0]
    assert [event["event"] for event in events] == ["moved", "point", "point", "ended"]


def test_a_second_round_is_measured_and_its_samples_take_the_place_of_the_first(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch)
    rounds.tell(0.0)
    rounds.meanwhile["c"] = lambda: threading.Timer(0.5, rounds.tell, (0.1, 2, 1, (("b", 0.0),))).start()
    rounds.agent.plan["linger_s"] = 30.0
    claim = tmp_path / "claimed"

    def claim_after_the_second_time():
        rounds.meanwhile["b"] = lambda: threading.Timer(0.5, claim.write_text, ("",)).start()

    rounds.meanwhile["b"] = claim_after_the_second_time
    events = rounds.run()
    assert [event.get("round") for event in events if event["event"] == "ended"] == [1, 2]
    assert [name for name, _begun in rounds.begun] == ["a", "b", "c", "b"]
    assert (rounds.sample("a")["round"], rounds.sample("b")["round"]) == (1, 2)


def test_a_clock_that_is_set_between_points_moves_none_of_them_and_is_told(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch)
    t0 = rounds.tell(0.1, points=(("a", 0.0), ("b", 0.4)))
    real, set_at = time.time, time.monotonic() + 0.25
    monkeypatch.setattr(time, "time", lambda: real() + (3600.0 if time.monotonic() > set_at else 0.0))
    rounds.run()
    assert t0 + 0.4 <= rounds.begun[1][1] < t0 + 60
    assert rounds.sample("a")["clock_shift_s"] == pytest.approx(0, abs=0.05)
    assert rounds.sample("b")["clock_shift_s"] == pytest.approx(3600, abs=0.05)
    assert abs(rounds.sample("b")["late_s"]) < 60


def test_without_a_start_the_agent_says_so(tmp_path, monkeypatch):
    rounds = Rounds(tmp_path, monkeypatch)
    rounds.agent.plan["go_wait_s"] = 0.1
    with pytest.raises(agent.StoppedError, match="no start was given"):
        rounds.run()


def test_a_run_that_ends_before_it_begins_does_not_keep_the_agent_waiting(tmp_path):
    (tmp_path / "claimed").touch()
    agent.Agent(str(tmp_path), {**plan(), "go_wait_s": 60})._measure_rounds(None)
    assert progress.read(str(tmp_path)) == []
