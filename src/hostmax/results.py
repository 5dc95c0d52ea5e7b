# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The contract of results.json and of a plan as types; base units, named in the keys; None where not known.

It must not hold code: a test holds these types against the JSON Schema, key by key.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from hostmax.conditions import (
    Applied,
    Condition,
    HostCounters,
    Limit,
    Mount,
    NfsFigures,
    Summary,
    TunedKey,
    Unit,
)

__all__ = [
    "Applied",
    "Condition",
    "HostCounters",
    "Limit",
    "Mount",
    "NfsFigures",
    "Plan",
    "Results",
    "Summary",
    "TunedKey",
    "Unit",
]


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


class _NewerCpu(TypedDict, total=False):
    """Shares of one CPU that samples of earlier versions do not have."""

    busiest_softirq: float | None
    busiest_kernel: float | None


class Cpu(_NewerCpu):
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
