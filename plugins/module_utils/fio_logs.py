# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""IOPS over time from the interval logs fio writes for each process of a point, and the window all of them share.

Must not know: what the levels are worth, or the clocks of other hosts; times are those of this host's clock.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence

Json = Dict[str, Any]

UNWRITTEN_WINDOWS = 2
"""fio up to 3.35 does not write its last window, and the one before can be late: no entry there is not no I/O."""


class Entry(NamedTuple):
    """One line of an iops log: the mean over the window that ends at `end_ms`, of one direction (0 read, 1 write)."""

    end_ms: int
    iops: float
    direction: int


class _Thread(NamedTuple):
    entries: list[Entry]
    start_ms: float
    end_ms: float
    known_ms: float


def read_point(
    prefix: str, volumes: Sequence[str], num_jobs: int, log_interval_ms: int, runtime_s: float | None = None
) -> Json | None:
    """The window and the IOPS of one point, or None where no process left an entry.

    `volumes` are the sections of the job file in their order; `runtime_s` is what fio reports: without it a process
    ends with its last entry, which is too early by a window or more (see UNWRITTEN_WINDOWS).
    """
    threads: dict[str, list[_Thread]] = {}
    missing = []
    for section, name in enumerate(volumes):
        numbers = range(section * num_jobs + 1, (section + 1) * num_jobs + 1)
        logs = [_read(f"{prefix}_iops.{number}.log") for number in numbers]
        threads[name] = [_thread(entries, log_interval_ms, runtime_s) for entries in logs if entries]
        if len(threads[name]) < num_jobs:
            missing.append(name)
    every = [thread for own in threads.values() for thread in own]
    if not every:
        return None
    start_ms, end_ms = max(thread.start_ms for thread in every), min(thread.end_ms for thread in every)
    first_ms, last_ms = min(thread.start_ms for thread in every), max(thread.end_ms for thread in every)
    return {
        "window": {
            "start_s": start_ms / 1000,
            "end_s": end_ms / 1000,
            "overlap": max(0.0, end_ms - start_ms) / (last_ms - first_ms),
            "skew_s": (start_ms - first_ms) / 1000,
        },
        "series": _series(every, start_ms, log_interval_ms),
        "volumes": {name: _bounds(own) for name, own in threads.items() if own},
        "missing": missing,
    }


def parse_log(text: str) -> list[Entry]:
    """The entries of a log; only the first three columns, which alone are alike in all versions and settings."""
    entries = []
    for line in text.splitlines():
        columns = line.split(",")
        try:
            entries.append(Entry(int(columns[0]), float(columns[1]), int(columns[2])))
        except (ValueError, IndexError):
            continue
    return entries


def _read(path: str) -> list[Entry]:
    try:
        with open(path, encoding="ascii", errors="replace") as handle:
            return parse_log(handle.read())
    except FileNotFoundError:
        return []


def _thread(entries: list[Entry], interval_ms: int, runtime_s: float | None) -> _Thread:
    first_ms = min(entry.end_ms for entry in entries)
    last_ms = max(entry.end_ms for entry in entries)
    start_ms = first_ms - interval_ms
    end_ms = last_ms if runtime_s is None else start_ms + runtime_s * 1000
    return _Thread(entries, start_ms, end_ms, max(min(last_ms, end_ms), end_ms - UNWRITTEN_WINDOWS * interval_ms))


def _bounds(threads: Sequence[_Thread]) -> Json:
    """When all processes of a volume were at work."""
    return {
        "start_s": max(thread.start_ms for thread in threads) / 1000,
        "end_s": min(thread.end_ms for thread in threads) / 1000,
    }


def _series(threads: Sequence[_Thread], start_ms: float, interval_ms: int) -> Json | None:
    """The sum of all processes from the start of the window, as far as all of them are known; None if that is nothing.

    Entries fall between the steps of the common grid: each gives every step the share that it covers of it.
    """
    steps = int((min(thread.known_ms for thread in threads) - start_ms) / interval_ms + 0.01)
    if steps < 1:
        return None
    iops = [0.0] * steps
    for thread in threads:
        previous_ms: dict[int, int] = {}
        for entry in thread.entries:
            begin_ms = entry.end_ms - interval_ms
            before_ms = previous_ms.get(entry.direction, begin_ms)
            if before_ms != entry.end_ms:
                begin_ms = max(begin_ms, before_ms)
            previous_ms[entry.direction] = entry.end_ms
            _spread(iops, entry.iops, begin_ms - start_ms, entry.end_ms - start_ms, interval_ms)
    return {"interval_s": interval_ms / 1000, "iops": [round(level, 3) for level in iops]}


def _spread(iops: list[float], level: float, begin_ms: float, end_ms: float, interval_ms: int) -> None:
    first, last = int(max(0.0, begin_ms) // interval_ms), int(end_ms // interval_ms)
    for step in range(first, min(last + 1, len(iops))):
        covered_ms = min(end_ms, (step + 1) * interval_ms) - max(begin_ms, step * interval_ms)
        if covered_ms > 0:
            iops[step] += level * covered_ms / interval_ms
