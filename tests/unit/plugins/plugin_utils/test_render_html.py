"""The page: complete without scripts, closed to the network, and deaf to names that are markup."""

from __future__ import annotations

import base64
import hashlib
import json
from html.parser import HTMLParser

import plotly.graph_objects
import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import render_volumes
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_figures import PALETTE
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_html import embedded, render_html
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import read_sections

from . import results_example as examples

VARIANTS = ("example", "partial", "invalid_gate", "failing", "hostile", "three_workloads", "mixed")


class Page(HTMLParser):
    """Tags, attributes, script bodies and visible text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.words, self._inside = [], [], [], ""
        self.feed(text)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.words.append(data)

    def found(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def charts(self):
        return json.loads(self.scripts[0])["charts"]


def figures_of(page):
    for chart in page.charts.values():
        yield from [choice["figure"] for choice in chart.get("choices", [])] or [chart["figure"]]


def example_page():
    return Page(render_html(examples.example()))


@pytest.mark.parametrize("variant", [*VARIANTS, "many_hosts"])
def test_every_chart_is_a_valid_plotly_figure(variant):
    results = examples.example(hosts=12) if variant == "many_hosts" else getattr(examples, variant)()
    for figure in figures_of(Page(render_html(results))):
        plotly.graph_objects.Figure(figure)


def test_the_verdict_line_comes_before_the_figures_and_the_figures_before_the_charts():
    page = render_html(examples.failing())
    order = [page.index(part) for part in ("1 of 2 expected figures missed", "<h1>", 'class="cards"', 'class="charts"')]
    assert order == sorted(order)
    assert Page(page).text.count("✗ FAIL") == 2


def test_it_has_the_charts_that_were_promised():
    assert [name.split("-")[1] for name in example_page().charts] == ["scaling", "volumes", "latency", "cpu", "time"]


def test_the_scaling_curve_marks_knee_and_maximum_and_draws_linear_and_caps():
    scaling = example_page().charts["workload0-scaling"]["figure"]
    assert {trace["name"] for trace in scaling["data"]} == {"linear", "measured", "sum of the volumes' caps"}
    assert [note["text"] for note in scaling["layout"]["annotations"]] == [
        "<b>knee</b><br>399,864 IOPS",
        "<b>maximum</b><br>430,248 IOPS",
    ]


def test_a_point_that_does_not_count_is_drawn_apart_from_the_curve():
    scaling = Page(render_html(examples.invalid_gate())).charts["workload0-scaling"]["figure"]
    traces = {trace["name"]: trace for trace in scaling["data"]}
    assert traces["not counted"]["x"] == [20]
    assert 20 not in traces["measured"]["x"]


def test_lines_differ_by_colour_and_by_marker():
    traces = example_page().charts["workload0-latency"]["figure"]["data"]
    assert [trace["name"] for trace in traces] == ["p99.99", "p99.9", "p99", "mean", "p50"]
    assert len({trace["marker"]["symbol"] for trace in traces}) == 5
    assert len({trace["line"]["color"] for trace in traces}) == 5


def test_each_colour_of_the_palette_has_one_dark_counterpart():
    lights = [light for light, _dark in PALETTE.values()]
    assert len(set(lights)) == len(lights)
    assert json.loads(example_page().scripts[0])["dark"] == dict(PALETTE.values())


def test_the_bars_open_on_the_maximum_and_show_every_volume():
    chart = example_page().charts["workload0-volumes"]
    chosen = [choice for choice in chart["choices"] if choice["selected"]]
    assert [choice["label"] for choice in chosen] == ["20 volumes"]
    assert len(chosen[0]["figure"]["data"][0]["y"]) == 20


def test_six_thousand_volumes_are_quantiles_a_strip_and_a_ranking_and_never_a_mark_each():
    page = Page(render_html(examples.many()))
    assert "workload0-spread" in page.charts
    assert "workload0-strip" in page.charts
    assert "workload0-volumes" not in page.charts
    assert max(len(trace["x"]) for figure in figures_of(page) for trace in figure["data"]) <= 200
    assert len(page.found("tr")) < 1000


def test_the_ranking_has_the_twenty_slowest_and_fastest():
    section = read_sections(examples.example(hosts=12))[0]
    ranking = render_volumes.ranking(section, section.maximum_row)
    assert [len(ranking[kind]) for kind in ("slowest", "fastest")] == [20, 20]
    fair = section.maximum_row.point["fairness"]["slowest"]
    assert (ranking["slowest"][0]["host"], ranking["slowest"][0]["volume"]) == (fair["host"], fair["volume"])


def test_volumes_are_ordered_as_people_count():
    section = read_sections(examples.example(rungs=(3,)))[0]
    volumes = section.rows[0].point["per_volume"]["reference"]
    section.rows[0].point["per_volume"]["reference"] = {
        "v10": volumes["thin01"],
        "v2": volumes["thin02"],
        "3": volumes["thin03"],
    }
    assert [volume.name for volume in render_volumes.volumes_of(section.rows[0])] == ["3", "v2", "v10"]


def test_every_figure_is_in_a_table_for_readers_without_scripts():
    page = example_page()
    for words in ("24,994", "430,248", "86.1 %", "6.63 ms", "thin20", "Cap", "littles law", "iodepth=32"):
        assert words in page.text
    assert "The charts need JavaScript" in page.text


def test_hosts_and_how_to_repeat_it_are_told():
    text = example_page().text
    for words in ("ansible-playbook host_max.yml -e hostmax_seed=20261130", "fio 3.33", "AMD EPYC", "fio job of p07"):
        assert words in text


def test_figures_to_compare_with_have_source_and_date():
    text = example_page().text
    assert "1-TB volume study, 400,000 IOPS at 4 KB on one host, 2024-05-14" in text
    assert "learn.microsoft.com, performance benchmarks for Linux, 2025-11-04" in text


def test_reads_and_writes_are_apart_where_a_point_did_both():
    assert "Read IOPS" in Page(render_html(examples.mixed())).text
    assert "Read IOPS" not in example_page().text


def test_each_workload_has_its_section_and_a_line_in_the_overview():
    page = Page(render_html(examples.three_workloads()))
    assert [attrs["id"] for attrs in page.found("section") if attrs.get("class") == "workload"] == [
        "workload0",
        "workload1",
        "workload2",
    ]
    assert [attrs["href"] for attrs in page.found("a")] == ["#workload0", "#workload1", "#workload2"]


@pytest.mark.parametrize(("variant", "words"), [("partial", "Partial run"), ("invalid_gate", "Invalid run")])
def test_a_banner_stands_above_everything_with_the_reason(variant, words):
    page = render_html(getattr(examples, variant)())
    assert page.index('class="banner') < page.index("<h1>")
    assert words in page
    assert "p07-4k-randread-v20" in page or "client0002 is unreachable" in page
    assert 'class="banner' not in render_html(examples.example())


def test_names_that_are_markup_stay_text():
    text = render_html(examples.hostile())
    page = Page(text)
    assert len(page.scripts) == 3
    assert page.found("img") == []
    assert examples.HOSTILE in page.text
    assert "<script>alert(1)" not in text
    assert "\u2028" not in page.scripts[0]


def test_names_reach_the_charts_without_the_markup_plotly_would_draw():
    labels = json.dumps(Page(render_html(examples.hostile())).charts["workload0-volumes"])
    assert "&lt;img src=x onerror=alert(1)&gt;" in labels
    assert "<img" not in labels


def test_embedded_json_cannot_close_its_element_and_reads_back_equal():
    data = {"a": "</script><!--<script>&\u2028\u2029\ud800"}
    text = embedded(data)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == data


def test_the_policy_forbids_the_network_and_every_script_but_its_own_three():
    page = example_page()
    policy = next(attrs["content"] for attrs in page.found("meta") if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "script-src 'unsafe-inline'" not in policy
    for script in page.scripts[1:]:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


def test_nothing_refers_to_another_place():
    for tag, attrs in example_page().tags:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attrs)


def test_a_run_without_any_point_still_has_a_page():
    results = examples.example(rungs=(1,))
    results.update(points=[], ladders=[], verdicts=[], references=[])
    results["run"].update(status="invalid", points_measured=0)
    page = Page(render_html(results))
    assert page.charts == {}
    assert "No point was measured" in page.text


def test_a_run_in_which_nothing_counts_shows_its_points_all_the_same():
    results = examples.example(rungs=(1, 2))
    for point in results["points"]:
        point.update(counted=False, status="invalid", limit=None)
        point["cpu"] = dict.fromkeys(point["cpu"])
    results["ladders"][0].update(rungs=[], maximum=None, limit=None)
    page = Page(render_html(results))
    assert "none of its 2 points could be counted" in page.text
    assert page.charts["workload0-latency"]["figure"]["data"][0]["x"] == [1, 2]
