# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One workload as the page shows it: key figures, charts and tables, everything already text.

Must not know: HTML; what is returned is escaped by the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count
from ansible_collections.hostmax.storage.plugins.plugin_utils import (
    render_figures,
    render_hosts,
    render_timing,
    render_volumes,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    LIMIT_SHORT,
    Row,
    Section,
    clean,
    figure,
    gate_name,
    latency,
    megabytes,
    percent,
    plural,
)

PASSED = {True: "✓ passed", False: "✗ failed", None: "– not judged"}


def view(section: Section, number: int) -> dict[str, Any]:
    """Everything the template needs of a section."""
    prefix = f"workload{number}"
    many = render_volumes.largest(section) > render_volumes.MOST_BARS
    measured = any(row.total for row in section.rows)
    return {
        "id": prefix,
        "title": clean(section.title),
        "name": clean(section.name),
        "headline": section.headline,
        "limit": _limit(section),
        "charts": _charts(section, prefix, many) if measured else [],
        "ladder": _ladder(section),
        "split": _split(section),
        "volumes": {} if many or not measured else _volume_table(section),
        "ranking": _ranking(section) if many else {},
        "hosts": render_hosts.host_table(section),
    }


def gate_rows(section: Section) -> list[list[str]]:
    """Every gate of every point of a section."""
    return [
        [clean(row.point["id"]), gate_name(gate), PASSED[gate["passed"]], clean(gate["text"])]
        for row in section.rows
        for gate in row.point["gates"]
    ]


def _limit(section: Section) -> dict[str, Any] | None:
    row = section.headline_row
    limit = (row.point["limit"] if section.quantity == "latency" and row else section.limit) or None
    if limit is None:
        return None
    evidence = [clean(sentence) for sentence in limit["evidence"]]
    more = len(evidence) - 6
    return {
        "kind": LIMIT_SHORT.get(limit["kind"], clean(limit["kind"])),
        "text": clean(limit["text"]),
        "evidence": evidence[:6] + ([f"and {more:,} more in results.json"] if more > 0 else []),
    }


def _chart(prefix: str, name: str, title: str, caption: str, drawing: Any, wide: bool = False) -> dict[str, Any]:
    drawing = {"choices": drawing} if isinstance(drawing, list) else {"figure": drawing}
    return {"id": f"{prefix}-{name}", "title": title, "caption": caption, "wide": wide, "drawing": drawing}


def _charts(section: Section, prefix: str, many: bool) -> list[dict[str, Any]]:
    charts = [
        _chart(
            prefix,
            "scaling",
            "Scaling",
            "Measured rate against linear growth from the smallest point.",
            render_figures.scaling(section),
            wide=True,
        )
    ]
    if many:
        charts += [
            _chart(
                prefix,
                "spread",
                "Spread of the volumes by load",
                "Quantiles over all volumes of all hosts.",
                render_volumes.spread(section),
            ),
            _chart(
                prefix,
                "strip",
                "Where the volumes stand",
                "Darkest where most of them are.",
                render_volumes.strip(section),
            ),
        ]
    else:
        charts.append(
            _chart(
                prefix,
                "volumes",
                "Each volume",
                "Rate of every volume in one point.",
                render_volumes.choices(section),
                wide=True,
            )
        )
    charts += [
        _chart(
            prefix,
            "latency",
            "Latency by load",
            "From merged histograms; logarithmic.",
            render_figures.latency(section),
        ),
        _chart(
            prefix, "cpu", "Client CPU by load", "Share of CPU time within the window.", render_figures.cpu(section)
        ),
    ]
    over_time = render_figures.over_time(section)
    if over_time:
        charts.append(
            _chart(
                prefix,
                "time",
                "IOPS over time",
                "All volumes of all hosts together, one line a point.",
                over_time,
                wide=True,
            )
        )
    return charts


def cards(section: Section) -> list[dict[str, str]]:
    """The figures to see first."""
    row = section.headline_row
    if row is None:
        return []
    found = [_latency_card(section, row) if section.quantity == "latency" else _knee_card(section)]
    if section.quantity != "latency":
        found.append(
            {
                "label": "Latency at the maximum",
                "value": latency(row.lat_ns("mean")),
                "note": f"mean; p99 {latency(row.lat_ns('p99'))}, p99.9 {latency(row.lat_ns('p99_9'))}"
                + (f"; {row.latency_words}" if row.latency_words else ""),
            }
        )
    fair = row.point["fairness"]
    if fair and fair["slowest"]:
        share = fair["slowest"]["iops"] / fair["median_iops"] if fair["median_iops"] else None
        several = len(row.point["hosts_expected"]) > 1
        name = clean(f"{fair['slowest']['host']} {fair['slowest']['volume']}" if several else fair["slowest"]["volume"])
        found.append(
            {
                "label": "Slowest volume",
                "value": percent(share),
                "note": f"of the median: {name}, {format_count(fair['slowest']['iops'])} IOPS",
            }
        )
    if row.cpu_busy is not None:
        several = len(row.cpu("busy")) > 1
        note = (
            f"busiest host {percent(max(row.cpu('busy')))}"
            if several
            else f"busiest CPU {percent(max(row.cpu('busiest_cpu'), default=None))}"
        )
        found.append({"label": "Client CPU busy", "value": percent(row.cpu_busy), "note": note})
    window = row.point["window"]
    if window and len(row.point["timing"]) > 1:
        note = f"of the point; first I/Os within {render_timing.milliseconds(window['skew_s'])}"
        found.append({"label": "Hosts together", "value": percent(window["overlap"]), "note": note})
    limit = _limit(section)
    if limit:
        found.append({"label": "Held back by", "value": limit["kind"], "note": limit["text"]})
    return found


