"""Samples become figures; latency only from merged histograms."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.histogram import index, value
from ansible_collections.hostmax.storage.plugins.plugin_utils import merge, tally
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, Reading
from hypothesis import given
from hypothesis import strategies as st

from .samples_example import direction, planned, sample, stepped, volume


def merged(**volumes):
    return merge.merge_point(planned(len(volumes)), {"h1": sample(volumes)})


def test_the_total_is_the_sum_of_the_volumes():
    point = merged(a=volume(read=direction(3000, 1_000_000)), b=volume(read=direction(1000, 3_000_000)))
    assert point["total"]["iops"] == 4000
    assert point["total"]["ios"] == 40_000
    assert point["per_volume"]["h1"]["a"]["total"]["iops"] == 3000


def test_mean_latency_is_weighted_by_io_and_not_by_volume():
    point = merged(a=volume(read=direction(3000, 1_000_000)), b=volume(read=direction(1000, 3_000_000)))
    assert point["total"]["lat_ns"]["mean"] == pytest.approx(1_500_000)


def test_percentiles_are_of_all_ios_and_not_an_average_of_percentiles():
    # 1 % of all I/Os is slow: the p50s average to 4.5 ms, the true p50 is the fast one
    point = merged(a=volume(read=direction(9900, 1_000_000)), b=volume(read=direction(100, 8_000_000)))
    assert point["total"]["lat_ns"]["p50"] == pytest.approx(1_000_000, rel=0.01)
    assert point["total"]["lat_ns"]["p99_9"] == pytest.approx(8_000_000, rel=0.01)


def test_a_percentile_is_never_above_the_largest_latency_seen():
    lat_ns = 1_000_001
    assert value(index(lat_ns)) > lat_ns
    point = merged(a=volume(read=direction(100, lat_ns)))
    assert point["total"]["lat_ns"]["p99"] == lat_ns


def test_reads_and_writes_stay_apart_and_add_up():
    point = merged(a=volume(read=direction(700, 1_000_000), write=direction(300, 2_000_000)))
    assert point["read"]["iops"] == 700
    assert point["write"]["iops"] == 300
    assert point["total"]["iops"] == 1000
    assert point["total"]["lat_ns"]["mean"] == pytest.approx(1_300_000)


TWO = planned(hosts=("h1", "h2"))


def together(early, late, **clocks):
    samples = {"h1": early, "h2": late}
    return merge.merge_point(TWO, samples, merge.read_heads(TWO, samples, clocks))


def test_the_total_is_of_the_time_all_hosts_share_and_not_a_sum_of_averages():
    # alone each host gets 2,000, together they share 2,000: averages would add up to 2,800
    early = stepped(100.0, [2000] * 4 + [1000] * 6)
    late = stepped(104.0, [1000] * 6 + [2000] * 4)
    assert early["volumes"]["a"]["read"]["iops"] + late["volumes"]["a"]["read"]["iops"] == 2800
    point = together(early, late)
    assert point["total"]["iops"] == pytest.approx(2000)
    assert point["per_host"]["h1"]["total"]["iops"] == pytest.approx(1000)
    assert point["total"]["bytes_per_s"] == pytest.approx(2000 * 4096)
    window = {"start_s": 104.0, "end_s": 110.0, "overlap": 0.6, "skew_s": 4.0, "uncertainty_s": 0.0}
    assert point["window"] == pytest.approx(window)
    assert point["timing"]["h2"]["skew_s"] == 4.0


def test_percentiles_of_hosts_that_were_not_together_are_said_to_be_of_the_whole_run():
    assert together(stepped(100.0, [10] * 20), stepped(100.5, [10] * 20))["latency_scope"] == "window"
    assert together(stepped(100.0, [10] * 20), stepped(102.0, [10] * 20))["latency_scope"] == "whole run"


def test_a_wrong_clock_is_taken_out_and_what_is_uncertain_makes_the_window_smaller():
    clock = Clock(Reading(30.0, 0.25, 90.0), Reading(30.0, 0.1, 120.0))
    point = together(stepped(100.0, [10] * 10), stepped(130.0, [10] * 10), h2=clock)
    assert point["window"]["start_s"] == pytest.approx(100.25)
    assert point["window"]["end_s"] == pytest.approx(109.75)
    assert point["window"]["skew_s"] == pytest.approx(0.0)
    assert point["total"]["iops"] == pytest.approx(20)


def test_a_clock_that_was_set_during_the_run_is_taken_out_by_what_it_was_set():
    moved = stepped(3700.0, [10] * 10, clock_shift_s=3600.0)
    assert together(stepped(100.0, [10] * 10), moved)["window"]["overlap"] == pytest.approx(1.0)


def test_a_drifting_clock_is_taken_out_in_a_straight_line():
    # one second behind at 0, one ahead at 200: right at 100
    clock = Clock(Reading(-1.0, 0.0, 0.0), Reading(1.0, 0.0, 200.0))
    point = together(stepped(100.0, [10] * 10), stepped(100.0, [10] * 10), h2=clock)
    assert point["timing"]["h2"]["first_io_s"] == pytest.approx(100.0, abs=0.01)


def test_only_samples_of_the_last_round_are_merged():
    first, second = stepped(100.0, [10] * 10), stepped(200.0, [10] * 10, round=2)
    point = together(first, second)
    assert point["hosts_measured"] == ["h2"]
    assert point["repeat"] == 1


@given(
    st.lists(st.integers(1, 500), min_size=3, max_size=12),
    st.lists(st.integers(1, 500), min_size=3, max_size=12),
    st.floats(0, 6),
    st.floats(-1e6, 1e6),
)
def test_the_total_is_what_counting_every_io_by_hand_gives_whatever_the_clocks_say(one, two, later_s, wrong_s):
    early, late = stepped(1000.0, one), stepped(1000.0 + later_s + wrong_s, two)
    point = together(early, late, h2=Clock(Reading(wrong_s, 0.0, 0.0)))
    begin_s, end_s = 1000.0 + later_s, min(1000.0 + len(one), 1000.0 + later_s + len(two))
    if end_s - begin_s < 0.01:
        return
    by_hand = 0.0
    for start_s, counts in ((1000.0, one), (1000.0 + later_s, two)):
        for k, count in enumerate(counts):
            covered_s = min(end_s, start_s + k + 1) - max(begin_s, start_s + k)
            by_hand += count * max(0.0, covered_s)
    assert point["total"]["iops"] * (end_s - begin_s) == pytest.approx(by_hand, rel=1e-3, abs=0.5)
    hosts = [ways["total"]["iops"] for ways in point["per_host"].values()]
    assert sum(hosts) == pytest.approx(point["total"]["iops"])


def test_a_host_that_failed_is_expected_but_not_measured():
    point = merge.merge_point(planned(hosts=("h1", "h2")), {"h1": sample({"a": volume(read=direction(1, 1000))})})
    assert point["hosts_expected"] == ["h1", "h2"]
    assert point["hosts_measured"] == ["h1"]


def test_the_slowest_volume_is_named_and_fairness_is_jains_index():
    fairness = merged(a=volume(read=direction(100, 1000)), b=volume(read=direction(300, 1000)))["fairness"]
    assert fairness["slowest"] == {"host": "h1", "volume": "a", "iops": 100}
    assert fairness["jain"] == pytest.approx(400**2 / (2 * (100**2 + 300**2)))


def test_nothing_measured_gives_no_figures_instead_of_zero():
    point = merge.merge_point(planned(), {})
    assert point["total"] is None
    assert point["window"] is None


tallies = st.lists(
    st.tuples(st.integers(1, 10**6), st.integers(1, 10**10)).map(
        lambda io: tally.Tally.of(direction(iops=io[0] / 10, lat_ns=io[1], ios=io[0]))
    ),
    min_size=3,
    max_size=3,
)


@given(tallies)
def test_merging_is_free_of_order_and_grouping(parts):
    exact = []
    for order in itertools.permutations(parts):
        left = tally.total_of([tally.total_of(order[:2]), order[2]])
        right = tally.total_of([order[0], tally.total_of(order[1:])])
        exact += [left, right]
    first = exact[0]
    for other in exact[1:]:
        assert other.histogram == first.histogram
        assert (other.ios, other.lat_n, other.lat_min_ns, other.lat_max_ns) == (
            first.ios,
            first.lat_n,
            first.lat_min_ns,
            first.lat_max_ns,
        )
        assert other.lat_sum_ns == pytest.approx(first.lat_sum_ns)
