# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The intervals hold what they promise: against scipy's own distribution, by hand, and by simulation."""

from __future__ import annotations

import builtins
import math
import random

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import intervals

# two-sided 95 %, as every printed table of Student's t has them
PRINTED = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 30: 2.042}


@pytest.mark.parametrize(("degrees", "value"), PRINTED.items())
def test_the_quantile_is_that_of_the_printed_tables(degrees, value):
    assert intervals.student_t(degrees) == pytest.approx(value, abs=5e-4)


def test_the_quantile_is_scipys_own():
    stats = pytest.importorskip("scipy.stats")
    for degrees in (1, 2, 4, 11, 100):
        assert intervals.student_t(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-10)


def test_a_mean_by_hand():
    found = intervals.mean_interval([98.0, 100.0, 102.0])
    half = 4.302652729911275 * 2.0 / math.sqrt(3)
    assert (found.n, found.value) == (3, 100.0)
    assert (found.low, found.high) == (pytest.approx(100 - half), pytest.approx(100 + half))


def test_a_ratio_by_hand():
    found = intervals.ratio_interval([(100, 110), (200, 240), (50, 57.5)])
    logs = [math.log(1.1), math.log(1.2), math.log(1.15)]
    mean = sum(logs) / 3
    half = 4.302652729911275 * math.sqrt(sum((log - mean) ** 2 for log in logs) / 2) / math.sqrt(3)
    assert found.value == pytest.approx(math.exp(mean))
    assert (found.low, found.high) == (pytest.approx(math.exp(mean - half)), pytest.approx(math.exp(mean + half)))


def test_a_ratio_and_its_inverse_say_the_same():
    pairs = [(100.0, 130.0), (90.0, 118.0), (120.0, 149.0)]
    there = intervals.ratio_interval(pairs)
    back = intervals.ratio_interval([(second, first) for first, second in pairs])
    assert back.value == pytest.approx(1 / there.value)
    assert (back.low, back.high) == (pytest.approx(1 / there.high), pytest.approx(1 / there.low))


def test_what_drifts_from_block_to_block_falls_out_of_the_pairs():
    pairs = [(level, 1.1 * level) for level in (100.0, 50.0, 25.0)]
    found = intervals.ratio_interval(pairs)
    assert (found.low, found.high) == (pytest.approx(1.1), pytest.approx(1.1))


def test_one_block_has_a_ratio_and_no_interval_and_is_called_inconclusive():
    found = intervals.ratio_interval([(100.0, 300.0)])
    assert (found.n, found.low, found.high) == (1, None, None)
    assert found.value == pytest.approx(3.0)
    assert intervals.word(found) == "inconclusive: one block"


def test_one_block_needs_no_statistics_library(monkeypatch):
    without_scipy(monkeypatch)
    assert intervals.mean_interval([5.0]).value == 5.0


def test_without_the_statistics_library_a_sentence_says_what_to_install(monkeypatch):
    without_scipy(monkeypatch)
    with pytest.raises(intervals.MissingScipyError, match="pip install scipy"):
        intervals.mean_interval([5.0, 6.0])


def without_scipy(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    intervals.student_t.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)


def test_no_figures_and_figures_of_zero_are_refused():
    with pytest.raises(intervals.IntervalError):
        intervals.mean_interval([])
    with pytest.raises(intervals.IntervalError):
        intervals.ratio_interval([(0.0, 1.0)])


WORDS = [
    ((1.20, 1.10, 1.31), "faster"),
    ((0.80, 0.70, 0.91), "slower"),
    ((1.05, 0.98, 1.13), "no difference shown"),
    ((0.95, 0.89, 1.02), "no difference shown"),
    ((1.004, 1.002, 1.006), "no difference shown"),
    ((0.996, 0.994, 0.998), "no difference shown"),
]


@pytest.mark.parametrize(("figures", "said"), WORDS)
def test_the_word_follows_the_interval_and_the_threshold_of_one_percent(figures, said):
    value, low, high = figures
    assert intervals.word(intervals.Interval(5, value, low, high)) == said


@pytest.mark.parametrize("blocks", [3, 5])
def test_the_interval_of_a_ratio_covers_the_truth_as_often_as_it_says(blocks):
    rng, truth, covered, trials = random.Random(20261130), 1.25, 0, 4000
    for _unused in range(trials):
        pairs = []
        for _block in range(blocks):
            level = 100_000 * math.exp(rng.gauss(0, 0.2))  # what the whole block shares: the hour, the neighbours
            pairs.append((level * math.exp(rng.gauss(0, 0.03)), truth * level * math.exp(rng.gauss(0, 0.03))))
        found = intervals.ratio_interval(pairs)
        covered += found.low <= truth <= found.high
    assert covered / trials == pytest.approx(0.95, abs=0.02)


def test_the_interval_of_a_mean_covers_the_truth_as_often_as_it_says():
    rng, covered, trials = random.Random(4), 0, 4000
    for _unused in range(trials):
        found = intervals.mean_interval([rng.gauss(5000, 150) for _block in range(5)])
        covered += found.low <= 5000 <= found.high
    assert covered / trials == pytest.approx(0.95, abs=0.02)


def test_equal_conditions_are_seldom_called_different():
    rng, wrong, trials = random.Random(11), 0, 2000
    for _unused in range(trials):
        pairs = [(math.exp(rng.gauss(0, 0.02)), math.exp(rng.gauss(0, 0.02))) for _block in range(5)]
        wrong += intervals.word(intervals.ratio_interval(pairs)) in ("faster", "slower")
    assert wrong / trials <= 0.07
