"""CPU and volume counters between two moments."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import counters
from ansible_collections.hostmax.storage.plugins.module_utils.counters import Snapshot


def snapshot(time_s, *cpus, disks=None):
    return Snapshot(time_s, cpus, disks or {})


def test_a_cpu_is_busy_with_everything_but_idle_and_waiting_for_io():
    before = snapshot(0.0, (0,) * 8, (0,) * 8)
    after = snapshot(1.0, (10, 0, 40, 30, 10, 0, 5, 5), (10, 0, 40, 30, 10, 0, 5, 5))
    usage = counters.cpu_usage(before, after)
    assert usage["busy"] == pytest.approx(0.60)
    assert usage["system"] == pytest.approx(0.45)
    assert usage["iowait"] == pytest.approx(0.10)
    assert usage["steal"] == pytest.approx(0.05)


def test_one_full_cpu_of_two_is_seen_although_both_together_are_half_idle():
    before = snapshot(0.0, (0,) * 8, (0,) * 8, (0,) * 8)
    after = snapshot(1.0, (100, 0, 0, 100, 0, 0, 0, 0), (100, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 100, 0, 0, 0, 0))
    usage = counters.cpu_usage(before, after)
    assert usage["busy"] == pytest.approx(0.5)
    assert usage["busiest_cpu"] == pytest.approx(1.0)


def test_an_older_kernel_with_fewer_columns_is_read():
    assert counters.read_cpus("cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 5\n") == ((1, 2, 3, 4, 0, 0, 0, 0),) * 2


def test_only_the_wanted_device_is_read_by_its_number():
    text = (
        "   7       0 loop0 100 0 800 5 50 0 400 9 0 20 14 0 0 0 0\n"
        "   7       1 loop1 1 0 8 5 5 0 40 9 0 2 14 0 0 0 0\n"
    )
    assert counters.read_disks(text, [(7, 0)]) == {(7, 0): (100, 800, 50, 400, 20)}


def test_rates_of_a_volume_are_what_the_kernel_completed_between_the_snapshots():
    before = snapshot(10.0, (0,) * 8, disks={(7, 0): (0, 0, 0, 0, 0)})
    after = snapshot(12.0, (0,) * 8, disks={(7, 0): (6000, 48000, 0, 0, 1000)})
    usage = counters.disk_usage(before, after, (7, 0))
    assert usage["read_iops"] == 3000
    assert usage["read_bytes_per_s"] == 48000 * 512 / 2
    assert usage["busy"] == pytest.approx(0.5)
    assert counters.disk_usage(before, after, (8, 0)) is None


def test_only_snapshots_inside_the_window_count():
    sampler = counters.Sampler([], 0.0)
    sampler.snapshots = [snapshot(t, (0,) * 8) for t in (1.0, 2.0, 3.0, 4.0)]
    first, last = sampler.inside(1.5, 3.5)
    assert (first.time_s, last.time_s) == (2.0, 3.0)
    assert sampler.inside(3.5, 4.5) is None


def test_the_sampler_reads_this_machine():
    sampler = counters.Sampler([(7, 0)], 0.0)
    sampler.tick()
    sampler.tick()
    usage = counters.cpu_usage(sampler.snapshots[0], sampler.snapshots[-1])
    assert 0.0 <= usage["busy"] <= 1.0


def test_one_cpu_full_of_softirqs_is_seen_beside_an_idle_one():
    before = snapshot(0.0, (0,) * 8, (0,) * 8, (0,) * 8)
    after = snapshot(1.0, (0, 0, 5, 100, 0, 0, 95, 0), (0, 0, 5, 0, 0, 0, 95, 0), (0, 0, 0, 100, 0, 0, 0, 0))
    usage = counters.cpu_usage(before, after)
    assert usage["busiest_softirq"] == pytest.approx(0.95)
    assert usage["busiest_kernel"] == pytest.approx(1.0)
    assert usage["busy"] == pytest.approx(0.5)


def test_longer_texts_are_read_less_often_and_those_inside_the_window_count(monkeypatch):
    now_s = iter(float(n) for n in range(10))
    monkeypatch.setattr(counters.time, "time", lambda: next(now_s))
    sampler = counters.Sampler([], 0.0, readers={"long": lambda time_s: f"at {time_s}"}, readers_s=3.0)
    for _each in range(10):
        sampler.tick()
    assert [shot.time_s for shot in sampler.snapshots if shot.readings] == [0.0, 3.0, 6.0, 9.0]
    assert sampler.readings_inside(1.0, 8.0, "long") == ("at 3.0", "at 6.0")
    assert sampler.readings_inside(4.0, 8.0, "long") is None
    assert sampler.readings_inside(0.0, 9.0, "other") is None
