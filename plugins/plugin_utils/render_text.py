# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The terminal summary: one screen of plain text, 100 columns and 36 rows, so that the paths still fit.

Must not know: files, Ansible's display, or colours.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count
from ansible_collections.hostmax.storage.plugins.plugin_utils import render_study_text, render_timing
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison import Comparison, read_comparison
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_mixes import Limits, read_limits, read_mixes
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    SIGNS,
    STATUS_WORDS,
    Row,
    Section,
    against,
    clean,
    figure,
    latency,
    megabytes,
    percent,
    read_sections,
    source_of,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_trouble import (
    failed_gates,
    failed_hosts,
    run_reasons,
)

COLUMNS = 100
ROWS = 36
# a table of conditions is what its run was made for, and it is longer than a screen of other runs
STUDY_ROWS = 60
_ASCII = str.maketrans(
    {"✓": "+", "✗": "x", "←": "<-", "…": "...", "·": "*", "µ": "u", "×": "x", "▲": "^", "▼": "v", "–": "-", "—": "-"}
)
_URGENCY = ("fail", "invalid", "inconclusive", "pass")


@dataclass(frozen=True)
class _Detail:
    """How much is shown: rungs of each ladder (0: one line a workload) and entries of each list."""

    rungs: int
    items: int


_STUDY_DETAILS = (_Detail(99, 5), _Detail(99, 2), _Detail(99, 1), _Detail(0, 5), _Detail(0, 2), _Detail(0, 1))
_DETAILS = (_Detail(99, 10), _Detail(99, 5), _Detail(4, 5), _Detail(0, 5), _Detail(0, 3), _Detail(0, 2), _Detail(0, 1))


def summary(results: dict[str, Any], ascii_only: bool = False) -> str:
    """The summary, as detailed as one screen allows."""
    lines: list[str] = []
    sections = read_sections(results)
    mixes = read_mixes(results, sections)
    study = read_comparison(results) or read_limits(mixes)
    most = STUDY_ROWS if study else ROWS
    for detail in _STUDY_DETAILS if study else _DETAILS:
        lines = _lines(results, sections, study, detail)
        if len(lines) <= most:
            break
    if len(lines) > most:
        lines = [*lines[: most - 1], "… more in the report"]
    text = "\n".join(line.rstrip()[:COLUMNS] for line in lines)
    if ascii_only:
        text = "\n".join(line[:COLUMNS] for line in text.translate(_ASCII).split("\n"))
        text = text.encode("ascii", "replace").decode("ascii")
    return text + "\n"


def _lines(
    results: dict[str, Any], sections: list[Section], study: Comparison | Limits | None, detail: _Detail
) -> list[str]:
    blocks = [_headlines(results, sections, study, detail)]
    if isinstance(study, Comparison):
        full = render_study_text.conditions_in_full if detail.rungs else render_study_text.conditions_in_short
        blocks.append(full(study))
    elif study:
        mixes = render_study_text.mixes_in_full if detail.rungs else render_study_text.mixes_in_short
        blocks.append(mixes(study.groups))
    shown = _outside(sections, study)
    if detail.rungs:
        blocks += [_ladder(section, detail.rungs) for section in shown]
    else:
        blocks.append(_overview(shown))
    times = render_timing.together(results)
    blocks.append(_wrap(times, "", "  ") if times else [])
    blocks.append(_judged(results, detail.items))
    blocks.append(_trouble(results, detail.items))
    lines: list[str] = []
    for block in blocks:
        if block:
            lines += ["", *block] if lines else block
    return lines


def _outside(sections: list[Section], study: Comparison | Limits | None) -> list[Section]:
    """The workloads that no table of a study shows."""
    if isinstance(study, Comparison):
        return []
    inside = {section.name for group in study.groups for section in group.sections} if study else set()
    return [section for section in sections if section.name not in inside]


