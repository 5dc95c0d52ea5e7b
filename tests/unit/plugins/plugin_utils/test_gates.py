"""Each gate passes what is right and stops what is wrong."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import gates, merge

from .samples_example import direction, planned, sample, stepped, volume

# 32 outstanding at 3,200 IOPS take 10 ms by Little's law
FULL_QUEUE = {"a": volume(read=direction(3200, 10_000_000))}


def context(samples, point=None, hosts=None):
    point = point or planned()
    heads = merge.read_heads(point, samples)
    merged = merge.merge_point(point, samples, heads)
    return gates.Context(point, merged, heads, hosts or {"h1": {"memory_bytes": 2**30}})


def outcome(samples, **more):
    judged = gates.judge_point(context(samples, **more))
    return judged, {gate["name"]: gate for gate in judged["gates"]}


def test_a_right_point_is_counted():
    judged, found = outcome({"h1": sample(FULL_QUEUE)})
    assert judged["status"] == "ok"
    assert judged["counted"]
    assert {name for name, gate in found.items() if gate["passed"] is False} == set()


def test_a_fault_of_fio_stops_the_point_and_is_told():
    judged, found = outcome({"h1": sample(FULL_QUEUE, status="failed", faults=["fio was killed by signal 9"])})
    assert not judged["counted"]
    assert judged["status"] == "invalid"
    assert "killed by signal 9" in found["errors"]["text"]


def test_a_missing_host_leaves_a_point_that_is_shown_as_partial_and_not_counted():
    judged, found = outcome({"h1": sample(FULL_QUEUE)}, point=planned(hosts=("h1", "h2")))
    assert (judged["status"], judged["counted"]) == ("partial", False)
    assert found["hosts"]["text"] == "not measured by h2"


def test_a_host_whose_fio_was_killed_spoils_no_figure_of_the_others():
    killed = sample({}, status="failed", faults=["fio was killed by signal 9"], window=None)
    judged, found = outcome({"h1": sample(FULL_QUEUE), "h2": killed}, point=planned(hosts=("h1", "h2")))
    assert (judged["status"], judged["counted"]) == ("partial", False)
    assert found["errors"]["text"] == "h2: fio was killed by signal 9"
    assert found["overlap"]["passed"] is True
    assert found["littles_law"]["passed"] is True


def test_what_is_wrong_with_those_that_measured_is_not_called_partial():
    half_empty = {"a": volume(read=direction(1600, 10_000_000))}
    assert outcome({"h1": sample(half_empty)}, point=planned(hosts=("h1", "h2")))[0]["status"] == "invalid"


def test_a_point_nobody_measured_is_missing():
    judged, _found = outcome({})
    assert judged["status"] == "missing"
    assert not judged["counted"]


def test_too_short_a_runtime_stops_the_point():
    short = {"a": volume(read=direction(3200, 10_000_000, runtime_s=9.4))}
    assert outcome({"h1": sample(short)})[1]["runtime"]["passed"] is False


def test_a_queue_that_was_not_kept_full_is_found_by_littles_law():
    half_empty = {"a": volume(read=direction(1600, 10_000_000))}
    gate = outcome({"h1": sample(half_empty)})[1]["littles_law"]
    assert gate["passed"] is False
    assert gate["measured"] == pytest.approx(0.5)


def test_ios_on_their_way_at_the_end_of_a_short_point_are_no_fault():
    # 256 offered at 0.9 s in 10 s: nine in a hundred of them never end inside the measurement
    slow = {"a": volume(read=direction(256 * 0.92 / 0.9, 900_000_000))}
    gate = outcome({"h1": sample(slow)}, point=planned(io_depth=256))[1]["littles_law"]
    assert gate["passed"] is True
    assert gate["limit"] == pytest.approx(0.14)


def test_the_time_between_two_ios_of_a_very_fast_volume_is_no_fault():
    # one I/O at a time, 2 us each, 0.3 us of fio's own work between them
    fast = volume(read=direction(435_000, 2_000), usr=0.24, sys=0.75)
    gate = outcome({"h1": sample({"a": fast})}, point=planned(io_depth=1))[1]["littles_law"]
    assert gate["passed"] is True
    assert "held up in fio itself" in gate["text"]
    idle = volume(read=direction(435_000, 2_000), usr=0.01, sys=0.02)
    assert outcome({"h1": sample({"a": idle})}, point=planned(io_depth=1))[1]["littles_law"]["passed"] is False


def test_littles_law_says_nothing_about_a_limited_rate():
    slow = {"a": volume(read=direction(100, 1_000_000))}
    assert outcome({"h1": sample(slow)}, point=planned(rate_iops=100))[1]["littles_law"]["passed"] is None


def test_hosts_that_hardly_ran_together_are_found():
    both = {"h1": stepped(100.0, [10] * 10), "h2": stepped(103.0, [10] * 10)}
    gate = outcome(both, point=planned(hosts=("h1", "h2")))[1]["overlap"]
    assert (gate["passed"], gate["measured"]) == (False, pytest.approx(0.7))
    assert "first I/Os 3.0 s apart" in gate["text"]


def test_hosts_that_never_ran_together_are_named_and_have_no_total():
    both = {"h1": stepped(100.0, [10] * 10), "h2": stepped(112.5, [10] * 10)}
    made = context(both, point=planned(hosts=("h1", "h2")))
    gate = gates.overlap(made)
    assert gate.passed is False
    assert "h2 began its I/O 2.5 s after h1 had ended" in gate.text
    assert made.merged["total"] is None
    assert made.merged["per_host"]["h2"]["total"]["iops"] == 10


def test_averages_of_another_time_are_no_part_of_a_total():
    both = {"h1": stepped(100.0, [10] * 10), "h2": {**stepped(101.0, [10] * 10), "steps": None}}
    gate = outcome(both, point=planned(hosts=("h1", "h2")))[1]["overlap"]
    assert (gate["passed"], gate["measured"]) == (False, pytest.approx(0.9))
    assert "no I/Os over time from h2" in gate["text"]


def steady(values):
    # latencies that keep the queue of 32 full at the mean rate
    lat_ns = round(32e9 * len(values) / sum(values))
    return outcome({"h1": stepped(100.0, [round(value) for value in values], lat_ns=lat_ns)})


def test_a_level_that_holds_for_a_minute_is_steady():
    judged, found = steady([3200.0 + (k % 3) for k in range(60)])
    assert found["steady"]["passed"] is True
    assert judged["counted"]


def test_a_burst_at_the_start_is_unsteady_and_not_counted():
    judged, found = steady([38000.0] * 15 + [5000.0] * 45)
    assert found["steady"]["passed"] is False
    assert judged["status"] == "unsteady"
    assert not judged["counted"]


def test_a_slow_drift_is_unsteady():
    assert steady([3200.0 * (1 - 0.15 * k / 60) for k in range(60)])[1]["steady"]["passed"] is False


def test_bursts_that_fit_between_the_five_windows_are_found_by_the_quarters():
    values = ([4000.0] * 15 + [2800.0] * 15) * 2
    spread, excursion, ratio = gates.steadiness(values)
    assert ratio > gates.MAX_QUARTER_RATIO
    assert steady(values)[1]["steady"]["passed"] is False
    assert excursion < spread


def test_a_short_run_is_not_called_steady():
    gate = steady([3200.0] * 10)[1]["steady"]
    assert gate["passed"] is None
    assert "50 s" in gate["text"]


def test_a_buffered_working_set_that_fits_memory_is_stopped():
    point = planned(direct=False, working_set_bytes=2**20)
    assert outcome({"h1": sample(FULL_QUEUE)}, point=point)[1]["working_set"]["passed"] is False
