"""Samples become figures; latency only from merged histograms."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.histogram import index, value
from ansible_collections.hostmax.storage.plugins.plugin_utils import merge
from hypothesis import given
from hypothesis import strategies as st

from .samples_example import direction, planned, sample, volume


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


def test_hosts_add_up_and_the_window_is_the_time_they_share():
    early = sample({"a": volume(read=direction(1000, 1_000_000))}, window={"start_s": 100.0, "end_s": 110.0})
    late = sample({"a": volume(read=direction(1000, 1_000_000))}, window={"start_s": 102.0, "end_s": 112.0})
    point = merge.merge_point(planned(hosts=("h1", "h2")), {"h1": early, "h2": late})
    assert point["total"]["iops"] == 2000
    assert point["window"] == {"start_s": 102.0, "end_s": 110.0, "overlap": 0.8, "skew_s": 2.0}


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
        lambda io: merge.Tally.of(direction(iops=io[0] / 10, lat_ns=io[1], ios=io[0]))
    ),
    min_size=3,
    max_size=3,
)


@given(tallies)
def test_merging_is_free_of_order_and_grouping(parts):
    exact = []
    for order in itertools.permutations(parts):
        left = merge.total_of([merge.total_of(order[:2]), order[2]])
        right = merge.total_of([order[0], merge.total_of(order[1:])])
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
