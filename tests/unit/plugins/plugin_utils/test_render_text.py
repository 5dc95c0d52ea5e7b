"""The terminal summary: one screen, headline first, nothing that failed left out."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_text import summary

from . import results_example as examples

VARIANTS = ("example", "partial", "invalid_gate", "failing", "hostile", "three_workloads", "mixed")


def row_of(text, start):
    return next(line for line in text.splitlines() if line.strip().startswith(start))


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_fits_one_screen_without_control_characters(variant, ascii_only):
    lines = summary(getattr(examples, variant)(), ascii_only=ascii_only).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert all(character.isprintable() for line in lines for character in line)
    assert not ascii_only or all(line.isascii() for line in lines)


def test_the_headline_comes_first_and_the_ladder_marks_knee_and_maximum():
    text = summary(examples.example())
    assert text.startswith("Host maximum: 430,248 IOPS at 4 KiB random read with 20 volumes on 1 host;")
    assert row_of(text, "16 ").endswith("service cap  ← knee")
    assert row_of(text, "20 ").endswith("client CPU  ← maximum")
    assert row_of(text, "20 ").split()[:4] == ["20", "430,248", "86.1", "%"]


def test_verdicts_carry_sign_word_and_limit():
    text = summary(examples.failing())
    assert row_of(text, "✗ host maximum").endswith("430,248    500,000  FAIL 86.0 % (limit 98 %)")
    assert "inconclusive" in row_of(text, "~ one volume")
    assert "2 more would settle it" in text
    assert row_of(summary(examples.failing(), ascii_only=True), "x host maximum").endswith("FAIL 86.0 % (limit 98 %)")


def test_what_a_figure_is_compared_with_has_its_source_and_date():
    assert "learn.microsoft.com, performance benchmarks for Linux, 2025-11-04" in summary(examples.example())


def test_a_partial_run_says_so_first_and_names_the_missing_host():
    lines = summary(examples.partial()).splitlines()
    assert lines[0].startswith("PARTIAL RUN. ")
    assert any("Host client0002 is unreachable" in line for line in lines[:5])
    assert row_of("\n".join(lines), "20 ").endswith("not measured (0/3 hosts)")


def test_a_point_that_failed_its_gate_is_marked_and_the_gate_told():
    text = summary(examples.invalid_gate())
    assert text.startswith("INVALID RUN, not to be quoted. ")
    assert row_of(text, "20 ").endswith("not counted: steady")
    assert "! steady, p07-4k-randread-v20: range 47.0% of the mean" in text


def test_many_workloads_become_a_line_each():
    results = examples.example(workloads=("4k-randread", "256k-randread", "4k-randread-latency", "8k-randrw"))
    for number in range(8):
        again = examples.example(workloads=("4k-randread",), rungs=(1, 2))
        for entry in (*again["points"], *again["ladders"]):
            entry["id"] = entry["point"] = f"again{number}"
        again["ladders"][0].update(workload=f"again{number}", title=f"again {number}")
        for point in again["points"]:
            point["workload"] = {**point["workload"], "name": f"again{number}"}
        results["points"] += again["points"]
        results["ladders"] += again["ladders"]
    text = summary(results)
    assert len(text.splitlines()) <= 40
    assert "430,248 IOPS" in row_of(text, "4k-randread  ")
    assert "again7" in text


def test_two_hundred_failed_hosts_do_not_push_the_figures_off_the_screen():
    results = examples.example(hosts=200, rungs=(1, 2))
    results["run"]["status"] = "partial"
    for number, host in enumerate(results["hosts"]):
        host.update(status="failed", reason=f"fio was killed by signal {number}")
    text = summary(results)
    assert len(text.splitlines()) <= 40
    assert "more reasons" in text
    assert "Host client0001 failed: fio was killed by signal 0." in text


def test_a_run_without_any_point_is_still_told():
    results = examples.example(rungs=(1,))
    results.update(points=[], ladders=[], verdicts=[], references=[])
    results["run"].update(status="invalid", points_measured=0)
    assert "No point was measured." in summary(results).splitlines()[0]


def test_workloads_with_the_same_title_are_told_apart_and_what_held_them_back_is_whole():
    results = examples.example(workloads=("4k-randread",), rungs=(1, 2))
    for number in range(9):
        again = examples.example(workloads=("4k-randread",), rungs=(1, 2))
        for entry in (*again["points"], *again["ladders"]):
            entry["id"] = entry["point"] = f"again{number}"
        again["ladders"][0].update(workload=f"oci-throughput-randread-{number}", maximum=None)
        for point in again["points"]:
            point["workload"] = {**point["workload"], "name": f"oci-throughput-randread-{number}"}
        results["points"] += again["points"]
        results["ladders"] += again["ladders"]
    text = summary(results)
    assert row_of(text, "oci-throughput-randread-3").endswith("no point counted")
    lines = [line for line in text.splitlines() if "counted" in line or line.endswith("service cap")]
    assert len({line.rindex("  ") for line in lines}) == 1
