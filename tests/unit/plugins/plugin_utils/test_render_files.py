"""CSV, JUnit and Markdown: complete, parseable, and safe with names made to break them."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_files import (
    escaped,
    render_csv,
    render_junit,
    render_markdown,
)

from . import results_example as examples


def rows_of(results):
    return list(csv.DictReader(io.StringIO(render_csv(results))))


def test_csv_has_the_point_its_hosts_and_its_volumes_in_every_direction():
    rows = rows_of(examples.example(hosts=2, workloads=("8k-randrw",), rungs=(3,)))
    assert [(row["host"], row["volume"], row["direction"]) for row in rows[:4]] == [
        ("", "", "read"),
        ("", "", "write"),
        ("", "", "total"),
        ("client0001", "", "read"),
    ]
    assert len(rows) == 3 * (1 + 2 + 2 * 3)


def test_csv_volumes_add_up_to_the_total_of_the_point():
    rows = [row for row in rows_of(examples.example(rungs=(4,))) if row["direction"] == "total"]
    total = next(row for row in rows if not row["host"])
    assert sum(float(row["iops"]) for row in rows if row["volume"]) == pytest.approx(float(total["iops"]), rel=1e-6)


def test_csv_says_which_points_count():
    counted = {row["point"]: row["counted"] for row in rows_of(examples.invalid_gate())}
    assert counted["p07-4k-randread-v20"] == "false"
    assert counted["p06-4k-randread-v16"] == "true"


def test_csv_has_no_formula_a_spreadsheet_would_run():
    volumes = {row["volume"] for row in rows_of(examples.hostile())}
    assert "'=cmd|' /C calc'!A0" in volumes
    assert not any(name.startswith("=") for name in volumes)


def test_junit_of_a_good_run_has_only_passes():
    suite = ET.fromstring(render_junit(examples.example()))
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "0",
        "errors": "0",
        "skipped": "0",
    }


def test_junit_failure_tells_measured_expected_and_source_and_inconclusive_is_skipped():
    suite = ET.fromstring(render_junit(examples.failing()))
    message = suite.find(".//failure").get("message")
    assert "measured 430,248 IOPS, expected 500,000 IOPS (98 % needed)" in message
    assert "1-TB volume study" in message
    assert "2024-05-14" in message
    assert "2 more would settle it" in suite.find(".//skipped").get("message")


def test_junit_has_a_case_for_the_point_that_failed_a_gate():
    suite = ET.fromstring(render_junit(examples.invalid_gate()))
    case = suite.find("testcase[@classname='hostmax.gates']")
    assert case.get("name") == "p07-4k-randread-v20"
    assert "steady: range 47.0% of the mean" in case.find("failure").get("message")


def test_junit_of_a_partial_run_is_not_silently_green():
    results = examples.partial()
    results["verdicts"] = []
    suite = ET.fromstring(render_junit(results))
    assert "client0002" in suite.find("testcase[@classname='hostmax.run']/skipped").get("message")


def test_junit_stays_xml_with_characters_xml_does_not_have():
    results = examples.hostile()
    results["verdicts"][0].update(name="\x00\x1b]]>&\ufffe\ud800<x>", status="fail", expected=1e9)
    suite = ET.fromstring(render_junit(results).encode("utf-8"))
    assert suite.find("testcase[@classname='hostmax.verdicts']").get("name") == "]]>& <x>"


def test_markdown_has_headline_ladder_verdicts_and_warnings():
    text = render_markdown(examples.failing())
    assert text.startswith("# hostmax: Host maximum: 430,248 IOPS at 4 KiB random read")
    assert "| 20 | 430,248 | 86.1 % |" in text
    assert "client CPU (**maximum**)" in text
    assert "| ✗ FAIL | host maximum, 20 volumes | 430,248 IOPS | 500,000 IOPS |" in text
    assert "## Warnings" in text


def test_markdown_of_a_partial_run_says_so_before_the_figures():
    text = render_markdown(examples.partial())
    assert text.index("PARTIAL RUN") < text.index("| Volumes |")


def test_markdown_escapes_what_would_break_a_table_or_become_html():
    assert escaped("a|b <i>`x`*y*\n# [l](u) p99_9 _z_") == r"a\|b &lt;i&gt;\`x\`\*y\* \# \[l\](u) p99_9 \_z\_"
    assert "<script" not in render_markdown(examples.hostile())
