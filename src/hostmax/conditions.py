# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The parts of results.json about conditions, kernel counters and limits as types; None where not known.

It must not hold code: a test holds these types against the JSON Schema, key by key.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Unit = Literal["iops", "bytes_per_s"]


class Limit(TypedDict):
    kind: Literal[
        "service_cap",
        "offered_rate",
        "client_cpu",
        "client_softirq",
        "queue_depth",
        "each_volume",
        "network",
        "retransmissions",
        "tcp_socket",
        "nfs_slots",
        "nfs_session_slots",
        "nfs_delay",
        "nfs_uneven",
        "nfs_client",
        "nfs_server",
        "unknown",
    ]
    text: str
    evidence: list[str]


class Mount(TypedDict):
    """One NFS mount as its host's kernel told it; `differences` are sentences about what was asked and is not so."""

    name: str | None
    path: str | None
    source: str | None
    asked: str | None
    effective: dict[str, str | None]
    vers: str | None
    nconnect: int | None
    connections: int | None
    slots: int | None
    rsize: int | None
    wsize: int | None
    read_ahead_kib: int | None
    differences: list[str]


class TunedKey(TypedDict):
    key: str | None
    before: str | None
    wanted: str | None
    after: str | None
    status: str | None
    note: str | None


class Applied(TypedDict):
    mounts: list[Mount]
    tuning: list[TunedKey]
    warnings: list[str]


class Condition(TypedDict):
    """A client practice under comparison; the first of a run is the baseline, `on` names the one it stands on."""

    name: str
    title: str
    on: str | None
    mount: str | None
    tuning: list[str]
    applied: dict[str, Applied]


class HostCounters(TypedDict):
    """What a host's kernel counted in the window: NFS by mount, and its network."""

    nfs: dict[str, Any] | None
    net: dict[str, Any] | None


class NfsFigures(TypedDict):
    """Kernel counters as figures: milliseconds a READ or WRITE, and mean numbers of requests of one connection."""

    per_1000_ios: dict[str, float | None]
    calls_per_io: float | None
    queue_ms: float | None
    rtt_ms: float | None
    execute_ms: float | None
    in_flight: float | None
    slot_wait: float | None
    socket_wait: float | None
    connections: int | None
    max_slots: int | None
    slots_limit: int | None
    session_slots: int | None
    retransmissions: int
    timeouts: int
    delays: int
    reconnects: int


class Summary(TypedDict):
    """A workload under a condition over its blocks; `n` of them count. Intervals are 95 %, None with one block."""

    condition: str | None
    workload: str
    volumes: int
    unit: Unit
    blocks: int
    n: int
    mean: float | None
    ci95_low: float | None
    ci95_high: float | None
    iops: float | None
    bytes_per_s: float | None
    lat_ns: float | None
    ratio_to_baseline: float | None
    ratio_ci95_low: float | None
    ratio_ci95_high: float | None
    ratio_pairs: int
    status: (
        Literal["baseline", "faster", "slower", "no difference shown", "inconclusive: one block", "not compared"] | None
    )
    parent: str | None
    ratio_to_parent: float | None
    parent_ratio_ci95_low: float | None
    parent_ratio_ci95_high: float | None
    parent_ratio_pairs: int
    parent_status: Literal["faster", "slower", "no difference shown", "inconclusive: one block", "not compared"] | None
    limit: Limit | None
    counters: NfsFigures | None
    explanation: list[str]
