# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What people read out of a run that compares conditions: its headline and its tables, everything already text.

Must not know: how a ratio or an interval is found, or the format in which it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import LIMIT_SHORT, clean, latency, plural

Json = dict[str, Any]

MIB = 2**20
HEADS = (
    "Condition",
    "IOPS",
    "MiB/s",
    "Mean latency",
    "Against baseline",
    "95 % interval",
    "Shown",
    "Blocks",
    "Held back by",
)
SIGNS = {"faster": "▲", "slower": "▼", "no difference shown": "=", "baseline": "·"}
NOTE = (
    "Each interval is 95 % by itself, of ratios paired by block (Student t on their logarithms); of twenty comparisons "
    "of equal conditions about one would be called different."
)


def mib_per_s(bytes_per_s: float | None) -> str:
    """Units of 1,048,576 bytes a second for a column headed MiB/s, as NFS figures are published."""
    return "-" if bytes_per_s is None else f"{bytes_per_s / MIB:,.{1 if bytes_per_s < 100 * MIB else 0}f}"


def value_text(value: float | None, unit: str) -> str:
    """A headline figure of a comparison: `404,064 IOPS` or `4,500 MiB/s`."""
    if value is None:
        return "-"
    return f"{mib_per_s(value)} MiB/s" if unit == "bytes_per_s" else f"{format_count(value)} IOPS"


def change(ratio: float | None) -> str:
    """`+18.7 %` of a ratio of 1.187."""
    return "-" if ratio is None else f"{100 * (ratio - 1):+,.1f} %"


def interval(low: float | None, high: float | None) -> str:
    """`[+16.1, +21.4]`, in percent as `change`; empty where there is none."""
    return "" if low is None or high is None else f"[{100 * (low - 1):+,.1f}, {100 * (high - 1):+,.1f}]"


@dataclass(frozen=True)
class Case:
    """One workload at one number of volumes: its summaries in the order of the conditions."""

    workload: Json
    volumes: int
    summaries: list[Json]

    @property
    def title(self) -> str:
        return clean(self.workload["title"])

    @property
    def short_title(self) -> str:
        return self.title.split(",")[0]

    @property
    def unit(self) -> str:
        return str(self.summaries[0]["unit"])

    @property
    def best(self) -> Json | None:
        """The summary of the highest mean."""
        measured = [summary for summary in self.summaries if summary["mean"] is not None]
        return max(measured, key=lambda summary: float(summary["mean"]), default=None)

    def rows(self) -> list[tuple[str, ...]]:
        """A line a condition (see HEADS)."""
        return [_row(summary) for summary in self.summaries]


def _row(summary: Json) -> tuple[str, ...]:
    none = summary["mean"] is None
    return (
        clean(summary["condition"]),
        "-" if none else format_count(summary["iops"]),
        mib_per_s(summary["bytes_per_s"]),
        latency(summary["lat_ns"]),
        change(summary["ratio_to_baseline"]),
        interval(summary["ratio_ci95_low"], summary["ratio_ci95_high"]),
        "not measured" if none else shown(summary["status"]),
        str(summary["n"]) if summary["n"] == summary["blocks"] else f"{summary['n']} of {summary['blocks']}",
        LIMIT_SHORT.get(summary["limit"]["kind"], clean(summary["limit"]["kind"])) if summary["limit"] else "-",
    )


def shown(status: str | None) -> str:
    """A status with its sign: `▲ faster`."""
    if not status:
        return "-"
    return f"{SIGNS[status]} {status}" if status in SIGNS else status


@dataclass(frozen=True)
class Comparison:
    """A whole run of conditions."""

    conditions: list[Json]
    cases: list[Case]
    hosts: int
    blocks: int

    @property
    def baseline(self) -> str:
        return clean(self.conditions[0]["name"])

    @property
    def lead(self) -> tuple[Case, Json] | None:
        """The case and the condition of the headline: of the first workload, the best one that is shown faster."""
        for case in self.cases:
            faster = [summary for summary in case.summaries if summary["status"] == "faster"]
            if faster:
                return case, max(faster, key=lambda summary: float(summary["mean"]))
        return None

    @property
    def label(self) -> str:
        return "Best condition" if self.lead else "Conditions compared"

    @property
    def key_figure(self) -> str:
        """`nconnect16: 404,064 IOPS`."""
        if self.lead is None:
            return "none shown to be faster" if self.blocks > 1 else "nothing shown by one block"
        case, best = self.lead
        return f"{clean(best['condition'])}: {value_text(best['mean'], case.unit)}"

    @property
    def circumstances(self) -> str:
        """`at 8 KiB random read on 2 hosts, 3.40 times baseline (3.31 to 3.49, 3 blocks)`."""
        around = f"of {plural(len(self.conditions), 'condition')} on {plural(self.hosts, 'host')}"
        if self.lead is None:
            return f"{around}, {plural(self.blocks, 'block')}, against {self.baseline}"
        case, best = self.lead
        low, high = best["ratio_ci95_low"], best["ratio_ci95_high"]
        return (
            f"at {case.short_title} on {plural(self.hosts, 'host')}, {best['ratio_to_baseline']:.2f} times "
            f"{self.baseline} ({low:.2f} to {high:.2f} by {plural(best['ratio_pairs'], 'block')})"
        )

    @property
    def headline(self) -> str:
        return f"{self.label}: {self.key_figure} {self.circumstances}"

    def groups(self) -> list[list[Case]]:
        """Cases that belong in one chart: of one block size, pattern and number of volumes."""
        found: dict[tuple[Any, ...], list[Case]] = {}
        for case in self.cases:
            random = case.workload["rw"].startswith("rand")
            found.setdefault((random, case.workload["block_size_bytes"], case.volumes), []).append(case)
        return list(found.values())

    def cards(self) -> list[dict[str, str]]:
        """The best condition of each workload."""
        return [_card(case) for case in self.cases[:6]]


def _card(case: Case) -> dict[str, str]:
    best = case.best
    if best is None:
        return {"label": case.short_title, "value": "-", "note": "no point counted"}
    against = change(best["ratio_to_baseline"])
    value = value_text(best["mean"], case.unit)
    bounds = interval(best["ratio_ci95_low"], best["ratio_ci95_high"]) or "no interval"
    note = "the baseline itself" if best["status"] == "baseline" else f"{against} {bounds}: {best['status']}"
    return {"label": case.short_title, "value": value, "note": f"{clean(best['condition'])}, {note}"}


def read_comparison(results: Json) -> Comparison | None:
    """The comparison of a run's conditions; None where there are not two of them."""
    if len(results["conditions"]) < 2:
        return None
    workloads = {point["workload"]["name"]: point["workload"] for point in results["points"]}
    cases: dict[tuple[str, int], list[Json]] = {}
    for summary in results["summaries"]:
        cases.setdefault((summary["workload"], summary["volumes"]), []).append(summary)
    blocks = len({point["block"] for point in results["points"]})
    found = [Case(workloads[name], volumes, some) for (name, volumes), some in cases.items()]
    return Comparison(results["conditions"], found, len(results["hosts"]), blocks)


def left_out(results: Json) -> list[str]:
    """The sentences about blocks that are in no pair."""
    marks = (" left out, one of the two points", ": not compared, no block has")
    return [clean(warning) for warning in results["warnings"] if any(mark in warning for mark in marks)]
