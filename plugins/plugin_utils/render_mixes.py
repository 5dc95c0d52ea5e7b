# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Mixes of reads and writes of one block size and pattern side by side, from reads alone to writes alone.

Must not know: plotly itself, HTML, or how a figure was measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes, format_count
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import ExpectationError, check_expect
from ansible_collections.hostmax.storage.plugins.plugin_utils.observed import KIND, lines
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison import MIB, mib_per_s, value_text
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_figures import COLOUR, Figure, line, make
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    Row,
    Section,
    clean,
    latency,
    on_hosts,
    percent,
    plural,
)

Json = dict[str, Any]

# fewer mixes than this are workloads of their own and no curve
LEAST = 3
HEADS = ("Reads / writes", "IOPS", "MiB/s", "Read", "Write", "Mean", "p99", "CPU busy", "Held back by")


@dataclass(frozen=True)
class Mixes:
    """The sections of one pattern and block size, most reads first, each with its largest point."""

    sections: list[Section]
    published: list[Json]
    summaries: dict[str, Json]

    @property
    def blocks(self) -> int:
        """How many blocks its mixes have at most."""
        return max((summary["blocks"] for summary in self.summaries.values()), default=1)

    @property
    def rows(self) -> list[Row]:
        return [_largest(section) for section in self.sections]

    @property
    def unit(self) -> str:
        return self.sections[0].unit

    @property
    def title(self) -> str:
        workload = self.rows[0].point["workload"]
        pattern = "random" if workload["rw"].startswith("rand") else "sequential"
        return f"{format_bytes(workload['block_size_bytes'])} {pattern}, reads and writes"

    @property
    def headline(self) -> str:
        """Reads alone, writes alone, and the mix that came highest."""
        counted = [row for row in self.rows if row.counted and row.value is not None]
        if not counted:
            return "No mix could be counted"
        ends = [_end(row, self.unit) for row in counted if row.point["workload"]["read_percent"] in (0, 100)]
        best = max(counted, key=lambda row: row.value or 0.0)
        if best.point["workload"]["read_percent"] not in (0, 100):
            ends.append(f"most at {mix(best)}: {value_text(best.value, self.unit)}")
        return "; ".join(ends) or f"Most at {mix(best)}: {value_text(best.value, self.unit)}"

    def cells(self) -> list[tuple[str, ...]]:
        """A line a mix (see HEADS)."""
        return [_cells(row, self.unit) for row in self.rows]


@dataclass(frozen=True)
class Limits:
    """A whole run of mixes: its headline and its key figures."""

    groups: list[Mixes]

    @property
    def best(self) -> Row | None:
        """The highest point of the first group."""
        counted = [row for row in self.groups[0].rows if row.counted and row.value is not None]
        return max(counted, key=lambda row: row.value or 0.0, default=None)

    @property
    def label(self) -> str:
        many = any(len(row.point["hosts_expected"]) > 1 for row in self.groups[0].rows)
        return "Maximum of all hosts" if many else "Host maximum"

    @property
    def key_figure(self) -> str:
        return value_text(self.best.value, self.groups[0].unit) if self.best else "no valid figure"

    @property
    def circumstances(self) -> str:
        """`at 256 KiB sequential, 100/0 reads/writes, with 1 volume on each of 12 hosts`."""
        pattern = self.groups[0].title.split(",")[0]
        if self.best is None:
            return f"at {pattern}: no mix could be counted"
        volumes = plural(self.best.volumes, "volume")
        return f"at {pattern}, {mix(self.best)} reads/writes, with {volumes} {on_hosts(self.best)}"

    @property
    def headline(self) -> str:
        return f"{self.label}: {self.key_figure} {self.circumstances}"

    def cards(self) -> list[dict[str, str]]:
        """Reads alone and writes alone of each group, beside what was published."""
        return [card for group in self.groups[:3] for row in group.rows if (card := _card(group, row))]


