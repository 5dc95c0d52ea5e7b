"""Samples become figures: rates over the window all hosts share, latency only from merged histograms."""

from __future__ import annotations

import itertools
import json

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.histogram import index, value
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import pack_sample
from ansible_collections.hostmax.storage.plugins.plugin_utils import merge, tally
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, Reading
from hypothesis import given
from hypothesis import strategies as st

from .samples_example import direction, even_steps, planned, sample, steps_of, volume


def merged(**volumes):
    return merge.merge_point(planned(len(volumes)), {"h1": sample(volumes)})


def a_host(start_s, counts, interval_s=1.0, end_s=None, **changes):
    """A host with one volume whose reads, step by step, are these."""
    last_s = start_s + len(counts) * interval_s
    ios = sum(counts)
    volumes = {"a": volume(read=direction(ios / (last_s - start_s), 1_000_000, last_s - start_s, ios=ios))}
    window = {"start_s": start_s, "end_s": last_s if end_s is None else end_s, "last_s": last_s}
    steps = steps_of(volumes, start_s, {"a": {"read": list(counts)}}, interval_s)
    return sample(volumes, window=window, steps=steps, **changes)


def point_of(hosts, clocks=None):
    plan = planned(hosts=tuple(hosts))
    return merge.merge_point(plan, hosts, merge.read_heads(plan, hosts, clocks))


# -- one host -------------------------------------------------------------------------------------------------------


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


def test_one_volume_of_one_host_has_the_figures_of_fio_whatever_its_course():
    host = a_host(100.0, [10, 5000, 0, 4990])
    point = point_of({"h1": host})
    fio = host["volumes"]["a"]["read"]
    assert point["total"]["iops"] == pytest.approx(fio["iops"], rel=1e-9)
    assert point["total"]["bytes_per_s"] == pytest.approx(fio["bytes_per_s"], rel=1e-9)
    assert point["total"]["ios"] == fio["ios"]
    assert point["series"] == {"interval_s": 1.0, "iops": [10.0, 5000.0, 0.0, 4990.0]}


def test_bytes_go_with_ios_also_in_a_part_of_the_time():
    point = point_of({"h1": a_host(100.0, [1000] * 4 + [0] * 6, end_s=104.0)})
    assert point["total"]["iops"] == pytest.approx(1000)
    assert point["total"]["bytes_per_s"] == pytest.approx(1000 * 4096)


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


def test_a_packed_sample_merges_like_the_sample_itself():
    host = a_host(100.0, [500, 700, 900])
    packed = json.loads(json.dumps(pack_sample(host)))
    assert point_of({"h1": packed}) == point_of({"h1": host})


# -- several hosts --------------------------------------------------------------------------------------------------


def test_hosts_that_took_turns_are_not_added_up():
    # a service that gives 1000 IOPS in all: alone each host gets all of it, together half
    early = a_host(100.0, [1000, 1000, 500, 500, 500, 500, 500, 500, 500, 500])
    late = a_host(102.0, [500, 500, 500, 500, 500, 500, 500, 500, 1000, 1000])
    point = point_of({"h1": early, "h2": late})
    assert sum(host["volumes"]["a"]["read"]["iops"] for host in (early, late)) == 1200
    assert point["total"]["iops"] == 1000
    assert {host: figures["total"]["iops"] for host, figures in point["per_host"].items()} == {"h1": 500, "h2": 500}
    assert point["window"] == {
        "start_s": 102.0,
        "end_s": 110.0,
        "overlap": 0.8,
        "skew_s": 2.0,
        "uncertainty_s": 0.0,
    }
    assert point["latency_scope"] == "whole run"
    assert point["series"] == {"interval_s": 1.0, "iops": [1000.0] * 8}


def test_the_window_is_narrower_by_the_clocks_uncertainty_on_both_sides():
    hosts = {"h1": a_host(100.0, [100] * 10), "h2": a_host(100.0, [100] * 10)}
    clocks = {"h1": Clock(Reading(0.0, 0.01, 0.0)), "h2": Clock(Reading(0.0, 0.1, 0.0), Reading(0.0, 0.2, 200.0))}
    window = point_of(hosts, clocks)["window"]
    assert (window["start_s"], window["end_s"]) == (pytest.approx(100.2), pytest.approx(109.8))
    assert (window["uncertainty_s"], window["overlap"]) == (0.2, pytest.approx(0.96))


