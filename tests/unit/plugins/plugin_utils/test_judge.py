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
    [("client_cpu", "inconclusive"), ("queue_depth", "inconclusive"), ("service_cap", "fail"), ("unknown", "fail")],
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
