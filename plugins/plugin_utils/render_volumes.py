# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How evenly the volumes of a section were served: bars for a few, quantile bands, a strip and a ranking for many.

Must not know: plotly itself, HTML, or how a volume came to its figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_figures import (
    COLOUR,
    Figure,
    band,
    label,
    line,
    load_axis,
    make,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import Row, Section, clean, figure, plural

# more marks than this in one chart say nothing any more and make the browser slow
MOST_BARS = 200
RANKED = 20
STRIP_BINS = 60
# a volume below this share of the median is shown in another colour
NOTABLE = 0.99


@dataclass(frozen=True)
class Volume:
    """One volume in one point."""

    host: str
    name: str
    value: float
    total: dict[str, Any]


def volumes_of(row: Row) -> list[Volume]:
    """The volumes that measured something, host by host, `thin2` before `thin10`."""
    found = [
        Volume(host, name, directions["total"][row.unit], directions["total"])
        for host, volumes in row.point["per_volume"].items()
        for name, directions in volumes.items()
        if directions["total"]
    ]
    return sorted(found, key=lambda volume: (_natural(volume.host), _natural(volume.name)))


def _natural(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def largest(section: Section) -> int:
    """How many volumes the largest point of the section drove on all hosts."""
    return max((sum(len(volumes) for volumes in row.point["per_volume"].values()) for row in section.rows), default=0)


def choices(section: Section) -> list[dict[str, Any]]:
    """One bar chart a rung, the headline point selected: for sections of few volumes."""
    rows = [row for row in section.rows if row.point["per_volume"]]
    first = section.maximum_row or (rows[-1] if rows else None)
    return [
        {
            "label": plural(row.volumes, "volume") + ("" if row.counted else " (not counted)"),
            "selected": row is first,
            "figure": bars(section, row),
        }
        for row in rows
    ]


def bars(section: Section, row: Row) -> Figure:
    """A bar a volume, the slowest in another colour and named, median and cap as lines."""
    scale, unit = _scale(section)
    volumes = volumes_of(row)
    several = len(row.point["per_volume"]) > 1
    names = [label(f"{volume.host} {volume.name}" if several else volume.name) for volume in volumes]
    values = [volume.value / scale for volume in volumes]
    places = list(range(len(values)))
    median = _quantile(sorted(values), 0.5)
    slowest = values.index(min(values)) if len(values) > 1 and median else -1
    marked = slowest >= 0 and values[slowest] < NOTABLE * median
    colours = [COLOUR["orange"] if marked and place == slowest else COLOUR["blue"] for place in places]
    trace = {
        "type": "bar",
        "x": places,
        "y": values,
        "name": "volume",
        "marker": {"color": colours},
        "text": names,
        "textposition": "none",
        "hovertemplate": f"%{{text}}: %{{y:,.0f}} {unit}<extra></extra>",
        "showlegend": False,
    }
    every = max(1, -(-len(names) // 40))
    axis = {
        "title": f"slowest: {names[slowest]}, {100 * values[slowest] / median:.1f} % of the median"
        if slowest >= 0
        else "volume",
        "tickmode": "array",
        "tickvals": places[::every],
        "ticktext": [name[:24] for name in names[::every]],
    }
    lines = [_level("median", len(values), median, "text", "dash", unit)] if len(values) > 1 else []
    caps = {section.caps.get(volume.host, {}).get(volume.name) for volume in volumes}
    cap = caps.pop() if len(caps) == 1 else None
    if cap:
        lines.append(_level("cap of a volume", len(values), cap / scale, "orange", "dot", unit))
    yaxis = {"title": f"{unit} a volume", "rangemode": "tozero", "tickformat": ",~s"}
    return make([trace, *lines], axis, yaxis, hovermode="closest", bargap=0.25)


def _level(name: str, count: int, value: float, colour: str, dash: str, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{name}: {value:,.0f} {unit}",
        "x": [-0.5, count - 0.5],
        "y": [value, value],
        "line": {"color": COLOUR[colour], "dash": dash, "width": 1.6},
        "hoverinfo": "skip",
    }


def spread(section: Section) -> Figure:
    """Quantiles of the volumes over load: what a bar each would say, in five lines."""
    scale, unit = _scale(section)
    rows = [row for row in section.drawn_rows if row.point["per_volume"]]
    x = [row.volumes for row in rows]
    ordered = [_sorted_values(row, scale) for row in rows]
    cut = {share: [_quantile(values, share) for values in ordered] for share in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)}
    style = {"hovertemplate": f"%{{y:,.0f}} {unit}"}
    traces = [
        *band("middle 90 %", x, cut[0.05], cut[0.95], "band"),
        *band("middle half", x, cut[0.25], cut[0.75], "band2"),
        line("fastest", x, cut[1.0], 1, **style),
        line("median", x, cut[0.5], 0, **style),
        line("slowest", x, cut[0.0], 2, **style),
    ]
    return make(traces, load_axis(rows), {"title": f"{unit} a volume", "tickformat": ",~s"})


def strip(section: Section) -> Figure:
    """Where the volumes of each rung stand around their median: one strip a rung, darkest where most of them are."""
    rows = [row for row in section.drawn_rows if row.point["per_volume"]]
    relative = []
    for row in rows:
        values = _sorted_values(row, 1.0)
        median = _quantile(values, 0.5) or 1.0
        relative.append([value / median for value in values])
    low = min((values[0] for values in relative), default=0.9)
    high = max((values[-1] for values in relative), default=1.1)
    width = max(high - low, 1e-6) / STRIP_BINS
    shares, depths = [], []
    for values in relative:
        counts = [0] * STRIP_BINS
        for value in values:
            counts[min(int((value - low) / width), STRIP_BINS - 1)] += 1
        shares.append([100 * count / len(values) for count in counts])
        depths.append([count / max(counts) if count else None for count in counts])
    trace = {
        "type": "heatmap",
        "z": depths,
        "customdata": shares,
        "x": [100 * (low + (place + 0.5) * width) for place in range(STRIP_BINS)],
        "y": [str(row.volumes) for row in rows],
        "colorscale": [[0, COLOUR["grid"]], [1, COLOUR["blue"]]],
        "zmin": 0,
        "zmax": 1,
        "ygap": 4,
        "showscale": False,
        "hovertemplate": "%{customdata:.1f} % of the volumes at %{x:.1f} % of the median<extra>%{y} volumes</extra>",
    }
    return make(
        [trace],
        {"title": "% of the rung's median volume"},
        {"title": "volumes driven on each host", "type": "category"},
        hovermode="closest",
    )


def ranking(section: Section, row: Row) -> dict[str, list[dict[str, str]]]:
    """The slowest and the fastest volumes of one point, as text."""
    ordered = sorted(volumes_of(row), key=lambda volume: volume.value)
    median = _quantile([volume.value for volume in ordered], 0.5)
    return {
        "slowest": [_ranked(section, volume, median) for volume in ordered[:RANKED]],
        "fastest": [_ranked(section, volume, median) for volume in ordered[::-1][:RANKED]],
    }


def _ranked(section: Section, volume: Volume, median: float) -> dict[str, str]:
    share = f"{100 * volume.value / median:.1f} %" if median else "-"
    return {
        "host": clean(volume.host),
        "volume": clean(volume.name),
        "value": figure(volume.value, section.unit),
        "share": share,
    }


def _scale(section: Section) -> tuple[float, str]:
    return (1e6, "MB/s") if section.unit == "bytes_per_s" else (1.0, "IOPS")


def _sorted_values(row: Row, scale: float) -> list[float]:
    unit = row.unit
    return sorted(
        directions["total"][unit] / scale
        for volumes in row.point["per_volume"].values()
        for directions in volumes.values()
        if directions["total"]
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between the two nearest, of sorted values."""
    if not ordered:
        return 0.0
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
