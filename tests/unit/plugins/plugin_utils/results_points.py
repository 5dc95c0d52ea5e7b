"""One point as the harness would have measured it on capped volumes, with the figures of the published ladder.

Must not know: how a renderer works; only the contract of results.json.
"""

from __future__ import annotations

import math
import random
from typing import Any

CAP = {"iops": 25000, "bytes_per_s": 480000000}
WORKLOADS = {
    "4k-randread": ("randread", 4096, 32, "4 KiB random read, queue depth 32"),
    "256k-randread": ("randread", 262144, 32, "256 KiB random read, queue depth 32"),
    "4k-randread-latency": ("randread", 4096, 1, "4 KiB random read, queue depth 1"),
    "8k-randrw": ("randrw", 8192, 32, "8 KiB random 70/30 read/write, queue depth 32"),
}
MEASURED = {1: 24994.0, 2: 49990.0, 4: 100368.0, 8: 199934.0, 12: 300362.0, 16: 399864.0, 20: 430248.2}
START_S = 1796067730.0


def per_volume_iops(workload: str, count: int) -> float:
    _rw, block_bytes, depth, _title = WORKLOADS[workload]
    if depth == 1:
        return 1e9 / (312000 + 9000 * max(0, count - 8))
    if workload == "4k-randread" and count in MEASURED:
        return MEASURED[count] / count
    cap = min(CAP["iops"], CAP["bytes_per_s"] / block_bytes)
    return min(cap * 0.9998, 430248.2 * math.sqrt(4096 / block_bytes) / count)


def _direction(iops: float, block_bytes: int, depth: float, spread: float) -> dict[str, Any]:
    mean = depth / iops * 1e9
    tail = {
        "mean": mean,
        "min": mean * 0.31,
        "max": mean * 9.4 * spread,
        "p50": mean * 0.97,
        "p95": mean * 1.21,
        "p99": mean * 1.48 * spread,
        "p99_9": mean * 2.3 * spread,
        "p99_99": mean * 4.1 * spread,
    }
    lat = {key: round(value, 1) for key, value in tail.items()}
    return {
        "iops": round(iops, 2),
        "bytes_per_s": round(iops * block_bytes, 1),
        "ios": round(iops * 4),
        "lat_ns": {**lat, "n": round(iops * 4)},
    }


def _directions(workload: str, iops: float, depth: float, spread: float) -> dict[str, Any]:
    rw, block_bytes, _depth, _title = WORKLOADS[workload]
    total = _direction(iops, block_bytes, depth, spread)
    if rw == "randrw":
        return {
            "read": _direction(iops * 0.7, block_bytes, depth * 0.6, spread),
            "total": total,
            "write": _direction(iops * 0.3, block_bytes, depth * 0.4, spread),
        }
    return {"read": total, "write": None, "total": total}


