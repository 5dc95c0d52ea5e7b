# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Summaries of conditions: paired by block, of counted points alone, and nothing left out in silence."""

from __future__ import annotations

import json

import jsonschema
import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import conditions_summary, intervals, results

from . import conditions_example as example
from . import results_example

FIRST = "8k-randread"


def a_point(condition, block, iops, workload="w", counted=True, volumes=1):
    total = {"iops": iops, "bytes_per_s": iops * 8192, "lat_ns": {"mean": 1e9 / iops}} if iops else None
    return {
        "id": f"p-{condition}-{block}-{workload}",
        "condition": condition,
        "block": block,
        "workload": {"name": workload, "rw": "randread", "block_size_bytes": 8192},
        "volumes": volumes,
        "counted": counted,
        "total": total,
        "per_host": {},
        "limit": None,
        "counters": {},
    }


A_AND_B = ({"name": "a", "on": None}, {"name": "b", "on": "a"}, {"name": "c", "on": "b"})


def summarised(points, conditions=A_AND_B):
    found, words = conditions_summary.summarise(conditions, points)
    return {summary["condition"]: summary for summary in found}, words


def pairs(figures, other="b"):
    return [
        point
        for block, (first, second) in enumerate(figures, 1)
        for point in (a_point("a", block, first), a_point(other, block, second))
    ]


def test_a_ratio_is_of_the_pairs_of_each_block():
    found, words = summarised(pairs([(100, 150), (200, 310), (400, 590)]), A_AND_B[:2])
    logs = intervals.ratio_interval([(100, 150), (200, 310), (400, 590)])
    assert found["b"]["ratio_to_baseline"] == pytest.approx(logs.value)
    assert (found["b"]["ratio_ci95_low"], found["b"]["ratio_ci95_high"]) == (logs.low, logs.high)
    assert (found["b"]["status"], found["b"]["ratio_pairs"], found["b"]["n"], words) == ("faster", 3, 3, [])
    assert (found["a"]["status"], found["a"]["ratio_to_baseline"]) == ("baseline", None)


def test_what_is_slower_is_called_so_and_what_is_not_shown_too():
    assert summarised(pairs([(100, 80), (100, 82), (100, 81)]), A_AND_B[:2])[0]["b"]["status"] == "slower"
    assert summarised(pairs([(100, 80), (100, 150)]), A_AND_B[:2])[0]["b"]["status"] == "no difference shown"


def test_one_block_gives_a_ratio_without_an_interval_and_says_so():
    found, _words = summarised(pairs([(100, 300)]), A_AND_B[:2])
    assert (found["b"]["ratio_to_baseline"], found["b"]["ratio_ci95_low"]) == (pytest.approx(3.0), None)
    assert (found["b"]["status"], found["b"]["parent_status"]) == ("inconclusive: one block",) * 2
    assert (found["a"]["mean"], found["a"]["ci95_low"], found["a"]["ci95_high"]) == (100, None, None)


def test_a_condition_is_compared_with_the_one_it_stands_on_too():
    points = pairs([(100, 200), (100, 200)]) + [a_point("c", block, 100) for block in (1, 2)]
    found, _words = summarised(points)
    assert (found["c"]["ratio_to_baseline"], found["c"]["status"]) == (pytest.approx(1.0), "no difference shown")
    assert (found["c"]["parent"], found["c"]["ratio_to_parent"]) == ("b", pytest.approx(0.5))
    assert (found["c"]["parent_status"], found["c"]["parent_ratio_pairs"]) == ("slower", 2)


@pytest.mark.parametrize(
    "partner", [a_point("a", 2, 100, counted=False), a_point("a", 2, None, counted=False), None], ids=str
)
def test_a_block_without_a_counted_partner_is_in_no_pair_and_that_is_said(partner):
    points = [a_point("a", 1, 100), a_point("b", 1, 150), a_point("b", 2, 900), a_point("a", 3, 100)]
    points += [a_point("b", 3, 150)] + ([partner] if partner else [])
    found, words = summarised(points, A_AND_B[:2])
    assert (found["b"]["ratio_pairs"], found["b"]["ratio_to_baseline"]) == (2, pytest.approx(1.5))
    assert found["b"]["n"] == 3
    told = "w, b against a: block 2 left out, one of the two points was not counted or not measured."
    assert words == [told]


