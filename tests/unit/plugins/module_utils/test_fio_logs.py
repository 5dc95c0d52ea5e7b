# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.fio_logs import Entry, parse_log, read_point


def a_log(folder: Path, number: int, *lines: str) -> None:
    (folder / f"fio_iops.{number}.log").write_text("".join(line + "\n" for line in lines))


def point_of(folder: Path, volumes: list[str], num_jobs: int = 1, **changes: Any) -> dict[str, Any]:
    found = read_point(str(folder / "fio"), volumes, num_jobs, **{"log_interval_ms": 1000, "runtime_s": 3.0} | changes)
    assert found is not None
    return found


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
    point = point_of(tmp_path, ["a"])
    assert point["volumes"] == {"a": {"start_s": 10.0, "end_s": 13.0}}
    assert point["window"] == {"start_s": 10.0, "end_s": 13.0, "overlap": 1.0, "skew_s": 0.0}
    assert point["series"] == {"interval_s": 1.0, "iops": [1000.0, 1000.0, 1000.0]}


def test_logs_are_numbered_over_the_whole_job_file(tmp_path: Path) -> None:
    for number, start_ms in enumerate((10_000, 10_000, 10_500, 10_500), 1):
        a_log(tmp_path, number, *steady(start_ms, 3))
    point = point_of(tmp_path, ["a", "b"], num_jobs=2)
    assert point["volumes"] == {"a": {"start_s": 10.0, "end_s": 13.0}, "b": {"start_s": 10.5, "end_s": 13.5}}


def test_the_window_is_where_all_volumes_work_and_their_rates_add_up_in_it(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    a_log(tmp_path, 2, *steady(10_500, 3))
    point = point_of(tmp_path, ["a", "b"])
    assert point["window"] == {"start_s": 10.5, "end_s": 13.0, "overlap": pytest.approx(2.5 / 3.5), "skew_s": 0.5}
    assert point["series"]["iops"] == [2000.0, 2000.0]


def test_volumes_that_never_work_together_have_no_common_window(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    a_log(tmp_path, 2, *steady(20_000, 3))
    point = point_of(tmp_path, ["a", "b"])
    assert point["window"]["end_s"] < point["window"]["start_s"]
    assert (point["window"]["overlap"], point["series"]) == (0.0, None)


def test_reads_and_writes_add_up(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 700, 0, 0, 0", "1000, 300, 1, 0, 0", "2000, 700, 0, 0, 0", "2000, 300, 1, 0, 0")
    assert point_of(tmp_path, ["a"], runtime_s=2.0)["series"]["iops"] == [1000.0, 1000.0]


def test_a_window_without_io_is_not_written_and_counts_as_zero(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 800, 0, 0, 0", "3000, 800, 0, 0, 0")
    assert point_of(tmp_path, ["a"])["series"]["iops"] == [800.0, 0.0, 800.0]


def test_two_entries_of_one_time_after_a_stall_are_summed(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 800, 0, 0, 0", "2000, 300, 0, 0, 0", "2000, 500, 0, 0, 0", "3000, 800, 0, 0, 0")
    assert point_of(tmp_path, ["a"])["series"]["iops"] == [800.0, 800.0, 800.0]


def test_the_last_window_that_old_fio_does_not_write_is_unknown_and_not_zero(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    point = point_of(tmp_path, ["a"], runtime_s=3.0)
    assert point["window"]["end_s"] == 13.0
    assert point["series"]["iops"] == [1000.0, 1000.0]


def test_a_volume_that_stalls_to_the_end_is_zero_there(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    assert point_of(tmp_path, ["a"], runtime_s=6.0)["series"]["iops"] == [1000.0, 1000.0, 0.0, 0.0]


def test_a_process_without_a_log_is_named(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    point = point_of(tmp_path, ["a", "b"])
    assert point["missing"] == ["b"]
    assert "b" not in point["volumes"]


def test_no_log_at_all_is_none(tmp_path: Path) -> None:
    a_log(tmp_path, 1)
    assert read_point(str(tmp_path / "fio"), ["a", "b"], 1, 1000, 3.0) is None
