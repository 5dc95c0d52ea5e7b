# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When this host's points are due: rounds as the controller tells them, kept on a clock that nobody can set.

Must not know: what a point is, other hosts, or how the time was agreed.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, NamedTuple

NAME = "go.json"
# a point that begins later than this share of its runtime cannot overlap enough with the other hosts to count
LATEST_SHARE = 0.2


class Due(NamedTuple):
    """A point and when it is due, in seconds after T0."""

    id: str
    offset_s: float


class Round(NamedTuple):
    """Points to run, from T0 on. ``t0_s`` is on this host's wall clock as it was when the round was read.

    A higher ``attempt`` of the same round means that T0 was moved: what had begun begins again.
    """

    number: int
    attempt: int
    t0_s: float
    points: tuple[Due, ...]
    anchor_s: float
    stamp: tuple[int, int]

    def due_s(self, due: Due) -> float:
        """When a point is due, on the monotonic clock."""
        return self.t0_s + due.offset_s - self.anchor_s

    def shift_s(self) -> float:
        """How far the wall clock was set forward since the round was read; 0 unless somebody set it."""
        shift = time.time() - time.monotonic() - self.anchor_s
        # the two clocks cannot be read at the same moment
        return shift if abs(shift) > 0.001 else 0.0


def _stamp(path: str) -> tuple[int, int]:
    facts = os.stat(path)
    return facts.st_ino, facts.st_mtime_ns


def read(work_dir: str) -> Round | None:
    """The round that was told last, or None where none was told yet."""
    path = os.path.join(work_dir, NAME)
    try:
        stamp = _stamp(path)
        with open(path, encoding="utf-8") as handle:
            told: dict[str, Any] = json.load(handle)
    except FileNotFoundError:
        return None
    points = tuple(Due(str(each["id"]), float(each["offset_s"])) for each in told["points"])
    anchor_s = time.time() - time.monotonic()
    return Round(int(told["round"]), int(told["attempt"]), float(told["t0"]), points, anchor_s, stamp)


def has_changed(work_dir: str, current: Round) -> bool:
    """Whether another round, or another T0 for this one, was told since ``current`` was read."""
    try:
        return _stamp(os.path.join(work_dir, NAME)) != current.stamp
    except OSError:
        return False
