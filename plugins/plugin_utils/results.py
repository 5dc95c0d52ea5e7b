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
from ansible_collections.hostmax.storage.plugins.plugin_utils import (
    advice,
    conditions_applied,
    conditions_summary,
    expectations,
    gates,
    judge,
    ladder,
    limits,
    merge,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, clock_warnings, clocks_of_run
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectory
from ansible_collections.hostmax.storage.plugins.plugin_utils.sample_index import SampleIndex
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import Caps

SCHEMA = "hostmax.results/1"
COLLECTION = Path(__file__).resolve().parents[2]
OF_A_VOLUME = ("name", "path", "kind", "size_bytes", "identity", "cap", "backing")

Json = dict[str, Any]


def collection_version() -> str:
    """The version of galaxy.yml."""
    return str(yaml.safe_load((COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))["version"])


def utc(epoch_s: float) -> str:
    """ISO 8601 with seconds, UTC."""
    return datetime.datetime.fromtimestamp(epoch_s, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def build(run: RunDirectory) -> Json:
    """The results of a run, finished or not; raises RunDirectoryError where the plan cannot be read."""
    plan, index = run.plan, run.sample_index()
    facts = {name: run.read_facts(name) or {} for name in plan["hosts"]}
    clocks = clocks_of_run(facts, index.last())
    hosts = {name: _host(name, plan, run, facts[name], clocks[name]) for name in plan["hosts"]}
    volumes = {name: host["volumes"] for name, host in hosts.items()}
    caps = expectations.known_caps(plan["settings"].get("hostmax_expect"), volumes)
    repeats = run.read_repeats()
    points, words = _points(plan, index, hosts, clocks, caps, repeats)
    conditions, unread = conditions_applied.conditions_of_run(run)
    ladders = _ladders(points, conditions)
    summaries, left_out = conditions_summary.summarise(conditions, points)
    judged = judge.judge(plan, hosts, points, ladders, summaries if conditions else ())
    warnings = index.faults + run.read_notes() + _repeats(repeats) + clock_warnings(clocks) + words + unread + left_out
    warnings += advice.advise(plan, hosts, points, judged.verdicts, conditions)
    return {
        "schema": SCHEMA,
        "run": _run(plan, _ended_s(index), hosts, points),
        "hosts": list(hosts.values()),
        "conditions": conditions,
        "points": points,
        "ladders": ladders,
        "summaries": summaries,
        "verdicts": judged.verdicts,
        "references": judged.references,
        "warnings": list(dict.fromkeys(warnings + _of_hosts(facts) + judged.warnings)),
    }


def _ladders(points: list[Json], conditions: list[Json]) -> list[Json]:
    """A ladder a workload, of several blocks the first; where conditions are compared only those of several rungs."""
    groups: dict[tuple[str | None, str], list[Json]] = {}
    for point in points:
        groups.setdefault((point["condition"], point["workload"]["name"]), []).append(point)
    for key, group in groups.items():
        first = min(point["block"] for point in group)
        groups[key] = [point for point in group if point["block"] == first]
    if len(conditions) > 1:
        groups = {key: group for key, group in groups.items() if len({point["volumes"] for point in group}) > 1}
    return [{**ladder.build_ladder(group), "condition": condition} for (condition, _name), group in groups.items()]


def _ended_s(index: SampleIndex) -> float | None:
    """When the last sample ended."""
    return max((sample["ended_s"] for sample in index.last().values() if sample.get("ended_s")), default=None)


def _host(name: str, plan: Mapping[str, Any], run: RunDirectory, facts: Mapping[str, Any], clock: Clock) -> Json:
    """A host's facts, its volumes and how it fared; a host that was never reached has only its plan."""
    status, reason = run.read_status(name)
    if status is None:
        ready = "it was ready, and the run ended before it measured"
        status, reason = "failed", ready if facts else "it failed or was not reached before it could measure"
    planned = plan["hosts"][name]["volumes"]
    return {
        "name": name,
        "status": status,
        "reason": reason,
        **{key: facts.get(key) for key in ("kernel", "cpus", "cpu_model", "memory_bytes", "fio_version", "cap_by")},
        "clock_offset_s": clock.before.offset_s if clock.before else None,
        "clock_uncertainty_s": clock.uncertainty_s if clock.before else None,
        "clock_drift_s": clock.drift_s,
        "volumes": [_volume(volume) for volume in facts.get("volumes") or planned],
    }


def _volume(volume: Mapping[str, Any]) -> Json:
    """What a reader wants to know of a volume: a directory by the path that the user gave."""
    return {**{key: volume.get(key) for key in OF_A_VOLUME}, "path": volume.get("given_path") or volume["path"]}


def _points(
    plan: Mapping[str, Any],
    index: SampleIndex,
    hosts: Mapping[str, Json],
    clocks: Mapping[str, Clock],
    caps: Mapping[tuple[str, str], Caps],
    repeats: Mapping[str, Any],
) -> tuple[list[Json], list[str]]:
    """The points merged, gated and explained, and what a reader must know of their figures."""
    points: list[Json] = []
    words: list[str] = []
    lightest: dict[tuple[str | None, str], Json] = {}
    for planned in plan["points"]:
        samples = index.of(planned["id"])
        heads = merge.read_heads(planned, samples, clocks)
        merged = merge.merge_point(planned, samples, heads)
        workload = Workload.from_mapping(planned["workload"])
        engines = {host: head.engine for host, head in heads.items() if head.engine}
        point: Json = {
            **merged,
            "condition": planned.get("condition"),
            "block": planned.get("block", 0),
            "repeat": max(merged["repeat"], int(planned["id"] in repeats)),
            "workload": {**workload.to_mapping(), "title": workload.title, "engine_used": engines},
            **gates.judge_point(gates.Context(planned, merged, heads, hosts)),
        }
        case = (point["condition"], workload.name)
        first = lightest.get(case)
        # another block of the same load is no lighter one
        lighter = first if first and first["volumes"] < point["volumes"] else None
        point["limit"] = limits.find_limit(
            limits.Context(point, planned["workload"], hosts, caps, lighter, plan["settings"])
        )
        if point["counted"]:
            lightest.setdefault(case, point)
        points.append(point)
        words += _approximations(planned["id"], heads)
    return points, words


def _approximations(point_id: str, heads: Mapping[str, merge.Head]) -> list[str]:
    """Where a figure of the window had to be formed without fio's log of I/Os over time."""
    words = []
    averaged = merge.averaged_hosts(heads)
    if averaged:
        who = gates.names(averaged)
        words.append(f"{point_id}: {who} logged no I/Os over time; averages of all its time stand for the window.")
    uneven = [f"{volume} of {host}" for host in merge.merged_hosts(heads) for volume in heads[host].unlogged]
    if uneven:
        which = gates.names(uneven)
        words.append(f"{point_id}: fio left no log of {which}; its I/Os were taken as evenly spread over the point.")
    return words


def _run(plan: Mapping[str, Any], ended_s: float | None, hosts: Mapping[str, Json], points: list[Json]) -> Json:
    measured = sum(1 for point in points if point["hosts_measured"])
    versions = sorted({host["fio_version"] for host in hosts.values() if host["fio_version"]})
    return {
        "id": plan["run_id"],
        "playbook": plan["playbook"],
        "started_utc": plan["created_utc"],
        "ended_utc": utc(ended_s) if ended_s else None,
        "resumed_from": plan.get("resumed_from"),
        "status": _status(hosts, points),
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


def _status(hosts: Mapping[str, Json], points: list[Json]) -> str:
    """complete: every host measured every point; partial: not all did, but something can be used; else invalid."""
    if not any(point["counted"] or point["status"] == "partial" for point in points):
        return "invalid"
    whole = all(host["status"] in ("ok", "late") for host in hosts.values())
    return "complete" if whole and all(p["hosts_measured"] == p["hosts_expected"] for p in points) else "partial"


def _repeats(repeats: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A sentence for every point that was measured twice."""
    words = []
    for point, late in repeats.items():
        hosts = gates.names(sorted(late, key=lambda host: -late[host]))
        noun, up_to = ("host", "") if len(late) == 1 else ("hosts", "up to ")
        latest_s = max(late.values(), default=0.0)
        words.append(f"{point} was repeated: {noun} {hosts} began {up_to}{latest_s:.1f} s after the others.")
    return words


def _of_hosts(facts: Mapping[str, Json]) -> list[str]:
    """What hosts told of themselves: their warnings, and engines that had to change."""
    words = []
    for name, found in facts.items():
        words += [f"{name}: {warning}" for warning in found.get("warnings", [])]
        words += [f"{name}: {engine['note']}" for engine in found.get("engines", []) if engine["note"]]
    return words