def test_one_host_needs_no_clock():
    window = point_of({"h1": a_host(100.0, [100] * 10)}, {"h1": Clock(Reading(0.0, 0.5, 0.0))})["window"]
    assert (window["uncertainty_s"], window["overlap"]) == (0.0, 1.0)


def test_hosts_that_never_ran_together_have_no_total_and_keep_their_own_averages():
    point = point_of({"h1": a_host(100.0, [100] * 5), "h2": a_host(200.0, [300] * 5)})
    assert (point["total"], point["read"], point["series"]) == (None, None, None)
    assert point["per_host"]["h2"]["total"]["iops"] == 300
    assert point["window"]["overlap"] == 0.0


def test_a_host_without_steps_takes_part_with_its_average():
    without = a_host(100.0, [200] * 10)
    without["steps"] = None
    hosts = {"h1": a_host(100.0, [100] * 10), "h2": without}
    point = point_of(hosts)
    assert point["total"]["iops"] == 300
    assert point["series"] is None
    assert merge.averaged_hosts(merge.read_heads(planned(hosts=("h1", "h2")), hosts)) == ["h2"]


def test_figures_of_a_host_that_failed_are_in_no_total():
    good, bad = a_host(100.0, [100] * 10), a_host(100.0, [900] * 3, status="failed", faults=["fio was killed"])
    point = point_of({"h1": good, "h2": bad})
    assert point["total"]["iops"] == 100
    assert list(point["per_host"]) == ["h1"]
    assert point["window"]["overlap"] == 1.0


def test_a_host_that_failed_alone_is_still_shown():
    point = point_of({"h1": a_host(100.0, [100] * 10, status="failed", faults=["fio was killed"])})
    assert (point["hosts_measured"], point["total"]["iops"]) == ([], 100)


def test_a_point_that_was_not_started_has_no_figures():
    missed = sample({}, status="failed", faults=["it was not started"], window=None, steps=None, cpu=None, kernel={})
    point = point_of({"h1": missed, "h2": a_host(100.0, [100] * 10)})
    assert point["hosts_measured"] == ["h2"]
    assert point["total"]["iops"] == 100
    assert point_of({"h1": missed})["total"] is None


def test_only_the_last_round_of_a_repeated_point_is_merged():
    point = point_of({"h1": a_host(100.0, [100] * 10), "h2": a_host(200.0, [300] * 10, round=2)})
    assert (point["hosts_measured"], point["total"]["iops"], point["repeat"]) == (["h2"], 300, 1)


def test_first_and_last_io_of_each_host_are_told_on_the_controllers_clock():
    hosts = {"h1": a_host(130.0, [100] * 10), "h2": a_host(100.5, [100] * 10, late_s=0.5)}
    timing = point_of(hosts, {"h1": Clock(Reading(30.0, 0.001, 0.0))})["timing"]
    assert timing["h1"] == {"first_io_s": 100.0, "last_io_s": 110.0, "skew_s": 0.0, "late_s": 0.0}
    assert timing["h2"] == {"first_io_s": 100.5, "last_io_s": 110.5, "skew_s": 0.5, "late_s": 0.5}


def test_a_sample_from_an_earlier_run_brings_its_own_clock():
    kept = a_host(500.0, [100] * 10, clock={"offset_s": 400.0, "uncertainty_s": 0.01})
    point = point_of({"h1": kept}, {"h1": Clock(Reading(-7.0, 0.5, 0.0))})
    assert point["window"]["start_s"] == 100.0


# -- properties -----------------------------------------------------------------------------------------------------

courses = st.lists(
    st.tuples(
        st.floats(0.0, 3.0),
        st.lists(st.integers(0, 5000), min_size=6, max_size=12).filter(any),
        st.sampled_from([0.5, 1.0]),
    ),
    min_size=1,
    max_size=4,
)


