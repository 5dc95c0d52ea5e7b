"""What held a point back is named with its evidence."""

from __future__ import annotations

from ansible_collections.hostmax.storage.plugins.plugin_utils import limits, merge
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import Caps

from .samples_example import direction, planned, sample, volume

CAP = Caps(3000, 24_576_000, each_direction=True, source="the cap that was set")
MODEL = Caps(3000, 24_000_000, source="the volume model")
FREE = {"busy": 0.30, "busiest_cpu": 0.4, "user": 0.1, "system": 0.2, "iowait": 0.0, "steal": 0.0}
FULL = {"busy": 0.99, "busiest_cpu": 1.0, "user": 0.2, "system": 0.79, "iowait": 0.0, "steal": 0.0}


def find(volumes, cpu=None, lightest=None, block=4096, cap=CAP, **workload):
    plan = planned(len(volumes), block_size_bytes=block, **workload)
    point = merge.merge_point(plan, {"h1": sample(volumes, cpu=cpu or FREE)})
    caps = {("h1", name): cap for name in volumes if cap}
    first = merge.merge_point(plan, {"h1": sample(lightest)}) if lightest else None
    return limits.find_limit(limits.Context(point, plan["workload"], {"h1": {"cpus": 2}}, caps, first))


def test_volumes_at_their_iops_cap_are_held_back_by_it():
    limit = find({"a": volume(read=direction(2995, 10_000_000)), "b": volume(read=direction(3003, 10_000_000))})
    assert limit["kind"] == "service_cap"
    assert "IOPS cap (3,000 IOPS a volume)" in limit["text"]
    assert "all 2 volumes" in limit["evidence"][0]


def test_large_blocks_are_held_back_by_the_bandwidth_cap():
    block = 256 * 1024
    limit = find({"a": volume(read=direction(24_500_000 / block, 10_000_000, block=block))}, block=block)
    assert limit["kind"] == "service_cap"
    assert "bandwidth cap" in limit["text"]


def test_a_cap_holds_for_each_direction_by_itself():
    half = {"a": volume(read=direction(1500, 10_000_000), write=direction(1500, 10_000_000))}
    assert find(half)["kind"] != "service_cap"


def test_a_model_caps_both_directions_together_and_is_named_as_the_source():
    half = {"a": volume(read=direction(1500, 10_000_000), write=direction(1500, 10_000_000))}
    limit = find(half, cap=MODEL)
    assert limit["kind"] == "service_cap"
    assert limit["evidence"][-1] == "source of the cap: the volume model"


def test_a_volume_far_above_the_cap_of_its_model_is_held_back_by_something_else():
    fast = {"a": volume(read=direction(6000, 5_000_000))}
    assert find(fast, cap=MODEL)["kind"] != "service_cap"


def test_one_volume_below_its_cap_means_the_cap_is_not_the_limit():
    uneven = {"a": volume(read=direction(3000, 10_000_000)), "b": volume(read=direction(1000, 30_000_000))}
    assert find(uneven)["kind"] != "service_cap"


def test_full_cpus_are_the_limit_below_the_cap():
    limit = find({"a": volume(read=direction(2000, 16_000_000))}, cpu=FULL)
    assert limit["kind"] == "client_cpu"
    assert "99% of 2 CPUs busy" in limit["evidence"][0]


def test_a_job_that_uses_up_its_one_cpu_is_the_limit_although_others_are_free():
    limit = find({"a": volume(read=direction(2000, 16_000_000), usr=0.30, sys=0.69)})
    assert limit["kind"] == "client_cpu"
    assert "99% of one CPU" in limit["evidence"][0]


def test_unloaded_latency_below_the_cap_means_too_few_ios_were_offered():
    light = {"a": volume(read=direction(1600, 20_000_000))}
    limit = find(light, lightest=light)
    assert limit["kind"] == "queue_depth"
    assert "1,600 IOPS a volume by Little's law" in limit["evidence"][0]
    assert "60 outstanding would be needed for the cap of 3,000 IOPS" in limit["evidence"][1]


def test_latency_that_grew_with_load_is_not_blamed_on_the_depth():
    loaded = {"a": volume(read=direction(1000, 32_000_000))}
    light = {"a": volume(read=direction(1600, 20_000_000))}
    limit = find(loaded, lightest=light)
    assert limit["kind"] == "unknown"
    assert limit["evidence"]


def test_volumes_of_unknown_caps_that_scale_may_be_at_their_own_limit_and_are_not_blamed_on_the_depth():
    two = {"a": volume(read=direction(25_000, 1_280_000)), "b": volume(read=direction(25_000, 1_280_000))}
    one = {"a": two["a"]}
    for volumes, lightest in ((two, one), (one, None)):
        limit = find(volumes, lightest=lightest, cap=None)
        assert limit["kind"] == "each_volume"
        assert "own limit, or the queue depth offered (32 a volume)" in limit["text"]
    assert find(two, cap=None)["kind"] == "unknown"


def test_one_io_at_a_time_is_limited_by_that_also_on_the_first_point():
    assert find({"a": volume(read=direction(8000, 120_000))}, cap=None, io_depth=1)["kind"] == "queue_depth"


def test_caps_of_ios_that_the_kernel_cuts_in_pieces_prove_nothing():
    large = {"a": volume(read=direction(12, 660_000_000, block=2**20))}
    assert find(large, lightest=large, block=2**20)["kind"] == "each_volume"


def test_a_rate_that_was_asked_for_and_reached_is_the_limit():
    slow = {"a": volume(read=direction(999, 170_000)), "b": volume(read=direction(1000, 170_000))}
    limit = find(slow, lightest=slow, rate_iops=1000)
    assert limit["kind"] == "offered_rate"
    assert "the rate asked for (1,000 IOPS a volume)" in limit["text"]
    missed = {"a": volume(read=direction(500, 170_000))}
    assert find(missed, lightest=missed, rate_iops=1000)["kind"] == "unknown"


def test_nothing_measured_has_no_limit():
    plan = planned()
    assert limits.find_limit(limits.Context(merge.merge_point(plan, {}), plan["workload"], {}, {}, None)) is None
