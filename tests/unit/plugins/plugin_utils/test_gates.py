"""Each gate passes what is right and stops what is wrong."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import gates, merge
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, Reading

from .samples_example import direction, even_steps, planned, sample, steps_of, volume

# 32 outstanding at 3,200 IOPS take 10 ms by Little's law
FULL_QUEUE = {"a": volume(read=direction(3200, 10_000_000))}


def context(samples, point=None, hosts=None, clocks=None):
    point = point or planned()
    heads = merge.read_heads(point, samples, clocks)
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


def at(start_s, end_s=None, **changes):
    end_s = start_s + 10.0 if end_s is None else end_s
    return sample(FULL_QUEUE, window={"start_s": start_s, "end_s": end_s, "last_s": end_s}, **changes)


def test_a_missing_host_alone_makes_a_point_partial_and_not_counted():
    judged, found = outcome({"h1": sample(FULL_QUEUE)}, point=planned(hosts=("h1", "h2")))
    assert (judged["status"], judged["counted"]) == ("partial", False)
    assert found["hosts"]["text"] == "not measured by h2"


def test_a_host_whose_fio_died_makes_a_point_of_several_partial_and_its_fault_is_told():
    samples = {"h1": at(100.0), "h2": at(100.0, 103.0, status="failed", faults=["fio was killed by signal 9"])}
    judged, found = outcome(samples, point=planned(hosts=("h1", "h2")))
    assert judged["status"] == "partial"
    assert found["errors"]["text"] == "h2: fio was killed by signal 9"
    assert found["overlap"]["measured"] == 1.0


def test_a_missing_host_and_a_wrong_figure_of_another_is_invalid():
    short = {"a": volume(read=direction(3200, 10_000_000, runtime_s=9.0))}
    judged, _found = outcome({"h1": sample(short)}, point=planned(hosts=("h1", "h2")))
    assert judged["status"] == "invalid"


def test_a_point_that_was_not_started_says_why():
    missed = sample({}, status="failed", faults=["it was not started"], window=None, cpu=None)
    judged, found = outcome({"h1": missed})
    assert judged["status"] == "invalid"
    assert found["errors"]["text"] == "h1: it was not started"


def test_a_thousand_missing_hosts_are_not_all_named():
    names = tuple(f"h{n}" for n in range(1, 1001))
    _judged, found = outcome({"h1": sample(FULL_QUEUE)}, point=planned(hosts=names))
    assert found["hosts"]["text"] == "not measured by h10, h100, h1000 and 996 more"


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


TWO = planned(hosts=("h1", "h2"))


def test_hosts_that_hardly_ran_together_are_found():
    gate = outcome({"h1": at(100.0), "h2": at(103.0)}, point=TWO)[1]["overlap"]
    assert gate["passed"] is False
    assert gate["measured"] == pytest.approx(0.7)


def test_hosts_that_never_ran_together_are_named_and_have_no_total():
    judged, found = outcome({"h1": at(100.0), "h2": at(115.5)}, point=TWO)
    assert judged["status"] == "invalid"
    assert found["overlap"]["text"] == (
        "no common window, so there is no total: h2 began its I/O 5.5 s after h1 had ended; "
        "each host's figures are its own averages"
    )


def test_clocks_that_are_hardly_known_leave_no_sure_window():
    clocks = {"h1": Clock(Reading(0.0, 6.0, 0.0))}
    gate = outcome({"h1": at(100.0), "h2": at(100.0)}, point=TWO, clocks=clocks)[1]["overlap"]
    assert gate["passed"] is False
    assert "the clocks are known to 6.0 s only" in gate["text"]


def test_the_skew_and_what_is_known_of_the_clocks_stand_beside_the_overlap_of_several_hosts():
    clocks = {"h1": Clock(Reading(0.0, 0.0004, 0.0))}
    gate = outcome({"h1": with_steps(100.0), "h2": with_steps(100.012)}, point=TWO, clocks=clocks)[1]["overlap"]
    assert gate["passed"] is True
    assert gate["text"] == (
        "all hosts together for 99.9% of the point, first I/Os 12.0 ms apart, clocks known to 0.4 ms"
    )


def with_steps(start_s):
    host = at(start_s)
    host["steps"] = even_steps(host["volumes"], host["window"])
    return host


def test_an_average_of_another_time_is_no_part_of_a_total():
    samples = {"h1": with_steps(100.0), "h2": at(101.0)}
    gate = outcome(samples, point=TWO)[1]["overlap"]
    assert gate["measured"] == pytest.approx(0.9)
    assert gate["passed"] is False
    assert "no I/Os over time from h2" in gate["text"]
    assert outcome({"h1": with_steps(100.0), "h2": at(100.1)}, point=TWO)[1]["overlap"]["passed"] is True


def test_littles_law_holds_in_each_hosts_own_time_whatever_the_window():
    # h1 was alone, and quicker, for a second: its rate in the window is not that of its mean latency
    burst = {"a": volume(read=direction(3200, 10_000_000))}
    early = sample(burst, window={"start_s": 100.0, "end_s": 110.0, "last_s": 110.0})
    early["steps"] = steps_of(burst, 100.0, {"a": {"read": [14_000] + [2000] * 9}})
    found = outcome({"h1": early, "h2": with_steps(101.0)}, point=TWO)[1]
    assert found["littles_law"]["passed"] is True


def steady(values):
    ios = round(sum(values))
    volumes = {"a": volume(read=direction(ios / len(values), round(32e9 * len(values) / ios), len(values), ios=ios))}
    window = {"start_s": 100.0, "end_s": 100.0 + len(values), "last_s": 100.0 + len(values)}
    steps = steps_of(volumes, 100.0, {"a": {"read": [round(value) for value in values]}})
    return outcome({"h1": sample(volumes, window=window, steps=steps)}, point=planned(), hosts=None)


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
