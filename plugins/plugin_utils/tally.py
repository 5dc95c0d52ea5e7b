# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""I/Os, rates and latencies that add up: of a volume, of a host, of all; percentiles from merged histograms only.

Must not know: hosts, windows or clocks; whoever adds two rates makes sure that they are of the same time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.histogram import Histogram

PERCENTILES = {"p50": "50", "p95": "95", "p99": "99", "p99_9": "99.9", "p99_99": "99.99"}
DIRECTIONS = ("read", "write")

Json = dict[str, Any]


@dataclass(slots=True)
class Tally:
    """I/Os of one direction, or of both, of any number of volumes; adding is associative and free of order."""

    ios: int = 0
    iops: float = 0.0
    bytes_per_s: float = 0.0
    lat_n: int = 0
    lat_sum_ns: float = 0.0
    lat_min_ns: float | None = None
    lat_max_ns: float | None = None
    histogram: Histogram = field(default_factory=Histogram)

    @classmethod
    def of(cls, data: Mapping[str, Any], iops: float | None = None) -> Tally:
        """One volume and direction as reduced on the host (`fio_output.reduce_output`), at its own rate or `iops`.

        The block size is fixed, so bytes go with I/Os.
        """
        lat = data["lat_ns"]
        tally = cls(data["ios"], data["iops"], data["bytes_per_s"])
        if iops is not None:
            tally.iops, tally.bytes_per_s = iops, iops * data["io_bytes"] / data["ios"]
        if lat and lat["n"]:
            tally.lat_n, tally.lat_sum_ns = lat["n"], lat["n"] * lat["mean"]
            tally.lat_min_ns, tally.lat_max_ns = lat["min"], lat["max"]
        tally.histogram = Histogram.from_dense(data["histogram"])
        return tally

    def add(self, other: Tally) -> None:
        """Add another tally's I/Os; rates add up because both were doing I/O in the same window."""
        self.ios += other.ios
        self.iops += other.iops
        self.bytes_per_s += other.bytes_per_s
        if other.lat_n:
            self.lat_n += other.lat_n
            self.lat_sum_ns += other.lat_sum_ns
            self.lat_min_ns = min(v for v in (self.lat_min_ns, other.lat_min_ns) if v is not None)
            self.lat_max_ns = max(v for v in (self.lat_max_ns, other.lat_max_ns) if v is not None)
        self.histogram.add(other.histogram)

    def figures(self) -> Json:
        """The contract's figures: iops, bytes_per_s, ios and lat_ns (None where no latency was measured)."""
        return {"iops": self.iops, "bytes_per_s": self.bytes_per_s, "ios": self.ios, "lat_ns": self._latency()}

    def _latency(self) -> Json | None:
        if not self.lat_n or not self.histogram:
            return None
        # a bin's middle may lie above the largest latency in it (axboe/fio#1984)
        top = self.lat_max_ns if self.lat_max_ns is not None else float("inf")
        values = [value or 0 for value in self.histogram.percentiles(PERCENTILES.values())]
        p50, p95, p99, p99_9, p99_99 = [value if value < top else top for value in values]
        return {
            "n": self.lat_n,
            "mean": self.lat_sum_ns / self.lat_n,
            "min": self.lat_min_ns,
            "max": self.lat_max_ns,
            "p50": p50,
            "p95": p95,
            "p99": p99,
            "p99_9": p99_9,
            "p99_99": p99_99,
        }


def total_of(tallies: Iterable[Tally]) -> Tally:
    """A new tally with all of them added."""
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


def add_ways(total: dict[str, Tally], more: Mapping[str, Tally]) -> None:
    """Add tallies to those of the same direction."""
    for way, tally in more.items():
        total.setdefault(way, Tally()).add(tally)


def with_total(ways: Mapping[str, Tally]) -> Json:
    """read, write and total figures; total is read + write."""
    figures: Json = {way: ways[way].figures() if way in ways else None for way in DIRECTIONS}
    only = next(iter(ways)) if len(ways) == 1 else None
    figures["total"] = figures[only] if only else total_of(ways.values()).figures()
    return figures


def fairness(per_volume: Mapping[str, Mapping[str, Json]]) -> Json | None:
    """How evenly the volumes were served: extremes, Jain's index (1 = all alike) and the slowest volume.

    Jain: (sum x)^2 / (n * sum x^2), R. Jain et al., DEC-TR-301, 1984.
    """
    rates = [(v["total"]["iops"], host, name) for host, volumes in per_volume.items() for name, v in volumes.items()]
    if not rates:
        return None
    values = [rate for rate, _host, _name in rates]
    squares = sum(value * value for value in values)
    slowest = min(rates)
    return {
        "min_iops": min(values),
        "median_iops": statistics.median(values),
        "max_iops": max(values),
        "jain": min(1.0, sum(values) ** 2 / (len(values) * squares)) if squares else 0.0,
        "slowest": {"host": slowest[1], "volume": slowest[2], "iops": slowest[0]},
    }