def _card(group: Mixes, row: Row) -> dict[str, str] | None:
    reads = row.point["workload"]["read_percent"]
    if reads not in (0, 100) or not row.counted or row.value is None:
        return None
    known = next((each for each in group.published if each["read_percent"] == reads), None)
    note = f"mean {latency(row.lat_ns('mean'))}, p99 {latency(row.lat_ns('p99'))}"
    if known:
        note = f"{percent(row.value / known['value'])} of the {value_text(known['value'], group.unit)} published"
    pattern, only = group.title.split(",")[0], "read" if reads else "write"
    return {"label": f"{pattern} {only}", "value": value_text(row.value, group.unit), "note": note}


def read_limits(groups: list[Mixes]) -> Limits | None:
    """The run as a study of mixes; None where it has none."""
    return Limits(groups) if groups else None


def _end(row: Row, unit: str) -> str:
    only = "reads" if row.point["workload"]["read_percent"] else "writes"
    return f"{only} alone {value_text(row.value, unit)}"


def mix(row: Row) -> str:
    """`70/30`."""
    reads = row.point["workload"]["read_percent"]
    return f"{reads:g}/{100 - reads:g}"


def _largest(section: Section) -> Row:
    """The mix's maximum, or its largest point; over several blocks the means of those that count."""
    row = section.maximum_row or max(section.rows, key=lambda row: row.volumes)
    blocks = [other.point for other in section.counted_rows if other.volumes == row.volumes]
    return row if len(blocks) < 2 else Row(_averaged(blocks), row.rung, row.unit, row.marks)


def _averaged(points: Sequence[Json]) -> Json:
    """One point of the means of several; their percentiles cannot be averaged, so it has none."""
    found = dict(points[0])
    for way in ("total", "read", "write"):
        every = [point[way] for point in points if point[way]]
        if every:
            means = {key: statistics.fmean(one[key] for one in every) for key in ("iops", "bytes_per_s")}
            latencies = [one["lat_ns"]["mean"] for one in every if one["lat_ns"]]
            found[way] = {**means, "lat_ns": {"mean": statistics.fmean(latencies)} if latencies else None}
    return found


def _cells(row: Row, unit: str) -> tuple[str, ...]:
    ways = [(row.point[way] or {}).get(unit) for way in ("read", "write")]
    return (
        mix(row),
        "-" if row.iops is None else format_count(row.iops),
        mib_per_s(row.bytes_per_s),
        *("-" if value is None else value_text(value, unit) for value in ways),
        *(latency(row.lat_ns(name)) for name in ("mean", "p99")),
        percent(row.cpu_busy),
        row.limit_words,
    )


def read_mixes(results: Json, sections: Sequence[Section]) -> list[Mixes]:
    """The groups of at least LEAST mixes of a run that compares no conditions, its figures means over its blocks."""
    if len(results["conditions"]) > 1:
        return []
    groups: dict[tuple[Any, ...], list[Section]] = {}
    for section in sections:
        if section.rows:
            workload = section.rows[0].point["workload"]
            case = (workload["rw"].startswith("rand"), workload["block_size_bytes"], workload["io_depth"])
            groups.setdefault((*case, workload["num_jobs"], workload["direct"]), []).append(section)
    found = []
    for group in groups.values():
        percents = {section.rows[0].point["workload"]["read_percent"] for section in group}
        if len(percents) >= LEAST and len(percents) == len(group):
            ordered = sorted(group, key=lambda s: -float(s.rows[0].point["workload"]["read_percent"]))
            found.append(Mixes(ordered, _published(results, ordered), _summaries(results, ordered)))
    return found


def _summaries(results: Json, sections: Sequence[Section]) -> dict[str, Json]:
    """The summary of each mix, by workload, at the volumes that are shown."""
    shown = {(section.name, _largest(section).volumes) for section in sections}
    return {each["workload"]: each for each in results["summaries"] if (each["workload"], each["volumes"]) in shown}


