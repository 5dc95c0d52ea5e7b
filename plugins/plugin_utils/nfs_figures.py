# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the kernel's NFS client counted during some points, as the few figures that explain a difference between them.

Must not know: conditions, verdicts, or how the counters were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

# what a client asks a server besides the data, to know whether what it keeps is still true
METADATA = ("GETATTR", "ACCESS", "LOOKUP")
DATA = ("READ", "WRITE")
# queue lengths summed at every send; the mean is what is left after dividing
_QUEUES = {"in_flight": "req_u", "slot_wait": "bklog_u", "socket_wait": "sending_u"}


@dataclass(slots=True)
class _Sums:
    """Everything added up over points, hosts and mounts."""

    ios: float = 0.0
    metadata: dict[str, int] = field(default_factory=lambda: dict.fromkeys(METADATA, 0))
    calls: int = 0
    data: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("ops", "queue_ms", "rtt_ms", "execute_ms"), 0))
    retransmissions: int = 0
    timeouts: int = 0
    delays: int = 0
    reconnects: int = 0
    sends: int = 0
    queues: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_QUEUES, 0))
    connections: int = 0
    max_slots: int = 0
    limits: list[int] = field(default_factory=list)
    session: list[int] = field(default_factory=list)


def nfs_figures(points: Iterable[Mapping[str, Any]]) -> Json | None:
    """The figures of some points together; None where no host has counters of an NFS mount.

    Times are milliseconds a READ or WRITE: waiting in the client (queue), on the way and in the server (rtt), both
    (execute). `in_flight`, `slot_wait` and `socket_wait` are mean numbers of requests of one connection.
    """
    sums, found = _Sums(), False
    for point in points:
        for host, mounts in _mounts(point):
            rate = ((point["per_host"].get(host) or {}).get("total") or {}).get("iops", 0.0)
            sums.ios += rate * max((mount.get("seconds") or 0.0 for mount in mounts), default=0.0)
            for mount in mounts:
                found = True
                _add(sums, mount)
    return _figures(sums) if found else None


def _mounts(point: Mapping[str, Any]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for host, counters in (point.get("counters") or {}).items():
        nfs = (counters or {}).get("nfs") or {}
        if nfs:
            yield host, list(nfs.values())


def _add(sums: _Sums, mount: Mapping[str, Any]) -> None:
    for name, op in (mount.get("ops") or {}).items():
        sums.calls += op.get("ops", 0)
        # a request that was not answered yet when it ended is in the next reading
        sums.retransmissions += max(0, op.get("transmissions", 0) - op.get("ops", 0))
        sums.timeouts += op.get("timeouts", 0)
        if name in METADATA:
            sums.metadata[name] += op.get("ops", 0)
        if name in DATA:
            for key in sums.data:
                sums.data[key] += op.get(key, 0)
    sums.delays += (mount.get("events") or {}).get("delay", 0)
    xprt = mount.get("xprt") or {}
    sums.connections = max(sums.connections, xprt.get("connections", 0))
    sums.max_slots = max(sums.max_slots, xprt.get("max_slots", 0))
    if not xprt.get("shared_with"):
        sums.reconnects += xprt.get("connects", 0)
        sums.sends += xprt.get("sends", 0)
        for name, key in _QUEUES.items():
            sums.queues[name] += xprt.get(key, 0)
    if mount.get("slots_limit"):
        sums.limits.append(mount["slots_limit"])
    if mount.get("session_slots"):
        sums.session.append(mount["session_slots"])


def _figures(sums: _Sums) -> Json:
    ops = sums.data["ops"]
    return {
        "per_1000_ios": {name: _ratio(1000.0 * count, sums.ios) for name, count in sums.metadata.items()},
        "calls_per_io": _ratio(sums.calls, sums.ios),
        **{key: _ratio(sums.data[key], ops) for key in ("queue_ms", "rtt_ms", "execute_ms")},
        **{name: _ratio(total, sums.sends) for name, total in sums.queues.items()},
        "connections": sums.connections or None,
        "max_slots": sums.max_slots or None,
        "slots_limit": min(sums.limits, default=None),
        "session_slots": min(sums.session, default=None),
        "retransmissions": sums.retransmissions,
        "timeouts": sums.timeouts,
        "delays": sums.delays,
        "reconnects": sums.reconnects,
    }


def _ratio(total: float, count: float) -> float | None:
    return total / count if count else None
