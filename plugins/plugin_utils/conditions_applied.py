# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each condition of a run asked for, and what the hosts' kernels say was in effect when it was measured.

Must not know: how mounts and tunings are made, or what was measured under them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectory

Json = dict[str, Any]

STAGES = "stages.json"
_OF_A_MOUNT = (
    *("name", "path", "source", "asked", "vers", "nconnect", "connections", "slots", "rsize", "wsize"),
    *("read_ahead_kib",),
)
_OF_A_KEY = ("key", "before", "wanted", "after", "status", "note")


def conditions_of_run(run: RunDirectory) -> tuple[list[Json], list[str]]:
    """(the contract's `conditions`, in the plan's order, and sentences about records that could not be read)."""
    plan = run.plan
    planned = plan.get("conditions") or []
    if not planned:
        return [], []
    words: list[str] = []
    told: dict[str, Mapping[str, Any]] = {}
    for host in plan["hosts"]:
        told[host] = _read(run, host, words)
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for stage in plan.get("stages") or []:
        stages.setdefault(stage.get("condition"), []).append(stage)
    return [_condition(each, stages.get(each["name"], []), told) for each in planned], words


def _read(run: RunDirectory, host: str, words: list[str]) -> Mapping[str, Any]:
    """What a host told of its stages; nothing where it was lost before the first one."""
    path = run.host_path(host) / STAGES
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except (OSError, ValueError):
        found = None
    if isinstance(found, dict):
        return found
    words.append(f"{host}: what was applied for each condition is not known, its {STAGES} cannot be read.")
    return {}


def _condition(planned: Mapping[str, Any], stages: list[Any], told: Mapping[str, Mapping[str, Any]]) -> Json:
    applied = {}
    for host, found in told.items():
        # a host that was lost between two stages has some of them
        switches = [(stage.get("block", 0), found.get(str(stage["number"]))) for stage in stages]
        made = [(block, switch) for block, switch in switches if isinstance(switch, Mapping)]
        if made:
            applied[host] = _applied(made)
    return {
        "name": planned["name"],
        "title": planned.get("title") or planned["name"],
        "on": planned.get("on"),
        "mount": planned.get("mount"),
        "tuning": [str(name) for name in planned.get("tuning") or []],
        "applied": applied,
    }


def _applied(made: list[tuple[int, Mapping[str, Any]]]) -> Json:
    """What was in effect in the first block, and a sentence for whatever was not the same in a later one."""
    first_block, first = made[0]
    mounts = [_mount(mount) for mount in first.get("mounts") or []]
    tuning = first.get("tuning") or {}
    for block, switch in made[1:]:
        again = {mount.get("name"): mount for mount in switch.get("mounts") or []}
        for mount in mounts:
            mount["differences"] += _changes(mount, _mount(again.get(mount["name"]) or {}), block, first_block)
    warnings = [word for _block, switch in made for word in _warnings(switch)]
    keys = [*(tuning.get("keys") or []), *map(_parameter, tuning.get("module_parameters") or [])]
    return {
        "mounts": mounts,
        "tuning": [{name: _text(key.get(name)) for name in _OF_A_KEY} for key in keys],
        "warnings": list(dict.fromkeys(warnings)),
    }


def _mount(mount: Mapping[str, Any]) -> Json:
    effective = {str(key): _text(value) for key, value in (mount.get("effective") or {}).items()}
    differences = [str(sentence) for sentence in mount.get("differences") or []]
    return {**{key: mount.get(key) for key in _OF_A_MOUNT}, "effective": effective, "differences": differences}


def _changes(first: Json, again: Json, block: int, first_block: int) -> list[str]:
    """Options of one mount that were not the same in two blocks."""
    if not again["effective"]:
        return [f"block {block}: it is not known what was in effect."]
    names = sorted(first["effective"].keys() | again["effective"].keys())
    unlike = [name for name in names if first["effective"].get(name) != again["effective"].get(name)]
    return [
        f"block {block}: {name} was {again['effective'].get(name, 'not set')},"
        f" in block {first_block} {first['effective'].get(name, 'not set')}."
        for name in unlike
    ]


def _parameter(found: Mapping[str, Any]) -> Json:
    """A parameter of a kernel module, named as a key is."""
    return {**found, "key": found.get("key") or f"{found.get('module')}.{found.get('parameter')}"}


def _warnings(switch: Mapping[str, Any]) -> list[str]:
    tuning = switch.get("tuning") or {}
    return [str(word) for word in [*(switch.get("warnings") or []), *(tuning.get("warnings") or [])]]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
