"""Points are due by a clock that nobody can set, and a round that is told anew is noticed."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import schedule


@pytest.fixture
def tell(tmp_path):
    def write(t0, number=1, attempt=1, points=(("a", 0.0), ("b", 5.5))):
        told = {
            "round": number,
            "attempt": attempt,
            "t0": t0,
            "points": [{"id": name, "offset_s": offset_s} for name, offset_s in points],
        }
        new = tmp_path / "go.json.new"
        new.write_text(json.dumps(told))
        new.replace(tmp_path / "go.json")
        return schedule.read(str(tmp_path))

    return write


def test_nothing_is_read_before_it_is_told(tmp_path):
    assert schedule.read(str(tmp_path)) is None


def test_a_point_is_due_its_offset_after_t0(tell):
    told = tell(time.time() + 10)
    due = [told.due_s(each) - time.monotonic() for each in told.points]
    assert due == pytest.approx([10, 15.5], abs=0.2)


def test_setting_the_wall_clock_moves_no_point_and_is_known(tell, monkeypatch):
    told = tell(time.time() + 10)
    before = told.due_s(told.points[0])
    assert told.shift_s() == pytest.approx(0, abs=0.005)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    assert told.due_s(told.points[0]) == before
    assert told.shift_s() == pytest.approx(3600, abs=0.1)


def test_another_round_or_another_t0_is_noticed(tell, tmp_path):
    told = tell(100.0)
    assert not schedule.has_changed(str(tmp_path), told)
    moved = tell(200.0, attempt=2)
    assert schedule.has_changed(str(tmp_path), told)
    assert not schedule.has_changed(str(tmp_path), moved)
    assert (moved.number, moved.attempt, moved.t0_s) == (1, 2, 200.0)


def test_a_round_that_is_gone_has_not_changed(tell, tmp_path):
    told = tell(100.0)
    (tmp_path / "go.json").unlink()
    assert not schedule.has_changed(str(tmp_path), told)
