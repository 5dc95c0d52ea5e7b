# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan as the text a user reads before anything starts: what, where, how long, and what is written to.

It must not know how the plan was made; it takes plan.json and the moment.
"""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    format_bytes,
    format_count,
    format_duration,
    format_rate,
)
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import (
    ExpectationError,
    resolve_expectations,
)

Json = dict[str, Any]

WIDTH = 100
INDENT = 12
MOST_HOSTS = 8
MOST_VOLUMES = 10


def describe_plan(plan: Mapping[str, Any], directory: str | None, now: datetime.datetime) -> str:
    """The plan in at most 100 columns; `directory` is None in check mode, `now` is the local time."""
    points, hosts = plan["points"], plan["hosts"]
    to_measure = [point for point in points if not point.get("kept")]
    finish = now + datetime.timedelta(seconds=plan["planned_s"])
    head = (
        f"{plan['playbook']}: {_counted(len(to_measure), 'point')} on {_counted(len(hosts), 'host')},"
        f" about {format_duration(plan['planned_s'])}, finished about {finish:%H:%M:%S}"
    )
    each = f"{plan['ramp_s']} s ramp, {plan['runtime_s']} s measured, {plan['settle_s']:g} s pause; seed {plan['seed']}"
    lines = [head]
    lines += _entry("resumes", _resumes(plan, len(to_measure)))
    lines += _entry("volumes", _volumes(hosts))
    lines += _entry("points", [*_points(points), f"each {each}"])
    if plan["engine_note"]:
        lines += _entry("engine", [plan["engine_note"]])
    lines += _entry("expects", _expects(plan))
    lines += _entry("writes", _writes(plan))
    lines += _entry("results", [directory or "none: check mode stops here and changes nothing"])
    return "\n".join(lines)


def _resumes(plan: Mapping[str, Any], to_measure: int) -> list[str]:
    """What is taken over from the run that is resumed, and why not more."""
    if not plan.get("resumed_from"):
        return []
    kept = len(plan["points"]) - to_measure
    about = format_duration(plan["planned_s"])
    lines = [f"{_counted(kept, 'point')} kept from {plan['resumed_from']}, {to_measure} to measure, about {about}"]
    if plan["changed_settings"]:
        names = ", ".join(plan["changed_settings"])
        lines.append(f"given otherwise than in that run: {names}; the points this changes are measured again")
    return lines


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _entry(label: str, texts: Sequence[str]) -> list[str]:
    """A labelled paragraph, wrapped, its further lines under the first."""
    lines: list[str] = []
    for text in texts:
        lead = f"  {'' if lines else label}".ljust(INDENT)
        # a path is broken nowhere, so that it can be copied
        lines += textwrap.wrap(
            text,
            WIDTH,
            initial_indent=lead,
            subsequent_indent=" " * INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _some(items: Sequence[str], most: int) -> list[str]:
    """The first few, and how many more there are."""
    if len(items) <= most:
        return list(items)
    return [*items[: most - 1], f"and {len(items) - most + 1} more (all in plan.json)"]


def _volumes(hosts: Mapping[str, Any]) -> list[str]:
    """One line a host; hosts that are alike share a line."""
    alike: dict[str, list[str]] = {}
    for host, entry in hosts.items():
        alike.setdefault(_of_host(entry), []).append(host)
    return _some([f"{_hosts(names)}: {text}" for text, names in alike.items()], MOST_HOSTS)


def _hosts(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more hosts"


def _of_host(entry: Mapping[str, Any]) -> str:
    if entry["thin"]:
        thin = entry["thin"]
        cap = "without a cap"
        if thin["cap"]:
            iops, rate = thin["cap"]["iops"], thin["cap"]["bytes_per_s"]
            figures = [f"{format_count(iops)} IOPS"] if iops else []
            figures += [format_rate(rate)] if rate else []
            cap = f"each capped at {' and '.join(figures)}"
        return f"{_counted(thin['count'], 'thin volume')} of {format_bytes(thin['size_bytes'])}, {cap}"
    volumes = entry["volumes"]
    names = _some([f"{volume['name']} {volume['path']}" for volume in volumes], 4)
    return f"{_counted(len(volumes), 'volume')}: {', '.join(names)}"


def _points(points: Sequence[Json]) -> list[str]:
    """One line a workload: which points, what it does, over how many volumes."""
    groups: dict[str, list[tuple[int, Json]]] = {}
    for number, point in enumerate(points, 1):
        groups.setdefault(point["workload"]["name"], []).append((number, point))
    width = max(len(_span(group)) for group in groups.values())
    lines = []
    for group in groups.values():
        workload = Workload.from_mapping(group[0][1]["workload"])
        counts = [point["volumes"] for _unused, point in group]
        over = f"{', '.join(map(str, counts))} {'volume' if counts == [1] else 'volumes'}"
        lines.append(f"{_span(group):>{width}}  {workload.name}: {workload.title}; {over}")
    return lines


def _span(group: Sequence[tuple[int, Json]]) -> str:
    first, last = group[0][0], group[-1][0]
    return str(first) if first == last else f"{first}-{last}"


def _expects(plan: Mapping[str, Any]) -> list[str]:
    """What each workload's host maximum will be judged against, as far as it is known before the volumes are seen."""
    hosts = {host: entry["volumes"] for host, entry in plan["hosts"].items()}
    largest = {point["workload"]["name"]: point for point in plan["points"]}
    lines = []
    for name, point in largest.items():
        try:
            found = resolve_expectations(plan["settings"]["hostmax_expect"], hosts, point["workload"], point["volumes"])
        except ExpectationError:
            return ["known when the volumes have been seen"]
        for each in found:
            figure = f"{format_count(each.value)} IOPS" if each.unit == "iops" else format_rate(each.value)
            dated = f", {each.date}" if each.date else ""
            lines.append(f"{name}: {figure} within {each.tolerance * 100:g} % ({each.source}{dated})")
    return _some(lines, MOST_HOSTS) or ["nothing; with hostmax_expect the result is judged against a figure"]


def _writes(plan: Mapping[str, Any]) -> list[str]:
    """What will be overwritten, volume by volume; thin volumes are ours."""
    writing = [point for point in plan["points"] if point["writes"] and not point.get("kept")]
    if not writing:
        return ["nothing: every workload reads only, and fio runs with --readonly"]
    paths = []
    for host, entry in plan["hosts"].items():
        driven = {name for point in writing for name in point["targets"][host]}
        if entry["thin"]:
            paths.append(f"{host}: {_counted(len(driven), 'thin volume')} made for this run")
        else:
            paths += [f"{host}: {v['name']} {v['path']}" for v in entry["volumes"] if v["name"] in driven]
    names = ", ".join(dict.fromkeys(point["workload"]["name"] for point in writing))
    return [f"DATA IS OVERWRITTEN by {names} on", *_some(paths, MOST_VOLUMES)]
