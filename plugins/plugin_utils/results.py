# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""results.json, the contract: everything a run directory holds, merged, gated, explained and judged.

It must not know how anything is drawn; the renderers take what it returns and nothing else.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.release import __version__ as ansible_version
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils import expectations, gates, judge, ladder, limits, merge
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectory
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import Caps

SCHEMA = "hostmax.results/1"
COLLECTION = Path(__file__).resolve().parents[2]

Json = dict[str, Any]


def collection_version() -> str:
    """The version of galaxy.yml."""
    return str(yaml.safe_load((COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))["version"])


def utc(epoch_s: float) -> str:
    """ISO 8601 with seconds, UTC."""
    return datetime.datetime.fromtimestamp(epoch_s, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def build(run: RunDirectory) -> Json:
    """The results of a run, finished or not; raises RunDirectoryError where the plan cannot be read."""
    plan = run.plan
    samples, faults = run.read_samples()
    hosts = {name: _host(name, plan, run, samples) for name in plan["hosts"]}
    volumes = {name: host["volumes"] for name, host in hosts.items()}
    points = _points(plan, samples, hosts, expectations.known_caps(plan["settings"].get("hostmax_expect"), volumes))
    by_workload: dict[str, list[Json]] = {}
    for point in points:
        by_workload.setdefault(point["workload"]["name"], []).append(point)
    ladders = [ladder.build_ladder(group) for group in by_workload.values()]
    judged = judge.judge(plan, hosts, points, ladders)
    return {
        "schema": SCHEMA,
        "run": _run(plan, samples, hosts, points),
        "hosts": list(hosts.values()),
        "points": points,
        "ladders": ladders,
        "summaries": [_summary(point, ladder.headline_unit(point["workload"])) for point in points if point["counted"]],
        "verdicts": judged.verdicts,
        "references": judged.references,
        "warnings": _warnings(run, plan, samples, faults) + judged.warnings,
    }


def _host(name: str, plan: Mapping[str, Any], run: RunDirectory, samples: Mapping[str, Json]) -> Json:
    """A host's facts, its volumes and how it fared; a host that was never reached has only its plan."""
    facts = run.read_facts(name) or {}
    status, reason = run.read_status(name)
    if status is None:
        status, reason = "failed", "it failed or was not reached before it could measure"
    planned = plan["hosts"][name]["volumes"]
    unknown = {"size_bytes": None, "identity": None, "cap": None, "backing": None}
    return {
        "name": name,
        "status": status,
        "reason": reason,
        **{key: facts.get(key) for key in ("kernel", "cpus", "cpu_model", "memory_bytes", "fio_version")},
        **{key: facts.get(key) for key in ("clock_offset_s", "clock_uncertainty_s", "cap_by")},
        "volumes": facts.get("volumes")
        or [
            {**unknown, **{k: v for k, v in volume.items() if k in ("name", "path", "kind", "cap")}}
            for volume in planned
        ],
    }


def _points(
    plan: Mapping[str, Any],
    samples: Mapping[str, Mapping[str, Json]],
    hosts: Mapping[str, Json],
    caps: Mapping[tuple[str, str], Caps],
) -> list[Json]:
    points: list[Json] = []
    lightest: dict[str, Json] = {}
    for planned in plan["points"]:
        mine = dict(samples.get(planned["id"], {}))
        merged = merge.merge_point(planned, mine)
        context = gates.Context(planned, merged, mine, hosts)
        workload = Workload.from_mapping(planned["workload"])
        engines = {host: sample["engine"]["used"] for host, sample in mine.items()}
        point: Json = {
            **merged,
            "workload": {**workload.to_mapping(), "title": workload.title, "engine_used": engines},
            **gates.judge_point(context),
        }
        first = lightest.get(workload.name)
        point["limit"] = limits.find_limit(limits.Context(point, planned["workload"], hosts, caps, first))
        if point["counted"]:
            lightest.setdefault(workload.name, point)
        points.append(point)
    return points


def _run(plan: Mapping[str, Any], samples: Mapping[str, Any], hosts: Mapping[str, Json], points: list[Json]) -> Json:
    ended = [sample["ended_s"] for by_host in samples.values() for sample in by_host.values()]
    measured = sum(1 for point in points if point["hosts_measured"])
    whole = all(host["status"] == "ok" for host in hosts.values()) and all(
        point["hosts_measured"] == point["hosts_expected"] for point in points
    )
    status = "invalid" if not any(point["counted"] for point in points) else "complete" if whole else "partial"
    versions = sorted({host["fio_version"] for host in hosts.values() if host["fio_version"]})
    return {
        "id": plan["run_id"],
        "playbook": plan["playbook"],
        "started_utc": plan["created_utc"],
        "ended_utc": utc(max(ended)) if ended else None,
        "status": status,
        "versions": {
            "hostmax": collection_version(),
            "fio": ", ".join(versions) or None,
            "ansible_core": ansible_version,
            "python": platform.python_version(),
        },
        "seed": plan["seed"],
        "command": plan["command"],
        "settings": plan["settings"],
        "planned_s": plan["planned_s"],
        "points_planned": len(points),
        "points_measured": measured,
    }


def _summary(point: Json, unit: str) -> Json:
    return {
        "condition": None,
        "workload": point["workload"]["name"],
        "volumes": point["volumes"],
        "n": 1,
        "mean": point["total"][unit],
        "ci95_low": None,
        "ci95_high": None,
        "ratio_to_baseline": None,
    }


def _warnings(run: RunDirectory, plan: Mapping[str, Any], samples: Mapping[str, Any], faults: list[str]) -> list[str]:
    """What a reader must know besides the figures: faults of files, hosts' warnings, engines that had to change."""
    words = list(faults) + run.read_notes()
    for name in plan["hosts"]:
        facts = run.read_facts(name) or {}
        words += [f"{name}: {warning}" for warning in facts.get("warnings", [])]
        words += [f"{name}: {engine['note']}" for engine in facts.get("engines", []) if engine["note"]]
    return list(dict.fromkeys(words))
