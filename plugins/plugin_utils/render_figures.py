# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The charts of one section as plain dicts in plotly's JSON schema: scaling, latency, CPU, IOPS over time.

Must not know: plotly itself, HTML, or the theme of the reader (the page exchanges PALETTE's colours for the dark ones).
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_latency
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import Row, Section, clean, figure, plural

Figure = dict[str, Any]
Trace = dict[str, Any]

# role: (light, dark); figures carry the light colour, each one distinct so that the page can exchange it
PALETTE = {
    "text": ("#1c2733", "#dde5ee"),
    "muted": ("#5b6875", "#93a1b0"),
    "grid": ("#e3e8ee", "#29323d"),
    "blue": ("#0b5fc0", "#62b0ff"),
    "orange": ("#bf5000", "#ff9f52"),
    "green": ("#0a7b5c", "#45cfa5"),
    "purple": ("#7b3fb5", "#c69bff"),
    "red": ("#c3212f", "#ff7f86"),
    "grey": ("#7a8794", "#8494a5"),
    "band": ("rgba(11,95,192,0.13)", "rgba(98,176,255,0.16)"),
    "band2": ("rgba(11,95,192,0.24)", "rgba(98,176,255,0.30)"),
    "panel": ("#ffffff", "#161d26"),
}
COLOUR = {role: light for role, (light, _dark) in PALETTE.items()}
LINES = (
    ("blue", "circle", "solid"),
    ("green", "square", "solid"),
    ("orange", "diamond", "dash"),
    ("purple", "triangle-up", "dot"),
    ("red", "x", "dashdot"),
    ("grey", "triangle-down", "longdash"),
    ("text", "star", "longdashdot"),
)


def label(text: object) -> str:
    """A name inside a chart: plotly reads a little HTML there, so none of it may come from a name."""
    return html.escape(clean(text), quote=False)


def make(traces: Sequence[Trace], xaxis: dict[str, Any], yaxis: dict[str, Any], **layout: Any) -> Figure:
    """A figure in the house style."""
    axis = {"gridcolor": COLOUR["grid"], "zeroline": False, "linecolor": COLOUR["grid"], "automargin": True}
    base = {
        "font": {
            "family": "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
            "size": 13,
            "color": COLOUR["text"],
        },
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 18, "t": 12, "b": 44},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": COLOUR["panel"], "bordercolor": COLOUR["grid"], "font": {"color": COLOUR["text"]}},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": COLOUR["grey"], "activecolor": COLOUR["blue"]},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "xaxis": {**axis, **_titled(xaxis), "showgrid": xaxis.get("showgrid", False)},
        "yaxis": {**axis, **_titled(yaxis)},
    }
    return {"data": list(traces), "layout": {**base, **layout}}


def _titled(axis: dict[str, Any]) -> dict[str, Any]:
    title = {"text": axis["title"], "font": {"color": COLOUR["muted"], "size": 12}, "standoff": 8}
    return {**axis, "title": title, "tickfont": {"color": COLOUR["muted"]}}


def line(name: str, x: Sequence[Any], y: Sequence[Any], style: int, **more: Any) -> Trace:
    """A line that differs from its neighbours by colour, marker and dash."""
    colour, symbol, dash = LINES[style % len(LINES)]
    trace: Trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": COLOUR[colour], "dash": dash, "width": 2.2},
        "marker": {"symbol": symbol, "size": 8, "color": COLOUR[colour]},
    }
    return {**trace, **more}


def load_axis(rows: Sequence[Row]) -> dict[str, Any]:
    """The x axis of everything over load: the rungs, and nothing between them, as ticks."""
    counts = sorted({row.volumes for row in rows})
    many = any(len(row.point["hosts_expected"]) > 1 for row in rows)
    title = "volumes driven together" + (" on each host" if many else "")
    return {"title": title, "tickmode": "array", "tickvals": counts, "ticktext": [str(count) for count in counts]}


