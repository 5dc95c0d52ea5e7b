# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Charts of conditions side by side: bars with 95 % intervals, a group of bars for each condition.

Must not know: plotly itself, HTML, or how a figure was found.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison import MIB, Case, Comparison, change
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_figures import COLOUR, Figure, label, make

# bars differ by colour and by pattern
BARS = (("blue", ""), ("orange", "/"), ("green", "x"), ("purple", "\\"), ("red", "."), ("grey", "-"))


def bars(comparison: Comparison, cases: Sequence[Case]) -> Figure:
    """The headline figure of each condition, a bar for each workload of the group; as the study's graphs."""
    unit = cases[0].unit
    scale, name = (float(MIB), "MiB/s") if unit == "bytes_per_s" else (1.0, "IOPS")
    titles = {condition["name"]: _wrapped(condition["title"]) for condition in comparison.conditions}
    traces = [_trace(case, titles, place, scale, name) for place, case in enumerate(cases)]
    xaxis = {"title": "", "type": "category", "tickfont": {"color": COLOUR["text"], "size": 12}}
    # the bars' texts stand above the intervals
    top = max(
        (summary["ci95_high"] or summary["mean"] or 0.0 for case in cases for summary in case.summaries), default=1.0
    )
    yaxis = {"title": name, "range": [0, 1.12 * top / scale], "tickformat": ",~s"}
    return make(traces, xaxis, yaxis, barmode="group", bargap=0.28, bargroupgap=0.06, hovermode="closest")


def _wrapped(title: str) -> str:
    """A condition's title on lines that fit under its bars."""
    return "<br>".join(label(line) for line in textwrap.wrap(title, 16)) or "-"


def _trace(case: Case, titles: Mapping[str, str], place: int, scale: float, name: str) -> dict[str, Any]:
    colour, pattern = BARS[place % len(BARS)]
    means = [summary["mean"] for summary in case.summaries]
    values = [None if mean is None else mean / scale for mean in means]
    above = [_arm(summary["ci95_high"], summary["mean"], scale) for summary in case.summaries]
    below = [_arm(summary["mean"], summary["ci95_low"], scale) for summary in case.summaries]
    return {
        "type": "bar",
        "name": label(case.short_title),
        "x": [titles[summary["condition"]] for summary in case.summaries],
        "y": values,
        "marker": {
            "color": COLOUR[colour],
            "pattern": {
                "shape": pattern,
                "fillmode": "overlay",
                "fgcolor": COLOUR["panel"],
                "size": 8,
                "solidity": 0.2,
            },
        },
        "error_y": {
            "type": "data",
            "symmetric": False,
            "visible": any(summary["ci95_high"] is not None for summary in case.summaries),
            "array": above,
            "arrayminus": below,
            "color": COLOUR["text"],
            "thickness": 1.3,
            "width": 4,
        },
        "text": [_text(summary) for summary in case.summaries],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "textfont": {"color": COLOUR["panel"], "size": 11},
        "customdata": [_hover(summary) for summary in case.summaries],
        "hovertemplate": f"%{{x}}<br>%{{y:,.0f}} {name}<br>%{{customdata}}<extra>%{{fullData.name}}</extra>",
    }


def _arm(high: float | None, low: float | None, scale: float) -> float:
    return 0.0 if high is None or low is None else max(0.0, high - low) / scale


def _text(summary: dict[str, Any]) -> str:
    """Times the baseline, in the foot of a bar; nothing where it is not shown to be unlike."""
    told = summary["status"] in ("faster", "slower")
    return f"{summary['ratio_to_baseline']:.2f} ×" if told else ""


def _hover(summary: dict[str, Any]) -> str:
    if summary["ratio_to_baseline"] is None:
        return label(summary["status"] or "")
    return label(f"{change(summary['ratio_to_baseline'])} against the baseline: {summary['status']}")
