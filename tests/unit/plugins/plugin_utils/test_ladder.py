"""The host maximum and the knee of a ladder."""

from __future__ import annotations

from ansible_collections.hostmax.storage.plugins.plugin_utils import ladder


def point(volumes, iops, counted=True, block=4096):
    return {
        "id": f"p{volumes}",
        "volumes": volumes,
        "counted": counted,
        "workload": {"name": "w", "title": "W", "block_size_bytes": block},
        "total": {"iops": iops, "bytes_per_s": iops * block},
        "limit": {"kind": "service_cap", "text": str(volumes), "evidence": []},
    }


def test_the_published_shape_has_its_knee_where_scaling_ends():
    found = ladder.build_ladder([point(n, min(25_000 * n, 430_000)) for n in (1, 2, 4, 8, 12, 16, 20)])
    assert found["knee_volumes"] == 16
    assert found["maximum"] == {"value": 430_000, "volumes": 20, "point": "p20"}
    assert found["limit"]["text"] == "20"
    assert [round(rung["efficiency"], 2) for rung in found["rungs"]] == [1, 1, 1, 1, 1, 1, 0.86]


def test_a_straight_ladder_has_no_knee():
    assert ladder.build_ladder([point(n, 3000 * n) for n in (1, 2, 4)])["knee_volumes"] is None


def test_a_fall_beyond_the_top_leaves_the_maximum_where_it_was():
    found = ladder.build_ladder([point(1, 100), point(2, 200), point(4, 150)])
    assert found["maximum"]["volumes"] == 2
    assert found["knee_volumes"] == 2


def test_a_point_that_failed_its_gates_is_shown_and_not_counted():
    found = ladder.build_ladder([point(1, 100), point(2, 900, counted=False)])
    assert found["maximum"]["volumes"] == 1
    assert [rung["value"] for rung in found["rungs"]] == [100, 900]


def test_nothing_counted_gives_no_maximum():
    found = ladder.build_ladder([point(1, 100, counted=False)])
    assert found["maximum"] is None
    assert found["limit"] is None


def test_bandwidth_is_the_headline_for_large_blocks():
    assert ladder.build_ladder([point(1, 100, block=256 * 1024)])["unit"] == "bytes_per_s"
    assert ladder.build_ladder([point(1, 100, block=64 * 1024)])["unit"] == "iops"
