# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The board of a run: what every host says, in one file for all to follow, and each point's total once it is complete.

It must not know how hosts are reached or how events are shown.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.board_tally import BoardTally, PointTally
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectory, RunDirectoryError

Json = dict[str, Any]

EVENTS = "progress.jsonl"
TALLY = ".progress.tally"
_LONGEST_LINE_BYTES = 1 << 20


class Board:
    """One run's events. Any number of processes note and read at once; no file is kept open between calls."""

    def __init__(self, run: RunDirectory) -> None:
        self._path = run.path / EVENTS
        self._tally_path = run.path / TALLY
        self._run = run

    def note(self, host: str, event: Mapping[str, Any]) -> list[Json]:
        """Keep an agent's event; returns the headlines of the points that it completes, in the plan's order.

        A "point" completes at most one, a "lost" any number: those that the lost host alone had not said. A point
        that no host has said is never complete; one said again in a later `round` counts anew.

        Headline: {id, round, hosts, hosts_failed, hosts_lost, iops, bytes_per_s, lat_mean_ns, faults}. `hosts` have
        measured it and the figures are theirs, None where there are none; `faults` are the first few hosts' of those
        that failed, [{host, faults}]. It is kept as an event "complete" too. Raises RunDirectoryError.
        """
        said = {**event, "time_s": time.time(), "host": host}
        with self._opened() as (events, tally_file):
            end = os.fstat(events).st_size
            tally = BoardTally(tally_file, self._run.plan)
            if not tally.covers(end):
                self._add_up_anew(tally, events, end)
            # a line that a crash cut off before stays a line of its own
            lead = b"\n" if end and os.pread(events, 1, end - 1) != b"\n" else b""
            completed = tally.add(host, event, end + len(lead))
            headlines = [
                {**one.headline(point, number), "faults": _faults(one, events, said)}
                for point, number, one in completed
            ]
            lines = [said, *({**each, "event": "complete", "time_s": said["time_s"]} for each in headlines)]
            data = lead + b"".join(map(_line, lines))
            self._append(events, data, end)
            tally.commit(end + len(data))
        return headlines

    def read(self, offset: int) -> tuple[list[Json], int]:
        """The whole events from byte `offset` on, and where the next ones will begin; 0 is the start.

        No events where there is no file yet; a line still being written waits, one that is damaged is left out.
        """
        try:
            with self._path.open("rb") as handle:
                handle.seek(offset)
                data = handle.read()
        except OSError:
            return [], offset
        whole = data[: data.rfind(b"\n") + 1]
        return [event for _place, event in _events(whole)], offset + len(whole)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[int, int]]:
        """The two files, locked; a fault of theirs becomes a sentence."""
        opened = []
        try:
            for path in (self._path, self._tally_path):
                opened.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
            fcntl.flock(opened[0], fcntl.LOCK_EX)
            yield opened[0], opened[1]
        except OSError as error:
            raise RunDirectoryError(f"{self._path} cannot be written: {error.strerror}.") from error
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _append(self, events: int, data: bytes, end: int) -> None:
        """All of it or nothing."""
        if os.pwrite(events, data, end) != len(data):
            os.ftruncate(events, end)
            raise RunDirectoryError(f"{self._path} cannot be written whole; is its file system full?")

    def _add_up_anew(self, tally: BoardTally, events: int, end: int) -> None:
        """The tally from all events, after a crash or a full disk came between the two files."""
        tally.clear()
        for place, event in _events(os.pread(events, end, 0)):
            tally.add(str(event.get("host")), event, place)


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def _events(data: bytes) -> Iterator[tuple[int, Json]]:
    """(place in bytes, event) of each whole line that is one."""
    place = 0
    for line in data.split(b"\n"):
        event = _event(line)
        if event is not None:
            yield place, event
        place += len(line) + 1


def _event(line: bytes) -> Json | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _faults(tally: PointTally, events: int, said: Mapping[str, Any]) -> list[Json]:
    """The first hosts that failed a point, with their faults; the event just said is not in the file yet."""
    found: list[Json] = []
    for place in filter(None, tally.faults_at):
        data = os.pread(events, _LONGEST_LINE_BYTES, place - 1).partition(b"\n")[0]
        event: Mapping[str, Any] = (_event(data) or {}) if data else said
        faults: Sequence[Any] = event.get("faults") or []
        found.append({"host": str(event.get("host")), "faults": [str(fault) for fault in faults]})
    return found
