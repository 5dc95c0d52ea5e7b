# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What `on_event` is told while a run goes on, and how the words on a run's board become that.

It must not know Ansible or who reads the events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Status = Literal["passed", "failed", "planned", "done"]


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan was made, and nothing has been changed yet. `directory` is None in check mode."""

    run_id: str
    directory: Path | None
    points: int
    planned_s: float
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """Ansible began a task: what happens before and after the points."""

    name: str


@dataclass(frozen=True, slots=True)
class PointEnded:
    """A point ended on one host; or, where `host` is None, on every host that was not lost, with their sum.

    The figures are None where nothing counts, and `faults` then says why. They are those of the moment; the results
    have the exact ones, of the common window. `round` is 2 where the point was measured again.
    """

    id: str
    host: str | None
    time_s: float
    iops: float | None
    bytes_per_s: float | None
    lat_mean_ns: float | None
    faults: tuple[str, ...]
    hosts: int
    hosts_failed: int
    round: int


@dataclass(frozen=True, slots=True)
class HostLost:
    """A host is not measured any more; the others go on."""

    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The playbook has ended and the report is written; the last event of a run that was not cancelled."""

    status: Status
    exit_code: int
    directory: Path | None


Event = Planned | TaskStarted | PointEnded | HostLost | Finished


def board_event(said: Mapping[str, Any]) -> PointEnded | HostLost | None:
    """A word on a run's board (plugin_utils/board.py) as an event; None for what embedders are not told."""
    kind = said.get("event")
    try:
        if kind == "lost":
            return HostLost(str(said["host"]), str(said["reason"]))
        if kind in ("point", "complete"):
            return _point(said, alone=kind == "point")
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # damaged, and only missing from what is shown: the results are made from the samples
    return None


def _point(said: Mapping[str, Any], alone: bool) -> PointEnded:
    faults = tuple(str(fault) for fault in said.get("faults") or ())
    if not alone:
        faults = tuple(
            f"{fault['host']}: {sentence}" for fault in said.get("faults") or () for sentence in fault["faults"]
        )
    failed = int(said["status"] != "measured") if alone else int(said["hosts_failed"])
    return PointEnded(
        id=str(said["id"]),
        host=str(said["host"]) if alone else None,
        time_s=float(said["time_s"]),
        iops=said.get("iops"),
        bytes_per_s=said.get("bytes_per_s"),
        lat_mean_ns=said.get("lat_mean_ns"),
        faults=faults,
        hosts=1 - failed if alone else int(said["hosts"]),
        hosts_failed=failed,
        round=int(said.get("round") or 1),
    )
