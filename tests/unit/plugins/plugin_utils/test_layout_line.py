"""What is shown while a host lays out its files: at once, now and then, and at the end."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import layout_line

GIB = 2**30


@pytest.fixture
def shown(monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(layout_line, "Display", lambda: type("", (), {"display": staticmethod(lines.append)}))
    return lines


def test_a_layout_is_shown_at_once_then_every_half_minute_and_whole(shown):
    line = layout_line.LayoutLine("db1")
    for second in range(0, 101, 2):
        line.note({"time_s": 1000.0 + second, "done_bytes": second * GIB // 100, "total_bytes": GIB})
    assert len(shown) == 5
    assert shown[0] == "  db1: test files laid out, 0 B of 1 GiB"
    assert shown[-1] == "  db1: test files laid out, 1 GiB of 1 GiB, 10.7 MB/s"
    assert line.seen == 51


def test_a_host_is_asked_often_at_first_and_then_once_a_second(shown):
    line = layout_line.LayoutLine("db1")
    assert line.pause_s(0.05) == 0.05
    line.note({"time_s": 0.0, "done_bytes": 0, "total_bytes": GIB})
    assert line.pause_s(0.05) == 1.0
