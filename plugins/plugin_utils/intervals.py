# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""95 % intervals of repeated figures: the mean of several blocks, and the ratio of two conditions paired by block.

Must not know: what a figure is of, or how many blocks were planned.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
# a difference below this is noise to anybody, however often it was measured
THRESHOLD = 0.01

BASELINE = "baseline"
FASTER = "faster"
SLOWER = "slower"
NO_DIFFERENCE = "no difference shown"
ONE_BLOCK = "inconclusive: one block"
NOT_COMPARED = "not compared"


class IntervalError(ValueError):
    """Figures of which there is no interval; the message is one sentence for the user."""


class MissingScipyError(RuntimeError):
    """The statistics library is not installed; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure of `n` repetitions with its 95 % interval; `low` and `high` are None where n is 1."""

    n: int
    value: float
    low: float | None
    high: float | None


@functools.cache
def student_t(degrees: int) -> float:
    """The two-sided 95 % quantile of Student's t with this many degrees of freedom."""
    # not scipy.stats, which is the same function and takes a second to import
    try:
        from scipy.special import stdtrit
    except ImportError as error:
        message = (
            "Intervals of repeated measurements need the Python package scipy on the controller: pip install scipy."
        )
        raise MissingScipyError(message) from error
    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean of at least one figure with the Student t interval of what it is the mean of."""
    if not values:
        raise IntervalError("there is no mean of no figure")
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Interval(1, mean, None, None)
    half = student_t(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(len(values), mean, mean - half, mean + half)


def ratio_interval(pairs: Sequence[tuple[float, float]]) -> Interval:
    """How many times the second of each pair is the first: Student t on the logarithms of the pairs' ratios.

    The two figures of a pair are of one block, so what changed between blocks is in both and falls out.
    """
    if any(figure <= 0 for pair in pairs for figure in pair):
        raise IntervalError("there is no ratio of figures that are not above zero")
    logs = mean_interval([math.log(second / first) for first, second in pairs])
    low, high = (None if bound is None else math.exp(bound) for bound in (logs.low, logs.high))
    return Interval(logs.n, math.exp(logs.value), low, high)


def word(ratio: Interval) -> str:
    """What a ratio shows: faster and slower only where the interval leaves 1 out and the difference is above noise."""
    if ratio.low is None or ratio.high is None:
        return ONE_BLOCK
    if ratio.low > 1 and ratio.value >= 1 + THRESHOLD:
        return FASTER
    if ratio.high < 1 and ratio.value <= 1 - THRESHOLD:
        return SLOWER
    return NO_DIFFERENCE
