# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rounds: which points are run when, how far ahead T0 must be, and which points a late host makes necessary again.

Rounds come in pairs, one pair for each stage: the odd one measures the stage, the even one what a host was late for.

It must not know how hosts are told or what was measured; times are seconds on the controller's clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.host_plan import given_up_s
from ansible_collections.hostmax.storage.plugins.plugin_utils.stages import after_s, waiting_points

Json = dict[str, Any]

# T0 lies ahead by: what telling costs the controller for each host, and what the slowest host takes to be reached
LEAD_S, LEAD_PER_HOST_S = 0.15, 0.06
# a host reached in a hurry takes longer than it did when it was measured
REACH_MARGIN = 2.0
# a mark on a volume that is going to be written is looked for and taken away before T0 (5 to 8 ms on a loop device)
MARK_S = 0.01
# a host must know T0 this long before
TOLD_MARGIN_S = 0.02
# fio's own start varies by less
LEAST_LATE_S, LATE_SHARE = 0.5, 0.05


def lead_s(hosts: int, forks: int, reach_s: float, attempt: int = 1, marks: int = 0) -> float:
    """How far ahead T0 must be so that all hosts can be told before, ``forks`` at a time, ``reach_s`` for each.

    ``marks`` is the largest number of marked volumes on one host.
    """
    waves = math.ceil(hosts / max(1, forks))
    return float(attempt * (LEAD_S + LEAD_PER_HOST_S * hosts + REACH_MARGIN * reach_s * waves) + MARK_S * marks)


def first_round(plan: Mapping[str, Any], stage: int, t0: float) -> Json:
    """All points of a stage that are to be measured, at the offsets of the plan; `after_s` is left after the stage."""
    points = [{"id": p["id"], "offset_s": p["offset_s"]} for p in waiting_points(plan, stage)]
    return {"round": 2 * stage - 1, "attempt": 1, "t0": t0, "points": points, "after_s": after_s(plan, stage)}


def time_of(number: int) -> int:
    """Which time a point is measured in a round: 1, or 2 where a host was late the first time."""
    return 2 - number % 2


def moved(current: Mapping[str, Any], t0: float) -> Json:
    """The same round with another T0."""
    return {**current, "attempt": current["attempt"] + 1, "t0": t0}


def repeat_round(plan: Mapping[str, Any], current: Mapping[str, Any], again: Sequence[str], t0: float) -> Json:
    """The next round: the points ``again`` one after the other."""
    points = []
    offset_s = 0.0
    for point in plan["points"]:
        if point["id"] in again:
            points.append({"id": point["id"], "offset_s": round(offset_s, 6)})
            offset_s += point["ramp_s"] + point["runtime_s"] + plan["settle_s"]
    after = current.get("after_s", 0.0)
    return {"round": current["round"] + 1, "attempt": 1, "t0": t0, "points": points, "after_s": after}


def told_in_time(current: Mapping[str, Any], told: Mapping[str, Mapping[str, Any] | None]) -> bool:
    """Whether every host knew this attempt's T0 before it came; ``told`` is {host: {"round", "attempt", "at_s"}}."""
    wanted = (current["round"], current["attempt"])
    return all(
        each is not None
        and (each["round"], each["attempt"]) == wanted
        and each["at_s"] <= current["t0"] - TOLD_MARGIN_S
        for each in told.values()
    )


def late_hosts(
    plan: Mapping[str, Any], current: Mapping[str, Any], late: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """{point: {host: seconds}} of the round's points that a host began later than the earliest one did, by too much.

    ``late`` is {host: {point: first I/O minus its planned time}}. Too much is 5 % of the runtime, and 0.5 s at least.
    """
    found: dict[str, dict[str, float]] = {}
    by_id = {point["id"]: point for point in plan["points"]}
    for each in current["points"]:
        point = by_id[each["id"]]
        begun = {host: points[point["id"]] for host, points in late.items() if point["id"] in points}
        if len(begun) < 2:
            continue
        earliest_s = min(begun.values())
        allowed_s = max(LEAST_LATE_S, LATE_SHARE * point["runtime_s"])
        behind = {host: round(s - earliest_s, 3) for host, s in begun.items() if s - earliest_s > allowed_s}
        if behind:
            found[point["id"]] = behind
    return found


def due_s(plan: Mapping[str, Any], current: Mapping[str, Any], number: int) -> float:
    """When the ``number``-th point of a round (from 0) should have ended; after the last one, when that one should."""
    points = current["points"]
    if not points:
        return float(current["t0"])
    each = points[min(number, len(points) - 1)]
    point = next(p for p in plan["points"] if p["id"] == each["id"])
    return float(current["t0"] + each["offset_s"] + point["ramp_s"] + point["runtime_s"])


def overdue_s(plan: Mapping[str, Any], current: Mapping[str, Any], number: int) -> float:
    """How long after ``due_s`` the ``number``-th point of a round is given up on the host."""
    points = current["points"]
    if not points:
        return 0.0
    each = points[min(number, len(points) - 1)]
    return given_up_s(next(p for p in plan["points"] if p["id"] == each["id"]))
