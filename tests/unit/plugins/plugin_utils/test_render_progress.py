"""The line shown as a point ends."""

from __future__ import annotations

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_progress import progress_line


def plan(*hosts):
    points = [
        {"id": "a", "volumes": 1, "workload": {"name": "4k-randread"}},
        {"id": "b", "volumes": 20, "workload": {"name": "256k-read"}},
    ]
    return {"points": points, "hosts": dict.fromkeys(hosts or ("h1",))}


def event(point, **changes):
    figures = {"iops": 24994.2, "bytes_per_s": 102.4e6, "lat_mean_ns": 1.28e6, "status": "measured", "faults": []}
    return {"id": point, **figures, **changes}


def test_a_point_that_ended_shows_its_figures_and_the_time_left():
    line = progress_line(plan(), "h1", event("a"), 1, 66.0)
    words = "[1/2] 1 volume 4k-randread 24,994 IOPS 102.4 MB/s mean 1.28 ms left 1 min 6 s"
    assert " ".join(line.split()) == words


def test_columns_stand_under_each_other():
    first = progress_line(plan(), "h1", event("a"), 1, 66.0)
    last = progress_line(plan(), "h1", event("b"), 2, 0.0)
    assert first.index("IOPS") == last.index("IOPS")
    assert "left" not in last


def test_the_host_is_named_where_there_are_several():
    assert "h2: [1/2]" in progress_line(plan("h1", "h2"), "h2", event("a"), 1, 1.0)
    assert "h1" not in progress_line(plan("h1"), "h1", event("a"), 1, 1.0)


def test_a_point_that_failed_says_why_and_shows_no_figure():
    line = progress_line(plan(), "h1", event("a", status="failed", faults=["fio was killed by signal 9."]), 1, 66.0)
    assert line.endswith("NOT COUNTED: fio was killed by signal 9.")
    assert "IOPS" not in line
