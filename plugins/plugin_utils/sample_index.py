# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the samples of a run stand in samples.jsonl, so that only those of one host are in memory at a time.

It must not know what samples mean, or who wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import check_packed

Json = dict[str, Any]


class SampleIndex:
    """The place of the last whole sample of every point and host; `faults` has a sentence for every other line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []
        self._places: dict[str, dict[str, int]] = {}
        self._last: dict[str, int] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        place = 0
        with self.path.open("rb") as handle:
            for number, line in enumerate(handle, 1):
                if line.strip():
                    self._take(number, line, place)
                place += len(line)

    def _take(self, number: int, line: bytes, place: int) -> None:
        try:
            sample = json.loads(line)
            point, host = str(sample["point"]), str(sample["host"])
            check_packed(sample)
        except (ValueError, KeyError, TypeError, AttributeError):
            cut_off = not line.endswith(b"\n")
            why = "is cut off, the run was ended while it was written" if cut_off else "is damaged"
            self.faults.append(f"samples.jsonl: line {number} {why}; its sample was left out.")
            return
        self._places.setdefault(point, {})[host] = place
        self._last[host] = place

    def points(self) -> list[str]:
        """The points that have a sample, in the order in which they first came."""
        return list(self._places)

    def of(self, point: str) -> PackedSamples:
        """The samples of a point by host, as they were sent: each is read from the file when it is asked for."""
        return PackedSamples(self.path, self._places.get(point, {}))

    def last(self) -> PackedSamples:
        """Each host's last sample in the file, whatever its point."""
        return PackedSamples(self.path, self._last)


class PackedSamples(Mapping[str, Json]):
    """Samples by host, still packed, each read from the file when it is asked for."""

    def __init__(self, path: Path, places: Mapping[str, int]) -> None:
        self._path, self._places = path, places

    def __getitem__(self, host: str) -> Json:
        # before the file, which a run that measured nothing does not have
        place = self._places[host]
        with self._path.open("rb") as handle:
            handle.seek(place)
            sample: Json = json.loads(handle.readline())
        return sample

    def __contains__(self, host: object) -> bool:
        return host in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
