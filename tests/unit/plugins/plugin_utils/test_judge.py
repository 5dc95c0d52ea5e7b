"""A verdict blames the storage only for what was asked of it."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import judge


def judged(limit, value=20_000.0, setting="thin_cap", **workload):
    return outcome(limit, value, setting, **workload).verdicts


def outcome(limit, value=20_000.0, setting="thin_cap", **workload):
    doing = {"name": "w", "block_size_bytes": 4096, "read_percent": 100, "io_depth": 32, "num_jobs": 1, **workload}
    total = {"iops": value, "bytes_per_s": value * 4096}
    point = {"id": "p01", "workload": doing, "volumes": 2, "counted": True, "total": total, "limit": limit}
    maximum = {"value": value, "volumes": 2, "point": "p01"}
    ladder = {"workload": "w", "unit": "iops", "rungs": [{"volumes": 2, "point": "p01"}], "maximum": maximum}
    cap = {"iops": 25_000, "bytes_per_s": None}
    volumes = [{"name": name, "path": f"/dev/{name}", "size_bytes": 10**9, "cap": cap} for name in ("a", "b")]
    hosts = {"h1": {"volumes": volumes}}
    return judge.judge({"settings": {"hostmax_expect": setting}}, hosts, [point], [ladder])


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *((kind, "inconclusive") for kind in ("client_cpu", "client_softirq", "queue_depth", "network", "nfs_slots")),
        *((kind, "inconclusive") for kind in ("nfs_session_slots", "tcp_socket")),
        *((kind, "fail") for kind in ("service_cap", "nfs_server", "unknown")),
    ],
)
def test_what_the_client_did_not_ask_for_is_not_missed_by_the_storage(kind, status):
    (verdict,) = judged({"kind": kind, "text": "something"})
    assert verdict["status"] == status


def test_a_limit_that_was_not_found_is_said_in_words():
    (verdict,) = judged({"kind": "unknown", "text": "not identified"})
    assert verdict["reason"].endswith("; what held it back was not found")


@pytest.mark.parametrize("workload", [{"io_depth": 1}, {"rate_iops": 1000}])
def test_latency_and_rate_workloads_are_not_held_against_the_caps(workload):
    assert judged({"kind": "queue_depth", "text": "x"}, **workload) == []


def test_a_figure_of_the_user_is_judged_whatever_the_workload():
    (verdict,) = judged({"kind": "queue_depth", "text": "x"}, setting={"iops": 30_000}, io_depth=1)
    assert verdict["status"] == "fail"


def test_ios_that_the_kernel_cuts_in_pieces_are_not_held_against_the_caps_and_that_is_said():
    found = outcome({"kind": "unknown", "text": "x"}, block_size_bytes=2**20)
    assert found.verdicts == []
    assert "more than 512 KiB in pieces" in found.warnings[0]
    assert outcome({"kind": "unknown", "text": "x"}, block_size_bytes=2**19).warnings == []


def over_blocks(mean, low, high, setting=None, unit="iops"):
    """The verdict on 30,000 expected IOPS of the best of two conditions."""
    setting = setting or {"iops": 30_000}
    doing = {"name": "w", "rw": "randread", "block_size_bytes": 4096, "read_percent": 100, "io_depth": 8, "num_jobs": 1}
    points = [
        {
            "id": f"p{place}",
            "condition": name,
            "workload": doing,
            "volumes": 1,
            "counted": True,
            "total": {"iops": value, "bytes_per_s": value * 4096},
            "limit": None,
        }
        for place, (name, value) in enumerate((("a", 1000.0), ("b", mean * 0.9), ("b", mean * 1.02)))
    ]
    common = {"workload": "w", "volumes": 1, "unit": unit, "n": 2}
    summaries = [
        {**common, "condition": "a", "mean": 1000.0, "ci95_low": 900.0, "ci95_high": 1100.0},
        {**common, "condition": "b", "mean": mean, "ci95_low": low, "ci95_high": high},
    ]
    hosts = {"h1": {"volumes": [{"name": "v", "path": "/mnt", "size_bytes": None, "cap": None}]}}
    plan = {"settings": {"hostmax_expect": setting}}
    (verdict,) = judge.judge(plan, hosts, points, [], summaries).verdicts
    return verdict


@pytest.mark.parametrize(
    ("figures", "status"),
    [
        ((30_000, 29_000, 31_000), "pass"),
        ((29_000, 27_000, 31_000), "inconclusive"),
        ((27_000, 26_000, 28_000), "fail"),
        ((31_000, None, None), "pass"),
        ((27_000, None, None), "fail"),
    ],
)
def test_over_blocks_the_whole_interval_has_to_reach_the_figure(figures, status):
    verdict = over_blocks(*figures)
    assert (verdict["status"], verdict["measured"]) == (status, figures[0])
    assert "with b" in verdict["reason"]


def test_the_point_of_a_verdict_over_blocks_is_the_block_nearest_to_the_mean():
    assert over_blocks(30_000, 29_000, 31_000)["point"] == "p2"


def test_a_figure_in_another_unit_than_the_workloads_is_compared_with_one_point():
    verdict = over_blocks(30_000, 29_000, 31_000, {"bytes_per_s": 4096 * 30_000})
    assert (verdict["status"], verdict["measured"]) == ("pass", 30_000 * 1.02 * 4096)
