# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host's part of a plan, as its agent takes it, and what is known of its volumes afterwards.

It must not know how the plan was made or how the agent is reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils import directory_volumes
from ansible_collections.hostmax.storage.plugins.plugin_utils.stages import to_run

Json = dict[str, Any]

# time for everything between the agent's start and T0, and for results to be claimed after the last point
DEADLINE_SLACK_S = 1800.0
POINT_SLACK_S = 5.0
# how long an agent waits for T0, and after a round for the next one or for its results to be taken
GO_WAIT_S, GO_WAIT_PER_HOST_S = 900.0, 5.0
LINGER_PER_HOST_S = 2.0
# how long the agents of all hosts wait at most while one host after the other is switched to the next condition
SWITCH_WAIT_S, SWITCH_WAIT_PER_HOST_S = 600.0, 10.0
VOLUME_KEYS = (
    "name",
    "path",
    "given_path",
    "size_bytes",
    "size",
    "identity",
    "overwrite",
    "kind",
    "cap",
    "needed_bytes",
    "files",
    "mount",
)


def to_measure(plan: Mapping[str, Any]) -> list[Json]:
    """The points a run measures itself: not those whose samples it took over from an earlier run."""
    return [point for point in plan["points"] if not point.get("kept")]


def for_host(plan: Mapping[str, Any], host: str, thin: Mapping[str, Any]) -> Json:
    """The payload of the agent module for one host; ``thin`` is the result of the thin_volumes module, or empty."""
    volumes = thin.get("volumes") or plan["hosts"][host]["volumes"]
    points = [_point(point, host) for point in to_measure(plan) if host in point["jobs"]]
    hosts = len(plan["hosts"])
    length_s = sum(point["ramp_s"] + point["runtime_s"] + POINT_SLACK_S for point in points)
    stages = len(to_run(plan))
    switch_s = SWITCH_WAIT_S + SWITCH_WAIT_PER_HOST_S * hosts if stages > 1 else 0.0
    layout_s = max(directory_volumes.layout_limit_s(each["volumes"]) for each in plan["hosts"].values())
    return {
        "host": host,
        "shared_volumes": bool(plan["settings"].get("hostmax_shared_volumes")),
        "volumes": [{key: volume.get(key) for key in VOLUME_KEYS} for volume in volumes],
        "own_files": [
            volume["backing"] for volume in volumes if volume.get("kind") == "file" and volume.get("backing")
        ],
        "own_mounts": [mount["path"] for mount in plan["hosts"][host].get("nfs") or ()],
        "cgroup": thin.get("cgroup"),
        # twice the length, for volumes that stall: fio then runs longer than asked
        "deadline_s": 2 * length_s + DEADLINE_SLACK_S + GO_WAIT_PER_HOST_S * hosts + layout_s + stages * switch_s,
        # another host may have more to lay out than this one
        "go_wait_s": GO_WAIT_S + GO_WAIT_PER_HOST_S * hosts + layout_s,
        "linger_s": plan["settings"]["hostmax_patience_s"] + _others_s(points, hosts) + switch_s,
        "alone": hosts == 1,
        "points": points,
    }


def given_up_s(point: Mapping[str, Any]) -> float:
    """How long after its end the agent gives a point up at the latest, with what ending fio may take.

    The agent waits for fio as long again as the point is, and 30 s at least (``fio_run``).
    """
    return float(max(30.0, point["ramp_s"] + point["runtime_s"]) + 30.0)


def _others_s(points: Sequence[Json], hosts: int) -> float:
    """How much later than this host another one may end a round: its fio hangs until it is given up."""
    if hosts == 1:
        return 0.0
    return LINGER_PER_HOST_S * (hosts - 1) + max((given_up_s(point) for point in points), default=0.0)


def _point(point: Mapping[str, Any], host: str) -> Json:
    workload = Workload.from_mapping(point["workload"])
    return {
        "id": point["id"],
        "hash": point["hash"],
        "ramp_s": point["ramp_s"],
        "runtime_s": point["runtime_s"],
        "reads": workload.reads,
        "writes": point["writes"],
        "engine": workload.engine,
        "direct": workload.direct,
        "io_depth": workload.io_depth,
        "num_jobs": workload.num_jobs,
        "log_interval_ms": point["log_interval_ms"],
        "volumes": point["targets"][host],
        "job": point["jobs"][host],
    }


def known_volumes(planned: Sequence[Json], found: Sequence[Json], thin: Mapping[str, Any]) -> list[Json]:
    """What the report says of a host's volumes: the plan's names and caps with the size and identity found on it."""
    by_name = {volume["name"]: volume for volume in found}
    backing = {volume["name"]: volume.get("backing") for volume in thin.get("volumes", [])}
    return [
        {
            "name": volume["name"],
            "path": volume.get("given_path") or volume["path"],
            "kind": volume["kind"],
            "size_bytes": by_name[volume["name"]]["size_bytes"],
            "identity": by_name[volume["name"]]["identity"],
            "cap": volume.get("cap"),
            "backing": backing.get(volume["name"]) or by_name[volume["name"]].get("backing"),
        }
        for volume in planned
    ]
