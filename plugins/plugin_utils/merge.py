# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Samples of one point become its figures over the window all hosts share: per volume, per host and in total.

It must not know what the figures are worth: gates, limits and verdicts look at what it returns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import unpack_arrays, unpack_figures
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, clock_of_sample
from ansible_collections.hostmax.storage.plugins.plugin_utils.rounds import time_of
from ansible_collections.hostmax.storage.plugins.plugin_utils.tally import (
    DIRECTIONS,
    Tally,
    add_ways,
    fairness,
    with_total,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.window import (
    WHOLE_OVERLAP,
    HostTime,
    Steps,
    Window,
    common_window,
    ios_between,
    skews,
)

Json = dict[str, Any]
Rate = Callable[[str, str], float | None]

OWN_CLOCK = Clock()


@dataclass(frozen=True, slots=True)
class Head:
    """What must be known of every host's sample before any is merged: few bytes, so that all fit in memory."""

    measured: bool
    faults: tuple[str, ...]
    time: HostTime | None
    uncertainty_s: float
    interval_s: float | None
    unlogged: tuple[str, ...]
    shortest_s: float | None
    outstanding: float | None
    cpu: Json | None
    engine: str | None
    late_s: float
    round: int


def read_heads(
    point: Mapping[str, Any], samples: Mapping[str, Json], clocks: Mapping[str, Clock] | None = None
) -> dict[str, Head]:
    """The heads of a point's samples, packed or not, in the plan's order of hosts.

    Where a point was repeated, only samples of its last round: those of an earlier one are of another time.
    """
    heads = {
        host: _head(unpack_figures(samples[host]), (clocks or {}).get(host, OWN_CLOCK), point["workload"]["num_jobs"])
        for host in point["jobs"]
        if host in samples
    }
    last = max((head.round for head in heads.values()), default=1)
    return {host: head for host, head in heads.items() if head.round == last}


def _head(sample: Mapping[str, Any], clock: Clock, num_jobs: int) -> Head:
    """The one place where what older or simpler samples lack gets its default."""
    if sample.get("clock"):
        clock = clock_of_sample(sample["clock"])
    ways = [way for volume in sample["volumes"].values() for way in (volume.get(name) for name in DIRECTIONS) if way]
    lats = [(way["iops"], way["lat_ns"]["mean"]) for way in ways if way["lat_ns"]]
    steps = sample.get("steps")
    return Head(
        measured=sample["status"] == "measured",
        faults=tuple(sample["faults"]),
        time=_time(sample.get("window"), clock, sample.get("clock_shift_s", 0.0)),
        uncertainty_s=clock.uncertainty_s,
        interval_s=steps["interval_s"] if steps else None,
        unlogged=tuple(steps.get("unlogged", ())) if steps else (),
        shortest_s=min((way["runtime_s"] for way in ways), default=None),
        outstanding=sum(iops * mean_ns for iops, mean_ns in lats) / 1e9 if lats else None,
        cpu=_cpu(sample, num_jobs),
        engine=(sample.get("engine") or {}).get("used"),
        late_s=sample.get("late_s", 0.0),
        round=sample.get("round", 1),
    )


def _time(window: Mapping[str, float] | None, clock: Clock, shift_s: float) -> HostTime | None:
    if not window:
        return None
    start_s, end_s = window["start_s"], window["end_s"]
    instants = (start_s, end_s, window.get("last_s", end_s))
    return HostTime(*(clock.to_controller(instant_s, shift_s) for instant_s in instants))


def _cpu(sample: Mapping[str, Any], num_jobs: int) -> Json | None:
    """CPU shares of a host in its window, and how many CPUs fio's own jobs used in user and in system mode."""
    if not sample.get("cpu"):
        return None
    volumes = sample["volumes"].values()
    return {
        **sample["cpu"],
        "fio_usr": num_jobs * sum(volume["usr"] for volume in volumes),
        "fio_sys": num_jobs * sum(volume["sys"] for volume in volumes),
    }


def merged_hosts(heads: Mapping[str, Head]) -> list[str]:
    """The hosts whose figures are merged: those that measured, or where none did all that answered, to be shown."""
    return [host for host, head in heads.items() if head.measured] or list(heads)


def window_of(heads: Mapping[str, Head]) -> Window | None:
    """The time in which every merged host was doing I/O.

    A host's own overlap, of its processes, is no part of it: fio starts them together, and the first entry of a slow
    one in its log comes late by what the first I/Os took.
    """
    chosen = [heads[host] for host in merged_hosts(heads)]
    times = [head.time for head in chosen if head.time]
    return common_window(times, max((head.uncertainty_s for head in chosen), default=0.0))


def averaged_hosts(heads: Mapping[str, Head]) -> list[str]:
    """Merged hosts without I/Os over time: their figures are averages of all their time, not of the window."""
    return [host for host in merged_hosts(heads) if heads[host].interval_s is None and heads[host].time]


def merge_point(point: Mapping[str, Any], samples: Mapping[str, Json], heads: Mapping[str, Head] | None = None) -> Json:
    """One plan point and the samples of the hosts that measured it become the contract's point, not yet judged.

    `samples` may read each sample from a file when it is asked for: they are taken one by one, in the plan's order.
    Without a common window there is no total, and each host's figures are its own averages.
    """
    heads = read_heads(point, samples) if heads is None else heads
    hosts, window = merged_hosts(heads), window_of(heads)
    together = window is None or window.length_s > 0
    series = _Series(window, [heads[host] for host in hosts])
    everything: dict[str, Tally] = {}
    per_host: dict[str, Json] = {}
    per_volume: dict[str, dict[str, Json]] = {}
    counters: dict[str, Json] = {}
    for host in hosts:
        sample = unpack_arrays(samples[host])
        if sample.get("nfs") or sample.get("net"):
            counters[host] = {"nfs": sample.get("nfs"), "net": sample.get("net")}
        steps = _steps_of(sample, heads[host])
        rate = _rate_in(steps, sample, window, heads[host].time)
        ways, per_volume[host] = _volumes(sample["volumes"], rate)
        series.add(steps, sample)
        if ways:
            per_host[host] = with_total(ways)
            add_ways(everything, ways)
    whole = together and bool(everything)
    over_time = series.result()
    return {
        "id": point["id"],
        "condition": None,
        "block": 0,
        "repeat": time_of(max((head.round for head in heads.values()), default=1)) - 1,
        "volumes": point["volumes"],
        "hosts_expected": sorted(point["jobs"]),
        "hosts_measured": sorted(host for host, head in heads.items() if head.measured),
        "window": window.to_mapping() if window else None,
        "timing": _timing(heads),
        "latency_scope": "window" if window and window.overlap >= WHOLE_OVERLAP else "whole run",
        **(with_total(everything) if whole else {"read": None, "write": None, "total": None}),
        "per_host": per_host,
        "per_volume": per_volume,
        "fairness": fairness(per_volume),
        "levels": levels_of(over_time),
        "series": over_time,
        "cpu": {host: heads[host].cpu for host in hosts},
        "counters": counters,
        "job": {host: point["jobs"][host] for host in sorted(point["jobs"])},
    }


def _volumes(volumes: Mapping[str, Json], rate: Rate) -> tuple[dict[str, Tally], dict[str, Json]]:
    """(the host's tallies by direction, the figures of each volume)."""
    ways: dict[str, Tally] = {}
    figures = {}
    for name, volume in volumes.items():
        own = {way: Tally.of(volume[way], rate(name, way)) for way in DIRECTIONS if volume.get(way)}
        if own:
            figures[name] = with_total(own)
            add_ways(ways, own)
    return ways, figures


def _steps_of(sample: Mapping[str, Any], head: Head) -> Steps | None:
    found = sample.get("steps")
    if not found or not head.time:
        return None
    count = max((len(counts) for ways in found["volumes"].values() for counts in ways.values()), default=0)
    return Steps(head.time.start_s, found["interval_s"], head.time.last_s, count) if count else None


def _rate_in(steps: Steps | None, sample: Mapping[str, Any], window: Window | None, own: HostTime | None) -> Rate:
    """How a volume's rate in the window is found; None, its own average, without steps or without a window."""
    if steps is None or own is None or window is None or window.length_s <= 0:
        return lambda _name, _way: None
    places, volumes, length_s = steps.between(window, own), sample["steps"]["volumes"], window.length_s
    return lambda name, way: ios_between(volumes[name][way], places) / length_s


def _timing(heads: Mapping[str, Head]) -> dict[str, Json]:
    """First and last I/O of each merged host (controller's clock), and how late it was: against others, by plan."""
    chosen = merged_hosts(heads)
    times = {host: time for host in chosen if (time := heads[host].time)}
    apart = skews(times)
    return {
        host: {
            "first_io_s": time.start_s,
            "last_io_s": time.last_s,
            "skew_s": apart[host],
            "late_s": heads[host].late_s,
        }
        for host, time in times.items()
    }


class _Series:
    """IOPS over time of all hosts together, on one grid over the window; none unless every host has steps."""

    def __init__(self, window: Window | None, heads: Sequence[Head]) -> None:
        intervals = [head.interval_s for head in heads if head.interval_s]
        self._iops: list[float] | None = None
        if window and intervals and len(intervals) == len(heads):
            self._start_s, self._interval_s = window.start_s, max(intervals)
            # a window a little short of whole steps, by rounding or by what the clocks leave in doubt, keeps the last
            count = int(window.length_s / self._interval_s + 0.01)
            self._iops = [0.0] * count if count > 0 else None

    def add(self, steps: Steps | None, sample: Mapping[str, Any]) -> None:
        """Count in one host."""
        if self._iops is None:
            return
        if steps is None:
            self._iops = None
            return
        counts = [each for ways in sample["steps"]["volumes"].values() for each in ways.values() if each]
        found = steps.on_grid(counts, self._start_s, self._interval_s, len(self._iops))
        self._iops = [level + ios / self._interval_s for level, ios in zip(self._iops, found, strict=True)]

    def result(self) -> Json | None:
        """The contract's series."""
        if self._iops is None:
            return None
        return {"interval_s": self._interval_s, "iops": [round(level, 3) for level in self._iops]}


def levels_of(series: Json | None) -> Json | None:
    """First and last quarter of a series: the two levels a reader must see when a point is not steady."""
    if not series or len(series["iops"]) < 8:
        return None
    quarter = len(series["iops"]) // 4
    return {
        "first_quarter_iops": statistics.fmean(series["iops"][:quarter]),
        "last_quarter_iops": statistics.fmean(series["iops"][-quarter:]),
    }
