# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan as the text a user reads before anything starts: what, where, how long, and what is written to.

It must not know how the plan was made; it takes plan.json and the moment.
"""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.test_file_places import is_directory
from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    format_bytes,
    format_count,
    format_duration,
    format_rate,
)
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils import clients_needed
from ansible_collections.hostmax.storage.plugins.plugin_utils.directory_volumes import laid_out_bytes
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import (
    ExpectationError,
    resolve_expectations,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_conditions import conditions_lines, doubts

Json = dict[str, Any]

WIDTH = 100
# with spaces at which no line is broken
IN_PLAN = "(all\u00a0in\u00a0plan.json)"
# more are hardly quicker on a small controller
MOST_FORKS = 50
INDENT = 12
MOST_HOSTS = 8
MOST_VOLUMES = 10
# of several hosts, so that the plan stays a screen
MOST_VOLUME_LINES = 8
MOST_SHAPES = 5
MOST_DOUBTS = 6
MOST_WRITTEN_HOSTS = 6


def describe_plan(
    plan: Mapping[str, Any], directory: str | None, now: datetime.datetime, forks: int | None = None
) -> str:
    """The plan in at most 100 columns; `directory` is None in check mode, `now` is the local time.

    `forks` is how many hosts Ansible reaches at a time, where that is known.
    """
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
    lines += _entry("hosts", _hosts_at_a_time(len(hosts), forks))
    lines += _volumes(hosts)
    lines += _entry("compares", conditions_lines(plan))
    lines += _entry("points", [*_points(points, len(hosts)), f"each {each}"])
    if plan["engine_note"]:
        lines += _entry("engine", [plan["engine_note"]])
    lines += _entry("expects", _expects(plan))
    lines += _entry("needs", _some(clients_needed.sentences(plan), MOST_HOSTS))
    lines += _entry("beware", _some([*doubts(plan), *clients_needed.fits_server(plan)], MOST_DOUBTS))
    laid_out = _lays_out(hosts)
    lines += _entry("lays out", laid_out)
    lines += _entry("writes", _writes(plan, bool(laid_out)))
    lines += _entry("results", [directory or "none: check mode stops here and changes nothing"])
    # check mode keeps no plan, but returns it
    where = IN_PLAN.replace("\u00a0", " ") if directory else "(all with -v)"
    return "\n".join(lines).replace(IN_PLAN, where)


def _hosts_at_a_time(hosts: int, forks: int | None) -> list[str]:
    """What fewer forks than hosts mean."""
    if forks is None or forks >= hosts:
        return []
    text = f"{hosts:,} hosts are reached {forks:,} at a time (forks): getting ready takes longer, but all start"
    text += " together, at a time that is set when every one is ready"
    quicker = min(hosts, MOST_FORKS)
    return [f"{text}; ANSIBLE_FORKS={quicker} is quicker" if forks < quicker else text]


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
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


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
    return [*items[: most - 1], f"and {len(items) - most + 1:,} more {IN_PLAN}"]


def _volumes(hosts: Mapping[str, Any]) -> list[str]:
    """One line a host with the paths of its volumes; of more hosts than fit, which have how many of what size."""
    paths = _entry("volumes", _alike(hosts, _of_host, MOST_HOSTS))
    if len(hosts) == 1 or len(paths) <= MOST_VOLUME_LINES:
        return paths
    number = sum(len(entry["volumes"]) for entry in hosts.values())
    texts = [*_alike(hosts, _shape, MOST_SHAPES), f"{_counted(number, 'volume')} together"]
    first, entry = next(iter(hosts.items()))
    if not entry["thin"]:
        texts[-1] += f" {IN_PLAN}; the first of {first} is {_path(entry['volumes'][0])}"
    return _entry("volumes", texts)


def _alike(hosts: Mapping[str, Any], describe: Callable[[Mapping[str, Any]], str], most: int) -> list[str]:
    """Hosts that are described alike share a line."""
    alike: dict[str, list[str]] = {}
    for host, entry in hosts.items():
        alike.setdefault(describe(entry), []).append(host)
    return _some([f"{_hosts(names)}: {text}" for text, names in alike.items()], most)


def _path(volume: Mapping[str, Any]) -> str:
    """As the user named it."""
    return str(volume.get("given_path") or volume["path"])


def _shape(entry: Mapping[str, Any]) -> str:
    if entry["thin"]:
        return _of_host(entry)
    volumes = entry["volumes"]
    sizes = dict.fromkeys(volume["size_bytes"] or laid_out_bytes([volume]) for volume in volumes)
    known = [f"{format_bytes(size)}" if size else "a size not given" for size in sizes]
    return f"{_counted(len(volumes), 'volume')} of {' and '.join(known[:3])}{' and others' if len(known) > 3 else ''}"


def _hosts(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2:,} more hosts"


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
    names = _some([f"{volume['name']} {_path(volume)}" for volume in volumes], 4)
    return f"{_counted(len(volumes), 'volume')}: {', '.join(names)}"


def _points(points: Sequence[Json], hosts: int) -> list[str]:
    """One line a workload: which points, what it does, over how many volumes."""
    groups: dict[str, list[tuple[int, Json]]] = {}
    for number, point in enumerate(points, 1):
        groups.setdefault(point["workload"]["name"], []).append((number, point))
    width = max(len(_span(group)) for group in groups.values())
    lines = []
    for group in groups.values():
        workload = Workload.from_mapping(group[0][1]["workload"])
        counts = [point["volumes"] for _unused, point in group]
        counts = list(dict.fromkeys(counts))
        over = f"{', '.join(map(str, counts))} {'volume' if counts == [1] else 'volumes'}"
        over += " a host" if hosts > 1 else ""
        lines.append(f"{_span(group):>{width}}  {workload.name}: {workload.title}; {over}")
    return _some(lines, MOST_HOSTS)


def _span(group: Sequence[tuple[int, Json]]) -> str:
    first, last = group[0][0], group[-1][0]
    if last - first + 1 != len(group):
        # one in each stage
        return f"{len(group)} times"
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


def _lays_out(hosts: Mapping[str, Any]) -> list[str]:
    """What is written before the first point, where there are directory volumes."""
    total_bytes = sum(laid_out_bytes(entry["volumes"]) for entry in hosts.values())
    if not total_bytes:
        return []
    files = sum(len(volume.get("files") or ()) for entry in hosts.values() for volume in entry["volumes"])
    return [
        f"{_counted(files, 'test file')} of {format_bytes(total_bytes)} together before the first point, in directories"
        " of the run's own, which are removed at the end; nothing else there is touched"
    ]


def _writes(plan: Mapping[str, Any], laid_out: bool) -> list[str]:
    """What will be overwritten, volume by volume; thin volumes are ours."""
    writing = [point for point in plan["points"] if point["writes"] and not point.get("kept")]
    if not writing:
        nothing = "nothing else" if laid_out else "nothing"
        return [f"{nothing}: every workload reads only, and fio runs with --readonly"]
    several = len(plan["hosts"]) > 1
    paths, number = [], 0
    for host, entry in plan["hosts"].items():
        driven = {name for point in writing for name in point["targets"][host]}
        users = [volume for volume in entry["volumes"] if not is_directory(volume)]
        volumes = [f"{v['name']} {v['path']}" for v in users if v["name"] in driven]
        number += len(volumes)
        if entry["thin"]:
            paths.append(f"{host}: {_counted(len(driven), 'thin volume')} made for this run")
        elif several and volumes:
            more = f" and {len(volumes) - 1:,} more" if len(volumes) > 1 else ""
            paths.append(f"{host}: {volumes[0]}{more}")
        else:
            paths += [f"{host}: {volume}" for volume in volumes]
    names = ", ".join(dict.fromkeys(point["workload"]["name"] for point in writing))
    if not paths:
        return [f"only its own test files, by {names}"]
    if not several:
        return [f"DATA IS OVERWRITTEN by {names} on", *_some(paths, MOST_VOLUMES)]
    where = f"{_counted(number, 'volume')} of {_counted(len(paths), 'host')}"
    return [f"DATA IS OVERWRITTEN by {names} on {where} {IN_PLAN}", *_some(paths, MOST_WRITTEN_HOSTS)]
