# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import gzip
import json
import math
import random
from fractions import Fraction
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.histogram import (
    BINS,
    LAST_BIN,
    Histogram,
    index,
    value,
)
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).parents[3] / "fixtures" / "fio"

histograms = st.dictionaries(st.integers(0, LAST_BIN), st.integers(0, 10**6), max_size=30).map(Histogram)


def test_the_grid_is_fios_own() -> None:
    assert BINS == 1856
    assert [index(lat_ns) for lat_ns in (0, 127, 128, 129, 130, 255, 256)] == [0, 127, 128, 128, 129, 191, 192]
    assert [value(bin_index) for bin_index in (127, 128, 191, 192, LAST_BIN)] == [127, 129, 255, 258, 17112760320]


def test_the_value_of_every_bin_lies_in_that_bin() -> None:
    assert [index(value(bin_index)) for bin_index in range(BINS)] == list(range(BINS))


@given(st.integers(0, 17_179_869_183))
def test_a_bin_is_never_more_than_0_79_percent_away_from_what_it_counts(lat_ns: int) -> None:
    assert abs(value(index(lat_ns)) - lat_ns) <= lat_ns / 128


def test_everything_above_17_s_is_in_the_last_bin_and_its_percentile_is_marked() -> None:
    stalled = Histogram({index(1000): 98, index(20_001_821_236): 2})
    assert stalled.percentile("99") == 17112760320
    assert stalled.capped("99")
    assert not stalled.capped("98")


@given(histograms, histograms, histograms)
def test_merging_is_associative_and_free_of_order(a: Histogram, b: Histogram, c: Histogram) -> None:
    left = Histogram.merged([Histogram.merged([a, b]), c])
    right = Histogram.merged([a, Histogram.merged([b, c])])
    assert left == right == Histogram.merged([c, b, a])
    assert left.n == a.n + b.n + c.n


def test_merging_leaves_its_parts_alone_and_a_histogram_can_be_added_to_itself() -> None:
    part = Histogram({5: 1})
    total = Histogram.merged([part, part])
    total.add(total)
    assert (total.counts, total.n, part.counts, part.n) == ({5: 4}, 4, {5: 1}, 1)


@given(histograms)
def test_dense_data_gives_the_histogram_back(histogram: Histogram) -> None:
    dense = json.loads(json.dumps(histogram.to_dense()))
    assert Histogram.from_dense(dense) == histogram
    assert Histogram.from_dense(dense).n == histogram.n == sum(histogram.counts.values())


@given(histograms, histograms)
def test_adding_counts_every_bin_by_itself_however_large_the_counts(a: Histogram, b: Histogram) -> None:
    large = Histogram({bin_index: count << 40 for bin_index, count in b.counts.items()})
    total = Histogram.merged([a, large])
    bins = {*a.counts, *large.counts}
    assert total.counts == {k: a.counts.get(k, 0) + large.counts.get(k, 0) for k in bins}


def test_fio_keys_may_be_text_or_numbers() -> None:
    assert Histogram.from_fio_bins({"129": 2, "17112760320": 1}).counts == {128: 2, LAST_BIN: 1}
    assert Histogram.from_fio_bins({129: 2, 17112760320: 1}).counts == {128: 2, LAST_BIN: 1}


@pytest.mark.parametrize("dense", [[-1, 5], [2000, 1], [1855, 1, 1], [5, -1], [5, 2**64]])
def test_damaged_dense_data_is_refused(dense: list[int]) -> None:
    with pytest.raises(ValueError, match="histogram"):
        Histogram.from_dense(dense)


def test_an_empty_histogram_has_no_percentile() -> None:
    assert Histogram().percentile("99") is None
    assert not Histogram().capped("99")


@pytest.mark.parametrize("percent", ["0", "-1", "100.1"])
def test_a_percentile_outside_its_range_is_refused(percent: str) -> None:
    with pytest.raises(ValueError, match="outside 0 to 100"):
        Histogram({1: 1}).percentile(percent)


@given(
    st.lists(st.integers(0, 10**10), min_size=1, max_size=200), st.sampled_from(["1", "50", "95", "99", "99.9", "100"])
)
def test_a_percentile_is_the_bin_of_the_exact_sample_quantile(lats_ns: list[int], percent: str) -> None:
    histogram = Histogram.merged(Histogram({index(lat_ns): 1}) for lat_ns in lats_ns)
    # two neighbours: on an exact border the double nearest to the percentile decides
    rank = Fraction(percent) / 100 * len(lats_ns)
    low, high = max(1, math.ceil(rank)), min(len(lats_ns), math.floor(rank) + 1)
    allowed = {value(index(sorted(lats_ns)[position - 1])) for position in (low, high)}
    assert histogram.percentile(percent) in allowed


def test_a_count_on_the_border_is_decided_as_fio_does() -> None:
    one_each = Histogram({bin_index: 1 for bin_index in range(1, 101)})
    # floating point would make 14 / 100 * 100 a little more than 14; fio does not (tests/integration/test_fio_core.py)
    assert one_each.percentiles(["14", "55", "99"]) == [14, 55, 99]
    # the double nearest to 99.9 is above it, so 999 of 1000 are not enough
    assert Histogram({5: 999, 6: 1}).percentile("99.9") == 6


def test_several_percentiles_come_in_the_order_asked_for() -> None:
    one_each = Histogram({bin_index: 1 for bin_index in range(1, 101)})
    assert one_each.percentiles(["99", "50"]) == [99, 50]


def test_percentiles_equal_fios_own_in_a_recorded_output() -> None:
    with gzip.open(FIXTURES / "randrw_two_volumes_four_jobs.json.gz", "rt") as recorded:
        text = recorded.read()
    compared = 0
    for job in json.loads(text)["jobs"]:
        for direction in ("read", "write"):
            lat = job[direction]["lat_ns"]
            histogram = Histogram.from_fio_bins(lat["bins"])
            assert histogram.n == lat["N"]
            assert histogram.percentiles(lat["percentile"]) == list(lat["percentile"].values())
            compared += len(lat["percentile"])
    assert compared == 68


def test_volumes_merged_in_any_order_give_the_same_percentiles() -> None:
    parts = [Histogram({index(k * 977): k for k in range(volume, 400, 7)}) for volume in range(1, 20)]
    expected = Histogram.merged(parts).percentiles(["50", "99", "99.99"])
    random.Random(2).shuffle(parts)
    assert Histogram.merged(parts).percentiles(["50", "99", "99.99"]) == expected
