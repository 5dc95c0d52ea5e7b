"""Realistic results dicts for the render tests: the published ladder, and what can go wrong with it.

Must not know: how a renderer works; only the contract of results.json.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .results_points import CAP, WORKLOADS, make_point, per_volume_iops

SCHEMA_FILE = Path(__file__).resolve().parents[4] / "plugins" / "plugin_utils" / "schema" / "results-1.json"
HOSTILE = "</script><script>alert(1)</script>"
RUNGS = (1, 2, 4, 8, 12, 16, 20)


def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return loaded


def example(
    hosts: int = 1,
    volumes: int = 20,
    workloads: Sequence[str] = ("4k-randread",),
    rungs: Sequence[int] = RUNGS,
) -> dict[str, Any]:
    """A complete run: linear to 16 volumes, bent at 20 by the client's CPUs, 7 rungs."""
    names = ["reference"] if hosts == 1 else [f"client{number:04d}" for number in range(1, hosts + 1)]
    rng = random.Random(20261130)
    results: dict[str, Any] = {
        "schema": "hostmax.results/1",
        "run": _run(len(rungs) * len(workloads)),
        "hosts": [_host(name, volumes) for name in names],
        "conditions": [],
        "points": [],
        "ladders": [],
        "summaries": [],
        "verdicts": [],
        "references": [],
        "warnings": [
            "The volumes are sparse files without data: reads never reach a medium, so this is the client's maximum."
        ],
    }
    for workload in workloads:
        points = [
            make_point(workload, count, names, rng, len(results["points"]) + n) for n, count in enumerate(rungs, 1)
        ]
        results["points"] += points
        results["ladders"].append(_ladder(workload, points))
    _judge(results)
    return results


def partial() -> dict[str, Any]:
    """Three hosts, the second unreachable from the third point on; the last point was never measured."""
    results = example(hosts=3)
    results["run"].update(status="partial", points_measured=6)
    lost = results["hosts"][1]
    lost.update(status="unreachable", reason="Connection timed out while collecting p03-4k-randread-v04.")
    for point in results["points"][2:]:
        point["hosts_measured"].remove(lost["name"])
        for section in ("per_host", "per_volume", "cpu", "job", "timing"):
            del point[section][lost["name"]]
        for quantity in ("iops", "bytes_per_s"):
            point["total"][quantity] *= 2 / 3
            point["read"][quantity] *= 2 / 3
        _fail_gate(point, "hosts", 2.0, 3.0, f"not measured by {lost['name']}")
        point["status"] = "partial"
    point = results["points"][-1]
    point.update(
        status="missing", read=None, write=None, total=None, window=None, fairness=None, series=None, levels=None
    )
    point.update(hosts_measured=[], per_host={}, per_volume={}, cpu={}, timing={}, limit=None, gates=[])
    ladder = results["ladders"][0]
    ladder["rungs"] = ladder["rungs"][:2]
    ladder.update(knee_volumes=None, maximum=_maximum(ladder["rungs"]), limit=results["points"][1]["limit"])
    for verdict in results["verdicts"]:
        verdict.update(status="invalid", measured=None, reason="The point with 20 volumes was not measured.")
    results["references"] = []
    return results


def invalid_gate() -> dict[str, Any]:
    """The largest point is not steady, so it is shown and not counted."""
    results = example()
    results["run"]["status"] = "invalid"
    point = results["points"][-1]
    _fail_gate(point, "steady", 0.47, 0.2, "range 47.0% of the mean, slope 41.2%, quarters differ by a factor of 1.62")
    point["status"] = "unsteady"
    point["levels"] = {"first_quarter_iops": 531000.0, "last_quarter_iops": 327700.0}
    ladder = results["ladders"][0]
    del ladder["rungs"][-1]
    ladder.update(knee_volumes=None, maximum=_maximum(ladder["rungs"]))
    ladder["limit"] = results["points"][-2]["limit"]
    results["verdicts"][0].update(status="invalid", measured=None, reason="The point with 20 volumes is not counted.")
    return results


def failing() -> dict[str, Any]:
    """One verdict missed, one inconclusive."""
    results = example()
    results["verdicts"][0].update(
        expected=500000.0, status="fail", reason="430,248 IOPS is 86.0 % of 500,000, and 98 % is needed."
    )
    results["verdicts"][1].update(
        status="inconclusive", reason="the interval of 5 blocks contains the limit; 2 more would settle it"
    )
    return results


def hostile() -> dict[str, Any]:
    """Names made to break out of HTML, JSON, XML, Markdown, CSV and a terminal."""
    results = json.loads(json.dumps(example(rungs=(1, 2, 4))))
    text = json.dumps(results)
    text = text.replace('"reference"', json.dumps(HOSTILE)).replace(
        '"thin01"', json.dumps("a|b\"'`<img src=x onerror=alert(1)>")
    )
    text = text.replace('"thin02"', json.dumps("\x1b[2J\u2028\u202e]]>&\ud800")).replace(
        '"thin03"', json.dumps("=cmd|' /C calc'!A0")
    )
    results = json.loads(text)
    results["warnings"].append(f"Host {HOSTILE} said <!-- <script> ]]> | `x`.")
    return results