def scaling(section: Section) -> Figure:
    """Measured against linear and against the sum of the caps; knee and maximum marked; what is not counted hollow."""
    scale, unit = (1e6, "MB/s") if section.unit == "bytes_per_s" else (1.0, "IOPS")
    rows = section.counted_rows
    x = [row.volumes for row in rows]
    traces = [
        *_cap_line(section, scale, unit),
        _plain("linear", x, [_scaled(row.linear, scale) for row in rows], "grey", "dash", unit),
        line(
            "measured",
            x,
            [_scaled(row.value, scale) for row in rows],
            0,
            line={"color": COLOUR["blue"], "width": 3},
            hovertemplate=f"%{{y:,.0f}} {unit}",
        ),
    ]
    dropped = [row for row in section.rows if not row.counted and row.value is not None]
    some = [row for row in dropped if row.point["status"] == "partial"]
    traces += _dropped("not all hosts", some, scale, unit, "orange", "diamond-open")
    traces += _dropped("not counted", [row for row in dropped if row not in some], scale, unit, "red", "x-open")
    top = max((value for trace in traces for value in trace["y"] if value is not None), default=0.0)
    notes = [_note(section, row, scale, top) for row in rows if row.marks]
    return make(
        traces, load_axis(section.rows), {"title": unit, "rangemode": "tozero", "tickformat": ",~s"}, annotations=notes
    )


def _dropped(name: str, rows: Sequence[Row], scale: float, unit: str, colour: str, symbol: str) -> list[Trace]:
    """Points that are shown and not counted, as marks."""
    if not rows:
        return []
    words = [f"{row.value and row.value / scale:,.0f} {unit}: {label(row.limit_words)}" for row in rows]
    marker = {"symbol": symbol, "size": 11, "color": COLOUR[colour], "line": {"width": 2}}
    values = [_scaled(row.value, scale) for row in rows]
    more = {"mode": "markers", "text": words, "hovertemplate": "%{text}", "marker": marker}
    return [line(name, [row.volumes for row in rows], values, 4, **more)]


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale


def _plain(name: str, x: Sequence[int], y: Sequence[Any], colour: str, dash: str, unit: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": COLOUR[colour], "dash": dash, "width": 1.8},
        "hovertemplate": f"%{{y:,.0f}} {unit}",
    }


def _note(section: Section, row: Row, scale: float, top: float) -> dict[str, Any]:
    """The words at the maximum, below the curve where there is room, and at the knee, above and left of it."""
    value = (row.value or 0) / scale
    below = "maximum" in row.marks and value > 0.45 * top
    first, last = row is section.rows[0], row is section.rows[-1]
    return {
        "x": row.volumes,
        "y": value,
        "text": f"<b>{' and '.join(row.marks)}</b><br>{figure(row.value, section.unit)}",
        "showarrow": True,
        "arrowcolor": COLOUR["muted"],
        "arrowwidth": 1.2,
        "ax": -8 if last else 0 if first or below else -40,
        "ay": 60 if below else -40,
        "xanchor": "right" if last else "center",
        "font": {"color": COLOUR["text"], "size": 12},
    }


def _cap_line(section: Section, scale: float, unit: str) -> list[Trace]:
    x, y = [], []
    for row in section.counted_rows:
        driven = [(host, name) for host, volumes in row.point["per_volume"].items() for name in volumes]
        caps = [section.caps.get(host, {}).get(name) for host, name in driven]
        if caps and None not in caps:
            x.append(row.volumes)
            y.append(sum(cap for cap in caps if cap) / scale)
    return [_plain("sum of the volumes' caps", x, y, "orange", "dot", unit)] if x else []


