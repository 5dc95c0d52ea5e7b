# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gates: the named rules that decide whether a point's number may be used at all.

They must not know what was expected of the storage; a point that is slow is valid, a point that is wrong is not.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils import nfs_transport
from ansible_collections.hostmax.storage.plugins.plugin_utils.merge import Head, averaged_hosts, merged_hosts
from ansible_collections.hostmax.storage.plugins.plugin_utils.window import WHOLE_OVERLAP

Json = dict[str, Any]

MIN_RUNTIME_SHARE = 0.95
MIN_OVERLAP = 0.80
MAX_LITTLE_ERROR = 0.05
# SNIA Solid State Storage PTS 2.0.1: five windows, range within 20 % and slope excursion within 10 % of the mean.
STEADY_WINDOWS, MAX_RANGE, MAX_EXCURSION = 5, 0.20, 0.10
# quarters of the run may not differ more; finds bursts that a short sliding window calls steady
MAX_QUARTER_RATIO = 1.25
MIN_STEADY_S = 50.0
# names of hosts in one sentence
MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class Gate:
    """One rule's outcome; ``passed`` is None where the rule could not be judged, and ``text`` says why."""

    name: str
    passed: bool | None
    measured: float | None
    limit: float | None
    text: str

    def to_mapping(self) -> Json:
        return {
            "name": self.name,
            "passed": self.passed,
            "measured": self.measured,
            "limit": self.limit,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Context:
    """What a gate may look at: the plan's point, the merged point, the heads of its samples and the hosts' facts."""

    planned: Mapping[str, Any]
    merged: Mapping[str, Any]
    heads: Mapping[str, Head]
    hosts: Mapping[str, Json]

    @property
    def merged_heads(self) -> dict[str, Head]:
        """The heads of the hosts whose figures are in the merged point."""
        return {host: self.heads[host] for host in merged_hosts(self.heads)}


def errors(context: Context) -> Gate:
    """fio reported no error, no signal and every expected volume and direction, on every host that answered."""
    faults = [f"{host}: {fault}" for host, head in context.heads.items() for fault in head.faults]
    text = "; ".join(faults[:4]) + (f"; and {len(faults) - 4:,} more" if len(faults) > 4 else "")
    return Gate("errors", not faults, float(len(faults)), 0.0, text or "no error, every expected volume measured")


def hosts(context: Context) -> Gate:
    """Every host of the plan measured this point; a smaller total is never shown as if it were whole."""
    expected, measured = context.merged["hosts_expected"], set(context.merged["hosts_measured"])
    missing = [host for host in expected if host not in measured]
    text = f"not measured by {names(missing)}" if missing else f"measured by all {len(expected):,} host(s)"
    return Gate("hosts", not missing, float(len(measured)), float(len(expected)), text)


def runtime(context: Context) -> Gate:
    """Every volume did I/O for at least 95 % of the time asked for."""
    times = [head.shortest_s for head in context.merged_heads.values() if head.shortest_s is not None]
    asked_s = context.planned["runtime_s"]
    limit_s = MIN_RUNTIME_SHARE * asked_s
    if not times:
        return Gate("runtime", False, None, limit_s, "no volume reported a runtime")
    shortest_s = min(times)
    return Gate("runtime", shortest_s >= limit_s, shortest_s, limit_s, f"shortest {shortest_s:.2f} s of {asked_s} s")


def overlap(context: Context) -> Gate:
    """All hosts were doing I/O together for most of the point."""
    window = context.merged["window"]
    if window is None:
        return Gate("overlap", False, None, MIN_OVERLAP, "no host had a window")
    share = window["overlap"]
    if window["end_s"] <= window["start_s"]:
        return Gate("overlap", False, share, MIN_OVERLAP, _never_together(context, window))
    text = f"all hosts together for {share:.1%} of the point"
    if len(context.merged_heads) > 1:
        text += f", first I/Os {_ms(window['skew_s'])} apart, clocks known to {_ms(window['uncertainty_s'])}"
    averaged = averaged_hosts(context.heads)
    passed = share >= MIN_OVERLAP
    if averaged:
        text += f"; no I/Os over time from {names(averaged)}, whose figures are averages of all its time"
        # an average of another time than the others' is no part of a total
        passed = passed and (share >= WHOLE_OVERLAP or len(context.merged_heads) == 1)
    return Gate("overlap", passed, share, MIN_OVERLAP, text)


def _never_together(context: Context, window: Mapping[str, float]) -> str:
    """Which two hosts missed each other, or that the clocks are not known well enough to tell."""
    times = {host: head.time for host, head in context.merged_heads.items() if head.time}
    late = max(times, key=lambda host: times[host].start_s)
    early = min(times, key=lambda host: times[host].end_s)
    gap_s = times[late].start_s - times[early].end_s
    if gap_s >= 0 and late != early:
        return (
            f"no common window, so there is no total: {late} began its I/O {gap_s:.1f} s after {early} had ended; "
            "each host's figures are its own averages"
        )
    return (
        f"no common window is sure, so there is no total: the clocks are known to {_ms(window['uncertainty_s'])} only; "
        "each host's figures are its own averages"
    )


def _ms(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


def names(hosts: Sequence[str]) -> str:
    """A few names of hosts, or some and how many more."""
    if len(hosts) <= MOST_NAMES:
        return ", ".join(hosts)
    return f"{', '.join(hosts[: MOST_NAMES - 1])} and {len(hosts) - MOST_NAMES + 1:,} more"


def steady(context: Context) -> Gate:
    """The level did not drift or jump: SNIA's rule over five windows, and quarters of the run against each other."""
    series = context.merged["series"]
    ran_s = len(series["iops"]) * series["interval_s"] if series else 0.0
    if ran_s < MIN_STEADY_S * MIN_RUNTIME_SHARE:
        text = f"not judged: the point ran {ran_s:.0f} s, at least {MIN_STEADY_S:.0f} s are needed"
        return Gate("steady", None, None, MAX_RANGE, text)
    spread, excursion, ratio = steadiness(series["iops"])
    good = spread <= MAX_RANGE and excursion <= MAX_EXCURSION and ratio <= MAX_QUARTER_RATIO
    text = f"range {spread:.1%} of the mean, slope {excursion:.1%}, quarters differ by a factor of {ratio:.2f}"
    return Gate("steady", good, spread, MAX_RANGE, text)


def steadiness(values: Sequence[float]) -> tuple[float, float, float]:
    """(range / mean, slope excursion / mean, largest quarter / smallest quarter) of a series of rates."""
    windows = _means(values, STEADY_WINDOWS)
    mean = statistics.fmean(windows)
    if mean <= 0:
        return float("inf"), float("inf"), float("inf")
    slope = statistics.linear_regression(range(STEADY_WINDOWS), windows).slope
    quarters = _means(values, 4)
    ratio = max(quarters) / min(quarters) if min(quarters) > 0 else float("inf")
    return (max(windows) - min(windows)) / mean, abs(slope) * (STEADY_WINDOWS - 1) / mean, ratio


def _means(values: Sequence[float], parts: int) -> list[float]:
    size = len(values) / parts
    return [
        statistics.fmean(values[round(k * size) : max(round(k * size) + 1, round((k + 1) * size))])
        for k in range(parts)
    ]


def littles_law(context: Context) -> Gate:
    """IOPS times mean latency equals the I/Os outstanding (J. Little, 1961): the queue was full, the clock right."""
    workload = context.planned["workload"]
    mean_ns = _mean_latency_ns(context.merged)
    if workload.get("rate_iops"):
        return Gate("littles_law", None, None, MAX_LITTLE_ERROR, "not judged: the workload is limited to a rate")
    if not any(head.outstanding is not None for head in context.merged_heads.values()):
        return Gate("littles_law", False, None, MAX_LITTLE_ERROR, "no latency was measured")
    offered = workload["io_depth"] * workload["num_jobs"] * sum(len(v) for v in context.merged["per_volume"].values())
    # of each volume's own time: the law holds there, whatever part of it the window is
    kept = sum(head.outstanding for head in context.merged_heads.values() if head.outstanding is not None)
    if not offered:
        return Gate("littles_law", False, None, MAX_LITTLE_ERROR, "no volume was measured")
    error = abs(kept / offered - 1)
    text = f"{kept:,.1f} I/Os outstanding by Little's law, {offered:,} offered"
    # I/Os that are on their way when the measurement ends are in neither figure: one latency of the runtime
    limit = MAX_LITTLE_ERROR + (mean_ns or 0.0) / 1e9 / context.planned["runtime_s"]
    own = sum(cpu["fio_usr"] for cpu in context.merged["cpu"].values() if cpu)
    if kept < offered and error > limit:
        # what fio itself computes between one I/O and the next is not latency; it matters on the fastest volumes alone
        limit += own / offered
        text += f", up to {own:,.1f} of them held up in fio itself"
    return Gate("littles_law", error <= limit, error, limit, text)


def _mean_latency_ns(merged: Mapping[str, Any]) -> float | None:
    """Of the total, or where there is none of the slowest host."""
    totals = [merged["total"]] if merged["total"] else [ways["total"] for ways in merged["per_host"].values()]
    return max((total["lat_ns"]["mean"] for total in totals if total["lat_ns"]), default=None)


def working_set(context: Context) -> Gate:
    """What is read again and again must not fit into the client's memory, unless the client's cache is bypassed."""
    if context.planned["workload"]["direct"]:
        return Gate("working_set", True, None, None, "direct I/O: the client's page cache is bypassed")
    size = context.planned["workload"].get("working_set_bytes")
    memory = min((host["memory_bytes"] for host in context.hosts.values() if host.get("memory_bytes")), default=None)
    if size is None or memory is None:
        return Gate(
            "working_set", None, size, memory, "not judged: the working set or the client's memory is not known"
        )
    total = size * context.merged["volumes"]
    return Gate("working_set", total > memory, float(total), float(memory), "working set against the client's memory")


def transport(context: Context) -> Gate | None:
    """No NFS request had to be sent again: the storage's figure would be that of an outage. None without NFS."""
    counters = context.merged.get("counters") or {}
    judged = {host: found for host in counters if (found := nfs_transport.faults(counters[host])) is not None}
    if not judged:
        return None
    found = [f"{host}: {fault}" for host, of_host in judged.items() for fault in of_host]
    text = "; ".join(found[:4]) + (f"; and {len(found) - 4:,} more" if len(found) > 4 else "")
    return Gate("transport", not found, float(len(found)), 0.0, text or "no NFS request was sent again")


# a rule that has nothing to say of a point gives None
GATES: tuple[Callable[[Context], Gate | None], ...] = (
    errors,
    hosts,
    runtime,
    overlap,
    steady,
    littles_law,
    working_set,
    transport,
)


def judge_point(context: Context) -> Json:
    """All gates of one point, and the status and ``counted`` that follow from them.

    partial: some hosts measured and others did not, for whatever reason; nothing is wrong with those that did.
    """
    if not context.heads:
        expected = float(len(context.merged["hosts_expected"]))
        gate = Gate("hosts", False, 0.0, expected, "no host measured this point")
        return {"gates": [gate.to_mapping()], "status": "missing", "counted": False}
    outcome = [found for gate in GATES if (found := gate(context))]
    failed = {gate.name for gate in outcome if gate.passed is False}
    # the faults of a host that did not measure are in no figure
    of_others = {"hosts", "errors"} if context.merged["hosts_measured"] else set()
    status = "ok"
    if failed:
        partial = "hosts" in failed and failed <= of_others
        status = "unsteady" if failed == {"steady"} else "partial" if partial else "invalid"
    return {"gates": [gate.to_mapping() for gate in outcome], "status": status, "counted": not failed}
