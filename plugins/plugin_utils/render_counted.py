# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the kernel's NFS client counted, as lines of a table and as sentences.

Must not know: how the counters were read and summed up, or the format in which they are shown.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import clean

Json = dict[str, Any]

HEADS = (
    *("Workload", "Condition", "GETATTR", "ACCESS", "LOOKUP", "RTT", "Queue", "In flight", "Slot wait", "Slots in use"),
    *("Sent again", "Reconnects"),
)
LEGEND = (
    "GETATTR, ACCESS and LOOKUP for 1,000 I/Os of fio. RTT: from sending a READ or WRITE to its answer; queue: what it "
    "waited in the client before. In flight and slot wait: mean numbers of requests of one connection."
)


def counted_rows(results: Json) -> list[tuple[str, ...]]:
    """A line for every workload and condition with NFS counters (see HEADS), the condition empty in a run of none."""
    titles = _titles(results)
    return [
        (titles[summary["workload"]], clean(summary["condition"] or ""), *_counted(summary["counters"]))
        for summary in results["summaries"]
        if summary["counters"]
    ]


def explanations(results: Json) -> list[tuple[str, list[str]]]:
    """(`8 KiB random read, nconnect16`, sentences) wherever the counters explain a condition."""
    titles = _titles(results)
    if len(results["conditions"]) < 2:
        return []
    return [
        (
            f"{titles[summary['workload']]}, {clean(summary['condition'])}",
            [clean(text) for text in summary["explanation"]],
        )
        for summary in results["summaries"]
        if summary["condition"] and summary["explanation"]
    ]


def _titles(results: Json) -> dict[str, str]:
    """The pattern of every workload, in short."""
    return {point["workload"]["name"]: clean(point["workload"]["title"]).split(",")[0] for point in results["points"]}


def _counted(figures: Json) -> tuple[str, ...]:
    def number(value: float | None, form: str = ",.1f") -> str:
        return "-" if value is None else format(value, form)

    most, limit = figures["max_slots"], figures["slots_limit"]
    return (
        *(number(figures["per_1000_ios"].get(name)) for name in ("GETATTR", "ACCESS", "LOOKUP")),
        *("-" if figures[key] is None else f"{figures[key]:,.2f} ms" for key in ("rtt_ms", "queue_ms")),
        *(number(figures[key]) for key in ("in_flight", "slot_wait")),
        "-" if most is None else f"{most:,}" + (f" of {limit:,}" if limit else ""),
        *(f"{figures[key]:,}" for key in ("retransmissions", "reconnects")),
    )