def latency(section: Section) -> Figure:
    """Mean and percentiles over load, on a logarithmic scale whose ticks are times."""
    rows = [row for row in section.drawn_rows if row.lat_ns("mean") is not None]
    x = [row.volumes for row in rows]
    names = (("p99.99", "p99_99", 4), ("p99.9", "p99_9", 3), ("p99", "p99", 2), ("mean", "mean", 0), ("p50", "p50", 1))
    traces = []
    for name, key, style in names:
        values = [row.lat_ns(key) or 0.0 for row in rows]
        traces.append(
            line(name, x, values, style, text=[format_latency(value) for value in values], hovertemplate="%{text}")
        )
    every = [value for trace in traces for value in trace["y"] if value > 0]
    ticks = _time_ticks(min(every, default=1e5), max(every, default=1e6))
    yaxis = {
        "title": "latency",
        "type": "log",
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [format_latency(tick).replace(".00", "").replace(".0", "") for tick in ticks],
        "range": [math.log10(ticks[0]), math.log10(ticks[-1])],
    }
    return make(traces, load_axis(section.rows), yaxis)


def _time_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten from just below to just above."""
    steps = [digit * 10.0**power for power in range(0, 13) for digit in (1, 2, 5)]
    below = max((step for step in steps if step <= low), default=1.0)
    above = min((step for step in steps if step >= high), default=steps[-1])
    chosen = [step for step in steps if below <= step <= above]
    return chosen if len(chosen) > 1 else [below, below * 10]


def cpu(section: Section) -> Figure:
    """CPU busy over load: all CPUs and the busiest one on one host, mean and range of several hosts."""
    rows = [row for row in section.drawn_rows if row.cpu("busy")]
    x = [row.volumes for row in rows]
    style = {"hovertemplate": "%{y:.1f} %"}
    mean = [100 * (row.cpu_busy or 0) for row in rows]
    if all(len(row.cpu("busy")) == 1 for row in rows):
        parts = {name: [100 * sum(row.cpu(name)) for row in rows] for name in ("busiest_cpu", "system", "user")}
        traces = [
            line("busiest CPU", x, parts["busiest_cpu"], 2, **style),
            line("all CPUs", x, mean, 0, **style),
            line("system", x, parts["system"], 3, **style),
            line("user", x, parts["user"], 1, **style),
        ]
    else:
        traces = [
            *band(
                "all hosts",
                x,
                [100 * min(row.cpu("busy")) for row in rows],
                [100 * max(row.cpu("busy")) for row in rows],
                "band",
            ),
            line("mean of the hosts", x, mean, 0, **style),
            line("busiest host", x, [100 * max(row.cpu("busy")) for row in rows], 2, **style),
        ]
    return make(traces, load_axis(section.rows), {"title": "% busy", "range": [0, 104], "ticksuffix": " %"})


def band(name: str, x: Sequence[Any], low: Sequence[float], high: Sequence[float], colour: str) -> list[Trace]:
    """The area between two lines."""
    edge = {"type": "scatter", "mode": "lines", "x": list(x), "line": {"width": 0}, "hoverinfo": "skip"}
    return [
        {**edge, "y": list(low), "showlegend": False},
        {**edge, "y": list(high), "name": name, "fill": "tonexty", "fillcolor": COLOUR[colour]},
    ]


def over_time(section: Section) -> Figure | None:
    """IOPS of every point over its own time; nothing where no host logged a series."""
    traces: list[Trace] = []
    for row in section.rows:
        series = row.point["series"]
        if not series or not series["iops"]:
            continue
        x = [round(number * series["interval_s"], 3) for number in range(len(series["iops"]))]
        name = plural(row.volumes, "volume") + ("" if row.counted else " (not counted)")
        style = len(traces)
        marker = {
            "symbol": LINES[style % len(LINES)][1],
            "size": 7,
            "maxdisplayed": 9,
            "color": COLOUR[LINES[style % len(LINES)][0]],
        }
        traces.append(line(name, x, series["iops"], style, marker=marker, hovertemplate="%{y:,.0f}"))
    if not traces:
        return None
    traces.reverse()
    return make(
        traces,
        {"title": "seconds since the point began"},
        {"title": "IOPS", "rangemode": "tozero", "tickformat": ",~s"},
    )
