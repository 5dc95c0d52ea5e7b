# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Latency counts on fio's own grid (29 groups of 64 bins, alike in fio 3.1 to 3.42): merging and exact percentiles.

Must not know: jobs, volumes, JSON documents, or which machine the counts come from.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Iterable, Mapping, Sequence

GROUP_BITS = 6
BINS = 29 << GROUP_BITS
LAST_BIN = BINS - 1
"""Holds everything above 17.05 s: a percentile that falls here is only a lower bound."""


def index(lat_ns: int) -> int:
    """The bin that counts a latency."""
    if lat_ns < 0:
        raise ValueError(f"The latency {lat_ns} ns is negative.")
    shift = lat_ns.bit_length() - 1 - GROUP_BITS
    if shift <= 0:
        return lat_ns
    return min(((shift + 1) << GROUP_BITS) + ((lat_ns >> shift) & ((1 << GROUP_BITS) - 1)), LAST_BIN)


def value(bin_index: int) -> int:
    """The latency in ns that stands for a bin: exact below 128 ns, the middle of the bin above."""
    if not 0 <= bin_index <= LAST_BIN:
        raise ValueError(f"The bin {bin_index} is outside 0 to {LAST_BIN}.")
    if bin_index < 2 << GROUP_BITS:
        return bin_index
    shift = (bin_index >> GROUP_BITS) - 1
    base_ns = 1 << (shift + GROUP_BITS)
    return base_ns + int(((bin_index & ((1 << GROUP_BITS) - 1)) + 0.5) * (1 << shift))


_INDEX_OF_KEY = {str(value(bin_index)): bin_index for bin_index in range(BINS)}


class Histogram:
    """Counts by bin. Adding is associative and free of order, so volumes, hosts and runs merge the same way."""

    __slots__ = ("counts", "n")

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: dict[int, int] = {}
        for bin_index, count in (counts or {}).items():
            if not 0 <= bin_index <= LAST_BIN or count < 0:
                raise ValueError(f"The count {count} in bin {bin_index} is not one of a latency histogram.")
            if count:
                self.counts[bin_index] = count
        self.n = sum(self.counts.values())

    @classmethod
    def from_fio_bins(cls, bins: Mapping[str, int] | Mapping[int, int]) -> Histogram:
        """From the `bins` of a json+ document: latency in ns (text or number) to count."""
        counts: dict[int, int] = {}
        for key, count in bins.items():
            bin_index = _INDEX_OF_KEY.get(key) if isinstance(key, str) else None
            if bin_index is None:
                bin_index = index(int(key))
            counts[bin_index] = counts.get(bin_index, 0) + count
        return cls(counts)

    @classmethod
    def from_sparse(cls, sparse: Sequence[int]) -> Histogram:
        """From `to_sparse`."""
        if len(sparse) % 2:
            raise ValueError("The sparse histogram has a bin without a count.")
        counts: dict[int, int] = {}
        bin_index = 0
        for position in range(0, len(sparse), 2):
            bin_index += sparse[position]
            if bin_index in counts:
                raise ValueError(f"The sparse histogram names bin {bin_index} twice.")
            counts[bin_index] = sparse[position + 1]
        return cls(counts)

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """The sum of all; none gives an empty histogram."""
        total = cls()
        for histogram in histograms:
            total.add(histogram)
        return total

    def add(self, other: Histogram) -> None:
        """Count in everything that `other` counted."""
        counts = self.counts
        for bin_index, count in list(other.counts.items()):
            counts[bin_index] = counts.get(bin_index, 0) + count
        self.n += other.n

    def to_sparse(self) -> list[int]:
        """Flat `[step to the next used bin, its count, …]`, small as JSON and smaller packed."""
        sparse: list[int] = []
        previous = 0
        for bin_index, count in sorted(self.counts.items()):
            sparse += (bin_index - previous, count)
            previous = bin_index
        return sparse

    def percentile(self, percent: str | int | Fraction) -> int | None:
        """The latency in ns fio itself reports for `percent` (above 0, up to 100) of these counts; None when empty."""
        return self.percentiles([percent])[0]

    def percentiles(self, percents: Iterable[str | int | Fraction]) -> list[int | None]:
        """Several percentiles, in the order asked for, in one pass over the bins."""
        thresholds = [_threshold(percent, self.n) for percent in percents]
        used = sorted(self.counts.items())
        if not used:
            return [None] * len(thresholds)
        reached = list(accumulate(count for _unused, count in used))
        return [value(used[min(bisect_left(reached, wanted), len(used) - 1)][0]) for wanted in thresholds]

    def capped(self, percent: str | int | Fraction) -> bool:
        """Whether that percentile lies in the last bin, where it says no more than `17.05 s or longer`."""
        return self.percentile(percent) == value(LAST_BIN)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.counts == other.counts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Histogram(n={self.n}, bins={len(self.counts)})"


def _threshold(percent: str | int | Fraction, n: int) -> int:
    """How many I/Os must be seen: percent / 100 * n, exactly, rounded up."""
    share = _share(percent)
    return -(-share.numerator * n // share.denominator)


@lru_cache(maxsize=256)
def _share(percent: str | int | Fraction) -> Fraction:
    """The percentile as fio has it: a double, so that 99.9 is a little more than 99.9."""
    exact = Fraction(float(Fraction(percent)))
    if not 0 < exact <= 100:
        raise ValueError(f"The percentile {percent} is outside 0 to 100.")
    return exact / 100
