# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the hosts of a run have said so far, added up per point in a small file of fixed records: one event, one record.

It must not know how events come or are shown; the caller holds the lock and keeps the events themselves.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

MOST_FAULTS = 3
# a damaged event must not make the file endless
MOST_ROUNDS = 9
_MAGIC = b"hostmax1"
# magic, bytes of the events file that are added up here, rounds begun
_HEADER = struct.Struct("<8sQI")
# said, failed, lost; IOPS, bytes/s, sum of ios x mean latency, ios with a latency; places of the first faults
_POINT = struct.Struct(f"<3I4d{MOST_FAULTS}Q")


@dataclass(slots=True)
class PointTally:
    """What is known of one point in one round; `faults_at` are places in the events file, in bytes, plus 1."""

    said: int = 0
    failed: int = 0
    lost: int = 0
    iops: float = 0.0
    bytes_per_s: float = 0.0
    lat_sum_ns: float = 0.0
    lat_ios: float = 0.0
    faults_at: tuple[int, ...] = (0,) * MOST_FAULTS

    def add(self, event: Mapping[str, Any], at: int) -> None:
        """Add a host's word of the point, which stands at byte `at` of the events file."""
        self.said += 1
        if event.get("status") != "measured":
            self.failed += 1
            places = [place for place in self.faults_at if place]
            self.faults_at = tuple([*places, at + 1, *[0] * MOST_FAULTS][:MOST_FAULTS])
            return
        self.iops += float(event.get("iops") or 0)
        self.bytes_per_s += float(event.get("bytes_per_s") or 0)
        if event.get("lat_mean_ns") is not None and event.get("ios"):
            self.lat_sum_ns += float(event["lat_mean_ns"]) * float(event["ios"])
            self.lat_ios += float(event["ios"])

    def headline(self, point_id: str, number: int) -> Json:
        """The point's figures over the hosts that measured it; None where no host did."""
        measured = self.said - self.failed
        return {
            "id": point_id,
            "round": number,
            "hosts": measured,
            "hosts_failed": self.failed,
            "hosts_lost": self.lost,
            "iops": self.iops if measured else None,
            "bytes_per_s": self.bytes_per_s if measured else None,
            "lat_mean_ns": self.lat_sum_ns / self.lat_ios if self.lat_ios else None,
        }

    def pack(self) -> bytes:
        """The fixed record."""
        figures = (self.iops, self.bytes_per_s, self.lat_sum_ns, self.lat_ios)
        return _POINT.pack(self.said, self.failed, self.lost, *figures, *self.faults_at)

    @classmethod
    def unpack(cls, data: bytes) -> PointTally:
        """The tally in a fixed record."""
        said, failed, lost, iops, bytes_per_s, lat_sum_ns, lat_ios, *places = _POINT.unpack(data)
        return cls(said, failed, lost, iops, bytes_per_s, lat_sum_ns, lat_ios, tuple(places))


