# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When a host did I/O in a point and how many in each step of it, from the interval logs of fio's processes.

Must not know: what the counts are worth, or the clocks of other hosts; times are those of this host's clock.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, NamedTuple, Sequence

Json = Dict[str, Any]

DIRECTIONS = ("read", "write")
# two processes fio released together have their first entries this share of an interval apart, or less
SAME_START = 0.5
# longer than this many intervals since the entry before: windows without I/O lie between, which fio does not write
GAP = 1.5
# what was not logged may have come this many times as fast as the fastest logged window; more is a fault of the log
PLAUSIBLE_TAIL = 2.0
# how many steps a sample carries at most; longer points get longer steps
MOST_STEPS = 120


class Entry(NamedTuple):
    """One line of an iops log: the mean over the window that ends at `end_ms`, of one direction (0 read, 1 write)."""

    end_ms: int
    iops: float
    direction: int


class _Span(NamedTuple):
    """I/Os of one direction of one process, taken as evenly spread between two moments."""

    begin_ms: float
    end_ms: float
    ios: float


class _Clock(NamedTuple):
    """When a point began on this host, and when each volume's processes may have ended, first and last."""

    start_ms: float
    first_end_ms: float
    last_ms: float
    ends_ms: dict[str, float]


def read_point(
    prefix: str,
    volumes: Sequence[str],
    num_jobs: int,
    log_interval_ms: int,
    measured: Mapping[str, Json],
    ended_s: float,
) -> Json | None:
    """`window` and `steps` of one point, or None where no process left an entry.

    `volumes` are the sections of the job file in their order; `measured` is what fio reports of each (ios and
    runtime_s by direction): the counts of a step list add up to it exactly. `ended_s` is when fio ended.
    """
    logs = _read_logs(prefix, volumes, num_jobs)
    entries = [entry for of_volume in logs.values() for log in of_volume for entry in log]
    if not entries:
        return None
    clock = _clock(logs, log_interval_ms, measured, ended_s * 1000)
    interval_ms, count = _grid(clock, log_interval_ms)
    steps: dict[str, dict[str, list[int]]] = {}
    unlogged = []
    for name, volume in measured.items():
        end_ms = clock.ends_ms.get(name, clock.last_ms)
        steps[name] = {way: [] for way in DIRECTIONS}
        for number, way in enumerate(DIRECTIONS):
            if not volume.get(way):
                continue
            processes = _spans(logs.get(name, []), number, log_interval_ms, clock.start_ms, end_ms)
            if not processes:
                unlogged.append(f"{name} {way}")
            ios = volume[way]["ios"]
            spans = _completed(processes, ios, clock.start_ms, end_ms)
            steps[name][way] = _counts(spans, ios, clock.start_ms, interval_ms, count)
    return {
        "window": {
            "start_s": clock.start_ms / 1000,
            "end_s": clock.first_end_ms / 1000,
            "last_s": clock.last_ms / 1000,
        },
        "steps": {
            "start_s": clock.start_ms / 1000,
            "interval_s": interval_ms / 1000,
            "unlogged": unlogged,
            "volumes": steps,
        },
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


def _read_logs(prefix: str, volumes: Sequence[str], num_jobs: int) -> dict[str, list[list[Entry]]]:
    """The log of every process by volume; fio numbers them over the whole job file. None that is not there."""
    logs: dict[str, list[list[Entry]]] = {}
    for section, name in enumerate(volumes):
        numbers = range(section * num_jobs + 1, (section + 1) * num_jobs + 1)
        logs[name] = [log for log in (_read(f"{prefix}_iops.{number}.log") for number in numbers) if log]
    return logs


def _read(path: str) -> list[Entry]:
    try:
        with open(path, encoding="ascii", errors="replace") as handle:
            return parse_log(handle.read())
    except FileNotFoundError:
        return []


def _clock(
    logs: Mapping[str, list[list[Entry]]], interval_ms: int, measured: Mapping[str, Json], ended_ms: float
) -> _Clock:
    """fio releases its processes together, so all begin with the first; a slow one's log only begins late.

    A process ends its runtime, as fio reports it of its volume, after its start. Where its log begins late, that start
    is only known to lie between the first process's and its own first entry.
    """
    begins = {
        name: min(entry.end_ms for log in found for entry in log) - interval_ms for name, found in logs.items() if found
    }
    start_ms = min(begins.values())
    latest_ms = max(entry.end_ms for found in logs.values() for log in found for entry in log)
    first_ends, ends = [], {}
    for name, volume in measured.items():
        runtimes = [volume[way]["runtime_s"] * 1000 for way in DIRECTIONS if volume.get(way)]
        if not runtimes:
            continue
        begin_ms = begins.get(name, start_ms)
        late_ms = begin_ms - start_ms
        first_ends.append(start_ms + max(runtimes) + (late_ms if late_ms <= SAME_START * interval_ms else 0.0))
        ends[name] = min(begin_ms + max(runtimes), max(ended_ms, first_ends[-1]))
    if not ends:
        return _Clock(start_ms, latest_ms, latest_ms, {})
    return _Clock(start_ms, min(first_ends), max(ends.values()), ends)


def _grid(clock: _Clock, log_interval_ms: int) -> tuple[int, int]:
    """(milliseconds of a step, how many there are): fio's own interval, or a multiple of it in a long point."""
    length_ms = max(1.0, clock.last_ms - clock.start_ms)
    interval_ms = log_interval_ms * max(1, -int(-length_ms // (log_interval_ms * MOST_STEPS)))
    return interval_ms, max(1, -int(-length_ms // interval_ms))


def _spans(
    logs: Iterable[list[Entry]], direction: int, interval_ms: int, start_ms: float, end_ms: float
) -> list[list[_Span]]:
    """For each process the I/Os of its entries, and where each stands.

    An entry is a rate over the time since the entry before; after a gap over one interval, since windows without I/O
    are not written. Two entries of one time, which a stall leaves behind, are of one interval each.
    """
    found = []
    for log in logs:
        spans: list[_Span] = []
        before_ms = None
        for entry in sorted(entry for entry in log if entry.direction == direction):
            passed_ms = interval_ms if before_ms is None else entry.end_ms - before_ms
            if passed_ms <= 0 or passed_ms > GAP * interval_ms:
                passed_ms = interval_ms
            begin_ms = max(start_ms, entry.end_ms - passed_ms)
            ios = entry.iops * passed_ms / 1000
            spans.append(_Span(min(begin_ms, end_ms), max(start_ms, min(entry.end_ms, end_ms)), ios))
            before_ms = entry.end_ms
        if spans:
            found.append(spans)
    return found


def _completed(processes: list[list[_Span]], ios: int, start_ms: float, end_ms: float) -> list[_Span]:
    """The spans of a volume's processes with all its I/Os: those that no entry tells of came after the last entry.

    fio up to 3.35 does not write its last window or two. Where they cannot have held what is missing (or too much was
    logged: rates are whole numbers of rough times), all entries are wrong by the same factor.
    """
    spans = [span for process in processes for span in process]
    logged = sum(span.ios for span in spans)
    if logged <= 0:
        return [_Span(start_ms, end_ms, float(ios))]
    missing = ios - logged
    tails = [(process[-1].end_ms, end_ms - process[-1].end_ms) for process in processes]
    unknown_ms = sum(length_ms for _begin_ms, length_ms in tails)
    fastest = max(
        (span.ios / (span.end_ms - span.begin_ms) for span in spans if span.end_ms > span.begin_ms), default=0
    )
    if missing >= 0 and unknown_ms > 0 and missing <= PLAUSIBLE_TAIL * fastest * unknown_ms:
        return spans + [_Span(begin, end_ms, missing * length / unknown_ms) for begin, length in tails if length > 0]
    return [span._replace(ios=span.ios * ios / logged) for span in spans]


def _counts(spans: Iterable[_Span], ios: int, start_ms: float, interval_ms: int, count: int) -> list[int]:
    """Whole I/Os in each step: rounded where they are added up, so that no error grows and the sum is `ios`."""
    rates = [0.0] * count
    for span in spans:
        _spread(rates, span, start_ms, interval_ms)
    counts, before, reached = [], 0, 0.0
    for rate in rates[:-1]:
        reached += rate
        now = min(ios, round(reached))
        counts.append(now - before)
        before = now
    return [*counts, ios - before]


def _spread(rates: list[float], span: _Span, start_ms: float, interval_ms: int) -> None:
    """Give every step the share of a span that it covers."""
    begin_ms, end_ms = span.begin_ms - start_ms, span.end_ms - start_ms
    last = len(rates) - 1
    first = min(last, int(begin_ms // interval_ms))
    final = min(last, int(end_ms // interval_ms))
    if first == final or end_ms <= begin_ms:
        rates[first] += span.ios
        return
    each = span.ios / (end_ms - begin_ms)
    for step in range(first, final + 1):
        upper_ms = end_ms if step == last else min(end_ms, (step + 1) * interval_ms)
        rates[step] += each * (upper_ms - max(begin_ms, step * interval_ms))