def test_a_condition_of_which_nothing_counts_is_there_and_not_compared():
    points = [a_point("a", 1, 100), a_point("b", 1, 150, counted=False)]
    found, words = summarised(points, A_AND_B[:2])
    assert (found["b"]["n"], found["b"]["mean"], found["b"]["status"]) == (0, None, "not compared")
    assert words == ["w, b against a: not compared, no block has a counted point of both."]


def test_a_rate_of_zero_is_in_no_ratio():
    stood_still = {**a_point("b", 1, 1.0), "total": {"iops": 0.0, "bytes_per_s": 0.0, "lat_ns": None}}
    found, _words = summarised([a_point("a", 1, 100), stood_still], A_AND_B[:2])
    assert (found["b"]["status"], found["b"]["mean"]) == ("not compared", 0.0)


def test_the_interval_of_a_mean_does_not_go_below_zero():
    found, _words = summarised([a_point("a", 1, 10), a_point("a", 2, 100)], A_AND_B[:1])
    assert found["a"]["ci95_low"] == 0.0


def test_workloads_and_numbers_of_volumes_are_never_mixed():
    points = [a_point("a", 1, 100, volumes=count, workload=name) for count in (1, 4) for name in ("w", "x")]
    found, _words = conditions_summary.summarise(A_AND_B[:1], points)
    assert len({(summary["workload"], summary["volumes"]) for summary in found}) == 4


def test_a_run_without_conditions_sums_up_its_counted_points():
    found, words = conditions_summary.summarise([], [a_point(None, 0, 100), a_point(None, 0, 50, "x", counted=False)])
    assert [(summary["workload"], summary["n"], summary["status"]) for summary in found] == [("w", 1, None)]
    assert words == []


# -- whole runs ------------------------------------------------------------------------------------------------------


def built(run):
    found = results.build(run)
    jsonschema.Draft202012Validator(results_example.schema()).validate(found)
    return found


@pytest.fixture(scope="module")
def practices(tmp_path_factory):
    lost = (("tuned", 2, FIRST),)
    expect = {"profile": "azure_netapp_files", "volume": "regular"}
    return built(example.practices(tmp_path_factory.mktemp("practices"), lost=lost, expect=expect))


def summary_of(found, condition, workload=FIRST):
    return next(s for s in found["summaries"] if (s["condition"], s["workload"]) == (condition, workload))


def test_every_workload_has_a_summary_of_every_condition_in_the_order_of_the_plan(practices):
    names = [(summary["workload"], summary["condition"]) for summary in practices["summaries"]]
    assert names == [(workload["name"], name) for workload, _iops in example.STUDY for name in example.NAMES]


def test_the_intervals_hold_the_truth_that_was_put_in(practices):
    for summary in practices["summaries"][1:7]:
        truth = example.CONDITIONS[example.NAMES.index(summary["condition"])][5]
        assert summary["ratio_ci95_low"] < truth < summary["ratio_ci95_high"], summary["condition"]


def test_what_blocks_share_widens_the_mean_and_not_the_ratio(practices):
    summary = summary_of(practices, "nconnect16")
    of_mean = (summary["ci95_high"] - summary["ci95_low"]) / summary["mean"]
    of_ratio = (summary["ratio_ci95_high"] - summary["ratio_ci95_low"]) / summary["ratio_to_baseline"]
    assert of_ratio < of_mean / 3


def test_points_know_their_condition_and_block(practices):
    kinds = {(point["condition"], point["block"]) for point in practices["points"]}
    assert kinds == {(name, block) for name in example.NAMES for block in (1, 2, 3)}


def test_a_point_that_one_host_missed_is_in_no_pair(practices):
    assert summary_of(practices, "tuned")["n"] == 2
    assert summary_of(practices, "nconnect16")["parent_ratio_pairs"] == 2
    assert f"{FIRST}, nconnect16 against tuned: block 2 left out" in " ".join(practices["warnings"])


def test_sequential_64_kib_is_summed_up_as_bandwidth(practices):
    assert summary_of(practices, "tuned", "64k-read")["unit"] == "bytes_per_s"
    assert summary_of(practices, "tuned")["unit"] == "iops"


def test_a_run_of_conditions_at_one_number_of_volumes_has_no_ladder(practices):
    assert practices["ladders"] == []


def test_another_block_of_the_same_load_is_not_taken_for_a_lighter_one(practices):
    assert {point["limit"]["kind"] for point in practices["points"] if point["limit"]}.isdisjoint({"queue_depth"})