class BoardTally:
    """Records of an open file: who is lost, and for each round every point's tally and who has said it.

    Changes are kept until `commit`, so that the events can be written first: a tally that does not cover the events
    file to its end (`covers`) was interrupted and is made anew from it.
    """

    def __init__(self, descriptor: int, plan: Mapping[str, Any]) -> None:
        points = [point for point in plan["points"] if not point.get("kept")]
        self._descriptor = descriptor
        self._points = {point["id"]: number for number, point in enumerate(points)}
        self._jobs = [point.get("jobs", plan["hosts"]) for point in points]
        self._hosts = {host: number for number, host in enumerate(plan["hosts"])}
        self._mark_bytes = (len(points) + 7) // 8
        self._round_bytes = len(points) * _POINT.size + len(self._hosts) * self._mark_bytes
        self._changed: dict[int, bytes] = {}
        self._rounds = 0
        header = self._get(0, _HEADER.size)
        self._magic, self._covered, self._rounds = _HEADER.unpack(header)

    def covers(self, size_bytes: int) -> bool:
        """Whether everything in an events file of this size is added up here."""
        return bool(self._covered == size_bytes and (self._magic == _MAGIC or size_bytes == 0))

    def clear(self) -> None:
        """Forget everything."""
        os.ftruncate(self._descriptor, 0)
        self._changed.clear()
        self._rounds = 0

    def commit(self, size_bytes: int) -> None:
        """Write the changes; they cover an events file of this size. Raises OSError."""
        for place, data in self._changed.items():
            _write_whole(self._descriptor, data, place)
        _write_whole(self._descriptor, _HEADER.pack(_MAGIC, size_bytes, self._rounds), 0)
        self._changed.clear()

    def add(self, host: str, event: Mapping[str, Any], at: int) -> list[tuple[str, int, PointTally]]:
        """Add one event that stands at byte `at`; returns the points it completes: (id, round, tally).

        Complete is a point that every host has said that is not lost, if any has said it.
        """
        if host not in self._hosts or self._is_lost(host):
            return []
        if event.get("event") == "lost":
            return self._lose(host)
        if event.get("event") != "point" or event.get("id") not in self._points:
            return []
        number, point = event.get("round") or 1, self._points[event["id"]]
        if number not in range(1, MOST_ROUNDS + 1):
            return []
        self._begin_rounds(number)
        if host not in self._jobs[point] or self._has_said(host, number, point):
            return []
        self._mark(host, number, point)
        tally = self._tally(number, point)
        tally.add(event, at)
        self._put(self._place(number, point), tally.pack())
        return self._if_complete(str(event["id"]), number, tally)

    def _lose(self, host: str) -> list[tuple[str, int, PointTally]]:
        """A lost host is waited for no more: what the others have said of a point is all there will be."""
        self._begin_rounds(1)
        self._put(_HEADER.size + self._hosts[host], b"\1")
        completed = []
        for number in range(1, self._rounds + 1):
            for point_id, point in self._points.items():
                if host in self._jobs[point] and not self._has_said(host, number, point):
                    tally = self._tally(number, point)
                    tally.lost += 1
                    self._put(self._place(number, point), tally.pack())
                    completed += self._if_complete(point_id, number, tally)
        return completed

    def _if_complete(self, point_id: str, number: int, tally: PointTally) -> list[tuple[str, int, PointTally]]:
        whole = tally.said > 0 and tally.said + tally.lost >= len(self._jobs[self._points[point_id]])
        return [(point_id, number, tally)] if whole else []

    def _begin_rounds(self, last: int) -> None:
        """A round begins without the hosts that were lost before it."""
        for number in range(self._rounds + 1, last + 1):
            lost = [host for host in self._hosts if self._is_lost(host)] if number > 1 else []
            for point, jobs in enumerate(self._jobs):
                if lost:
                    tally = PointTally(lost=sum(host in jobs for host in lost))
                    self._put(self._place(number, point), tally.pack())
            self._rounds = number

    # -- records ----------------------------------------------------------------------------------------------------

    def _is_lost(self, host: str) -> bool:
        return self._get(_HEADER.size + self._hosts[host], 1) == b"\1"

    def _tally(self, number: int, point: int) -> PointTally:
        return PointTally.unpack(self._get(self._place(number, point), _POINT.size))

    def _has_said(self, host: str, number: int, point: int) -> bool:
        marks = self._get(self._marks(host, number), self._mark_bytes)
        return bool(marks[point // 8] >> point % 8 & 1)

    def _mark(self, host: str, number: int, point: int) -> None:
        marks = bytearray(self._get(self._marks(host, number), self._mark_bytes))
        marks[point // 8] |= 1 << point % 8
        self._put(self._marks(host, number), bytes(marks))

    def _round(self, number: int) -> int:
        return _HEADER.size + len(self._hosts) + (number - 1) * self._round_bytes

    def _place(self, number: int, point: int) -> int:
        return self._round(number) + point * _POINT.size

    def _marks(self, host: str, number: int) -> int:
        return self._round(number) + len(self._points) * _POINT.size + self._hosts[host] * self._mark_bytes

    def _get(self, place: int, size: int) -> bytes:
        """A record; what was never written is zero."""
        data = self._changed.get(place)
        return (os.pread(self._descriptor, size, place) if data is None else data).ljust(size, b"\0")

    def _put(self, place: int, data: bytes) -> None:
        self._changed[place] = data


def _write_whole(descriptor: int, data: bytes, place: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, place)
        data, place = data[written:], place + written
