# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Latency counts on fio's own grid (29 groups of 64 bins, alike in fio 3.1 to 3.42): merging and exact percentiles.

Must not know: jobs, volumes, JSON documents, or which machine the counts come from.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Iterable, Mapping, Sequence

GROUP_BITS = 6
BINS = 29 << GROUP_BITS
LAST_BIN = BINS - 1
"""Holds everything above 17.05 s: a percentile that falls here is only a lower bound."""
LANE_BITS = 64


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


_VALUES = tuple(value(bin_index) for bin_index in range(BINS))
_INDEX_OF_KEY = {str(lat_ns): bin_index for bin_index, lat_ns in enumerate(_VALUES)}


class Histogram:
    """Counts by bin. Adding is associative and free of order, so volumes, hosts and runs merge the same way.

    All counts are the lanes of one long integer, so that adding is one addition at the speed of C: a merge adds tens
    of thousands of histograms. A lane is wide enough for every I/O that a run can do.
    """

    __slots__ = ("_known", "_lanes")

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._lanes = 0
        self._known: tuple[int, array[int]] | None = None
        if not counts:
            return
        dense = array("Q", bytes(BINS * LANE_BITS // 8))
        for bin_index, count in counts.items():
            if not 0 <= bin_index <= LAST_BIN or not 0 <= count < 1 << LANE_BITS:
                raise ValueError(f"The count {count} in bin {bin_index} is not one of a latency histogram.")
            dense[bin_index] = count
        self._lanes = int.from_bytes(_little(dense), "little")

    @property
    def n(self) -> int:
        """How many were counted."""
        return sum(self._used()[1])

    @property
    def counts(self) -> dict[int, int]:
        """The bins that counted something."""
        first, counts = self._used()
        return {first + place: count for place, count in enumerate(counts) if count}

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
    def from_dense(cls, dense: Sequence[int]) -> Histogram:
        """From `to_dense`, as a list or an array of 64-bit numbers."""
        if not dense:
            return cls()
        first, counts = dense[0], dense[1:]
        if first < 0 or first + len(counts) > BINS:
            raise ValueError(f"The dense histogram has {len(counts)} bins from {first}, outside 0 to {LAST_BIN}.")
        histogram = cls()
        try:
            lanes = counts if isinstance(counts, array) else array("Q", counts)
        except (OverflowError, TypeError) as error:
            raise ValueError("The dense histogram has a count that is none.") from error
        histogram._lanes = int.from_bytes(_little(lanes), "little") << LANE_BITS * first
        histogram._known = first, lanes
        return histogram

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """The sum of all; none gives an empty histogram."""
        total = cls()
        for histogram in histograms:
            total.add(histogram)
        return total

    def add(self, other: Histogram) -> None:
        """Count in everything that `other` counted."""
        self._lanes += other._lanes
        self._known = None

    def to_dense(self) -> list[int]:
        """Flat `[first used bin, its count, the count of the next bin, …, of the last used bin]`; [] when empty."""
        self._known = None
        first, counts = self._used()
        return [first, *counts] if counts else []

    def _used(self) -> tuple[int, array[int]]:
        """A bin that no used one is below, and the counts from there on; taken out of the lanes once."""
        if self._known:
            return self._known
        if not self._lanes:
            return 0, array("Q")
        first = ((self._lanes & -self._lanes).bit_length() - 1) // LANE_BITS
        lanes = self._lanes >> LANE_BITS * first
        counts = array("Q")
        counts.frombytes(lanes.to_bytes(-(-lanes.bit_length() // LANE_BITS) * LANE_BITS // 8, "little"))
        if sys.byteorder == "big":
            counts.byteswap()
        self._known = first, counts
        return first, counts

    def percentile(self, percent: str | int | Fraction) -> int | None:
        """The latency in ns fio itself reports for `percent` (above 0, up to 100) of these counts; None when empty."""
        return self.percentiles([percent])[0]

    def percentiles(self, percents: Iterable[str | int | Fraction]) -> list[int | None]:
        """Several percentiles, in the order asked for, in one pass over the bins."""
        first, counts = self._used()
        reached = list(accumulate(counts))
        total = reached[-1] if reached else 0
        shares = [_share(percent) for percent in percents]
        if not total:
            return [None] * len(shares)
        # how many I/Os must be seen: percent / 100 * n, exactly, rounded up
        wanted = [-(-numerator * total // denominator) for numerator, denominator in shares]
        return [_VALUES[first + bisect_left(reached, count)] for count in wanted]

    def capped(self, percent: str | int | Fraction) -> bool:
        """Whether that percentile lies in the last bin, where it says no more than `17.05 s or longer`."""
        return self.percentile(percent) == value(LAST_BIN)

    def __bool__(self) -> bool:
        """Whether anything was counted."""
        return self._lanes > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self._lanes == other._lanes

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Histogram(n={self.n}, bins={len(self.counts)})"


def _little(lanes: array[int]) -> bytes:
    if sys.byteorder == "little":
        return lanes.tobytes()
    turned = array("Q", lanes)
    turned.byteswap()
    return turned.tobytes()


@lru_cache(maxsize=256)
def _share(percent: str | int | Fraction) -> tuple[int, int]:
    """The percentile as fio has it, numerator and denominator: a double, so that 99.9 is a little more than 99.9."""
    exact = Fraction(float(Fraction(percent)))
    if not 0 < exact <= 100:
        raise ValueError(f"The percentile {percent} is outside 0 to 100.")
    return (exact / 100).as_integer_ratio()
