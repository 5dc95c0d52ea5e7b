"""Words on the board become typed events; what is damaged or meant for others is left out."""

from __future__ import annotations

import pytest

from hostmax.events import HostLost, PointEnded, board_event

FIGURES = {"iops": 3000.0, "bytes_per_s": 1.2e7, "lat_mean_ns": 1e6}
POINT = {"event": "point", "time_s": 5.0, "host": "a", "id": "p1", "status": "measured", "faults": [], **FIGURES}


def test_a_point_of_one_host():
    assert board_event(POINT) == PointEnded(
        id="p1", host="a", time_s=5.0, faults=(), hosts=1, hosts_failed=0, round=1, **FIGURES
    )


def test_a_point_that_failed_on_a_host_has_no_figures_and_says_why():
    none = dict.fromkeys(FIGURES)
    found = board_event({**POINT, **none, "status": "failed", "faults": ["fio was killed."], "round": 2})
    assert (found.hosts, found.hosts_failed, found.iops, found.faults, found.round) == (
        0,
        1,
        None,
        ("fio was killed.",),
        2,
    )


def test_a_point_that_all_hosts_have_said_has_no_host_and_names_those_that_failed():
    faults = [{"host": "b", "faults": ["fio was killed."]}]
    said = {**FIGURES, "event": "complete", "time_s": 5.0, "id": "p1", "round": 1, "hosts": 3, "hosts_failed": 1}
    found = board_event({**said, "hosts_lost": 0, "faults": faults})
    assert (found.host, found.hosts, found.hosts_failed) == (None, 3, 1)
    assert found.faults == ("b: fio was killed.",)


def test_a_lost_host():
    assert board_event({"event": "lost", "time_s": 1.0, "host": "a", "reason": "gone"}) == HostLost("a", "gone")


@pytest.mark.parametrize("said", [{}, {"event": "ready", "host": "a"}, {"event": "point"}, {**POINT, "time_s": "now"}])
def test_what_embedders_are_not_told(said):
    assert board_event(said) is None
