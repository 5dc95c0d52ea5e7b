# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of a run: every point in order, with its time, seeds and exact fio jobs, expanded before anything starts.

It must not know how hosts are reached or what was measured; the same settings, seed and run id give the same plan.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import Target, render_job
from ansible_collections.hostmax.storage.plugins.module_utils.workload import JobError, Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils import directory_volumes
from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import ValueRefused, known_settings
from ansible_collections.hostmax.storage.plugins.plugin_utils.condition_tuning import tuning_of
from ansible_collections.hostmax.storage.plugins.plugin_utils.conditions import ConditionError
from ansible_collections.hostmax.storage.plugins.plugin_utils.nfs_volumes import mounts_of
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import PLAN_SCHEMA
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import Settings, SettingsError
from ansible_collections.hostmax.storage.plugins.plugin_utils.stages import (
    LARGEST_SEED,
    make_stages,
    point_id,
    set_times,
    stable_number,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.workload_settings import split_working_set

Json = dict[str, Any]

# pause after a point: fio's own end on one host, and clocks and stragglers of several
SETTLE_ONE_HOST_S = 0.3
SETTLE_S = 1.0
# settings that describe a host; every other one must be the same on all hosts of a run
OF_A_HOST = (
    "hostmax_volumes",
    "hostmax_nfs_volumes",
    "hostmax_thin_count",
    "hostmax_thin_size",
    "hostmax_thin_cap",
    "hostmax_fio_install",
)
# settings that do not belong to a run
NOT_OF_A_RUN = ("hostmax_run", "hostmax_resume")
# a write workload without a working set stays within this much of each thin volume, so that it does not fill the disk
THIN_WRITE_BYTES = 256 * 2**20
ENGINE_NOTE = "engine auto is io_uring, or libaio on a host where io_uring cannot run; the sample says which"


def make_plan(
    run_id: str,
    playbook: str,
    settings_by_host: Mapping[str, Settings],
    seed: int,
    command: str,
    now: datetime.datetime,
) -> Json:
    """plan.json. Raises SettingsError where hosts disagree or a workload does not fit its volumes.

    Workload by workload, the numbers of volumes ascending. `seed` 0 takes one from the run id. A host with fewer
    volumes than a point asks for drives all it has.
    """
    if not settings_by_host:
        raise SettingsError(["No host is left to plan for."])
    _check_agreement(settings_by_host)
    first = next(iter(settings_by_host.values()))
    settle_s = first.settle_s
    if settle_s is None:
        settle_s = SETTLE_ONE_HOST_S if len(settings_by_host) == 1 else SETTLE_S
    seed = seed or stable_number(run_id)
    workloads = _workloads(first, settings_by_host)
    driven = directory_volumes.placed(settings_by_host, workloads, run_id)
    counts = volume_counts(first, settings_by_host.values())
    conditions = _conditions(first, len(settings_by_host))
    stages = make_stages([each["name"] for each in conditions], first.blocks, seed)
    shared = _shared_values(settings_by_host)
    plan: Json = {
        "schema": PLAN_SCHEMA,
        "run_id": run_id,
        "playbook": playbook,
        "created_utc": now.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": command,
        "seed": seed,
        "settings": shared,
        "runtime_s": first.runtime_s,
        "ramp_s": first.ramp_s,
        "settle_s": settle_s,
        "planned_s": 0.0,
        "engine_note": ENGINE_NOTE if any(workload.engine == "auto" for workload in first.workloads) else None,
        "hosts": {
            host: {
                "volumes": [dict(volume) for volume in driven[host].volumes],
                "thin": _thin(settings, workloads),
                "nfs": mounts_of(settings.volumes, number),
                "settings": _own_values(settings, shared),
            }
            for number, (host, settings) in enumerate(settings_by_host.items())
        },
        "conditions": conditions,
        "stages": stages,
        "points": _points(stages, conditions, [(each, count) for each in workloads for count in counts], seed, driven),
    }
    set_times(plan)
    return plan


def _workloads(first: Settings, settings_by_host: Mapping[str, Settings]) -> list[Workload]:
    """The workloads as they run, with their share of a working set that all volumes have together."""
    volumes = sum(len(settings.volumes) for settings in settings_by_host.values())
    try:
        shared = split_working_set(first.workloads, first.total_working_set_bytes, volumes, first.own_working_sets)
    except ValueRefused as error:
        raise SettingsError([f"{error}."]) from error
    return _bounded(shared, settings_by_host)


def _conditions(first: Settings, hosts: int) -> list[Json]:
    """The conditions with all that a host must be given to be in one."""
    found = []
    for each in first.conditions:
        try:
            data, doubts = tuning_of(each, hosts)
        except ConditionError as error:
            raise SettingsError([f"{error}."]) from error
        found.append({**each.as_document(first.conditions[0].name), "tuning_data": data, "doubts": doubts})
    return found


def _points(
    stages: Sequence[Json],
    conditions: Sequence[Json],
    steps: Sequence[tuple[Workload, int]],
    seed: int,
    driven: Mapping[str, Settings],
) -> list[Json]:
    """Every point, stage by stage; each stage is given the ids of its own. In a stage the order is always the same."""
    by_name = {each["name"]: each for each in conditions}
    width = max(2, len(str(len(stages) * len(steps))))
    counts = len({count for _workload, count in steps})
    points: list[Json] = []
    for stage in stages:
        condition = by_name.get(stage["condition"])
        for workload, count in steps:
            name = point_id(len(points) + 1, width, stage, workload.name, count, counts)
            point = _point(name, workload, count, seed, driven)
            point.update(
                hash=_content_hash(workload, count, driven, condition, stage["block"]),
                condition=stage["condition"],
                block=stage["block"],
                stage=stage["number"],
            )
            points.append(point)
            stage["points"].append(name)
    return points


def _bounded(workloads: Sequence[Workload], settings_by_host: Mapping[str, Settings]) -> list[Workload]:
    """The workloads as they run: what is written to thin volumes stays on the host's disk until they are removed."""
    sizes = [settings.thin["size_bytes"] for settings in settings_by_host.values() if settings.thin]
    if not sizes:
        return list(workloads)
    return [
        replace(workload, working_set_bytes=min(THIN_WRITE_BYTES, *sizes))
        if workload.writes and workload.working_set_bytes is None
        else workload
        for workload in workloads
    ]


def _thin(settings: Settings, workloads: Sequence[Workload]) -> Json | None:
    """What thin volumes a host needs, and how much disk the workloads may fill in them."""
    if settings.thin is None:
        return None
    largest = max((workload.working_set_bytes or 0 for workload in workloads if workload.writes), default=0)
    written_bytes = settings.thin["count"] * min(largest, settings.thin["size_bytes"])
    return {**settings.thin, "written_bytes": written_bytes}


def volume_counts(settings: Settings, everyone: Any) -> list[int]:
    """The numbers of volumes to drive, trimmed to the largest host; the default ones always end with all volumes."""
    there_are = max(len(each.volumes) for each in everyone)
    counts = {min(count, there_are) for count in settings.volume_counts}
    if list(settings.volume_counts) == known_settings()["hostmax_volume_counts"]["default"]:
        counts.add(there_are)
    return sorted(counts)


def log_interval_ms(runtime_s: int) -> int:
    """How often fio logs IOPS: twenty times in a point, at least every second and at most ten times a second."""
    return min(1000, max(100, runtime_s * 1000 // 20))


def _check_agreement(settings_by_host: Mapping[str, Settings]) -> None:
    """One plan for all hosts needs the same settings on all of them."""
    first_host, first = next(iter(settings_by_host.items()))
    faults = []
    for name, value in first.values.items():
        if name in OF_A_HOST:
            continue
        other = next((each for each in settings_by_host.values() if each.values[name] != value), None)
        if other is not None:
            faults.append(
                f"{name} differs between hosts: {value!r} on {first_host} and {other.values[name]!r} on {other.host};"
                " set it once for all hosts of a run."
            )
    if faults:
        raise SettingsError(faults)


def _shared_values(settings_by_host: Mapping[str, Settings]) -> Json:
    """The settings that all hosts share; what differs stands with each host."""
    everyone = list(settings_by_host.values())
    return {
        name: value
        for name, value in everyone[0].values.items()
        if name not in NOT_OF_A_RUN and all(each.values[name] == value for each in everyone)
    }


def _own_values(settings: Settings, shared: Json) -> Json:
    """A host's settings that not all hosts share."""
    return {name: value for name, value in settings.values.items() if name not in shared and name not in NOT_OF_A_RUN}


def _point(
    point_id: str,
    workload: Workload,
    count: int,
    seed: int,
    settings_by_host: Mapping[str, Settings],
) -> Json:
    first = next(iter(settings_by_host.values()))
    interval_ms = log_interval_ms(first.runtime_s)
    jobs, targets = {}, {}
    for host, settings in settings_by_host.items():
        driven = _targets(point_id, seed, host, settings.volumes[:count])
        try:
            # the agent's directory for fio's interval logs of a point
            prefix = f"points/{point_id}.logs/fio"
            jobs[host] = render_job(workload, driven, first.runtime_s, first.ramp_s, interval_ms, prefix)
        except JobError as error:
            raise SettingsError([f"host {host}: {error}"]) from error
        targets[host] = [target.name for target in driven]
    return {
        "id": point_id,
        "hash": None,
        "workload": workload.to_mapping(),
        "volumes": count,
        "offset_s": None,
        "ramp_s": first.ramp_s,
        "runtime_s": first.runtime_s,
        "writes": workload.writes,
        "log_interval_ms": interval_ms,
        "jobs": jobs,
        "targets": targets,
    }


def _targets(point_id: str, seed: int, host: str, volumes: Sequence[Json]) -> list[Target]:
    """fio's sections, each with a seed of its own: no two volumes of a host read or write the same blocks."""
    used: set[int] = set()
    targets = []
    for volume in volumes:
        number = stable_number(seed, point_id, host, volume["name"])
        while number in used:
            number = number % LARGEST_SEED + 1
        used.add(number)
        # files are never created by fio, whatever they are: a path that is missing is a fault and not a new file
        directory = volume["kind"] == "directory"
        targets.append(Target(volume["name"], volume["path"], number, True, volume["size_bytes"], directory))
    return targets


def _content_hash(
    workload: Workload,
    count: int,
    settings_by_host: Mapping[str, Settings],
    condition: Mapping[str, Any] | None = None,
    repeat: int = 0,
) -> str:
    """What determines a measurement, and nothing else: points with the same hash measure the same thing.

    Of a condition that is its name and what it makes of a host; `repeat` is the block.
    """
    content = {
        "workload": workload.to_mapping(),
        "volumes": {
            host: [
                [volume["name"], volume.get("given_path") or volume["path"], volume["size_bytes"], volume["cap"]]
                for volume in settings.volumes[:count]
            ]
            for host, settings in settings_by_host.items()
        },
        "durations_s": next([settings.ramp_s, settings.runtime_s] for settings in settings_by_host.values()),
        "repeat": repeat,
    }
    if condition is not None:
        content["condition"] = [condition["name"], condition["mount"], condition["tuning_data"]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()[:16]
