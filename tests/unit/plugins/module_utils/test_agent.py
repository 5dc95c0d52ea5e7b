"""The agent runs only jobs on volumes that the guard is asked about, and says why it ended."""

from __future__ import annotations

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
