# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The line that is shown as a point ends: which point, its figures, and how long the run still takes.

It must not know how the figures came here; columns stand under each other over a whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    format_count,
    format_duration,
    format_latency,
    format_rate,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_plan import to_measure


def progress_line(plan: Mapping[str, Any], host: str, event: Mapping[str, Any], number: int, left_s: float) -> str:
    """One line for the ``number``-th point that ended on a host; ``event`` is the agent's word of it.

    The host is named where there are several.
    """
    points = to_measure(plan)
    point = next(each for each in points if each["id"] == event["id"])
    count, total = point["volumes"], str(len(points))
    where = f"{host}: " if len(plan["hosts"]) > 1 else ""
    width = max(len(each["workload"]["name"]) for each in points)
    head = f"  {where}[{number:>{len(total)}}/{total}]  {count:>3} volume{'s' if count > 1 else ' '}"
    head += f"  {point['workload']['name']:<{width}}"
    if event["status"] != "measured":
        return f"{head}  NOT COUNTED: {' '.join(event['faults'])}"
    latency = format_latency(event["lat_mean_ns"]) if event["lat_mean_ns"] is not None else "no latency"
    figures = f"{format_count(event['iops']):>10} IOPS  {format_rate(event['bytes_per_s']):>10}  mean {latency:>7}"
    left = f"   left {format_duration(left_s)}" if left_s > 1 and number < len(points) else ""
    return f"{head}  {figures}{left}"
