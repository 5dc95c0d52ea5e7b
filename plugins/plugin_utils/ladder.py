# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host maximum: one workload's points over a growing number of volumes, against linear scaling.

It must not know how points are measured or judged; it only looks at the counted ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

# bandwidth is the headline from this block size on, as the published study says ("256 KB or larger" shows it)
BANDWIDTH_BLOCK_BYTES = 256 * 1024
# the NFS studies show sequential I/O as bandwidth from 64 KiB on
SEQUENTIAL_BANDWIDTH_BLOCK_BYTES = 64 * 1024
# scaling is linear while a rung keeps this share of the first rung's rate a volume
LINEAR = 0.95


def headline_unit(workload: Mapping[str, Any]) -> str:
    """The quantity a workload is run for: bytes_per_s for large blocks, iops otherwise."""
    sequential = workload.get("rw") in ("read", "write", "rw", "readwrite")
    least = SEQUENTIAL_BANDWIDTH_BLOCK_BYTES if sequential else BANDWIDTH_BLOCK_BYTES
    return "bytes_per_s" if workload["block_size_bytes"] >= least else "iops"


def build_ladder(points: Sequence[Json]) -> Json:
    """The ladder of one workload's points: rungs, knee and maximum.

    The knee is the last rung, going up, that still gives ``LINEAR`` of linear; None with fewer than two counted rungs
    or while everything is linear. The maximum is the highest counted rung.
    """
    workload = points[0]["workload"]
    unit = headline_unit(workload)
    counted = sorted((p for p in points if p["counted"] and p["total"]), key=lambda point: point["volumes"])
    each = counted[0]["total"][unit] / counted[0]["volumes"] if counted else 0.0
    rungs = []
    for point in sorted(points, key=lambda point: point["volumes"]):
        value = point["total"][unit] if point["total"] else None
        linear = each * point["volumes"] if each else None
        efficiency = value / linear if value is not None and linear else None
        rungs.append(
            {
                "volumes": point["volumes"],
                "point": point["id"],
                "value": value,
                "linear": linear,
                "efficiency": efficiency,
            }
        )
    return {
        "workload": workload["name"],
        "title": workload["title"],
        "unit": unit,
        "rungs": rungs,
        "knee_volumes": _knee(counted, each, unit),
        "maximum": _maximum(counted, unit),
        "limit": _limit(counted, unit),
    }


def _knee(counted: Sequence[Json], each: float, unit: str) -> int | None:
    linear = [point["total"][unit] >= LINEAR * each * point["volumes"] for point in counted]
    if len(counted) < 2 or all(linear):
        return None
    first_bent = linear.index(False)
    return int(counted[first_bent - 1]["volumes"]) if first_bent else None


def _top(counted: Sequence[Json], unit: str) -> Json | None:
    return max(counted, key=lambda point: float(point["total"][unit]), default=None)


def _maximum(counted: Sequence[Json], unit: str) -> Json | None:
    top = _top(counted, unit)
    if top is None:
        return None
    return {"value": top["total"][unit], "volumes": top["volumes"], "point": top["id"]}


def _limit(counted: Sequence[Json], unit: str) -> Json | None:
    """What held the host maximum back: the limit of its highest point."""
    top = _top(counted, unit)
    return top["limit"] if top else None