def make_point(workload: str, count: int, hosts: list[str], rng: random.Random, number: int) -> dict[str, Any]:
    rw, block_bytes, depth, title = WORKLOADS[workload]
    each = per_volume_iops(workload, count)
    busy = min(0.996, 0.04 + 0.0567 * count * each / 25000) if depth > 1 else 0.02 + 0.011 * count
    spread = 1.0 + 0.6 * max(0.0, busy - 0.85)
    per_volume: dict[str, Any] = {}
    for host in hosts:
        noise = [rng.gauss(1.0, 0.0004 if busy < 0.96 else 0.009) for _unused in range(count)]
        noise = [factor * count / sum(noise) for factor in noise]
        per_volume[host] = {
            f"thin{n:02d}": _directions(workload, each * factor, depth, spread) for n, factor in enumerate(noise, 1)
        }
    sums = {host: sum(volume["total"]["iops"] for volume in some.values()) for host, some in per_volume.items()}
    total = sum(sums.values())
    ranked = sorted(
        (volume["total"]["iops"], host, name) for host, some in per_volume.items() for name, volume in some.items()
    )
    start_s = START_S + 6.0 * number
    capped = busy < 0.96
    limit = _limit(capped if depth > 1 else None, count, busy)
    return {
        "id": f"p{number:02d}-{workload}-v{count:02d}",
        "condition": None,
        "block": 0,
        "repeat": 0,
        "workload": {
            "name": workload,
            "rw": rw,
            "read_percent": 70 if rw == "randrw" else 100,
            "block_size_bytes": block_bytes,
            "io_depth": depth,
            "num_jobs": 1,
            "engine": "auto",
            "engine_used": dict.fromkeys(hosts, "io_uring"),
            "direct": True,
            "working_set_bytes": None,
            "rate_iops": None,
            "title": title,
        },
        "volumes": count,
        "hosts_expected": list(hosts),
        "hosts_measured": list(hosts),
        "status": "ok",
        "counted": True,
        "window": {
            "start_s": start_s + 1,
            "end_s": start_s + 5,
            "overlap": 0.9981,
            "skew_s": 0.0021,
            "uncertainty_s": 0.0004,
        },
        "timing": {
            host: {
                "first_io_s": start_s + 1 + 0.0021 * number / max(1, len(hosts) - 1),
                "last_io_s": start_s + 5 + 0.0021 * number / max(1, len(hosts) - 1),
                "skew_s": 0.0021 * number / max(1, len(hosts) - 1),
                "late_s": 0.31 + 0.0021 * number / max(1, len(hosts) - 1),
            }
            for number, host in enumerate(hosts)
        },
        "latency_scope": "window",
        **_directions(workload, total, depth * count * len(hosts), spread),
        "per_host": {host: _directions(workload, iops, depth * count, spread) for host, iops in sums.items()},
        "per_volume": per_volume,
        "fairness": {
            "min_iops": ranked[0][0],
            "median_iops": ranked[len(ranked) // 2][0],
            "max_iops": ranked[-1][0],
            "jain": 0.9999,
            "slowest": {"host": ranked[0][1], "volume": ranked[0][2], "iops": ranked[0][0]},
        },
        "levels": {"first_quarter_iops": total * 1.001, "last_quarter_iops": total * 0.999},
        "series": {
            "interval_s": 0.1,
            "iops": [round(total * rng.gauss(1, 0.003 if capped else 0.015), 1) for _unused in range(40)],
        },
        "cpu": {
            host: {
                "busy": busy,
                "busiest_cpu": min(1.0, busy * 1.06),
                "user": busy * 0.3,
                "system": busy * 0.7,
                "iowait": 0.0,
                "steal": 0.001,
                "fio_usr": busy * 0.28,
                "fio_sys": busy * 0.66,
            }
            for host in hosts
        },
        "counters": {},
        "gates": _gates(count * depth * len(hosts), len(hosts)),
        "limit": limit,
        "job": {host: _job(workload, count) for host in hosts},
    }


def _gates(outstanding: int, hosts: int) -> list[dict[str, Any]]:
    found = (
        ("errors", True, 0.0, 0.0, "no error, every expected volume measured"),
        ("hosts", True, float(hosts), float(hosts), f"measured by all {hosts} host(s)"),
        ("runtime", True, 3.998, 3.8, "shortest 4.00 s of 4 s"),
        ("overlap", True, 0.9981, 0.8, "all hosts together for 99.8% of the point"),
        ("steady", None, None, 0.2, "not judged: the point ran 4 s, at least 50 s are needed"),
        (
            "littles_law",
            True,
            0.0004,
            0.05,
            f"{outstanding * 0.9996:,.1f} I/Os outstanding by Little's law, {outstanding:,} offered",
        ),
        ("working_set", True, None, None, "direct I/O: the client's page cache is bypassed"),
    )
    return [dict(zip(("name", "passed", "measured", "limit", "text"), gate, strict=True)) for gate in found]


def _limit(capped: bool | None, count: int, busy: float) -> dict[str, Any]:
    if capped is None:
        evidence = ["1 I/Os outstanding a volume at a mean latency of 312 us allow 3,205 IOPS a volume by Little's law"]
        return {"kind": "queue_depth", "text": "the queue depth offered (1 a volume)", "evidence": evidence}
    if capped:
        evidence = [f"all {count} volumes ran at 99.9% to 100.4% of their IOPS cap of 25,000 IOPS"]
        return {"kind": "service_cap", "text": "the volumes' IOPS cap (25,000 IOPS a volume)", "evidence": evidence}
    evidence = [f"reference: {busy:.0%} of 2 CPUs busy in the window (user 30%, system 70%, stolen 0%)"]
    return {"kind": "client_cpu", "text": "the client's CPUs (2 of them)", "evidence": evidence}


def _job(workload: str, count: int) -> str:
    rw, block_bytes, depth, _title = WORKLOADS[workload]
    head = (
        f"[global]\nioengine=io_uring\nrw={rw}\nbs={block_bytes}\niodepth={depth}\ndirect=1\nruntime=4\nramp_time=1\n"
    )
    names = [f"thin{number:02d}" for number in range(1, count + 1)]
    return head + "".join(f"\n[{name}]\nfilename=volumes/{name}\n" for name in names)