def many(hosts: int = 300) -> dict[str, Any]:
    return example(hosts=hosts)


def three_workloads() -> dict[str, Any]:
    return example(workloads=("4k-randread", "256k-randread", "4k-randread-latency"))


def mixed() -> dict[str, Any]:
    return example(workloads=("8k-randrw",))


def _run(points: int) -> dict[str, Any]:
    return {
        "id": "host_max-20261130T194210Z-3f9a",
        "playbook": "host_max",
        "started_utc": "2026-11-30T19:42:10Z",
        "ended_utc": "2026-11-30T19:43:35Z",
        "resumed_from": None,
        "status": "complete",
        "versions": {"hostmax": "0.1.0", "fio": "fio-3.33", "ansible_core": "2.19.14", "python": "3.11.2"},
        "seed": 20261130,
        "command": "ansible-playbook host_max.yml -e hostmax_seed=20261130",
        "settings": {
            "hostmax_runtime_s": 4,
            "hostmax_ramp_s": 1,
            "hostmax_volume_counts": list(RUNGS),
            "hostmax_thin_size": "1TB",
        },
        "planned_s": 42.0,
        "points_planned": points,
        "points_measured": points,
    }


def _host(name: str, volumes: int) -> dict[str, Any]:
    return {
        "name": name,
        "status": "ok",
        "reason": None,
        "kernel": "6.18.0-amd64",
        "cpus": 2,
        "cpu_model": "AMD EPYC 9V74 80-Core Processor",
        "memory_bytes": 25195360256,
        "fio_version": "fio-3.33",
        "clock_offset_s": 0.00012,
        "clock_uncertainty_s": 0.0004,
        "clock_drift_s": 0.0001,
        "cap_by": "cgroup v1",
        "volumes": [
            {
                "name": f"thin{n:02d}",
                "path": f"volumes/thin{n:02d}",
                "kind": "block",
                "size_bytes": 10**12,
                "identity": None,
                "cap": dict(CAP),
                "backing": f"/var/lib/hostmax/thin/thin{n:02d}.img",
            }
            for n in range(1, volumes + 1)
        ],
    }


def _fail_gate(point: dict[str, Any], name: str, measured: float, limit: float, text: str) -> None:
    point["gates"] = [gate for gate in point["gates"] if gate["name"] != name]
    point["gates"].append({"name": name, "passed": False, "measured": measured, "limit": limit, "text": text})
    point.update(status="invalid", counted=False)


def _maximum(rungs: list[dict[str, Any]]) -> dict[str, Any]:
    best = max(rungs, key=lambda rung: rung["value"])
    return {key: best[key] for key in ("value", "volumes", "point")}


def _ladder(workload: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    unit = "bytes_per_s" if WORKLOADS[workload][1] >= 131072 else "iops"
    first = points[0]["total"][unit] / points[0]["volumes"]
    rungs = []
    for point in points:
        value, linear = point["total"][unit], first * point["volumes"]
        rungs.append(
            {
                "volumes": point["volumes"],
                "point": point["id"],
                "value": value,
                "linear": linear,
                "efficiency": value / linear,
            }
        )
    linear_rungs = [rung["volumes"] for rung in rungs if rung["efficiency"] >= 0.95]
    knee = linear_rungs[-1] if len(linear_rungs) < len(rungs) else None
    maximum = _maximum(rungs)
    limit = next(point["limit"] for point in points if point["id"] == maximum["point"])
    title = WORKLOADS[workload][3]
    return {
        "workload": workload,
        "condition": None,
        "title": title,
        "unit": unit,
        "rungs": rungs,
        "knee_volumes": knee,
        "maximum": maximum,
        "limit": limit,
    }


def _judge(results: dict[str, Any]) -> None:
    ladder, hosts = results["ladders"][0], len(results["hosts"])
    highest = ladder["maximum"]["value"]
    model = {
        "unit": ladder["unit"],
        "source": "Caps of the thin volumes of this run",
        "date": None,
        "tolerance": 0.02,
        "status": "pass",
        "point": None,
    }
    one = ladder["rungs"][0]
    capped = per_volume_iops(ladder["workload"], 1) / 0.9998
    results["verdicts"] = [
        {
            **model,
            "name": f"host maximum, {ladder['maximum']['volumes']} volumes",
            "expected": 400000.0 * hosts,
            "measured": highest,
            "source": "1-TB volume study, 400,000 IOPS at 4 KB on one host",
            "date": "2024-05-14",
            "reason": "The measured figure is above what is needed.",
        },
        {
            **model,
            "name": "one volume",
            "expected": capped * hosts,
            "measured": one["value"],
            "reason": "One volume reaches its cap.",
        },
    ]
    if ladder["workload"] != "4k-randread":
        results["verdicts"] = []
    published = ladder["unit"] == "iops" and hosts == 1
    results["references"] = (
        [
            {
                "name": "ANF regular volume, random read",
                "value": 460000.0,
                "unit": "iops",
                "date": "2025-11-04",
                "source": "learn.microsoft.com, performance benchmarks for Linux",
                "measured": highest,
                "ratio": highest / 460000,
            }
        ]
        if published
        else []
    )
