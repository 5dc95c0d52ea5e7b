# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Samples of one point become its figures: per volume, per host and in total, latency from merged histograms only.

It must not know what the figures are worth: gates, limits and verdicts look at what it returns.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
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
    def of(cls, data: Mapping[str, Any]) -> Tally:
        """The tally of one volume and direction as reduced on the host (``fio_output.reduce_output``)."""
        lat = data["lat_ns"]
        tally = cls(data["ios"], data["iops"], data["bytes_per_s"])
        if lat and lat["n"]:
            tally.lat_n, tally.lat_sum_ns = lat["n"], lat["n"] * lat["mean"]
            tally.lat_min_ns, tally.lat_max_ns = lat["min"], lat["max"]
        tally.histogram = Histogram.from_sparse(data["histogram"])
        return tally

    def add(self, other: Tally) -> None:
        """Add another tally's I/Os; rates add up because both were doing I/O in the same window."""
        self.ios += other.ios
        self.iops += other.iops
        self.bytes_per_s += other.bytes_per_s
        self.lat_n += other.lat_n
        self.lat_sum_ns += other.lat_sum_ns
        self.lat_min_ns = min((v for v in (self.lat_min_ns, other.lat_min_ns) if v is not None), default=None)
        self.lat_max_ns = max((v for v in (self.lat_max_ns, other.lat_max_ns) if v is not None), default=None)
        self.histogram.add(other.histogram)

    def figures(self) -> Json:
        """The contract's figures: iops, bytes_per_s, ios and lat_ns (None where no latency was measured)."""
        return {"iops": self.iops, "bytes_per_s": self.bytes_per_s, "ios": self.ios, "lat_ns": self._latency()}

    def _latency(self) -> Json | None:
        if not self.lat_n or not self.histogram.n:
            return None
        values = [value or 0 for value in self.histogram.percentiles(PERCENTILES.values())]
        # a bin's middle may lie above the largest latency in it (axboe/fio#1984)
        top = self.lat_max_ns if self.lat_max_ns is not None else float("inf")
        return {
            "n": self.lat_n,
            "mean": self.lat_sum_ns / self.lat_n,
            "min": self.lat_min_ns,
            "max": self.lat_max_ns,
            **{name: min(value, top) for name, value in zip(PERCENTILES, values, strict=True)},
        }


def total_of(tallies: Sequence[Tally]) -> Tally:
    """A new tally with all of them added."""
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


def _directions(volume: Mapping[str, Any]) -> dict[str, Tally]:
    return {way: Tally.of(volume[way]) for way in DIRECTIONS if volume.get(way)}


def _with_total(ways: Mapping[str, Tally]) -> Json:
    """read, write and total figures; total is read + write."""
    figures: Json = {way: ways[way].figures() if way in ways else None for way in DIRECTIONS}
    only = next(iter(ways)) if len(ways) == 1 else None
    figures["total"] = figures[only] if only else total_of(list(ways.values())).figures()
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
        "jain": sum(values) ** 2 / (len(values) * squares) if squares else 0.0,
        "slowest": {"host": slowest[1], "volume": slowest[2], "iops": slowest[0]},
    }


def window_of(samples: Mapping[str, Json]) -> Json | None:
    """The time in which every host was doing I/O; overlap is its share of the longest host window.

    A host's own overlap, of its processes, is no part of it: fio starts them together, and the first entry of a slow
    one in its log comes late by what the first I/Os took.
    """
    windows = [sample["window"] for sample in samples.values() if sample.get("window")]
    if not windows:
        return None
    starts = [window["start_s"] for window in windows]
    start_s, end_s = max(starts), min(window["end_s"] for window in windows)
    longest_s = max(window["end_s"] - window["start_s"] for window in windows)
    overlap = max(0.0, end_s - start_s) / longest_s if longest_s > 0 else 0.0
    return {"start_s": start_s, "end_s": end_s, "overlap": overlap, "skew_s": start_s - min(starts)}


def series_of(samples: Mapping[str, Json]) -> Json | None:
    """IOPS over time of all hosts together, on the grid of the first host's series; None unless all have one."""
    series: list[Json] = [sample["series"] for sample in samples.values() if sample.get("series")]
    if not series or len(series) < len(samples):
        return None
    length = min(len(one["iops"]) for one in series)
    summed = [sum(one["iops"][k] for one in series) for k in range(length)]
    return {"interval_s": series[0]["interval_s"], "iops": summed}


def levels_of(series: Json | None) -> Json | None:
    """First and last quarter of a series: the two levels a reader must see when a point is not steady."""
    if not series or len(series["iops"]) < 8:
        return None
    quarter = len(series["iops"]) // 4
    return {
        "first_quarter_iops": statistics.fmean(series["iops"][:quarter]),
        "last_quarter_iops": statistics.fmean(series["iops"][-quarter:]),
    }


def merge_point(point: Mapping[str, Any], samples: Mapping[str, Json]) -> Json:
    """One plan point and the samples of the hosts that measured it become the contract's point, not yet judged."""
    ways_by_host: dict[str, dict[str, Tally]] = {}
    per_volume: dict[str, dict[str, Json]] = {}
    for host, sample in samples.items():
        volumes = {name: _directions(volume) for name, volume in sample["volumes"].items()}
        per_volume[host] = {name: _with_total(ways) for name, ways in volumes.items() if ways}
        ways_by_host[host] = _sum_directions(volumes.values())
    everything = _sum_directions(ways_by_host.values())
    series = series_of(samples)
    cpu = {host: _cpu(sample, point["workload"]["num_jobs"]) for host, sample in samples.items()}
    return {
        "id": point["id"],
        "condition": None,
        "block": 0,
        "repeat": 0,
        "volumes": point["volumes"],
        "hosts_expected": sorted(point["jobs"]),
        "hosts_measured": sorted(host for host, sample in samples.items() if sample["status"] == "measured"),
        "window": window_of(samples),
        **(_with_total(everything) if everything else {"read": None, "write": None, "total": None}),
        "per_host": {host: _with_total(ways) for host, ways in ways_by_host.items() if ways},
        "per_volume": per_volume,
        "fairness": fairness(per_volume),
        "levels": levels_of(series),
        "series": series,
        "cpu": cpu,
        "job": {host: point["jobs"][host] for host in sorted(point["jobs"])},
    }


def _sum_directions(parts: Any) -> dict[str, Tally]:
    summed: dict[str, Tally] = {}
    for part in parts:
        for way, tally in part.items():
            summed.setdefault(way, Tally()).add(tally)
    return summed


def _cpu(sample: Mapping[str, Any], num_jobs: int) -> Json | None:
    """CPU shares of a host in the window, and how many CPUs fio's own jobs used in user and in system mode."""
    if not sample.get("cpu"):
        return None
    volumes = sample["volumes"].values()
    return {
        **sample["cpu"],
        "fio_usr": num_jobs * sum(volume["usr"] for volume in volumes),
        "fio_sys": num_jobs * sum(volume["sys"] for volume in volumes),
    }
