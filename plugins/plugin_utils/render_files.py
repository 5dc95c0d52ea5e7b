# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The formats other programs and pages take: CSV in long form, JUnit XML, a Markdown summary.

Must not know: where they are written, or how a figure was measured.
"""

from __future__ import annotations

import csv
import functools
import io
import operator
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count
from ansible_collections.hostmax.storage.plugins.plugin_utils import render_study_text, render_timing
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison import (
    Comparison,
    change,
    interval,
    read_comparison,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_mixes import read_limits, read_mixes
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    SIGNS,
    STATUS_WORDS,
    Row,
    against,
    clean,
    figure,
    gate_name,
    latency,
    megabytes,
    percent,
    read_sections,
    source_of,
    verdict_line,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_trouble import (
    failed_gates,
    failed_hosts,
    run_reasons,
)

LATENCIES = ("mean", "min", "p50", "p95", "p99", "p99_9", "p99_99", "max")
CSV_HEADS = (
    *("point", "condition", "block", "repeat", "workload", "rw", "read_percent", "block_size_bytes", "io_depth"),
    *("num_jobs", "volumes_driven", "status", "counted", "host", "volume", "direction"),
    *("iops", "bytes_per_s", "ios", *(f"lat_{name}_ns" for name in LATENCIES), "lat_n"),
)
_LATENCIES_OF = operator.itemgetter(*LATENCIES, "n")
_NO_LATENCY = dict.fromkeys((*LATENCIES, "n"), "")
_FORMULA = ("=", "+", "-", "@")
_MARKDOWN = re.compile(r"([\\`*\[\]<>|#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")


def render_csv(results: dict[str, Any]) -> str:
    """A row for every point, host, volume and direction; totals leave the volume, or host and volume, empty."""
    rows = [",".join(CSV_HEADS)]
    for point in results["points"]:
        rows += _csv_rows(point)
    return "\n".join(rows) + "\n"


def _csv_rows(point: dict[str, Any]) -> Iterator[str]:
    """Text is quoted once a point, host and volume; a run of 20,000 volumes has a quarter of a million rows."""
    workload = point["workload"]
    start = _quoted(
        *(point[key] for key in ("id", "condition", "block", "repeat")),
        *(workload[key] for key in ("name", "rw", "read_percent", "block_size_bytes", "io_depth", "num_jobs")),
        *(point["volumes"], point["status"], "true" if point["counted"] else "false"),
    )
    yield from _directions(f"{start},,", point)
    for host, directions in point["per_host"].items():
        yield from _directions(f"{start},{_quoted(host)},", directions)
    for host, volumes in point["per_volume"].items():
        name = _quoted(host)
        for volume, directions in volumes.items():
            yield from _directions(f"{start},{name},{_quoted(volume)}", directions)


def _directions(start: str, directions: dict[str, Any]) -> Iterator[str]:
    for way in ("read", "write", "total"):
        found = directions[way]
        if found:
            lat = found["lat_ns"] or _NO_LATENCY
            numbers = (found["iops"], found["bytes_per_s"], found["ios"], *_LATENCIES_OF(lat))
            yield f"{start},{way},{','.join(map(str, numbers))}"


@functools.lru_cache(maxsize=4096)
def _quoted(*cells: Any) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow([_cell(cell) for cell in cells])
    return "" if cells == ("",) else buffer.getvalue()


def _cell(value: Any) -> Any:
    """A name as it is, unless a spreadsheet would run it as a formula."""
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def render_junit(results: dict[str, Any]) -> str:
    """A test case for the run, for every verdict and compared condition, and for every point that failed a gate."""
    run = results["run"]
    suite = ET.Element("testsuite", name=clean(f"hostmax {run['id']}"), timestamp=clean(run["started_utc"]).rstrip("Z"))
    _run_case(suite, results)
    for verdict in results["verdicts"]:
        _verdict_case(suite, verdict)
    for summary in results["summaries"]:
        if summary["status"] not in (None, "baseline"):
            _condition_case(suite, summary)
    for point in results["points"]:
        failed = [gate for gate in point["gates"] if gate["passed"] is False]
        if failed:
            case = _case(suite, "gates", point["id"])
            message = "; ".join(f"{gate_name(gate)}: {clean(gate['text'])}" for gate in failed)
            details = [f"{gate_name(gate)}: measured {gate['measured']}, limit {gate['limit']}" for gate in failed]
            _outcome(case, "failure", "gate", f"not counted: {message}", details)
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(sum(1 for case in cases if case.find(tag) is not None)))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _run_case(suite: ET.Element, results: dict[str, Any]) -> None:
    status, reasons = results["run"]["status"], run_reasons(results)
    case = _case(suite, "run", "every host and point measured")
    if status == "invalid":
        _outcome(case, "error", "invalid", " ".join(reasons), reasons)
    elif status == "partial":
        _outcome(case, "skipped", "partial", " ".join(reasons), [])


def _verdict_case(suite: ET.Element, verdict: dict[str, Any]) -> None:
    case = _case(suite, "verdicts", verdict["name"])
    if verdict["status"] == "pass":
        return
    needed = f"{100 * (1 - verdict['tolerance']):g} % needed"
    measured, expected = (figure(verdict[key], verdict["unit"]) for key in ("measured", "expected"))
    comparison = f"measured {measured}, expected {expected} ({needed})"
    message = f"{comparison}, source: {source_of(verdict)}. {clean(verdict['reason'])}"
    tag = {"fail": "failure", "invalid": "error"}.get(verdict["status"], "skipped")
    _outcome(case, tag, verdict["status"], message, [message] if tag != "skipped" else [])


def _condition_case(suite: ET.Element, summary: dict[str, Any]) -> None:
    """A condition that was compared passes, whatever it shows; one that could not be is skipped and says why."""
    case = _case(suite, "conditions", f"{summary['workload']}: {summary['condition']}")
    against = f"{change(summary['ratio_to_baseline'])} against the baseline"
    bounds = interval(summary["ratio_ci95_low"], summary["ratio_ci95_high"])
    if summary["status"] in ("faster", "slower", "no difference shown"):
        ET.SubElement(case, "system-out").text = f"{summary['status']}: {against} {bounds}"
    else:
        told = f"{summary['status']}: {against}" if summary["ratio_to_baseline"] is not None else summary["status"]
        _outcome(case, "skipped", "conditions", told, [])


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=f"hostmax.{group}", name=clean(name), time="0")


def _outcome(case: ET.Element, tag: str, kind: str, message: str, details: list[str]) -> None:
    attributes = {"message": message} if tag == "skipped" else {"message": message, "type": kind}
    ET.SubElement(case, tag, attributes).text = "\n".join(details) or None


def render_markdown(results: dict[str, Any]) -> str:
    """Headline, tables, verdicts and warnings, for a pull request or a job summary."""
    sections = read_sections(results)
    status, sentence = verdict_line(results)
    mark = {"partial": "PARTIAL RUN", "invalid": "INVALID RUN, not to be quoted"}.get(results["run"]["status"])
    mixes = read_mixes(results, sections)
    study = read_comparison(results) or read_limits(mixes)
    told = study or (sections[0] if sections else None)
    parts = [f"# hostmax: {escaped(told.headline if told else 'no point was measured')}"]
    if mark:
        parts.append(f"> **{mark}**\n" + "\n".join(f"> - {escaped(reason)}" for reason in run_reasons(results)))
    sign = f"{SIGNS[status]} {STATUS_WORDS[status]}: " if status in SIGNS else ""
    parts.append(f"**{sign}{escaped(sentence)}**")
    comparison = study if isinstance(study, Comparison) else None
    parts += render_study_text.markdown(comparison, mixes, _table, escaped)
    inside = {section.name for group in mixes for section in group.sections}
    for number, section in enumerate([] if comparison else sections):
        if section.name in inside:
            continue
        parts.append(f"## {escaped(section.title)}" + (f"\n\n{escaped(section.headline)}" if number else ""))
        parts.append(_ladder(section.rows))
    times = render_timing.together(results)
    if times:
        parts.append(f"## Hosts together\n\n{escaped(times)}\n\n" + _timing(results))
    parts += _judged(results)
    for title, sentences in (
        ("Gates that failed", failed_gates(results)),
        ("Warnings", [*failed_hosts(results), *(clean(warning) for warning in results["warnings"])]),
    ):
        if sentences:
            parts.append(f"## {title}\n\n" + "\n".join(f"- {escaped(text)}" for text in sentences))
    run = results["run"]
    versions = ", ".join(f"{name} {value.removeprefix('fio-')}" for name, value in run["versions"].items() if value)
    parts.append(f"Run `{clean(run['id']).replace('`', '')}`, seed {run['seed']}, {escaped(versions)}.")
    return "\n\n".join(parts) + "\n"


def _timing(results: dict[str, Any]) -> str:
    rows = [tuple(escaped(cell) for cell in row) for row in render_timing.point_rows(results)]
    return _table(tuple(render_timing.POINT_HEADS), rows, left=(0, 6, 7))


def _ladder(rows: list[Row]) -> str:
    heads = ("Volumes", "IOPS", "Of linear", "MB/s", "Mean", "p99", "p99.9", "CPU busy", "Held back by")
    return _table(heads, [_ladder_cells(row) for row in rows], left=(8,))


def _ladder_cells(row: Row) -> tuple[str, ...]:
    marks = f" (**{' and '.join(row.marks)}**)" if row.marks else ""
    return (
        str(row.volumes),
        "-" if row.iops is None else format_count(row.iops),
        percent(row.efficiency) if row.counted else "-",
        "-" if row.bytes_per_s is None else megabytes(row.bytes_per_s),
        *(latency(row.lat_ns(name)) for name in ("mean", "p99", "p99_9")),
        percent(row.cpu_busy),
        escaped(row.limit_words) + (f" ({row.latency_words})" if row.latency_words else "") + marks,
    )


def _judged(results: dict[str, Any]) -> list[str]:
    tables: list[str] = []
    heads: tuple[str, ...]
    if results["verdicts"]:
        heads = ("Verdict", "Figure", "Measured", "Expected", "Of expected", "Source")
        rows = [_verdict_cells(verdict) for verdict in results["verdicts"]]
        tables.append("## Expected figures\n\n" + _table(heads, rows, left=(0, 1, 4, 5)))
    if results["references"]:
        heads = ("Figure", "Measured", "Published", "Of published", "Source")
        rows = [_reference_cells(reference) for reference in results["references"]]
        tables.append("## Published figures to compare with\n\n" + _table(heads, rows, left=(0, 4)))
    return tables


def _verdict_cells(verdict: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{SIGNS[verdict['status']]} {STATUS_WORDS[verdict['status']]}",
        escaped(verdict["name"]),
        figure(verdict["measured"], verdict["unit"]),
        figure(verdict["expected"], verdict["unit"]),
        against(verdict) or escaped(verdict["reason"]),
        escaped(source_of(verdict)),
    )


def _reference_cells(item: dict[str, Any]) -> tuple[str, ...]:
    return (
        escaped(item["name"]),
        figure(item["measured"], item["unit"]),
        figure(item["value"], item["unit"]),
        percent(item["ratio"]),
        escaped(source_of(item)),
    )


def _table(heads: tuple[str, ...], rows: list[Any], left: tuple[int, ...]) -> str:
    rule = ["---" if column in left else "---:" for column in range(len(heads))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rule, *rows))


def escaped(text: object) -> str:
    """A name or sentence that Markdown shows as it is, also inside a table."""
    return _MARKDOWN.sub(r"\\\1", clean(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")
