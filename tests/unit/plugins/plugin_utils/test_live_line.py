# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The live line: how far a run is, in one line."""

from __future__ import annotations

import datetime

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.live_line import LiveLine, Pace
from hypothesis import given
from hypothesis import strategies as st

T0 = datetime.datetime(2026, 11, 30, 19, 40, 0)


def at(after_s):
    return T0 + datetime.timedelta(seconds=after_s)


def plan(hosts=4, points=20, kept=0):
    """Points of 5 s ramp and 10 s, 20 s apart: the run takes 395 s."""
    return {
        "hosts": {f"h{number}": {} for number in range(hosts)},
        "points": [
            *({"id": f"k{number}", "offset_s": None, "kept": True} for number in range(kept)),
            *({"id": f"p{n}", "offset_s": 20.0 * n, "ramp_s": 5, "runtime_s": 10} for n in range(points)),
        ],
    }


def complete(number, **changes):
    figures = {"iops": 48002.0, "bytes_per_s": 196.6e6, "lat_mean_ns": 0.67e6, "hosts": 4, "round": 1}
    time_s = at(20 * number + 15).timestamp()
    return {"event": "complete", "id": f"p{number}", "time_s": time_s, **figures, **changes}


def told(after_s=0.0, points=20, number=1):
    each = [{"id": f"p{n}", "offset_s": 20.0 * n} for n in range(points)]
    return {"round": number, "attempt": 1, "t0": at(after_s).timestamp(), "points": each}


@pytest.fixture
def live():
    line = LiveLine(plan())
    line.start(told())
    return line


def test_nothing_is_shown_before_the_first_host_has_said_anything():
    assert LiveLine(plan()).line(T0) is None


def test_before_the_start_is_agreed_the_hosts_that_are_ready_are_counted():
    line = LiveLine(plan())
    line.take([{"event": "ready", "host": "h0"}, {"event": "ready", "host": "h1"}, {"event": "lost", "host": "h1"}])
    assert line.line(T0) == "[0/20] getting ready · 1 of 4 hosts ready, 1 failed"


def test_until_the_start_the_time_to_it_is_shown(live):
    assert live.line(at(-12)) == "[0/20] starts in 12 s · 4 hosts running"


def test_a_running_plan_shows_all_that_is_asked_for(live):
    live.take([complete(0), complete(1), {"event": "lost", "host": "h2"}])
    assert live.line(at(60)) == (
        "[2/20] 15 % · left 5 min 35 s (19:46:35) · 3 hosts running, 1 failed"
        " · last 48,002 IOPS 196.6 MB/s 670 us · elapsed 1 min"
    )


def test_figures_of_fewer_hosts_than_there_are_say_so(live):
    live.take([complete(0, hosts=3)])
    assert "last 48,002 IOPS 196.6 MB/s 670 us of 3 hosts" in live.line(at(60))


def test_a_point_that_no_host_measured_has_no_figures(live):
    live.take([complete(0, hosts=0, iops=None, bytes_per_s=None, lat_mean_ns=None)])
    assert "last point: no host measured it" in live.line(at(60))


def test_a_single_host_is_not_counted():
    line = LiveLine(plan(hosts=1))
    line.start(told())
    assert line.line(at(60)) == "[0/20] 15 % · left 5 min 35 s (19:46:35) · elapsed 1 min"


def test_a_start_that_is_moved_moves_the_end(live):
    live.start(told(after_s=100))
    assert "starts in 40 s" in live.line(at(60))
    assert live.line(at(160)).startswith("[0/20] 15 % · left 5 min 35 s (19:48:15)")


def test_points_of_an_earlier_run_are_not_counted():
    line = LiveLine(plan(kept=3))
    line.start(told())
    assert line.line(at(60)).startswith("[0/20] 15 %")


def test_points_that_are_repeated_are_counted_once_and_have_a_time_of_their_own(live):
    live.take([complete(number) for number in range(20)])
    assert live.line(at(400)).startswith("[20/20] 100 % · 4 hosts running")
    live.start(told(after_s=410, points=2, number=2))
    live.take([complete(0, round=2)])
    assert live.line(at(427.5)).startswith(
        "[20/20] repeating 2 points that a host was late for 50 % · left 18 s (19:47:25)"
    )


def test_a_run_that_takes_longer_than_planned_stays_below_a_hundred_percent(live):
    live.take([complete(0)])
    assert live.line(at(1000)).startswith("[1/20] 99 % · left 0 s")


def test_where_there_is_only_ascii_the_line_is_ascii(live):
    text = live.line(at(60), 30, utf8=False)
    assert text == "[0/20] 15 % | left 5 min 35..."
    assert text.isascii()


@given(width=st.integers(0, 200), after_s=st.floats(-1e4, 1e6), done=st.integers(0, 20), utf8=st.booleans())
def test_the_line_fits_any_width_and_breaks_no_terminal(width, after_s, done, utf8):
    line = LiveLine(plan())
    line.start(told())
    line.take([complete(number) for number in range(done)])
    text = line.line(at(after_s), width, utf8)
    assert len(text) <= width
    assert text.isprintable()
    assert utf8 or text.isascii()


# -- where a line cannot be rewritten -------------------------------------------------------------------------------


def test_a_log_has_a_line_at_the_start_then_every_interval_and_when_a_host_fails(live):
    pace, shown = Pace(30), []
    for second in range(100):
        if second == 40:
            live.take([{"event": "lost", "host": "h1"}])
        if pace.due(live, live.line(at(second)), 1000.0 + second):
            shown.append(second)
    assert shown == [0, 30, 40, 70]


def test_a_line_that_says_nothing_new_is_not_repeated():
    waiting, pace = LiveLine(plan()), Pace(30)
    waiting.take([{"event": "ready", "host": "h0"}])
    assert [second for second in range(100) if pace.due(waiting, waiting.line(at(second)), 1000.0 + second)] == [0]
