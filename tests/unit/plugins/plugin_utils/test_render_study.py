# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A run of conditions and a run of mixes in every output: the same figures everywhere, and nothing shown in silence."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import (
    render_comparison,
    render_comparison_figures,
    render_counted,
    render_files,
    render_html,
    render_mixes,
    render_text,
    results,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_figures import COLOUR
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import read_sections

from . import conditions_example as example
from .results_example import HOSTILE


@pytest.fixture(scope="module")
def practices(tmp_path_factory):
    lost = (("tuned", 2, "8k-randread"),)
    return results.build(example.practices(tmp_path_factory.mktemp("practices"), lost=lost))


@pytest.fixture(scope="module")
def one_block(tmp_path_factory):
    return results.build(example.practices(tmp_path_factory.mktemp("one"), blocks=1, conditions=2))


@pytest.fixture(scope="module")
def limits(tmp_path_factory):
    return results.build(example.limits(tmp_path_factory.mktemp("limits"), hosts=3))


def page(found):
    text = render_html.render_html(found)
    # without the charting library and the figures, which a reader without JavaScript does not see
    return re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL), text


def drawings(text):
    found = re.search(r'<script type="application/json" id="drawings">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))["charts"]


def summary_of(found, condition, workload="8k-randread"):
    return next(s for s in found["summaries"] if (s["condition"], s["workload"]) == (condition, workload))


def test_the_headline_is_the_best_condition_shown_faster_with_its_interval(practices):
    best = summary_of(practices, "nconnect16")
    first = render_text.summary(practices).replace("\n  ", " ")
    ratio = f"{best['ratio_to_baseline']:.2f} times baseline"
    assert f"PARTIAL RUN. Best condition: nconnect16: {best['iops']:,.0f} IOPS at 8 KiB random read" in first
    assert f"{ratio} ({best['ratio_ci95_low']:.2f} to {best['ratio_ci95_high']:.2f} by 3 blocks)" in first


def test_the_terminal_has_a_line_a_condition_and_workload_and_keeps_to_its_width(practices):
    lines = render_text.summary(practices).splitlines()
    assert max(map(len, lines)) <= render_text.COLUMNS
    assert len(lines) <= render_text.STUDY_ROWS
    assert sum(1 for line in lines if line.startswith("  nconnect16 ")) == len(example.STUDY)
    (tuned,) = [line for line in lines if line.startswith("  tuned ") and "(2/3)" in line]
    assert f"{summary_of(practices, 'tuned')['iops']:,.0f}" in tuned


def test_the_terminal_without_unicode_says_the_same_words(practices):
    text = render_text.summary(practices, ascii_only=True)
    assert text.isascii()
    assert "^ faster" in text


def test_many_conditions_are_one_table_of_all_workloads(practices):
    many = {**practices, "summaries": [], "conditions": []}
    for copy in "abc":
        for condition in practices["conditions"]:
            many["conditions"].append({**condition, "name": f"{condition['name']}-{copy}"})
    for workload, _iops in example.STUDY:
        for copy in "abc":
            for name in example.NAMES:
                known = summary_of(practices, name, workload["name"])
                many["summaries"].append({**known, "condition": f"{name}-{copy}"})
    lines = render_text.summary(many).splitlines()
    assert len(lines) <= render_text.STUDY_ROWS
    (line,) = [line for line in lines if line.startswith("  nconnect16-b ")]
    assert line.count("▲+") == len(example.STUDY)


def test_one_block_shows_no_interval_anywhere_and_says_so(one_block):
    text = render_text.summary(one_block)
    assert "nothing shown by one block" in text
    assert text.count("inconclusive: one block") == len(example.STUDY)
    body, _whole = page(one_block)
    assert "One block was measured, so there is no interval" in body
    assert "▲ faster" not in text + body


def test_the_page_has_every_figure_of_the_comparison_as_text(practices):
    body, _whole = page(practices)
    for summary in practices["summaries"]:
        assert f"<td>{summary['iops']:,.0f}</td>" in body
        if summary["ratio_to_baseline"]:
            assert render_comparison.change(summary["ratio_to_baseline"]) in body
            assert render_comparison.interval(summary["ratio_ci95_low"], summary["ratio_ci95_high"]) in body
    for title in ("What each condition changed", "What the kernel counted", "What explains the differences"):
        assert f">{title}</h" in body
    assert "8k-randread, tuned against baseline: block 2 left out" in body
    assert "rsize is 524288 and not 1048576: the server allows no more." in body
    assert "net.ipv4.tcp_fack: legacy (the kernel ignores it)." in body
    assert "no result" not in body


def test_the_page_of_a_comparison_asks_no_other_host(practices):
    _body, whole = page(practices)
    assert not re.search(r'(src|href)="(?!#)', whole.split("<script")[0])


def test_a_group_of_workloads_is_one_chart_of_bars_with_intervals(practices):
    _body, whole = page(practices)
    charts = drawings(whole)
    assert list(charts) == ["conditions0", "conditions1"]
    for chart, unit in ((charts["conditions0"], "IOPS"), (charts["conditions1"], "MiB/s")):
        figure = chart["figure"]
        assert figure["layout"]["yaxis"]["title"]["text"] == unit
        assert [len(trace["x"]) for trace in figure["data"]] == [7, 7]
        patterns = [trace["marker"]["pattern"]["shape"] for trace in figure["data"]]
        assert len(set(patterns)) == len(patterns), "bars must not differ by colour alone"
    summary = summary_of(practices, "nconnect16", "64k-read")
    reads = charts["conditions1"]["figure"]["data"][0]
    assert reads["y"][3] == pytest.approx(summary["mean"] / 2**20)
    assert reads["error_y"]["array"][3] == pytest.approx((summary["ci95_high"] - summary["mean"]) / 2**20)


def test_a_condition_that_lacks_a_workload_has_its_bar_missing_and_no_others_bar_moved(practices):
    comparison = render_comparison.read_comparison(practices)
    case = comparison.cases[0]
    less = render_comparison.Case(case.workload, case.volumes, [case.summaries[0], case.summaries[3]])
    (trace,) = render_comparison_figures.bars(comparison, [less])["data"]
    assert trace["x"] == ["Baseline", "+ nconnect=16"]


def test_a_condition_that_was_never_counted_is_shown_as_not_measured(practices):
    gone = json.loads(json.dumps(practices))
    summary = summary_of(gone, "tuned")
    summary.update(n=0, status="not compared", parent_status="not compared")
    for key in ("mean", "ci95_low", "ci95_high", "iops", "bytes_per_s", "lat_ns", "ratio_to_baseline", "counters"):
        summary[key] = None
    for key in ("ratio_ci95_low", "ratio_ci95_high"):
        summary[key] = None
    body, _whole = page(gone)
    assert "not measured" in body
    assert "not measured" in render_text.summary(gone)
    assert "not measured" in render_files.render_markdown(gone)


def test_markdown_has_a_table_a_workload(practices):
    text = render_files.render_markdown(practices)
    assert text.startswith("# hostmax: Best condition: nconnect16: ")
    assert text.count("| Condition | IOPS |") == len(example.STUDY)
    assert "of linear" not in text.lower()


def test_csv_rows_carry_condition_and_block(practices):
    rows = list(csv.DictReader(io.StringIO(render_files.render_csv(practices))))
    kinds = {(row["condition"], row["block"]) for row in rows}
    assert kinds == {(name, str(block)) for name in example.NAMES for block in (1, 2, 3)}


def cases(found):
    suite = ET.fromstring(render_files.render_junit(found))
    return {case.get("name"): case for case in suite if case.get("classname") == "hostmax.conditions"}


def test_junit_has_a_case_for_every_compared_condition(practices):
    found = cases(practices)
    assert len(found) == 6 * len(example.STUDY)
    told = found["8k-randread: nconnect16"].find("system-out").text
    assert told.startswith("faster: +")
    assert not [case for case in found.values() if case.find("failure") is not None]


def test_junit_skips_what_one_block_cannot_show(one_block):
    found = cases(one_block)
    skipped = found["8k-randread: nocto-actimeo"].find("skipped")
    assert skipped.get("message").startswith("inconclusive: one block: +")


def test_names_made_to_break_out_of_a_page_do_not(practices):
    text = json.dumps(practices)
    for name in ("nconnect16", "+ nconnect=16", "azure_eda_2025", "client02", "net.ipv4.tcp_fack"):
        text = text.replace(json.dumps(name), json.dumps(HOSTILE))
    hostile = json.loads(text)
    _body, whole = page(hostile)
    assert "<script>alert(1)" not in whole
    assert "\\u003cscript\\u003ealert(1)" in whole or "&lt;script&gt;alert" in whole
    ET.fromstring(render_files.render_junit(hostile))


# -- mixes -----------------------------------------------------------------------------------------------------------


def test_mixes_are_one_chart_and_table_a_block_size_and_no_sections(limits):
    body, whole = page(limits)
    assert list(drawings(whole)) == ["mixes0-chart", "mixes1-chart"]
    assert body.count("<td>70/30</td>") == 2
    assert "Linear up to" not in body
    assert "Scaling" not in body


def test_the_chart_of_mixes_goes_from_reads_to_writes_and_shows_what_was_published(limits):
    group = render_mixes.read_mixes(limits, read_sections(limits))[1]
    figure = render_mixes.chart(group)
    by_name = {trace["name"]: trace for trace in figure["data"]}
    assert by_name["total"]["x"] == list(range(100, -1, -10))
    assert by_name["writes"]["y"][0] is None
    published = by_name["published, large volume"]
    assert list(published["y"][::3]) == [709_000, 474_000]
    assert list(published["x"][::3]) == [100, 0]
    colours = [trace["line"]["color"] for trace in figure["data"]]
    assert len(set(colours)) == len(colours)
    assert set(colours) <= set(COLOUR.values())


def test_the_headline_of_mixes_is_the_highest_of_the_first_group(limits):
    text = render_text.summary(limits)
    assert text.startswith("Maximum of all hosts: ")
    assert "MiB/s at 256 KiB sequential, 100/0 reads/writes, with 1 volume on each" in text.split("\n", maxsplit=1)[0]
    assert max(map(len, text.splitlines())) <= render_text.COLUMNS
    assert render_files.render_markdown(limits).count("| Reads / writes |") == 2


def test_a_mix_that_is_not_counted_is_marked_and_in_no_line(limits):
    broken = json.loads(json.dumps(limits))
    point = next(p for p in broken["points"] if p["workload"]["name"] == "8k-rand-r50")
    point.update(counted=False, status="unsteady")
    ladder = next(ladder for ladder in broken["ladders"] if ladder["workload"] == "8k-rand-r50")
    ladder.update(maximum=None, limit=None)
    figure = render_mixes.chart(render_mixes.read_mixes(broken, read_sections(broken))[1])
    by_name = {trace["name"]: trace for trace in figure["data"]}
    assert 50 not in by_name["total"]["x"]
    assert by_name["not counted"]["x"] == [50]
    assert 'class="uncounted"' in page(broken)[0]


def test_mixes_of_several_blocks_are_means_with_intervals(tmp_path):
    found = results.build(example.limits(tmp_path, hosts=2, blocks=3))
    group = render_mixes.read_mixes(found, read_sections(found))[1]
    total = render_mixes.chart(group)["data"][0]
    summary = next(each for each in found["summaries"] if each["workload"] == "8k-rand-r100")
    assert (summary["n"], total["y"][0]) == (3, pytest.approx(summary["mean"]))
    assert total["error_y"]["array"][0] == pytest.approx(summary["ci95_high"] - summary["mean"])
    row = group.cells()[0]
    assert (row[1], row[6]) == (f"{summary['iops']:,.0f}", "-"), "percentiles of blocks are not averaged"
    assert "means of 3 blocks" in page(found)[0]


def test_one_condition_alone_is_told_how_it_was_mounted_and_compared_with_nothing(limits):
    body, _whole = page(limits)
    assert "How the volumes were mounted" in body
    assert "Conditions compared" not in body
    assert cases(limits) == {}


def test_two_workloads_of_one_block_size_are_no_curve(limits):
    few = {**limits, "points": [p for p in limits["points"] if p["workload"]["read_percent"] in (100, 0)]}
    few["ladders"] = [ladder for ladder in limits["ladders"] if re.search(r"-r(100|0)$", ladder["workload"])]
    assert render_mixes.read_mixes(few, read_sections(few)) == []


def test_what_the_kernel_counted_is_shown_without_conditions_too(limits):
    rows = render_counted.counted_rows(limits)
    assert len(rows) == 22
    assert "What the kernel counted" in page(limits)[0]
