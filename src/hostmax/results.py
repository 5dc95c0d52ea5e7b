# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The contract of results.json and of a plan as types; base units, named in the keys; None where not known.

It must not hold code: a test holds these types against the JSON Schema, key by key.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Unit = Literal["iops", "bytes_per_s"]


class Versions(TypedDict):
    hostmax: str | None
    fio: str | None
    ansible_core: str | None
    python: str | None


class RunFacts(TypedDict):
    id: str
    playbook: str
    started_utc: str
    ended_utc: str | None
    resumed_from: str | None
    status: Literal["complete", "partial", "invalid"]
    versions: Versions
    seed: int
    command: str
    settings: dict[str, Any]
    planned_s: float | None
    points_planned: int
    points_measured: int


class Cap(TypedDict):
    iops: float | None
    bytes_per_s: float | None


class Volume(TypedDict):
    name: str
    path: str
    kind: Literal["block", "file", "directory"]
    size_bytes: int | None
    identity: str | None
    cap: Cap | None
    backing: str | None


class Host(TypedDict):
    name: str
    status: Literal["ok", "failed", "unreachable", "late"]
    reason: str | None
    kernel: str | None
    cpus: int | None
    cpu_model: str | None
    memory_bytes: int | None
    fio_version: str | None
    clock_offset_s: float | None
    clock_uncertainty_s: float | None
    clock_drift_s: float | None
    cap_by: Literal["cgroup v1", "cgroup v2"] | None
    volumes: list[Volume]


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


class Workload(TypedDict):
    name: str
    rw: Literal["read", "write", "rw", "readwrite", "randread", "randwrite", "randrw"]
    read_percent: float | None
    block_size_bytes: int
    io_depth: int
    num_jobs: int
    engine: str
    engine_used: dict[str, str]
    direct: bool
    working_set_bytes: int | None
    rate_iops: int | None
    title: str


class Latency(TypedDict):
    """Nanoseconds; percentiles come from merged histograms. `n` counts I/Os."""

    mean: float
    min: float
    max: float
    p50: float
    p95: float
    p99: float
    p99_9: float
    p99_99: float
    n: int


class Direction(TypedDict):
    iops: float
    bytes_per_s: float
    ios: int
    lat_ns: Latency | None


class Directions(TypedDict):
    read: Direction | None
    write: Direction | None
    total: Direction | None


class Window(TypedDict):
    """The time in which every host did I/O: epoch seconds, and which share of the hosts' time it is."""

    start_s: float | None
    end_s: float | None
    overlap: float | None
    skew_s: float | None
    uncertainty_s: float


class Timing(TypedDict):
    """A host's first and last I/O on the controller's clock, and how late it was after the first host and the plan."""

    first_io_s: float
    last_io_s: float
    skew_s: float
    late_s: float


class SlowestVolume(TypedDict):
    host: str
    volume: str
    iops: float


class Fairness(TypedDict):
    min_iops: float | None
    median_iops: float | None
    max_iops: float | None
    jain: float | None
    slowest: SlowestVolume | None


class Levels(TypedDict):
    first_quarter_iops: float
    last_quarter_iops: float


class Series(TypedDict):
    interval_s: float
    iops: list[float | None]


class Cpu(TypedDict):
    """Shares of a host's CPU time, 0 to 1; `fio_usr` and `fio_sys` are in CPUs."""

    busy: float | None
    busiest_cpu: float | None
    user: float | None
    system: float | None
    iowait: float | None
    steal: float | None
    fio_usr: float | None
    fio_sys: float | None


class Gate(TypedDict):
    name: str
    passed: bool | None
    measured: float | str | None
    limit: float | str | None
    text: str


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
        "nfs_server",
        "unknown",
    ]
    text: str
    evidence: list[str]


class Point(TypedDict):
    """Use it only where `counted` is true; `window` and `total` are then not None."""

    id: str
    condition: str | None
    block: int
    repeat: int
    workload: Workload
    volumes: int
    hosts_expected: list[str]
    hosts_measured: list[str]
    status: Literal["ok", "unsteady", "partial", "invalid", "missing"]
    counted: bool
    window: Window | None
    timing: dict[str, Timing]
    latency_scope: Literal["window", "whole run"]
    read: Direction | None
    write: Direction | None
    total: Direction | None
    per_host: dict[str, Directions]
    per_volume: dict[str, dict[str, Directions]]
    fairness: Fairness | None
    levels: Levels | None
    series: Series | None
    cpu: dict[str, Cpu | None]
    counters: dict[str, HostCounters | None]
    gates: list[Gate]
    limit: Limit | None
    job: dict[str, str]


class Rung(TypedDict):
    volumes: int
    point: str
    value: float | None
    linear: float | None
    efficiency: float | None


class Maximum(TypedDict):
    value: float
    volumes: int
    point: str


class Ladder(TypedDict):
    workload: str
    condition: str | None
    title: str
    unit: Unit
    rungs: list[Rung]
    knee_volumes: int | None
    maximum: Maximum | None
    limit: Limit | None


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
    counters: NfsFigures | None
    explanation: list[str]


class Verdict(TypedDict):
    name: str
    expected: float
    unit: Unit
    source: str
    date: str | None
    tolerance: float
    measured: float | None
    status: Literal["pass", "fail", "inconclusive", "invalid"]
    reason: str
    point: str | None


class Reference(TypedDict):
    name: str
    value: float
    unit: Unit
    source: str
    date: str | None
    measured: float | None
    ratio: float | None


class Results(TypedDict):
    """results.json, schema hostmax.results/1."""

    schema: Literal["hostmax.results/1"]
    run: RunFacts
    hosts: list[Host]
    conditions: list[Condition]
    points: list[Point]
    ladders: list[Ladder]
    summaries: list[Summary]
    verdicts: list[Verdict]
    references: list[Reference]
    warnings: list[str]


class PlanPoint(TypedDict):
    """A planned point; `jobs` has fio's job file for each host, `targets` the names of the volumes it drives."""

    id: str
    hash: str
    workload: dict[str, Any]
    volumes: int
    offset_s: float | None
    ramp_s: int
    runtime_s: int
    writes: bool
    jobs: dict[str, str]
    targets: dict[str, list[str]]


class Plan(TypedDict):
    """What a run will do, as check mode returns it and plan.json keeps it."""

    schema: str
    run_id: str
    playbook: str
    created_utc: str
    command: str
    seed: int
    settings: dict[str, Any]
    planned_s: float
    hosts: dict[str, dict[str, Any]]
    points: list[PlanPoint]
