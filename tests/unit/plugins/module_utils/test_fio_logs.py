# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.fio_logs import MOST_STEPS, Entry, parse_log, read_point
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).parents[3] / "fixtures" / "fio_logs"


def a_log(folder: Path, number: int, *lines: str) -> None:
    (folder / f"fio_iops.{number}.log").write_text("".join(line + "\n" for line in lines))


def did(read: int = 0, write: int = 0, runtime_s: float = 3.0) -> dict[str, Any]:
    ways = {"read": read, "write": write}
    return {way: {"ios": ios, "runtime_s": runtime_s} if ios else None for way, ios in ways.items()}


def point_of(folder: Path, measured: dict[str, Any], num_jobs: int = 1, ended_s: float = 99.0) -> dict[str, Any]:
    found = read_point(str(folder / "fio"), list(measured), num_jobs, 1000, measured, ended_s)
    assert found is not None
    return found


def steady(start_ms: int, windows: int, iops: int = 1000) -> list[str]:
    return [f"{start_ms + 1000 * window}, {iops}, 0, 0, 0" for window in range(1, windows + 1)]


def reads(point: dict[str, Any], volume: str = "a") -> list[int]:
    counts: list[int] = point["steps"]["volumes"][volume]["read"]
    return counts


@pytest.mark.parametrize(
    "line", ["2000, 500, 1, 0", "2000, 500, 1, 0, 4096", "2000, 500, 1, 0, 0, 77", "2000,500,1,0,0"]
)
def test_columns_behind_the_third_differ_by_version_and_are_not_read(line: str) -> None:
    assert parse_log(line) == [Entry(2000, 500.0, 1)]


def test_a_line_that_breaks_off_is_left_out() -> None:
    assert parse_log("1000, 500, 0, 0, 0\n2000, 5") == [Entry(1000, 500.0, 0)]


