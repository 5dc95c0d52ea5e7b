"""results.json from a run directory of several hosts: exact totals, honest marks, and every sentence a reader needs."""

from __future__ import annotations

import jsonschema
import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import pack_sample
from ansible_collections.hostmax.storage.plugins.plugin_utils import results
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import create_run

from . import results_example as examples
from .samples_example import direction, even_steps, planned, sample, volume

RUN_ID = "host_max-20261130T194000Z-a1b2c3"
HOSTS = ("a", "b")
QUEUE = {"v1": volume(read=direction(3200, 10_000_000))}
FACTS = {"kernel": "6.1", "cpus": 2, "cpu_model": "x", "memory_bytes": 2**30, "fio_version": "fio-3.33"}


def reading(offset_s, at_s, uncertainty_s=0.0005):
    return {"offset_s": offset_s, "uncertainty_s": uncertainty_s, "at_s": at_s}


def a_sample(start_s=100.0, point="p01", volumes=None, **changes):
    volumes = QUEUE if volumes is None else volumes
    window = {"start_s": start_s, "end_s": start_s + 10.0, "last_s": start_s + 10.0}
    found = {"point": point, "window": window, "steps": even_steps(volumes, window), "kernel": {}, "late_s": 0.01}
    return sample(volumes, **{**found, **changes})


class ARun:
    """A run directory of hosts with one volume each, filled step by step."""

    def __init__(self, directory, points=1, hosts=HOSTS, **plan):
        volumes = [{"name": "v1", "path": "/dev/x", "kind": "block", "size_bytes": 2**30, "cap": None}]
        self.run = create_run(
            str(directory / "results"),
            RUN_ID,
            {
                "schema": "hostmax.plan/1",
                "run_id": RUN_ID,
                "playbook": "host_max",
                "created_utc": "2026-11-30T19:40:00Z",
                "command": "x",
                "seed": 1,
                "planned_s": 1.0,
                "settings": {},
                "hosts": {host: {"volumes": volumes} for host in hosts},
                "points": [{**planned(hosts=hosts), "id": f"p{n:02}"} for n in range(1, points + 1)],
                **plan,
            },
        )
        for host in hosts:
            self.knows(host)
            self.run.write_status(host, "ok", None)

    def knows(self, host, before=None, after=None):
        clock = {"before": before or reading(0.0, 50.0), "after": after}
        self.run.write_facts(host, {**FACTS, "clock": clock})

    def brings(self, host, **changes):
        self.run.add_sample(host, pack_sample(a_sample(**changes)))

    def results(self):
        found = results.build(self.run)
        jsonschema.Draft202012Validator(examples.schema()).validate(found)
        return found


@pytest.fixture
def a_run(tmp_path):
    return ARun(tmp_path)


def test_a_whole_run_of_two_hosts(a_run):
    for host in HOSTS:
        a_run.brings(host)
    found = a_run.results()
    (point,) = found["points"]
    assert (found["run"]["status"], found["warnings"], found["run"]["resumed_from"]) == ("complete", [], None)
    assert (point["status"], point["counted"], point["latency_scope"]) == ("ok", True, "window")
    assert point["total"]["iops"] == pytest.approx(6400, rel=1e-3)


def test_the_last_sample_of_a_host_counts(a_run):
    a_run.brings("a", volumes={"v1": volume(read=direction(1, 10_000_000))})
    for host in HOSTS:
        a_run.brings(host)
    assert a_run.results()["points"][0]["total"]["iops"] == pytest.approx(6400, rel=1e-3)


def test_without_a_host_the_run_is_partial_and_so_is_its_point(a_run):
    a_run.brings("a")
    a_run.run.write_status("b", "unreachable", "ssh: connect to host b port 22: Connection refused")
    found = a_run.results()
    assert found["run"]["status"] == "partial"
    assert found["hosts"][1]["status"] == "unreachable"
    (point,) = found["points"]
    assert (point["status"], point["counted"]) == ("partial", False)
    assert point["total"]["iops"] == pytest.approx(3200)


def test_a_run_without_a_usable_point_is_invalid(a_run):
    assert a_run.results()["run"]["status"] == "invalid"
    for host in HOSTS:
        a_run.brings(host, status="failed", faults=["fio was killed by signal 9"])
    assert a_run.results()["run"]["status"] == "invalid"


def test_a_host_that_died_after_the_first_point_leaves_the_rest_partial(tmp_path):
    a_run = ARun(tmp_path, points=2)
    for host in HOSTS:
        a_run.brings(host)
    a_run.brings("a", point="p02", start_s=120.0)
    a_run.run.write_status("b", "failed", "the agent ended without a word; was it killed?")
    found = a_run.results()
    assert [point["status"] for point in found["points"]] == ["ok", "partial"]
    assert found["run"]["status"] == "partial"


def test_a_point_that_a_host_did_not_start_is_partial_and_says_so(a_run):
    a_run.brings("a")
    fault = "it was not started: the host was busy until 4.0 s after its time"
    a_run.brings("b", volumes={}, status="failed", faults=[fault], window=None, steps=None, cpu=None, engine=None)
    (point,) = a_run.results()["points"]
    assert point["status"] == "partial"
    assert next(gate for gate in point["gates"] if gate["name"] == "errors")["text"] == f"b: {fault}"


