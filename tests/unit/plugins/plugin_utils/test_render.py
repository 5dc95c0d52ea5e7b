"""Five files, each whole or not at all, and the same bytes for the same results."""

from __future__ import annotations

import json

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import render

from . import results_example as examples

FILES = ["junit.xml", "report.html", "results.csv", "results.json", "summary.md"]


def test_every_file_is_written_and_nothing_else(tmp_path):
    written = render.render_all(examples.example(rungs=(1, 2)), tmp_path)
    assert sorted(written) == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_results_json_reads_back_equal(tmp_path):
    results = examples.hostile()
    path = render.render_all(results, tmp_path)["results.json"]
    assert json.loads(path.read_text(encoding="utf-8")) == results


def test_results_json_does_not_depend_on_the_order_of_keys():
    results = examples.example(rungs=(1, 2))
    turned = json.loads(json.dumps(results), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert render.render_json(turned) == render.render_json(results)


def test_a_point_is_a_line_of_results_json():
    lines = render.render_json(examples.example()).splitlines()
    assert sum(line.startswith('{"block":') for line in lines) == 7


def test_every_file_is_utf_8_whatever_the_names(tmp_path):
    for path in render.render_all(examples.hostile(), tmp_path).values():
        path.read_bytes().decode("utf-8")


def test_a_number_that_is_not_finite_is_named_and_nothing_is_written(tmp_path):
    results = examples.example(rungs=(1, 2))
    results["points"][1]["total"]["iops"] = float("nan")
    with pytest.raises(render.RenderError, match=r"results\.points\[1\]\.read\.iops is not a finite number"):
        render.render_all(results, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_infinite_gate_of_a_volume_that_stood_still_does_not_cost_the_report(tmp_path):
    results = examples.invalid_gate()
    results["points"][-1]["gates"][-1]["measured"] = float("inf")
    path = render.render_all(results, tmp_path)["results.json"]
    assert json.loads(path.read_text(encoding="utf-8"))["points"][-1]["gates"][-1]["measured"] is None


def test_another_schema_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(render.RenderError, match=r"schema 'hostmax\.results/9', and only hostmax\.results/1"):
        render.render_all({"schema": "hostmax.results/9"}, tmp_path)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text("old")

    def full(_results):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(render, "RENDERERS", (("results.json", full),))
    with pytest.raises(OSError, match="No space left"):
        render.render_all(examples.example(rungs=(1,)), tmp_path)
    assert (tmp_path / "results.json").read_text() == "old"


def test_a_missing_plotly_is_one_sentence_and_the_figures_are_written(tmp_path, monkeypatch):
    from ansible_collections.hostmax.storage.plugins.plugin_utils import render_html

    render_html._plotly.cache_clear()
    monkeypatch.setattr(render_html.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(render.RenderError, match="needs the Python package plotly on the controller"):
        render.render_all(examples.example(rungs=(1,)), tmp_path)
    assert (tmp_path / "results.csv").is_file()
