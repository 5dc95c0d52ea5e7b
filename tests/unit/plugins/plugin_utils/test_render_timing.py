"""Whether hosts measured together is said once for the run, and shown for each point and host."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import (
    render_figures,
    render_files,
    render_hosts,
    render_html,
    render_model,
    render_text,
    render_timing,
)

from .results_example import example, partial


@pytest.fixture
def several():
    return example(hosts=3)


def test_one_host_says_nothing_of_being_together():
    alone = example()
    assert render_timing.together(alone) is None
    assert render_timing.point_rows(alone) == []
    assert "began within" not in render_text.summary(alone) + render_files.render_markdown(alone)


def test_the_worst_point_is_what_the_sentence_says(several):
    several["points"][1]["window"].update(skew_s=0.25, overlap=0.912)
    several["points"][0]["window"]["uncertainty_s"] = 0.0337
    sentence = render_timing.together(several)
    assert "within 250.0 ms" in sentence
    assert "at least 91.2 % of each point" in sentence
    assert "known to 33.7 ms" in sentence
    for text in (render_text.summary(several), render_files.render_markdown(several), render_html.render_html(several)):
        assert "began within 250.0 ms of each other" in " ".join(text.split())


def test_first_and_last_hosts_of_a_point_are_named_and_a_repeated_one_is_marked(several):
    point = several["points"][0]
    point["repeat"] = 1
    for host, first_s in (("client0001", 12.5), ("client0002", 12.0), ("client0003", 12.75)):
        point["timing"][host] = {"first_io_s": first_s, "last_io_s": 20.0, "skew_s": first_s - 12.0, "late_s": 0.3}
    row = render_timing.point_rows(several)[0]
    assert row[0].endswith(", repeated")
    assert row[-2:] == ["client0002", "client0003"]
    section = render_model.read_sections(several)[0]
    rows = render_hosts._rows(section.rows[0], ["client0003", "client0004"])
    assert rows[0][-2:] == ["+750.0 ms", "+8.000 s"]
    assert rows[1][1:4] == ["not measured", "-", "-"]


def test_percentiles_of_another_time_than_the_rates_are_marked_everywhere(several):
    point = several["points"][-1]
    assert "whole run" not in render_text.summary(several)
    point["latency_scope"] = "whole run"
    for text in (render_text.summary(several), render_files.render_markdown(several), render_html.render_html(several)):
        assert "latency of the whole run" in text


def test_a_point_of_some_hosts_is_partial_with_their_figures(several):
    point = several["points"][-1]
    point["hosts_measured"].remove("client0002")
    point.update(status="partial", counted=False)
    row = next(row for row in render_model.read_sections(several)[0].rows if row.point is point)
    assert row.limit_words == "only 2 of 3 hosts, not counted"
    line = next(line for line in render_text.summary(several).splitlines() if "only 2 of 3 hosts" in line)
    assert f"{point['total']['iops']:,.0f}" in line


@pytest.mark.parametrize(
    ("clock", "text"),
    [
        ((None, None, None), "-"),
        ((0.0021, None, None), "+2.10 ms"),
        ((30.0, 0.0005, None), "+30,000.00 ms ± 0.50"),
        ((-0.5, 0.01, 0.0021), "-500.00 ms ± 10.00, drift +2.10"),
    ],
)
def test_a_clock_is_its_offset_how_surely_and_its_drift(clock, text):
    names = ("clock_offset_s", "clock_uncertainty_s", "clock_drift_s")
    assert render_timing.clock(dict(zip(names, clock, strict=True))) == text


def test_every_host_of_a_few_is_listed_and_one_that_did_not_measure_says_so(several):
    point = several["points"][-1]
    del point["per_host"]["client0002"], point["timing"]["client0002"], point["cpu"]["client0002"]
    table = render_hosts.host_table(render_model.read_sections(several)[0])
    assert [row[:2] for row in table["rows"]][1] == ["client0002", "not measured"]
    assert table["note"] == ""


def test_of_a_thousand_hosts_the_slowest_the_latest_and_the_missing_are_listed():
    results = example(hosts=1000, volumes=1, rungs=(1,))
    point = results["points"][0]
    point["per_host"]["client0500"]["total"] = {**point["per_host"]["client0500"]["total"], "iops": 10.0}
    point["timing"]["client0600"].update(skew_s=2.5)
    point["hosts_measured"].remove("client0700")
    for section in ("per_host", "timing", "cpu"):
        del point[section]["client0700"]
    table = render_hosts.host_table(render_model.read_sections(results)[0])
    listed = {row[0]: row for row in table["rows"]}
    assert len(listed) <= 30
    assert listed["client0700"][1] == "not measured"
    assert listed["client0500"][1] == "10 IOPS"
    assert listed["client0600"][-2] == "+2,500.0 ms"
    assert "slowest 10 IOPS" in table["note"]
    assert "last 2,500.0 ms" in table["note"]


def test_partial_points_have_a_mark_of_their_own_in_the_scaling_chart():
    section = render_model.read_sections(partial())[0]
    traces = {trace["name"]: trace["x"] for trace in render_figures.scaling(section)["data"]}
    assert traces["not all hosts"] == [4, 8, 12, 16]
    assert "not counted" not in traces