def _knee_card(section: Section) -> dict[str, str]:
    knee = next((row for row in section.rows if "knee" in row.marks), None)
    if knee:
        return {
            "label": "Linear up to",
            "value": plural(knee.volumes, "volume"),
            "note": f"{figure(knee.value, section.unit)}, {percent(knee.efficiency)} of linear",
        }
    row = section.maximum_row
    note = "the ladder ended before it bent" if section.still_linear else "no knee was found"
    return {"label": "Of linear", "value": percent(row.efficiency if row else None), "note": note}


def _latency_card(section: Section, row: Row) -> dict[str, str]:
    return {
        "label": f"Tail with {plural(row.volumes, 'volume')}",
        "value": latency(row.lat_ns("p99_9")),
        "note": f"p99.9; p99 {latency(row.lat_ns('p99'))}, p50 {latency(row.lat_ns('p50'))}",
    }


def summary_row(section: Section, number: int) -> dict[str, str]:
    """The line of the overview of all workloads."""
    row = section.headline_row
    knee = section.knee_volumes
    return {
        "id": f"workload{number}",
        "title": clean(section.title),
        "figure": section.key_figure if row else "no valid figure",
        "volumes": str(row.volumes) if row else "-",
        "knee": str(knee) if knee else "-",
        "latency": f"{latency(row.lat_ns('mean'))} / {latency(row.lat_ns('p99'))}" if row else "-",
        "limit": row.limit_words if row else "-",
    }


LADDER_HEADS = (
    "Volumes",
    "IOPS",
    "MB/s",
    "Of linear",
    "Mean",
    "p50",
    "p99",
    "p99.9",
    "p99.99",
    "Max",
    "CPU busy",
    "Slowest",
    "Held back by",
)


def _ladder(section: Section) -> dict[str, Any]:
    return {"heads": LADDER_HEADS, "rows": [_ladder_row(row) for row in section.rows]}


def _ladder_row(row: Row) -> dict[str, Any]:
    fair = row.point["fairness"]
    slowest = (
        fair["slowest"]["iops"] / fair["median_iops"] if fair and fair["slowest"] and fair["median_iops"] else None
    )
    star = "*" if row.latency_words else ""
    cells = [
        str(row.volumes),
        "-" if row.iops is None else format_count(row.iops),
        "-" if row.bytes_per_s is None else megabytes(row.bytes_per_s),
        percent(row.efficiency) if row.counted else "-",
        *(latency(row.lat_ns(name)) + star for name in ("mean", "p50", "p99", "p99_9", "p99_99", "max")),
        percent(row.cpu_busy),
        percent(slowest),
        row.limit_words
        + (f" (without {_names(row.missing_hosts)})" if row.missing_hosts else "")
        + (f" (* {row.latency_words})" if row.latency_words else ""),
    ]
    return {"cells": cells, "marks": row.marks, "counted": row.counted}


def _names(names: Sequence[str]) -> str:
    return ", ".join(clean(name) for name in names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _split(section: Section) -> list[list[str]]:
    """Reads and writes apart, where a point did both."""
    lines = []
    for row in section.rows:
        ways = [row.point["read"], row.point["write"]]
        if all(ways):
            lat = [way["lat_ns"] or {} for way in ways]
            lines.append(
                [
                    str(row.volumes),
                    *(format_count(way["iops"]) for way in ways),
                    *(latency(one.get("mean")) for one in lat),
                    *(latency(one.get("p99")) for one in lat),
                ]
            )
    return lines


def _volume_table(section: Section) -> dict[str, Any]:
    """A line a volume, a column a point, and the tail at the largest point."""
    rows = [row for row in section.rows if row.point["per_volume"]]
    if not rows:
        return {}
    by_row = [{(volume.host, volume.name): volume for volume in render_volumes.volumes_of(row)} for row in rows]
    keys = max(by_row, key=len)
    scale, unit = (1e6, "MB/s") if section.unit == "bytes_per_s" else (1.0, "IOPS")
    lines = []
    for key in keys:
        values = [found.get(key) for found in by_row]
        last = next((volume for volume in reversed(values) if volume), None)
        tail = (last.total["lat_ns"] or {}).get("p99") if last else None
        cells = ["-" if volume is None else f"{volume.value / scale:,.{1 if scale > 1 else 0}f}" for volume in values]
        lines.append([clean(key[0]), clean(key[1]), *cells, latency(tail)])
    heads = ["Host", "Volume", *(f"{row.volumes} driven" for row in rows), "p99, largest point"]
    return {"heads": heads, "rows": lines, "unit": unit}


def _ranking(section: Section) -> dict[str, Any]:
    row = section.maximum_row or next((row for row in reversed(section.rows) if row.point["per_volume"]), None)
    if row is None:
        return {}
    return {"volumes": row.volumes, **render_volumes.ranking(section, row)}
