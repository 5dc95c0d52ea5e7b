# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.fio_logs import MOST_STEPS, Entry, parse_log, read_point
from hypothesis import given
from hypothesis import strategies as st


def a_log(folder: Path, number: int, *lines: str) -> None:
    (folder / f"fio_iops.{number}.log").write_text("".join(line + "\n" for line in lines))


def read(ios: int, runtime_s: float = 3.0) -> dict[str, Any]:
    return {"read": {"ios": ios, "runtime_s": runtime_s}, "write": None}


def point_of(folder: Path, measured: dict[str, Any], num_jobs: int = 1, interval_ms: int = 1000) -> dict[str, Any]:
    ended_s = 10.0 + 100
    found = read_point(str(folder / "fio"), list(measured), num_jobs, interval_ms, measured, ended_s)
    assert found is not None
    return found


def reads_of(point: dict[str, Any], name: str = "a") -> list[int]:
    counts: list[int] = point["steps"]["volumes"][name]["read"]
    return counts


def steady(start_ms: int, windows: int, iops: int = 1000) -> list[str]:
    return [f"{start_ms + 1000 * window}, {iops}, 0, 0, 0" for window in range(1, windows + 1)]


@pytest.mark.parametrize(
    "line", ["2000, 500, 1, 0", "2000, 500, 1, 0, 4096", "2000, 500, 1, 0, 0, 77", "2000,500,1,0,0"]
)
def test_columns_behind_the_third_differ_by_version_and_are_not_read(line: str) -> None:
    assert parse_log(line) == [Entry(2000, 500.0, 1)]


def test_a_line_that_breaks_off_is_left_out() -> None:
    assert parse_log("1000, 500, 0, 0, 0\n2000, 5") == [Entry(1000, 500.0, 0)]


def test_an_entry_covers_the_window_before_its_time(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    point = point_of(tmp_path, {"a": read(3000)})
    assert point["window"] == {"start_s": 10.0, "end_s": 13.0, "last_s": 13.0}
    assert reads_of(point) == [1000, 1000, 1000]
    assert (point["steps"]["start_s"], point["steps"]["interval_s"]) == (10.0, 1.0)


def test_logs_are_numbered_over_the_whole_job_file(tmp_path: Path) -> None:
    for number, iops in enumerate((100, 200, 3000, 4000), 1):
        a_log(tmp_path, number, *steady(10_000, 3, iops))
    point = point_of(tmp_path, {"a": read(900), "b": read(21_000)}, num_jobs=2)
    assert reads_of(point, "a") == [300, 300, 300]
    assert reads_of(point, "b") == [7000, 7000, 7000]


def test_a_slow_volumes_log_begins_late_and_the_point_does_not(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    a_log(tmp_path, 2, *steady(10_400, 3))
    point = point_of(tmp_path, {"a": read(3000), "b": read(3000)})
    assert point["window"]["start_s"] == 10.0
    assert point["window"]["end_s"] == 13.0
    assert sum(reads_of(point, "b")) == 3000


def test_reads_and_writes_stay_apart(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 700, 0, 0, 0", "1000, 300, 1, 0, 0", "2000, 700, 0, 0, 0", "2000, 300, 1, 0, 0")
    measured = {"a": {way: {"ios": ios, "runtime_s": 2.0} for way, ios in (("read", 1400), ("write", 600))}}
    found = point_of(tmp_path, measured)["steps"]["volumes"]["a"]
    assert found == {"read": [700, 700], "write": [300, 300]}


def test_a_window_without_io_is_not_written_and_counts_as_zero(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 800, 0, 0, 0", "3000, 800, 0, 0, 0")
    assert reads_of(point_of(tmp_path, {"a": read(1600)})) == [800, 0, 800]


def test_two_entries_of_one_time_after_a_stall_are_summed(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 800, 0, 0, 0", "2000, 300, 0, 0, 0", "2000, 500, 0, 0, 0", "3000, 800, 0, 0, 0")
    assert reads_of(point_of(tmp_path, {"a": read(2400)})) == [800, 800, 800]


def test_what_old_fio_does_not_log_at_the_end_is_what_its_total_has_more(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    point = point_of(tmp_path, {"a": read(2900)})
    assert point["window"]["end_s"] == 13.0
    assert reads_of(point) == [1000, 1000, 900]


def test_a_volume_that_stalls_to_the_end_is_zero_there(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    assert reads_of(point_of(tmp_path, {"a": read(2000, runtime_s=6.0)})) == [1000, 1000, 0, 0, 0, 0]


def test_more_than_the_unlogged_time_can_have_held_is_a_fault_of_the_whole_log(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    assert reads_of(point_of(tmp_path, {"a": read(8000, runtime_s=2.0)})) == [4000, 4000]


def test_a_process_without_a_log_is_named_and_taken_as_even(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    point = point_of(tmp_path, {"a": read(3000), "b": read(300)})
    assert point["steps"]["unlogged"] == ["b read"]
    assert reads_of(point, "b") == [100, 100, 100]


def test_a_long_point_has_longer_steps_and_not_more_of_them(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(0, 1000, 10))
    point = point_of(tmp_path, {"a": read(10_000, runtime_s=1000.0)})
    assert len(reads_of(point)) <= MOST_STEPS
    assert sum(reads_of(point)) == 10_000


def test_no_log_at_all_is_none(tmp_path: Path) -> None:
    a_log(tmp_path, 1)
    assert read_point(str(tmp_path / "fio"), ["a", "b"], 1, 1000, {"a": read(1), "b": read(1)}, 13.0) is None


entries = st.lists(st.tuples(st.integers(200, 4000), st.integers(0, 5000), st.integers(0, 1)), min_size=1, max_size=30)


@given(st.lists(entries, min_size=1, max_size=3), st.integers(1, 50_000), st.floats(0.1, 6.0))
def test_the_steps_add_up_to_what_fio_counted_whatever_its_logs_say(
    tmp_path_factory: pytest.TempPathFactory, logs: list[list[tuple[int, int, int]]], ios: int, runtime_s: float
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    for number, log in enumerate(logs, 1):
        a_log(folder, number, *(f"{end_ms}, {iops}, {way}, 0, 0" for end_ms, iops, way in sorted(log)))
    measured = {"a": {"read": {"ios": ios, "runtime_s": runtime_s}, "write": {"ios": 7, "runtime_s": runtime_s}}}
    found = read_point(str(folder / "fio"), ["a"], len(logs), 200, measured, 10.0)
    assert found is not None
    ways = found["steps"]["volumes"]["a"]
    assert (sum(ways["read"]), sum(ways["write"])) == (ios, 7)
    assert min(ways["read"] + ways["write"]) >= 0
    assert len(ways["read"]) == len(ways["write"])
    assert found["window"]["start_s"] <= found["window"]["end_s"] <= found["window"]["last_s"]
