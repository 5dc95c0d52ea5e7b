# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Conditions and mixes as the page shows them: charts and tables, everything already text.

Must not know: HTML; what is returned is escaped by the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count
from ansible_collections.hostmax.storage.plugins.plugin_utils import (
    render_applied,
    render_comparison,
    render_comparison_figures,
    render_counted,
    render_mixes,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison import Case, Comparison, mib_per_s
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_mixes import Mixes
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    Row,
    Section,
    clean,
    latency,
    percent,
    plural,
)

Json = dict[str, Any]

POINT_HEADS = ("Point", "Condition", "Block", "IOPS", "MiB/s", "Mean", "p99", "CPU busy", "Held back by")


def chart(name: str, title: str, caption: str, figure: Json) -> Json:
    """One wide chart, as the template and the page's script take it."""
    return {"id": name, "title": title, "caption": caption, "wide": True, "drawing": {"figure": figure}}


def comparison_view(comparison: Comparison, results: Json, sections: Sequence[Section]) -> Json:
    """Everything the template needs of a run's conditions."""
    groups = comparison.groups()
    blocks = plural(comparison.blocks, "block")
    bars = "bars are means, lines 95 % intervals of them" if comparison.blocks > 1 else "no interval with one block"
    return {
        "charts": [
            chart(
                f"conditions{number}",
                _group_title(cases, several_counts=len({case.volumes for case in comparison.cases}) > 1),
                f"{blocks}; {bars}.",
                render_comparison_figures.bars(comparison, cases),
            )
            for number, cases in enumerate(groups)
            if any(summary["mean"] is not None for case in cases for summary in case.summaries)
        ],
        "heads": render_comparison.HEADS,
        "cases": [_case(case) for case in comparison.cases],
        "note": _note(comparison),
        "left_out": render_comparison.left_out(results),
        "point_heads": POINT_HEADS,
        "points": [{"title": clean(section.title), "rows": _points(section)} for section in sections],
    }


def _note(comparison: Comparison) -> str:
    if comparison.blocks > 1:
        return render_comparison.NOTE
    return (
        "One block was measured, so there is no interval: what differs may be chance. Set hostmax_blocks to 3 or more."
    )


def _group_title(cases: Sequence[Case], several_counts: bool) -> str:
    names = " and ".join(dict.fromkeys(case.short_title for case in cases))
    return names + (f", {plural(cases[0].volumes, 'volume')}" if several_counts else "")


def _case(case: Case) -> Json:
    best = case.best
    return {
        "title": case.title,
        "volumes": plural(case.volumes, "volume"),
        "rows": [
            {"cells": cells, "status": _status(summary), "best": summary is best}
            for cells, summary in zip(case.rows(), case.summaries, strict=True)
        ],
    }


def _status(summary: Mapping[str, Any]) -> str:
    """The style of a row's last word."""
    if summary["mean"] is None:
        return "fail"
    return {"faster": "pass", "slower": "fail"}.get(summary["status"] or "", "none")


def _keys(results: Json) -> list[tuple[str, ...]]:
    """Every tuned key once, with what the hosts had before and after; unlike hosts on lines of their own."""
    found: dict[tuple[str, ...], list[str]] = {}
    for condition in results["conditions"]:
        for host, applied in condition["applied"].items():
            for key in applied["tuning"]:
                names = ("key", "wanted", "after", "status", "note")
                line = tuple(clean(key[name]) if key[name] is not None else "-" for name in names)
                hosts = found.setdefault(line, [])
                if clean(host) not in hosts:
                    hosts.append(clean(host))
    everyone = len(results["hosts"])
    return [
        (*line, f"all {everyone}" if len(hosts) == everyone else ", ".join(hosts[:4])) for line, hosts in found.items()
    ]


def _points(section: Section) -> list[Json]:
    rows = sorted(section.rows, key=lambda row: (row.point["block"], row.volumes))
    return [{"cells": _point(row), "counted": row.counted} for row in rows]


def _point(row: Row) -> tuple[str, ...]:
    return (
        clean(row.point["id"]),
        clean(row.point["condition"]),
        str(row.point["block"]),
        "-" if row.iops is None else format_count(row.iops),
        mib_per_s(row.bytes_per_s),
        *(latency(row.lat_ns(name)) for name in ("mean", "p99")),
        percent(row.cpu_busy),
        row.limit_words,
    )


def applied_view(results: Json) -> Json | None:
    """What each condition asked for and what was in effect; None in a run without conditions."""
    if not results["conditions"]:
        return None
    several = len(results["conditions"]) > 1
    return {
        "title": "What each condition changed" if several else "How the volumes were mounted",
        "heads": render_applied.HEADS,
        "rows": render_applied.applied_rows(results),
        "tuned": _keys(results),
    }


def counted_view(results: Json) -> Json | None:
    """What the kernel counted, and what that explains; None where there are no counters of NFS."""
    rows = render_counted.counted_rows(results)
    if not rows:
        return None
    if len(results["conditions"]) > 1:
        return _counted(render_counted.HEADS, rows, results)
    # where none are compared their column says nothing
    return _counted((render_counted.HEADS[0], *render_counted.HEADS[2:]), [(row[0], *row[2:]) for row in rows], results)


def _counted(heads: Sequence[str], rows: Sequence[tuple[str, ...]], results: Json) -> Json:
    return {
        "heads": heads,
        "rows": rows,
        "legend": render_counted.LEGEND,
        "text_columns": 2 if len(results["conditions"]) > 1 else 1,
        "explanations": render_counted.explanations(results),
    }


def mixes_views(groups: Sequence[Mixes]) -> list[Json]:
    """Everything the template needs of the groups of mixes."""
    return [
        {
            "id": f"mixes{number}",
            "title": group.title,
            "headline": group.headline,
            "chart": chart(
                f"mixes{number}-chart",
                "From reads alone to writes alone",
                "Total of all hosts, and reads and writes apart"
                + (f"; means of {group.blocks} blocks with 95 % intervals." if group.blocks > 1 else "."),
                render_mixes.chart(group),
            ),
            "heads": render_mixes.HEADS,
            "rows": [
                {"cells": cells, "counted": row.counted} for cells, row in zip(group.cells(), group.rows, strict=True)
            ],
        }
        for number, group in enumerate(groups)
    ]
