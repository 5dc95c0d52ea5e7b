# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The conditions of a plan as a user reads them before anything starts: what each adds, and in which order they come.

It must not know how the plan was made; it takes plan.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_duration

Json = dict[str, Any]

MOST_BLOCKS = 5


def conditions_lines(plan: Mapping[str, Any]) -> list[str]:
    """One line a condition, and the order of each block; nothing where nothing is compared."""
    conditions = plan.get("conditions") or []
    if not conditions:
        return []
    lines = [_condition(each) for each in conditions]
    blocks: dict[int, list[str]] = {}
    for stage in plan["stages"]:
        blocks.setdefault(stage["block"], []).append(str(stage["condition"]))
    if len(conditions) == 1:
        return [
            *lines,
            *([f"measured {len(blocks)} times, set up anew each time"] if len(blocks) > 1 else []),
            *_switch(plan),
        ]
    lines.append(
        f"{_blocks(len(blocks))}, each of all {len(conditions)} conditions in a random order of its own, from the seed:"
    )
    shown = list(blocks.items()) if len(blocks) <= MOST_BLOCKS else list(blocks.items())[: MOST_BLOCKS - 1]
    lines += [f"block {block}: {', '.join(names)}" for block, names in shown]
    if len(shown) < len(blocks):
        lines.append(f"and {len(blocks) - len(shown)} more blocks, in plan.json")
    return lines + _switch(plan)


def _blocks(number: int) -> str:
    return "1 block" if number == 1 else f"{number} blocks"


def _condition(condition: Mapping[str, Any]) -> str:
    on = f"{condition['on']} + " if condition["on"] else ""
    title = f" ({condition['title']})" if condition["title"] != condition["name"] else ""
    adds = f"{on}{condition['adds']}"
    whole = condition["mount"]
    if whole and not condition["on"] and whole not in condition["adds"]:
        # it stands on one that is not measured
        adds = f"{whole}{'; tuning ' + ', '.join(condition['tuning']) if condition['tuning'] else ''}"
    return f"{condition['name']}: {adds}{title}"


def _switch(plan: Mapping[str, Any]) -> list[str]:
    """What lies between two conditions."""
    times = []
    if any(each["mount"] for each in plan["conditions"]):
        times.append("every volume is unmounted and mounted anew")
    if any(each["tuning"] for each in plan["conditions"]):
        times.append("kernel settings of the condition before are put back")
    if not times:
        return []
    return [f"before each condition {' and '.join(times)}, about {format_duration(plan['switch_s'])}"]


def doubts(plan: Mapping[str, Any]) -> list[str]:
    """What is doubtful in the tuning of the conditions, each sentence once."""
    return list(dict.fromkeys(str(each) for condition in plan.get("conditions") or () for each in condition["doubts"]))