def test_the_best_condition_is_judged_by_the_interval_of_its_blocks(practices):
    verdict = next(v for v in practices["verdicts"] if "read" in v["name"])
    best = max((s for s in practices["summaries"] if s["workload"] == "64k-read"), key=lambda summary: summary["mean"])
    assert verdict["measured"] == best["mean"]
    assert best["condition"] in verdict["reason"]
    assert best["condition"] in verdict["point"]


def test_counters_explain_what_a_condition_changed(practices):
    figures = summary_of(practices, "baseline")["counters"]
    assert sum(figures["per_1000_ios"].values()) == pytest.approx(812, rel=0.01)
    told = " ".join(summary_of(practices, "nocto-actimeo")["explanation"])
    assert "GETATTR, ACCESS and LOOKUP: 9.1 for 1,000 I/Os, 812.0 with baseline." in told
    told = " ".join(summary_of(practices, "nconnect16")["explanation"])
    assert told.startswith("16 connections to the server, 1 with tuned")


def test_what_held_most_blocks_back_is_told_of_the_condition(practices):
    assert summary_of(practices, "baseline")["limit"]["kind"] == "nfs_slots"
    assert summary_of(practices, "nconnect16")["limit"]["kind"] == "nfs_server"


def test_one_block_of_two_conditions(tmp_path):
    found = built(example.practices(tmp_path, blocks=1, conditions=2))
    assert {summary["status"] for summary in found["summaries"]} == {"baseline", "inconclusive: one block"}


def test_mixes_have_ladders_and_verdicts_of_reads_alone_and_writes_alone(tmp_path):
    found = built(example.limits(tmp_path, hosts=3))
    assert len(found["ladders"]) == 22
    assert [verdict["name"] for verdict in found["verdicts"]] == [
        "Large volume, 256 KiB sequential read: 12,761 MiB/s",
        "Large volume, 256 KiB sequential write: 8,518 MiB/s",
        "Large volume, 8 KiB random read",
        "Large volume, 8 KiB random write",
    ]
    shown = [reference["name"] for reference in found["references"]]
    assert len(shown) == len(set(shown))


# -- what was applied ------------------------------------------------------------------------------------------------


def test_what_was_applied_is_told_for_each_host(practices):
    condition = next(each for each in practices["conditions"] if each["name"] == "nconnect16")
    (mount,) = condition["applied"]["client01"]["mounts"]
    assert (mount["connections"], mount["slots"], mount["effective"]["nconnect"]) == (16, 62, "16")
    assert (condition["on"], condition["tuning"]) == ("tuned", ["azure_eda_2025"])
    assert condition["applied"]["client01"]["tuning"][0]["after"] == "16777216"


def changed_stages(run, host, change):
    path = run.host_path(host) / "stages.json"
    stages = json.loads(path.read_text())
    change(stages)
    path.write_text(json.dumps(stages))


def test_an_option_that_was_not_the_same_in_a_later_block_is_told(tmp_path):
    run = example.practices(tmp_path, conditions=2)
    last = [stage for stage in run.plan["stages"] if stage["condition"] == "baseline"][-1]

    def change(stages):
        stages[str(last["number"])]["mounts"][0]["effective"]["rsize"] = "65536"

    changed_stages(run, "client02", change)
    baseline = built(run)["conditions"][0]
    assert baseline["applied"]["client02"]["mounts"][0]["differences"] == [
        "block 3: rsize was 65536, in block 1 262144."
    ]
    assert baseline["applied"]["client01"]["mounts"][0]["differences"] == []


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"'])
def test_a_damaged_record_of_the_stages_costs_no_figure_and_is_told(tmp_path, text):
    run = example.practices(tmp_path, conditions=2, blocks=1)
    (run.host_path("client02") / "stages.json").write_text(text)
    found = built(run)
    assert list(found["conditions"][0]["applied"]) == ["client01"]
    assert [word for word in found["warnings"] if "its stages.json cannot be read" in word]


def test_a_host_that_was_lost_before_its_first_stage_has_applied_nothing(tmp_path):
    run = example.practices(tmp_path, conditions=2, blocks=1)
    (run.host_path("client02") / "stages.json").unlink()
    assert list(built(run)["conditions"][1]["applied"]) == ["client01"]


def test_a_mount_about_which_little_was_told_is_shown_as_not_known(tmp_path):
    run = example.practices(tmp_path, conditions=1, blocks=1)
    changed_stages(run, "client01", lambda stages: stages["1"].update(mounts=[{"name": "vol1"}], tuning=None))
    (mount,) = built(run)["conditions"][0]["applied"]["client01"]["mounts"]
    assert (mount["connections"], mount["effective"]) == (None, {})
