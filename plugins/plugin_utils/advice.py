# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a reader must know of a run on a shared volume: whether it had clients enough, and whether a cache can answer.

Must not know: how results are drawn; each sentence goes among the warnings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    UnitError,
    format_bytes,
    format_count,
    format_latency,
    format_rate,
    parse_size,
)

Json = dict[str, Any]

# the latency at which the studies state the rate of shared volumes; that of a run is no measure: a volume that is
# not driven answers late only where fewer clients would have been enough
STATED_LATENCY_NS = 2e6


def clients_needed(
    value: float,
    unit: str,
    block_size_bytes: int,
    *,
    nic_bytes_per_s: float | None = None,
    outstanding: float | None = None,
    lat_ns: float = STATED_LATENCY_NS,
) -> tuple[int, str] | None:
    """How many clients a figure takes at least, and what of a client says so; None where nothing is known of one.

    `outstanding` is how many I/Os one client can have under way (what fio offers, or slots times connections), which
    at a latency is a rate by Little's law.
    """
    iops = value if unit == "iops" else value / block_size_bytes
    found = []
    if nic_bytes_per_s:
        found.append((iops * block_size_bytes / nic_bytes_per_s, f"{format_rate(nic_bytes_per_s)} of network each"))
    if outstanding:
        each = f"{format_count(outstanding)} I/Os under way each at {format_latency(lat_ns)}"
        found.append((iops * lat_ns / 1e9 / outstanding, each))
    if not found:
        return None
    needed, why = max(found)
    return max(1, math.ceil(round(needed, 6))), why


def nic_bytes_per_s(settings: Mapping[str, Any]) -> float | None:
    """What the network of one client carries, as the user says; None where the user does not."""
    return _size(settings.get("hostmax_nic_bytes_per_s"))


def advise(
    plan: Mapping[str, Any],
    hosts: Mapping[str, Json],
    points: Sequence[Json],
    verdicts: Sequence[Json],
    conditions: Sequence[Json],
) -> list[str]:
    """Sentences about too few clients for a verdict that was not reached, and about working sets that fit a cache."""
    settings = plan["settings"]
    words = _too_few(settings, points, verdicts, conditions)
    return list(dict.fromkeys([*words, *_server_cache(settings, points)]))


def _too_few(
    settings: Mapping[str, Any], points: Sequence[Json], verdicts: Sequence[Json], conditions: Sequence[Json]
) -> list[str]:
    words = []
    nic = nic_bytes_per_s(settings)
    for verdict in verdicts:
        point = next((p for p in points if p["id"] == verdict.get("point")), None)
        if point is None or verdict["status"] == "pass" or not point["total"]:
            continue
        workload = point["workload"]
        needed = clients_needed(
            verdict["expected"],
            verdict["unit"],
            workload["block_size_bytes"],
            nic_bytes_per_s=nic,
            outstanding=_outstanding(point, conditions),
        )
        have = len(point["hosts_measured"])
        if needed and needed[0] > have:
            clients, why = needed
            words.append(
                f"{verdict['name']}: at least {clients:,} clients are needed for it ({why}), {have:,} measured."
            )
    return words


def _outstanding(point: Json, conditions: Sequence[Json]) -> float:
    """I/Os one client can have under way: what fio offers, or fewer where the slots of its mounts are fewer."""
    workload = point["workload"]
    offered = float(workload["io_depth"] * workload["num_jobs"] * point["volumes"])
    applied: Mapping[str, Json] = next(
        (each["applied"] for each in conditions if each["name"] == point["condition"]), {}
    )
    slots = [_slots(host["mounts"]) for host in applied.values()]
    known = [count for count in slots if count]
    return min([offered, *known])


def _slots(mounts: Iterable[Mapping[str, Any]]) -> float | None:
    """Slots of one client's mounts together; connections that two mounts share are told by their equal server."""
    servers: dict[str, float] = {}
    for mount in mounts:
        if mount["slots"] and mount["connections"]:
            server = str(mount["source"]).rpartition(":")[0]
            servers[server] = float(mount["slots"] * mount["connections"])
    return sum(servers.values()) or None


def _server_cache(settings: Mapping[str, Any], points: Sequence[Json]) -> list[str]:
    """Reads of a working set that the server can keep in its memory measure the memory."""
    memory = _size(settings.get("hostmax_server_memory"))
    if not memory:
        return []
    words = []
    for point in points:
        size = point["workload"]["working_set_bytes"]
        total = size * sum(len(volumes) for volumes in point["per_volume"].values()) if size else 0
        if total and total <= memory and point["workload"]["read_percent"]:
            words.append(
                f"{point['workload']['name']}: the working set of all clients, {format_bytes(total)}, fits into the "
                f"server's memory of {format_bytes(int(memory))}, so reads may be of its cache and not of the storage."
            )
    return words


def _size(value: Any) -> float | None:
    """A size of a setting in bytes; None where it is not set."""
    if value in (None, "", 0, "none"):
        return None
    try:
        return float(parse_size(value))
    except (UnitError, TypeError, ValueError):
        return None
