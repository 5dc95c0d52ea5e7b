# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Each workload under each condition over all blocks, and against the baseline and the condition it stands on.

Must not know: how points are measured or drawn; it uses the counted ones alone and says which it left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils import intervals, nfs_words
from ansible_collections.hostmax.storage.plugins.plugin_utils.ladder import headline_unit
from ansible_collections.hostmax.storage.plugins.plugin_utils.nfs_figures import nfs_figures

Json = dict[str, Any]
Key = tuple[str | None, str, int]


@dataclass(slots=True)
class _Group:
    """The points of one condition, workload and number of volumes."""

    unit: str
    points: list[Json] = field(default_factory=list)

    @property
    def counted(self) -> dict[int, Json]:
        """The counted point of each block; of several the last."""
        return {point["block"]: point for point in self.points if point["counted"] and point["total"]}

    @property
    def blocks(self) -> set[int]:
        return {point["block"] for point in self.points}

    def values(self) -> dict[int, float]:
        """The headline figure of each block that counts."""
        return {block: float(point["total"][self.unit]) for block, point in self.counted.items()}


def summarise(conditions: Sequence[Mapping[str, Any]], points: Sequence[Json]) -> tuple[list[Json], list[str]]:
    """(summaries in the order of the workloads, then of the conditions, and sentences about blocks left out).

    Without conditions every counted point is summed up with the blocks of its own kind; with conditions there is a
    summary for each of them, also where no point of it counts.
    """
    groups = _groups(points)
    names: list[str | None] = [condition["name"] for condition in conditions] or [None]
    parents = {condition["name"]: condition.get("on") for condition in conditions}
    cases = list(dict.fromkeys((workload, volumes) for _condition, workload, volumes in groups))
    summaries, words = [], []
    for workload, volumes in cases:
        for name in names:
            group = groups.get((name, workload, volumes))
            if group is None or not (group.counted or conditions):
                continue
            summary = _figures((name, workload, volumes), group)
            baseline = groups.get((names[0], workload, volumes))
            summary["status"] = intervals.BASELINE if len(names) > 1 and name == names[0] else None
            parent = parents.get(name) if name is not None else None
            if name is not None and name != names[0]:
                words += _compare(summary, group, names[0], baseline, "ratio", "status")
                words += _compare(
                    summary, group, parent, groups.get((parent, workload, volumes)), "parent_ratio", "parent_status"
                )
            stands_on = groups.get((parent, workload, volumes)) if parent else None
            summary["parent"] = parent
            summary["explanation"] = _explanation(summary, parent, stands_on)
            summaries.append(summary)
    return summaries, list(dict.fromkeys(words))


def _groups(points: Sequence[Json]) -> dict[Key, _Group]:
    found: dict[Key, _Group] = {}
    for point in points:
        key = (point["condition"], point["workload"]["name"], point["volumes"])
        found.setdefault(key, _Group(headline_unit(point["workload"]))).points.append(point)
    return found


def _figures(key: Key, group: _Group) -> Json:
    values = group.values()
    interval = intervals.mean_interval(list(values.values())) if values else None
    counted = list(group.counted.values())
    latencies = [point["total"]["lat_ns"]["mean"] for point in counted if point["total"]["lat_ns"]]
    condition, workload, volumes = key
    return {
        "condition": condition,
        "workload": workload,
        "volumes": volumes,
        "unit": group.unit,
        "blocks": len(group.blocks),
        "n": len(values),
        "mean": interval.value if interval else None,
        # a rate is not below zero, whatever three blocks far apart leave in doubt
        "ci95_low": None if interval is None or interval.low is None else max(0.0, interval.low),
        "ci95_high": interval.high if interval else None,
        "iops": _mean([point["total"]["iops"] for point in counted]),
        "bytes_per_s": _mean([point["total"]["bytes_per_s"] for point in counted]),
        "lat_ns": _mean(latencies),
        "ratio_to_baseline": None,
        "ratio_ci95_low": None,
        "ratio_ci95_high": None,
        "ratio_pairs": 0,
        "status": None,
        "parent": None,
        "ratio_to_parent": None,
        "parent_ratio_ci95_low": None,
        "parent_ratio_ci95_high": None,
        "parent_ratio_pairs": 0,
        "parent_status": None,
        "limit": _limit(counted),
        "counters": nfs_figures(counted),
        "explanation": [],
    }


def _limit(points: Sequence[Json]) -> Json | None:
    """What held most blocks back, with the evidence of the first of them."""
    found = [limit for point in points if (limit := point["limit"])]
    kinds = [limit["kind"] for limit in found]
    return max(found, key=lambda limit: kinds.count(limit["kind"]), default=None)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _compare(
    summary: Json, group: _Group, against: str | None, other: _Group | None, prefix: str, status: str
) -> list[str]:
    """Set the ratio, its interval and its word; returns which blocks had no partner."""
    if against is None:
        return []
    summary[status] = intervals.NOT_COMPARED
    mine, theirs = group.values(), other.values() if other else {}
    whole = [block for block in mine if mine[block] > 0 and theirs.get(block, 0) > 0]
    planned = group.blocks | (other.blocks if other else set())
    words = _left_out(summary, against, sorted(planned - set(whole)), whole)
    if whole:
        ratio = intervals.ratio_interval([(theirs[block], mine[block]) for block in sorted(whole)])
        to = "ratio_to_baseline" if prefix == "ratio" else "ratio_to_parent"
        summary[to], summary[f"{prefix}_pairs"] = ratio.value, ratio.n
        summary[f"{prefix}_ci95_low"], summary[f"{prefix}_ci95_high"] = ratio.low, ratio.high
        summary[status] = intervals.word(ratio)
    return words


def _left_out(summary: Json, against: str, missing: Sequence[int], whole: Sequence[int]) -> list[str]:
    if not missing:
        return []
    who = f"{summary['workload']}, {summary['condition']} against {against}"
    if not whole:
        return [f"{who}: not compared, no block has a counted point of both."]
    blocks = "block" if len(missing) == 1 else "blocks"
    numbers = ", ".join(map(str, missing))
    return [f"{who}: {blocks} {numbers} left out, one of the two points was not counted or not measured."]


def _explanation(summary: Json, parent: str | None, stands_on: _Group | None) -> list[str]:
    if not summary["counters"]:
        return []
    theirs = nfs_figures(stands_on.counted.values()) if stands_on else None
    return nfs_words.explain(summary["counters"], theirs, parent)
