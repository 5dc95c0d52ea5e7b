# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stages of a plan: one condition in one block, switched to once, with its points; their order and their times.

It must not know how hosts are switched or what a point does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

LARGEST_SEED = 2**31 - 1
# what a switch takes on one host, as measured with mounts and sysctl keys over ssh, and on each further wave of hosts
SWITCH_S, SWITCH_PER_HOST_S = 5.0, 0.2
# a stage that changes nothing on a host still sets a time that all hosts are told
AGREE_S = 1.0
# what is assumed of a layout: each host's share, and what one shared volume takes from all of them
# (1,600 MiB/s were published for writes to a regular Azure NetApp Files volume)
LAYOUT_HOST_BYTES_PER_S, LAYOUT_BYTES_PER_S = 500 * 2**20, 1600 * 2**20


def stable_number(*parts: object) -> int:
    """A number from 1 to 2**31 - 1 that is the same on every machine and Python for the same parts."""
    text = json.dumps([str(part) for part in parts])
    return (
        int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:8], "big") % LARGEST_SEED + 1
    )


def order_of(conditions: Sequence[str], block: int, seed: int) -> list[str]:
    """The conditions in the random order of one block, which follows from the seed alone."""
    return sorted(conditions, key=lambda name: stable_number(seed, "block", block, name))


def make_stages(conditions: Sequence[str], blocks: int, seed: int) -> list[Json]:
    """[{number, condition, block, points: []}]; one stage without a condition in block 0 where there is none."""
    steps: list[tuple[str | None, int]] = [(None, 0)]
    if conditions:
        steps = [(name, block) for block in range(1, blocks + 1) for name in order_of(conditions, block, seed)]
    return [
        {"number": number, "condition": name, "block": block, "points": []}
        for number, (name, block) in enumerate(steps, 1)
    ]


def point_id(number: int, width: int, stage: Mapping[str, Any], workload: str, count: int, counts: int) -> str:
    """`p01-4k-randread-v04`, or `p01-b1-baseline-8k-randread` in a stage with a condition."""
    if stage["condition"] is None:
        return f"p{number:0{width}}-{workload}-v{count:02}"
    volumes = f"-v{count:02}" if counts > 1 else ""
    return f"p{number:0{width}}-b{stage['block']}-{stage['condition']}-{workload}{volumes}"


def point_length_s(plan: Mapping[str, Any]) -> float:
    """How long a point of this plan takes with its ramp and the pause after it, in seconds."""
    return float(plan["ramp_s"] + plan["runtime_s"] + plan["settle_s"])


def to_run(plan: Mapping[str, Any]) -> list[Json]:
    """The stages with a point that is to be measured; a plan of an earlier version has one."""
    waiting = {point["id"] for point in plan["points"] if not point.get("kept")}
    stages = plan.get("stages") or [
        {"number": 1, "condition": None, "block": 0, "points": [point["id"] for point in plan["points"]]}
    ]
    return [stage for stage in stages if waiting.intersection(stage["points"])]


def waiting_points(plan: Mapping[str, Any], number: int) -> list[Json]:
    """The points of a stage that are to be measured, in order."""
    return [point for point in plan["points"] if point.get("stage", 1) == number and not point.get("kept")]


def set_times(plan: Json) -> None:
    """The offset of each point from its stage's T0, without gaps for what is kept, and the length of the whole."""
    length_s = point_length_s(plan)
    stages = to_run(plan)
    number = 0
    for stage in stages:
        for place, point in enumerate(waiting_points(plan, stage["number"])):
            point["offset_s"] = round(place * length_s, 6)
            number += 1
    plan["switch_s"] = round(switch_s(plan), 3)
    plan["layout_s"] = round(layout_s(plan["hosts"]), 3)
    switches_s = plan["switch_s"] * len(stages) if plan.get("conditions") else 0.0
    plan["planned_s"] = round(number * length_s + switches_s + plan["layout_s"], 6)


def after_s(plan: Mapping[str, Any], number: int) -> float:
    """How long the stages after this one take, as planned."""
    later = [stage for stage in to_run(plan) if stage["number"] > number]
    if not later:
        return 0.0
    points = sum(len(waiting_points(plan, stage["number"])) for stage in later)
    return float(points * point_length_s(plan) + len(later) * plan.get("switch_s", 0.0))


def switch_s(plan: Mapping[str, Any]) -> float:
    """What one switch of condition is estimated to take, in seconds; 0 where there is none."""
    if not plan.get("conditions"):
        return 0.0
    changes = any(each.get("mount") or each.get("tuning") for each in plan["conditions"])
    return SWITCH_S + SWITCH_PER_HOST_S * len(plan["hosts"]) if changes else AGREE_S


def layout_s(hosts: Mapping[str, Any]) -> float:
    """What laying out all test files is estimated to take, in seconds."""
    each = [sum(sum(volume.get("files") or ()) for volume in entry["volumes"]) for entry in hosts.values()]
    return max(max(each) / LAYOUT_HOST_BYTES_PER_S, sum(each) / LAYOUT_BYTES_PER_S)
