# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Conditions and mixes as plain lines for the terminal and as tables in Markdown.

Must not know: files, Ansible's display, or how a figure was found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansible_collections.hostmax.storage.plugins.plugin_utils import render_comparison, render_mixes
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison import (
    SIGNS,
    Case,
    Comparison,
    change,
    value_text,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_mixes import Mixes
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import clean, plural

HEADS = ("condition", "IOPS", "MiB/s", "lat mean", "vs baseline", "95 % interval", "shown")
MIX_HEADS = ("read/write", "IOPS", "MiB/s", "read", "write", "lat mean", "p99", "CPU", "held back by")
_NARROW = 18


def conditions_in_full(comparison: Comparison) -> list[str]:
    """A table a workload, a line a condition; the columns of all tables stand below each other."""
    tables = [[_for_terminal(row) for row in case.rows()] for case in comparison.cases]
    widths = _widths([HEADS, *(row for table in tables for row in table)])
    lines = [_line(HEADS, widths, left=(0, 6))]
    for case, table in zip(comparison.cases, tables, strict=True):
        lines.append(case.title)
        lines += [_line(row, widths, left=(0, 6)) for row in table]
    return [*lines, *_notes(comparison)]


def _for_terminal(row: tuple[str, ...]) -> tuple[str, ...]:
    """Without dashes for what a baseline does not have, and the blocks only where some are missing."""
    *cells, word, blocks, _limit = ("" if cell == "-" else cell for cell in row)
    return (*cells, f"{word} ({blocks.replace(' of ', '/')})" if " of " in blocks else word)


def conditions_in_short(comparison: Comparison) -> list[str]:
    """One table of all workloads: the headline figure and what is shown against the baseline."""
    cases = comparison.cases
    heads = ("condition", *(_cut(clean(case.workload["name"]), _NARROW) for case in cases))
    rows = [
        (clean(condition["name"]), *(_short(case, condition["name"]) for case in cases))
        for condition in comparison.conditions
    ]
    widths = _widths([heads, *rows])
    lines = [_line(row, widths, left=(0,)) for row in (heads, *rows)]
    key = "  ▲ faster, ▼ slower than the baseline by the 95 % interval; = no difference shown; ~ one block"
    return [*lines, key, *_notes(comparison)]


def _short(case: Case, name: str) -> str:
    summary = next((each for each in case.summaries if each["condition"] == name), None)
    if summary is None or summary["mean"] is None:
        return "not measured"
    figure = value_text(summary["mean"], case.unit).removesuffix(" IOPS")
    if summary["ratio_to_baseline"] is None:
        return figure
    sign = SIGNS.get(summary["status"], "~")
    return f"{figure} {sign}{change(summary['ratio_to_baseline'])}"


def _notes(comparison: Comparison) -> list[str]:
    if comparison.blocks == 1:
        return ["  One block, no interval: hostmax_blocks of 3 or more shows what is no chance."]
    return [f"  {plural(comparison.blocks, 'block')}; ratios paired by block."]


def mixes_in_full(groups: Sequence[Mixes]) -> list[str]:
    """A table a group, a line a mix."""
    tables = [[_bare(row) for row in group.cells()] for group in groups]
    widths = _widths([MIX_HEADS, *(row for table in tables for row in table)])
    lines = []
    for group, table in zip(groups, tables, strict=True):
        lines += [group.title, _line(MIX_HEADS, widths, left=(8,))]
        lines += [_line(row, widths, left=(8,)) for row in table]
    return lines


def _bare(row: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(cell.removesuffix(" IOPS").removesuffix(" MiB/s") for cell in row)


def mixes_in_short(groups: Sequence[Mixes]) -> list[str]:
    """A line a group."""
    return [f"{group.title}: {group.headline}" for group in groups]


def markdown(
    comparison: Comparison | None,
    groups: Sequence[Mixes],
    table: Callable[[tuple[str, ...], list[tuple[str, ...]], tuple[int, ...]], str],
    escaped: Callable[[object], str],
) -> list[str]:
    """Paragraphs of a Markdown page; `table` and `escaped` are the page's own."""
    parts = []
    for case in comparison.cases if comparison else ():
        rows = [tuple(escaped(cell) for cell in row) for row in case.rows()]
        parts.append(f"## {escaped(case.title)}\n\n" + table(render_comparison.HEADS, rows, (0, 6, 8)))
    if comparison:
        parts.append(escaped(" ".join(line.strip() for line in _notes(comparison))))
    for group in groups:
        rows = [tuple(escaped(cell) for cell in row) for row in group.cells()]
        title = f"## {escaped(group.title)}\n\n{escaped(group.headline)}.\n\n"
        parts.append(title + table(render_mixes.HEADS, rows, (8,)))
    return parts


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]


def _line(row: Sequence[str], widths: Sequence[int], left: tuple[int, ...]) -> str:
    cells = [
        cell.ljust(width) if place in left else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  " + "  ".join(cells).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