def test_a_clock_30_s_off_changes_no_figure_and_is_told(a_run):
    a_run.knows("b", reading(30.0, 50.0), reading(30.0, 200.0))
    a_run.brings("a")
    a_run.brings("b", start_s=130.0)
    found = a_run.results()
    (point,) = found["points"]
    assert point["counted"]
    assert point["timing"]["b"]["skew_s"] == pytest.approx(0.0)
    assert found["hosts"][1]["clock_offset_s"] == 30.0
    assert [warning[:40] for warning in found["warnings"]] == ["b: its clock is 30.0 s ahead of the cont"]


def test_a_clock_that_was_set_by_half_a_minute_between_two_points_keeps_its_hosts_in_step(tmp_path):
    a_run = ARun(tmp_path, points=2)
    a_run.knows("b", reading(0.0, 50.0), reading(30.0, 200.0))
    for start_s, point, shift_s in ((100.0, "p01", 0.0), (120.0, "p02", 30.0)):
        a_run.brings("a", point=point, start_s=start_s)
        a_run.brings("b", point=point, start_s=start_s + shift_s, clock_shift_s=shift_s)
    found = a_run.results()
    assert [point["window"]["skew_s"] for point in found["points"]] == [pytest.approx(0.0)] * 2
    assert found["hosts"][1]["clock_drift_s"] == 0.0
    assert [warning for warning in found["warnings"] if "was set by +30.00 s during the run" in warning]


def test_a_drift_is_told_and_corrected_in_a_straight_line(a_run):
    a_run.knows("b", reading(0.0, 50.0), reading(0.3, 200.0))
    a_run.brings("a")
    a_run.brings("b", start_s=100.1)
    found = a_run.results()
    assert found["hosts"][1]["clock_drift_s"] == pytest.approx(0.3)
    assert found["points"][0]["window"]["skew_s"] == pytest.approx(0.0, abs=1e-6)
    assert [warning for warning in found["warnings"] if "drifted by +300 ms" in warning]


def test_a_repeated_point_is_marked_and_says_why(a_run):
    a_run.brings("a")
    a_run.brings("b", start_s=103.2)
    a_run.run.write_repeats({"p01": {"b": 3.2}})
    for host in HOSTS:
        a_run.brings(host, start_s=200.0, round=2)
    found = a_run.results()
    assert found["points"][0]["repeat"] == 1
    assert found["points"][0]["counted"]
    assert found["warnings"] == ["p01 was repeated: host b began 3.2 s after the others."]


def test_a_host_that_missed_the_repetition_is_not_mixed_with_those_that_did_not(a_run):
    a_run.brings("a")
    a_run.brings("b", start_s=103.2)
    a_run.run.write_repeats({"p01": {"b": 3.2, "a": 1.0}})
    a_run.brings("b", start_s=200.0, round=2)
    found = a_run.results()
    assert found["points"][0]["hosts_measured"] == ["b"]
    assert found["points"][0]["status"] == "partial"
    assert found["warnings"] == ["p01 was repeated: hosts b, a began up to 3.2 s after the others."]


def test_a_point_kept_from_an_earlier_run_is_merged_by_the_clocks_of_that_time(tmp_path):
    a_run = ARun(tmp_path, points=2, resumed_from="host_max-20261129T100000Z-ffffff")
    a_run.knows("b", reading(0.0, 50.0), reading(0.0, 200.0))
    for host, offset_s in (("a", 0.0), ("b", -40.0)):
        clock = {"offset_s": offset_s, "uncertainty_s": 0.001}
        a_run.brings(host, point="p02", start_s=120.0)
        a_run.brings(host, start_s=10.0 + offset_s + 7.0, clock=clock, clock_shift_s=7.0)
    found = a_run.results()
    assert found["run"]["resumed_from"] == "host_max-20261129T100000Z-ffffff"
    assert [point["counted"] for point in found["points"]] == [True, True]
    assert found["warnings"] == []


def test_a_host_without_a_log_over_time_is_named(a_run):
    a_run.brings("a")
    a_run.brings("b", steps=None)
    found = a_run.results()
    assert found["warnings"] == ["p01: b logged no I/Os over time; averages of all its time stand for the window."]


def test_a_volume_without_a_log_is_named(a_run):
    for host in HOSTS:
        steps = even_steps(QUEUE, {"start_s": 100.0, "last_s": 110.0})
        a_run.brings(host, steps={**steps, "unlogged": ["v1 read"]})
    assert a_run.results()["warnings"] == [
        "p01: fio left no log of v1 read of a, v1 read of b; its I/Os were taken as evenly spread over the point."
    ]


def test_a_line_that_was_cut_off_is_told(a_run):
    for host in HOSTS:
        a_run.brings(host)
    path = a_run.run.path / "samples.jsonl"
    path.write_bytes(path.read_bytes() + b'{"host":"a","poi')
    found = a_run.results()
    assert found["run"]["status"] == "complete"
    assert found["warnings"] == [
        "samples.jsonl: line 3 is cut off, the run was ended while it was written; its sample was left out."
    ]