def test_an_entry_tells_of_the_time_before_it(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    point = point_of(tmp_path, {"a": did(3000)})
    assert point["window"] == {"start_s": 10.0, "end_s": 13.0, "last_s": 13.0}
    assert (point["steps"]["start_s"], point["steps"]["interval_s"]) == (10.0, 1.0)
    assert point["steps"]["volumes"] == {"a": {"read": [1000, 1000, 1000], "write": []}}


def test_the_window_of_a_host_ends_with_its_first_process_and_its_last_io_with_the_last(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    a_log(tmp_path, 2, *steady(10_100, 3))
    point = point_of(tmp_path, {"a": did(3000, runtime_s=3.0), "b": did(3000, runtime_s=3.4)})
    assert point["window"] == {"start_s": 10.0, "end_s": 13.0, "last_s": 13.5}
    assert reads(point, "b") == [900, 1000, 1000, 100]


def test_a_slow_volume_began_with_the_others_although_its_log_begins_late(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    a_log(tmp_path, 2, "12500, 1, 0, 0, 0")
    point = point_of(tmp_path, {"a": did(3000), "slow": did(1)})
    assert point["window"]["start_s"] == 10.0
    assert point["window"]["end_s"] == 13.0
    assert sum(reads(point, "slow")) == 1


def test_logs_are_numbered_over_the_whole_job_file(tmp_path: Path) -> None:
    for number, iops in enumerate((100, 200, 1000, 2000), 1):
        a_log(tmp_path, number, *steady(10_000, 3, iops))
    point = point_of(tmp_path, {"a": did(900), "b": did(9000)}, num_jobs=2)
    assert reads(point, "a") == [300] * 3
    assert reads(point, "b") == [3000] * 3


def test_reads_and_writes_are_counted_apart(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 700, 0, 0, 0", "1000, 300, 1, 0, 0", "2000, 600, 0, 0, 0", "2000, 400, 1, 0, 0")
    point = point_of(tmp_path, {"a": did(1300, 700, runtime_s=2.0)})
    assert point["steps"]["volumes"]["a"] == {"read": [700, 600], "write": [300, 400]}


def test_a_window_without_io_is_not_written_and_counts_as_zero(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 800, 0, 0, 0", "3000, 800, 0, 0, 0")
    assert reads(point_of(tmp_path, {"a": did(1600)})) == [800, 0, 800]


def test_an_entry_that_came_a_little_late_is_a_rate_over_the_time_that_passed(tmp_path: Path) -> None:
    # 1,200 I/Os in 1.2 s, 800 in 0.8 s: the same rate throughout
    a_log(tmp_path, 1, "1000, 1000, 0, 0, 0", "2200, 1000, 0, 0, 0", "3000, 1000, 0, 0, 0")
    assert reads(point_of(tmp_path, {"a": did(3000)})) == [1000, 1000, 1000]


def test_two_entries_of_one_time_after_a_stall_are_both_counted(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 800, 0, 0, 0", "2000, 300, 0, 0, 0", "2000, 500, 0, 0, 0", "3000, 800, 0, 0, 0")
    assert reads(point_of(tmp_path, {"a": did(2400)})) == [800, 800, 800]


def test_entries_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "2000, 500, 0, 0, 0", "1000, 900, 0, 0, 0", "3000, 700, 0, 0, 0")
    assert reads(point_of(tmp_path, {"a": did(2100)})) == [900, 500, 700]


def test_what_old_fio_does_not_log_came_after_its_last_entry(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    assert reads(point_of(tmp_path, {"a": did(2950)})) == [1000, 1000, 950]


def test_more_than_the_tail_can_have_held_is_a_fault_of_all_entries(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    # 10,000 in the last second would be ten times what any other second saw
    assert reads(point_of(tmp_path, {"a": did(12_000)})) == [6000, 6000, 0]


def test_more_logged_than_done_is_a_fault_of_all_entries(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    assert reads(point_of(tmp_path, {"a": did(1500)})) == [500, 500, 500]


def test_a_volume_that_stalls_to_the_end_is_zero_there(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 2))
    assert reads(point_of(tmp_path, {"a": did(2000, runtime_s=6.0)})) == [1000, 1000, 0, 0, 0, 0]


def test_one_process_of_several_without_a_log_is_taken_to_do_as_the_others(tmp_path: Path) -> None:
    a_log(tmp_path, 1, "1000, 300, 0, 0, 0", "2000, 100, 0, 0, 0", "3000, 200, 0, 0, 0")
    point = point_of(tmp_path, {"a": did(1200)}, num_jobs=2)
    assert reads(point) == [600, 200, 400]
    assert point["steps"]["unlogged"] == []


def test_a_volume_without_any_log_is_named_and_taken_as_even(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 3))
    point = point_of(tmp_path, {"a": did(3000), "b": did(600)})
    assert point["steps"]["unlogged"] == ["b read"]
    assert reads(point, "b") == [200, 200, 200]


def test_no_log_at_all_is_none(tmp_path: Path) -> None:
    a_log(tmp_path, 1)
    assert read_point(str(tmp_path / "fio"), ["a", "b"], 1, 1000, {"a": did(5), "b": did(5)}, 99.0) is None


def test_a_long_point_has_longer_steps_and_no_more_of_them(tmp_path: Path) -> None:
    a_log(tmp_path, 1, *steady(10_000, 1000))
    point = point_of(tmp_path, {"a": did(1_000_000, runtime_s=1000.0)}, ended_s=2000.0)
    assert point["steps"]["interval_s"] == 9.0
    assert len(reads(point)) <= MOST_STEPS
    assert sum(reads(point)) == 1_000_000


entries = st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 3000), st.integers(0, 1)), max_size=30)


@given(entries, entries, st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 12_000))
def test_whatever_the_logs_say_every_io_is_in_exactly_one_step(
    one: list[Any], two: list[Any], read: int, write: int, runtime_ms: int
) -> None:
    measured = {name: did(read, write, runtime_ms / 1000) for name in ("a", "b")}
    with tempfile.TemporaryDirectory() as folder:
        for number, found in enumerate((one, two), 1):
            a_log(Path(folder), number, *(f"{end}, {iops}, {way}, 0, 0" for end, iops, way in found))
        point = read_point(f"{folder}/fio", ["a", "b"], 1, 1000, measured, runtime_ms / 1000)
    if point is None:
        assert one == two == []
        return
    for ways in point["steps"]["volumes"].values():
        assert sum(ways["read"]) == read
        assert sum(ways["write"]) == write
        assert min(ways["read"] + ways["write"]) >= 0
    assert point["window"]["start_s"] <= point["window"]["end_s"] <= point["window"]["last_s"]


# -- what fio 3.33 really wrote -------------------------------------------------------------------------------------


def recorded(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    facts = json.loads((FIXTURES / name / "point.json").read_text())
    given_facts = [facts[key] for key in ("volumes", "num_jobs", "log_interval_ms", "measured", "ended_s")]
    point = read_point(str(FIXTURES / name / "fio"), *given_facts)
    assert point is not None
    return facts, point


def logged(name: str, number: int, interval_s: float) -> float:
    entries = parse_log((FIXTURES / name / f"fio_iops.{number}.log").read_text())
    return sum(entry.iops for entry in entries) * interval_s


@pytest.mark.parametrize("name", ["tail_lost", "capped_with_ramp", "four_jobs"])
def test_the_steps_of_a_recorded_point_hold_all_its_ios_and_end_when_fio_did(name: str) -> None:
    facts, point = recorded(name)
    for volume, ways in point["steps"]["volumes"].items():
        for way, counts in ways.items():
            measured = facts["measured"][volume][way]
            assert sum(counts) == (measured["ios"] if measured else 0)
    assert point["window"]["last_s"] == pytest.approx(facts["ended_s"], abs=0.05)


def test_a_recorded_log_lacks_its_tail_and_the_last_steps_are_about_as_full_as_the_one_before() -> None:
    facts, point = recorded("tail_lost")
    ios = facts["measured"]["v0"]["read"]["ios"]
    assert logged("tail_lost", 1, 0.15) < ios - 2000
    *_others, last_logged, tail, _rest = reads(point, "v0")
    assert tail == pytest.approx(last_logged, rel=0.35)


def test_a_recorded_cap_of_300_iops_shows_in_every_second() -> None:
    _facts, point = recorded("capped_with_ramp")
    counts = reads(point, "v0")
    # the kernel releases what is capped in bursts of a tenth of a second, so one fifth holds one to three of them
    assert [sum(counts[k : k + 5]) for k in range(0, 15, 5)] == [pytest.approx(300, abs=32)] * 3
