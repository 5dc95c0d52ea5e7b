# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""hostmax.storage from Python: `hostmax.run("host_max", inventory=…, settings={…}, on_event=…)`; see docs/embedding.md.

It must not know more than the names it hands out.
"""

from __future__ import annotations

from hostmax.errors import (
    AnsibleMissing,
    BadInput,
    Cancelled,
    EventHandlerFailed,
    HostmaxError,
    RunEnded,
    RunFailed,
    TimedOut,
)
from hostmax.events import Event, Finished, HostLost, Planned, PointEnded, TaskStarted
from hostmax.job import Run, run
from hostmax.results import Plan, Results

__all__ = [
    "AnsibleMissing",
    "BadInput",
    "Cancelled",
    "Event",
    "EventHandlerFailed",
    "Finished",
    "HostLost",
    "HostmaxError",
    "Plan",
    "Planned",
    "PointEnded",
    "Results",
    "Run",
    "RunEnded",
    "RunFailed",
    "TaskStarted",
    "TimedOut",
    "run",
]
