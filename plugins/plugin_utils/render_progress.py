# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lines that are shown as a run goes on: each point's figures as it is complete, and each host that is lost.

It must not know how the figures came here; columns stand under each other over a whole run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    format_count,
    format_duration,
    format_latency,
    format_rate,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_plan import to_measure

Json = dict[str, Any]


def board_lines(
    plan: Mapping[str, Any],
    host: str,
    event: Mapping[str, Any],
    headlines: Sequence[Mapping[str, Any]],
    left_s: float,
) -> list[str]:
    """What to show when a host said `event` and the board answered with these headlines; often nothing.

    A run on one host shows each point as the host says it. One on several shows a point once, when it is complete,
    with a line for each host that failed it (the first few), and a host when it is lost.
    """
    lines = []
    if event["event"] == "lost":
        lines.append(plain_line(f"{host}: LOST: {event.get('reason') or 'no reason is known'}", "  "))
    if len(plan["hosts"]) == 1:
        return [_host_line(plan, event, left_s)] if event["event"] == "point" else lines
    for headline in headlines:
        lines.append(_total_line(plan, headline, left_s))
        lines += [plain_line(f"{each['host']}: {' '.join(each['faults'])}", "      ") for each in headline["faults"]]
        more = headline["hosts_failed"] - len(headline["faults"])
        if more > 0:
            lines.append(f"      and {more:,} more {'hosts' if more > 1 else 'host'} failed it")
    return lines


def stage_line(plan: Mapping[str, Any], number: int) -> str | None:
    """What is measured from now on, where a run compares conditions."""
    stages = plan.get("stages") or []
    stage = next((each for each in stages if each["number"] == number), None)
    if stage is None or stage["condition"] is None:
        return None
    condition = next(each for each in plan["conditions"] if each["name"] == stage["condition"])
    title = f": {condition['title']}" if condition["title"] != condition["name"] else ""
    blocks = max(each["block"] for each in stages)
    block = f", block {stage['block']} of {blocks}" if blocks > 1 else ""
    return f"  {condition['name']}{title} (stage {number} of {len(stages)}{block})"


def plain_line(text: str, indent: str = "") -> str:
    """A host's words as one line without control characters."""
    return indent + "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _host_line(plan: Mapping[str, Any], event: Mapping[str, Any], left_s: float) -> str:
    point, head, last = _head(plan, event)
    count = point["volumes"]
    head = f"{head}  {count:>3} volume{'s' if count > 1 else ' '}  {_workload(plan, point)}"
    if event["status"] != "measured":
        return f"{head}  NOT COUNTED: {plain_line(' '.join(event['faults']))}"
    return f"{head}  {_figures(event)}{_left(left_s, last)}"


def _total_line(plan: Mapping[str, Any], headline: Mapping[str, Any], left_s: float) -> str:
    point, head, last = _head(plan, headline)
    every = len(plan["hosts"])
    some = headline["hosts"] < every
    most = max(each["volumes"] for each in plan["points"])
    hosts = f"{headline['hosts']:,} of {every:,} hosts" if some else f"{every:,} hosts"
    volumes = f"{point['volumes']:>{len(str(most))}} volume{'s' if point['volumes'] > 1 else ' '}"
    head = f"{head}  {hosts} x {volumes}  {_workload(plan, point)}"
    if not headline["hosts"]:
        return f"{head}  NOT COUNTED: no host measured it"
    repeated = "   repeated" if headline["round"] > 1 else ""
    return f"{head}  {_figures(headline)}{repeated}{_left(left_s, last)}"


def _head(plan: Mapping[str, Any], said: Mapping[str, Any]) -> tuple[Json, str, bool]:
    """The point, its number among those that are measured in this run, and whether it is the last of them."""
    points = to_measure(plan)
    index = next(index for index, point in enumerate(points) if point["id"] == said["id"])
    total = str(len(points))
    return points[index], f"  [{index + 1:>{len(total)}}/{total}]", index + 1 == len(points)


def _workload(plan: Mapping[str, Any], point: Mapping[str, Any]) -> str:
    width = max(len(each["workload"]["name"]) for each in plan["points"])
    return f"{point['workload']['name']:<{width}}"


def _figures(said: Mapping[str, Any]) -> str:
    latency = format_latency(said["lat_mean_ns"]) if said["lat_mean_ns"] is not None else "no latency"
    return f"{format_count(said['iops']):>10} IOPS  {format_rate(said['bytes_per_s']):>10}  mean {latency:>7}"


def _left(left_s: float, last: bool) -> str:
    return f"   left {format_duration(left_s)}" if left_s > 1 and not last else ""
