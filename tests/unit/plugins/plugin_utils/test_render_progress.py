"""The lines shown as a run goes on."""

from __future__ import annotations

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_progress import board_lines


def plan(*hosts, kept=()):
    points = [
        {"id": "a", "volumes": 1, "workload": {"name": "4k-randread"}},
        {"id": "b", "volumes": 20, "workload": {"name": "256k-read"}},
    ]
    for point in points:
        point.update({"kept": True} if point["id"] in kept else {})
    return {"points": points, "hosts": dict.fromkeys(hosts or ("h1",))}


def event(point, **changes):
    figures = {"iops": 24994.2, "bytes_per_s": 102.4e6, "lat_mean_ns": 1.28e6, "status": "measured", "faults": []}
    return {"event": "point", "id": point, **figures, **changes}


def headline(point, hosts, **changes):
    figures = {"iops": 48002.0, "bytes_per_s": 196.6e6, "lat_mean_ns": 0.67e6}
    return {
        **{"id": point, "round": 1, "hosts": hosts, "hosts_failed": 0, "hosts_lost": 0, "faults": []},
        **figures,
        **changes,
    }


def one(lines):
    assert len(lines) == 1
    return lines[0]


def words(line):
    return " ".join(line.split())


# -- one host -------------------------------------------------------------------------------------------------------


def test_a_point_that_ended_shows_its_figures_and_the_time_left():
    line = one(board_lines(plan(), "h1", event("a"), [headline("a", 1)], 66.0))
    assert words(line) == "[1/2] 1 volume 4k-randread 24,994 IOPS 102.4 MB/s mean 1.28 ms left 1 min 6 s"


def test_columns_stand_under_each_other():
    first = one(board_lines(plan(), "h1", event("a"), [], 66.0))
    last = one(board_lines(plan(), "h1", event("b"), [], 5.0))
    assert first.index("IOPS") == last.index("IOPS")
    assert "left" not in last


def test_a_point_that_failed_says_why_and_shows_no_figure():
    failed = event("a", status="failed", faults=["fio was killed by signal 9."])
    line = one(board_lines(plan(), "h1", failed, [], 66.0))
    assert line.endswith("NOT COUNTED: fio was killed by signal 9.")
    assert "IOPS" not in line


def test_what_is_no_point_shows_nothing_of_a_single_host_unless_it_is_lost():
    for name in ("ready", "ended"):
        assert board_lines(plan(), "h1", {"event": name}, [], 1.0) == []
    assert one(board_lines(plan(), "h1", {"event": "lost", "reason": "gone"}, [], 1.0)) == "  h1: LOST: gone"


def test_points_kept_from_an_earlier_run_are_not_numbered():
    assert "[1/1]" in one(board_lines(plan(kept=("a",)), "h1", event("b"), [], 1.0))


# -- several hosts --------------------------------------------------------------------------------------------------


def test_a_point_that_is_not_complete_shows_nothing():
    assert board_lines(plan("h1", "h2"), "h2", event("a"), [], 1.0) == []


def test_a_complete_point_is_one_line_with_the_total_of_all_hosts():
    line = one(board_lines(plan("h1", "h2", "h3", "h4"), "h2", event("a"), [headline("a", 4)], 120.0))
    assert words(line) == "[1/2] 4 hosts x 1 volume 4k-randread 48,002 IOPS 196.6 MB/s mean 670 us left 2 min"
    assert "24,994" not in line


def test_columns_of_totals_stand_under_each_other():
    several = plan("h1", "h2")
    first = one(board_lines(several, "h1", event("a"), [headline("a", 2)], 66.0))
    last = one(board_lines(several, "h1", event("b"), [headline("b", 2, iops=5.0)], 66.0))
    assert first.index("IOPS") == last.index("IOPS")


def test_a_total_without_some_hosts_says_so_and_why_a_line_each():
    faults = [{"host": "h3", "faults": ["fio was killed\nby signal 9.", "It was \x1b[31mred."]}]
    told = headline("a", 3, hosts_failed=1, faults=faults)
    lines = board_lines(plan("h1", "h2", "h3", "h4"), "h2", event("a"), [told], 1.0)
    assert words(lines[0]).startswith("[1/2] 3 of 4 hosts x 1 volume 4k-randread 48,002 IOPS")
    assert lines[1:] == ["      h3: fio was killed by signal 9. It was [31mred."]


def test_of_very_many_failed_hosts_the_rest_is_counted():
    faults = [{"host": f"h{number}", "faults": ["no"]} for number in range(3)]
    hosts = [f"h{number}" for number in range(1000)]
    lines = board_lines(plan(*hosts), "h2", event("a"), [headline("a", 0, hosts_failed=1000, faults=faults)], 1.0)
    assert lines[0].endswith("0 of 1,000 hosts x  1 volume   4k-randread  NOT COUNTED: no host measured it")
    assert lines[4] == "      and 997 more hosts failed it"


def test_a_lost_host_is_named_with_the_reason_before_the_points_it_completes():
    gone = {"event": "lost", "reason": "the connection was refused"}
    lines = board_lines(plan("h1", "h2", "h3"), "h2", gone, [headline("a", 2, hosts_lost=1)], 1.0)
    assert lines[0] == "  h2: LOST: the connection was refused"
    assert "2 of 3 hosts" in one(lines[1:])


def test_a_repeated_point_says_so():
    assert "repeated" in one(board_lines(plan("h1", "h2"), "h2", event("a"), [headline("a", 2, round=2)], 1.0))