def _published(results: Json, sections: Iterable[Section]) -> list[Json]:
    """Figures of the expected kind of volume for reads alone and for writes alone, and of its other kinds."""
    workloads = [section.rows[0].point["workload"] for section in sections]
    try:
        asked = [
            item for item in check_expect(results["run"]["settings"].get("hostmax_expect")) if item["kind"] == KIND
        ]
    except ExpectationError:
        return []
    return list(lines(asked, workloads))


def chart(mixes: Mixes) -> Figure:
    """Total, reads and writes over the mix; what was published as diamonds at both ends."""
    scale, unit = (float(MIB), "MiB/s") if mixes.unit == "bytes_per_s" else (1.0, "IOPS")
    rows = [row for row in mixes.rows if row.counted] or [row for row in mixes.rows if row.total]
    x = [row.point["workload"]["read_percent"] for row in rows]
    style = {"hovertemplate": f"%{{y:,.0f}} {unit}"}
    traces = [
        line("total", x, [_scaled(row.value, scale) for row in rows], 0, **_interval(mixes, rows, scale), **style),
        *(
            line(f"{way}s", x, [_scaled((row.point[way] or {}).get(mixes.unit), scale) for row in rows], place, **style)
            for place, way in enumerate(("read", "write"), 1)
        ),
    ]
    dropped = [row for row in mixes.rows if row not in rows and row.value is not None]
    if dropped:
        marker = {"symbol": "x-open", "size": 11, "color": COLOUR["red"], "line": {"width": 2}}
        places = [row.point["workload"]["read_percent"] for row in dropped]
        values = [_scaled(row.value, scale) for row in dropped]
        traces.append(line("not counted", places, values, 4, mode="markers", marker=marker, **style))
    traces += _diamonds(mixes, scale, unit)
    xaxis = {"title": "% reads (the rest are writes)", "range": [104, -4], "dtick": 10}
    return make(traces, xaxis, {"title": unit, "rangemode": "tozero", "tickformat": ",~s"})


def _interval(mixes: Mixes, rows: Sequence[Row], scale: float) -> Json:
    """The 95 % interval of each total, where there are several blocks."""
    known = [mixes.summaries.get(row.point["workload"]["name"]) or {} for row in rows]
    if not any(each.get("ci95_high") is not None for each in known):
        return {}
    up = [((each.get("ci95_high") or 0.0) - (each.get("mean") or 0.0)) / scale for each in known]
    down = [((each.get("mean") or 0.0) - (each.get("ci95_low") or 0.0)) / scale for each in known]
    both = {"array": [max(0.0, arm) for arm in up], "arrayminus": [max(0.0, arm) for arm in down]}
    return {"error_y": {"type": "data", "symmetric": False, **both, "thickness": 1.3, "width": 4}}


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale


def _diamonds(mixes: Mixes, scale: float, unit: str) -> list[Json]:
    """Published figures, with a short level line that reaches into the chart."""
    traces = []
    for volume in dict.fromkeys(each["volume"] for each in mixes.published):
        x: list[float | None] = []
        y: list[float | None] = []
        for each in mixes.published:
            if each["volume"] == volume:
                end = each["read_percent"]
                value = each["value"] / scale
                x += [end, end + (14 if end == 0 else -14), None]
                y += [value, value, None]
        name = f"published, {clean(volume).replace('_', ' ')} volume"
        size = [11 if place % 3 == 0 else 0 for place in range(len(x))]
        marker = {"symbol": "diamond", "size": size, "color": COLOUR["purple"]}
        dash = {"color": COLOUR["purple"], "dash": "dot", "width": 2}
        text = f"%{{y:,.0f}} {unit}"
        traces.append(line(name, x, y, 2, marker=marker, line=dash, hovertemplate=text, connectgaps=False))
    return traces
