# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the hosts of a run measured together: one sentence, a line a point, and each host's first and last I/O.

Must not know: pages, terminals, or what was measured in the common window.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import clean, percent

POINT_HEADS = [
    "Point",
    "Hosts",
    "Start skew",
    "Together",
    "Common window",
    "Clocks known to",
    "First to begin",
    "Last to begin",
]


def milliseconds(seconds: float | None) -> str:
    """`2.1 ms`, `30,014.9 ms`; `-` where it is not known."""
    return "-" if seconds is None else f"{1e3 * seconds:,.1f} ms"


def together(results: dict[str, Any]) -> str | None:
    """How well the hosts began and ran together, over all points; None for a run on one host."""
    windows = [point["window"] for point in results["points"] if point["window"] and len(point["timing"]) > 1]
    if not windows:
        return None
    skew_s = max(window["skew_s"] for window in windows)
    overlap = min(window["overlap"] for window in windows)
    doubt_s = max(window["uncertainty_s"] for window in windows)
    lost = any(len(point["hosts_measured"]) < len(point["hosts_expected"]) for point in results["points"])
    who = "The hosts that measured" if lost else "All hosts"
    return (
        f"{who} began within {milliseconds(skew_s)} of each other and were doing I/O together for at least "
        f"{percent(overlap)} of each point; their clocks are known to {milliseconds(doubt_s)}."
    )


def point_rows(results: dict[str, Any]) -> list[list[str]]:
    """A line for every point that several hosts measured (see POINT_HEADS)."""
    return [_point(point) for point in results["points"] if point["window"] and len(point["timing"]) > 1]


def _point(point: dict[str, Any]) -> list[str]:
    window, timing = point["window"], point["timing"]
    by_start = sorted(timing, key=lambda host: timing[host]["first_io_s"])
    length_s = window["end_s"] - window["start_s"]
    return [
        clean(point["id"]) + (", repeated" if point["repeat"] else ""),
        f"{len(point['hosts_measured']):,} of {len(point['hosts_expected']):,}",
        milliseconds(window["skew_s"]),
        percent(window["overlap"]),
        f"{length_s:,.2f} s" if length_s > 0 else "none",
        milliseconds(window["uncertainty_s"]),
        clean(by_start[0]),
        clean(by_start[-1]),
    ]


def clock(host: dict[str, Any]) -> str:
    """A host's clock against the controller's: offset, how surely, and how far it drifted during the run."""
    offset_s, doubt_s, drift_s = host["clock_offset_s"], host["clock_uncertainty_s"], host["clock_drift_s"]
    if offset_s is None:
        return "-"
    text = f"{1e3 * offset_s:+,.2f} ms"
    if doubt_s is not None:
        text += f" ± {1e3 * doubt_s:,.2f}"
    return text if drift_s is None else f"{text}, drift {1e3 * drift_s:+,.2f}"