def _headlines(
    results: dict[str, Any], sections: list[Section], study: Comparison | Limits | None, detail: _Detail
) -> list[str]:
    status = results["run"]["status"]
    mark = {"partial": "PARTIAL RUN. ", "invalid": "INVALID RUN, not to be quoted. "}.get(status, "")
    shown = sections if len(sections) <= 4 or detail.rungs else sections[:1]
    lines: list[str] = []
    for told in [study] if study else shown:
        lines += _headline(mark + told.headline)
    if not sections:
        lines.append(f"{mark}No point was measured.")
    reasons = run_reasons(results)
    for reason in reasons[: detail.items]:
        lines += _wrap(reason, "  ! ", "    ")
    return lines + _more(len(reasons) - detail.items, "reason")


def _headline(text: str) -> list[str]:
    """On one line, or broken where the sentence breaks."""
    if len(text) <= COLUMNS:
        return [text]
    head, mark, tail = text.rpartition("; ")
    if mark and len(head) < COLUMNS:
        return [head + ";", *_wrap(tail, "  ", "  ")]
    return _wrap(text, "", "  ")


_HEADS = ("volumes", "IOPS", "of linear", "MB/s", "lat mean", "p99", "p99.9", "CPU")


def _ladder(section: Section, rungs: int) -> list[str]:
    rows, title = section.rows, clean(section.title)
    if len(rows) > rungs:
        keep = {id(row) for row in (rows[0], rows[-1])} | {id(row) for row in rows if row.marks or not row.counted}
        rows = [row for row in rows if id(row) in keep]
        title += f" ({len(rows)} of {len(section.rows)} points)"
    notes = sorted({row.latency_words for row in rows if row.latency_words})
    return [title, *_table(rows), *(f"  * {note}: the hosts were not together all the time" for note in notes)]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        str(row.volumes),
        "-" if row.iops is None else format_count(row.iops),
        percent(row.efficiency) if row.counted else "-",
        "-" if row.bytes_per_s is None else megabytes(row.bytes_per_s),
        *(latency(row.lat_ns(name)) + ("*" if row.latency_words else "") for name in ("mean", "p99", "p99_9")),
        percent(row.cpu_busy, 0),
    )


def _after(row: Row, width: int) -> str:
    """What held the point back and its mark, shortened by meaning, not in the middle of a word."""
    text = row.limit_words
    if row.point["status"] == "partial":
        return text if len(text) <= width else f"only {row.hosts_words}"
    if row.missing_hosts:
        text += f" ({len(row.point['hosts_measured'])}/{len(row.point['hosts_expected'])} hosts)"
    if not row.counted:
        return text if len(text) <= width else "not counted, see gates"
    if not row.marks:
        return text
    full = f"{text}  ← {' and '.join(row.marks)}"
    return full if len(full) <= width else f"{text} ← {'+'.join(mark[:4].replace('maxi', 'max') for mark in row.marks)}"