def hosts_of(found):
    return {f"h{n}": a_host(1000.0 + late, counts, interval) for n, (late, counts, interval) in enumerate(found)}


@given(courses, st.randoms())
def test_the_order_in_which_hosts_answered_changes_nothing(found, rng):
    hosts = hosts_of(found)
    turned = list(hosts.items())
    rng.shuffle(turned)
    plan = planned(hosts=tuple(hosts))
    assert merge.merge_point(plan, dict(turned)) == merge.merge_point(plan, hosts)


@given(courses, st.floats(-1e5, 1e5), st.floats(-50, 50), st.integers(0, 3))
def test_a_wrong_clock_changes_nothing_once_its_offset_is_known(found, offset_s, set_by_s, which):
    right = point_of(hosts_of(found))
    hosts = hosts_of(found)
    host = f"h{which % len(hosts)}"
    moved = a_host(
        hosts[host]["window"]["start_s"] + offset_s + set_by_s,
        hosts[host]["steps"]["volumes"]["a"]["read"],
        hosts[host]["steps"]["interval_s"],
        clock_shift_s=set_by_s,
    )
    wrong = point_of({**hosts, host: moved}, {host: Clock(Reading(offset_s, 0.0, 0.0))})
    for key in ("start_s", "end_s"):
        assert wrong["window"][key] == pytest.approx(right["window"][key], abs=1e-6)
    if right["total"]:
        # the clock's own resolution, 0.2 us at today's epoch, times the rate
        assert wrong["total"]["iops"] == pytest.approx(right["total"]["iops"], rel=1e-4, abs=0.1)


@given(courses)
def test_volumes_add_up_to_hosts_and_hosts_to_the_total(found):
    point = point_of(hosts_of(found))
    for host, figures in point["per_host"].items():
        own = [volume["total"]["iops"] for volume in point["per_volume"][host].values()]
        assert sum(own) == pytest.approx(figures["total"]["iops"])
    if point["total"]:
        every = [figures["total"]["iops"] for figures in point["per_host"].values()]
        assert sum(every) == pytest.approx(point["total"]["iops"])


phases = st.lists(st.tuples(st.floats(0.0, 4.0), st.floats(8.0, 12.0), st.integers(50, 400)), min_size=2, max_size=4)


@given(phases, st.integers(1000, 3000))
def test_the_window_total_is_what_arrived_in_it(found, cap):
    """Hosts share a service of `cap` IOPS fairly; the sum of their averages is wrong where they are not all there."""
    step_s = 0.02
    arrivals = [[] for _host in found]
    for tick in range(int(20 / step_s)):
        now = tick * step_s
        here = [n for n, (begin, length, _demand) in enumerate(found) if begin <= now < begin + length]
        for n in here:
            arrivals[n].append((now, min(found[n][2] * 10, cap / len(here)) * step_s))
    hosts = {}
    for n, (begin, length, _demand) in enumerate(found):
        counts = [0.0] * -(-int(length * 1000) // 500)
        for now, ios in arrivals[n]:
            counts[min(int((now - begin) / 0.5), len(counts) - 1)] += ios
        host = a_host(1000.0 + begin, [round(count) for count in counts], 0.5)
        for key in ("end_s", "last_s"):
            host["window"][key] = 1000.0 + begin + length
        hosts[f"h{n}"] = host
    point = point_of(hosts)
    start_s, end_s = (point["window"][key] - 1000.0 for key in ("start_s", "end_s"))
    truth = sum(ios for own in arrivals for now, ios in own if start_s <= now < end_s) / (end_s - start_s)
    # a step at the edge of the window holds I/Os from before, when fewer shared the service, and is not taken as even
    assert point["total"]["iops"] == pytest.approx(truth, rel=0.02)


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


def test_even_steps_of_the_examples_hold_every_io():
    volumes = {"a": volume(read=direction(1000, 1000, ios=9999))}
    steps = even_steps(volumes, {"start_s": 0.0, "last_s": 9.7})
    assert sum(steps["volumes"]["a"]["read"]) == 9999
    assert len(steps["volumes"]["a"]["read"]) == 10