def _table(rows: list[Row]) -> list[str]:
    cells = [_HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADS))]
    left = [(2 * " ").join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    room = COLUMNS - len(left[0]) - 4
    tails = ["held back by", *(_after(row, room) for row in rows)]
    return [_cut(f"  {line}  {tail}", COLUMNS) for line, tail in zip(left, tails, strict=True)]


def _overview(sections: list[Section]) -> list[str]:
    """One line a workload, by its name, when the ladders do not fit on the screen."""
    if not sections:
        return []
    cells = [("Workload", "headline", "volumes", "lat mean / p99"), *(_overview_cells(section) for section in sections)]
    rows = [section.headline_row for section in sections]
    tails = ["held back by", *(row.limit_words if row else "no point counted" for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    room = COLUMNS - sum(widths[1:]) - max(map(len, tails)) - 10
    widths[0] = min(widths[0], max(12, room))
    lines = []
    for line, tail in zip(cells, tails, strict=True):
        rest = "  ".join(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        lines.append(_cut(f"  {_cut(line[0], widths[0]):<{widths[0]}}  {rest}  {tail}", COLUMNS))
    return lines


def _overview_cells(section: Section) -> tuple[str, str, str, str]:
    row = section.headline_row
    lat = f"{latency(row.lat_ns('mean'))} / {latency(row.lat_ns('p99'))}" if row else "-"
    return clean(section.name), section.key_figure, f"{row.volumes:,}" if row else "-", lat


@dataclass(frozen=True)
class _Compared:
    """One line of the tables of expected and published figures."""

    name: str
    measured: str
    promised: str
    words: str
    note: str = ""


def _judged(results: dict[str, Any], items: int) -> list[str]:
    verdicts = sorted(results["verdicts"], key=lambda verdict: _URGENCY.index(verdict["status"]))
    references = results["references"]
    judged = [_verdict(verdict) for verdict in verdicts[:items]]
    compared = [_reference(reference) for reference in references[:items]]
    if judged:
        judged.insert(0, _Compared("Expected figures", "measured", "expected", "verdict"))
    if compared:
        compared.insert(0, _Compared("Published figures to compare with", "measured", "published", "of published"))
    name, measured, promised = (
        max((len(getattr(line, key)) for line in [*judged, *compared]), default=0)
        for key in ("name", "measured", "promised")
    )
    tables = []
    for some in (judged, compared):
        lines = []
        for line in some:
            head = f"{_cut(line.name, 50):<{min(name, 50)}}  {line.measured:>{measured}}  {line.promised:>{promised}}"
            lines.append(_cut(f"{head}  {line.words}", COLUMNS))
            lines += _wrap(line.note, "      ", "      ") if line.note else []
        tables.append(lines)
    hidden = verdicts[items:]
    tables[0] += _more(len(hidden), "verdict", ", all passed" if all(v["status"] == "pass" for v in hidden) else "")
    tables[1] += _more(len(references) - items, "reference")
    sources = list(dict.fromkeys(source_of(item) for item in [*verdicts[:items], *references[:items]]))
    for source in sources[:items]:
        tables[1] += _wrap(source, "  Source: ", "          ")
    return tables[0] + tables[1]


def _verdict(verdict: dict[str, Any]) -> _Compared:
    name = f"  {SIGNS[verdict['status']]} {clean(verdict['name'])}"
    note = clean(verdict["reason"]) if verdict["status"] in ("inconclusive", "invalid") else ""
    compared = against(verdict).partition(" (")[0] if note else against(verdict)
    words = f"{STATUS_WORDS[verdict['status']]} {compared}".rstrip()
    return _Compared(name, _bare(verdict, "measured"), _bare(verdict, "expected"), words, note)


def _reference(item: dict[str, Any]) -> _Compared:
    return _Compared(
        f"  · {clean(item['name'])}", _bare(item, "measured"), _bare(item, "value"), percent(item["ratio"])
    )


def _bare(item: dict[str, Any], key: str) -> str:
    """The figure without the word IOPS, which the tables above already say."""
    return figure(item[key], item["unit"]).removesuffix(" IOPS")


def _trouble(results: dict[str, Any], items: int) -> list[str]:
    """Gates that failed, hosts that failed in a run called complete, and warnings."""
    lines = []
    hosts = failed_hosts(results) if results["run"]["status"] == "complete" else []
    for title, noun, sentences in (
        ("Hosts that did not take part", "host", hosts),
        ("Gates that failed (these points are not counted)", "gate", failed_gates(results)),
        ("Warnings", "warning", [clean(warning) for warning in results["warnings"]]),
    ):
        if sentences:
            lines.append(title)
            for sentence in sentences[:items]:
                lines += _wrap(sentence, "  ! ", "    ")
            lines += _more(len(sentences) - items, noun)
    return lines


def _more(count: int, noun: str, after: str = "") -> list[str]:
    return [f"  … {count:,} more {noun}{'' if count == 1 else 's'}{after}"] if count > 0 else []


def _wrap(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=rest, max_lines=3, placeholder=" …")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
