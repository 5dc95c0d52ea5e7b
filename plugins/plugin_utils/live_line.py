# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One line on how far a run is: points, time left, hosts, the last figures; from the plan and the board's events.

It must not know where the line is shown or how events come.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    format_count,
    format_duration,
    format_latency,
    format_rate,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.rounds import time_of

Json = dict[str, Any]


class LiveLine:
    """What is known of a run while it goes on. `take` events as they come, ask for the `line` at any time."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        # how long each point runs, in seconds
        self._runs_s = {p["id"]: p["ramp_s"] + p["runtime_s"] for p in plan["points"] if not p.get("kept")}
        self._hosts = len(plan["hosts"])
        self._ready: set[str] = set()
        self._failed: set[str] = set()
        self._complete: set[str] = set()
        self._last: Json | None = None
        self._told: Json | None = None
        self._began = False

    @property
    def failed(self) -> int:
        """How many hosts measure no more."""
        return len(self._failed)

    @property
    def began(self) -> bool:
        """Whether the hosts have a common start, so that there is a time to tell."""
        return self._told is not None

    def start(self, told: Mapping[str, Any] | None) -> None:
        """The round as the hosts are told it: {round, t0 (epoch seconds on this clock), points [{id, offset_s}]}."""
        if told is not None:
            self._told, self._began = dict(told), True

    def take(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Events of the board, in order."""
        for event in events:
            self._began = True
            name, host = event.get("event"), str(event.get("host"))
            if name == "ready":
                self._ready.add(host)
            elif name in ("lost", "failed"):
                self._failed.add(host)
            elif name == "complete" and event.get("id") in self._runs_s:
                self._last = dict(event)
                self._complete.add(event["id"])

    def line(self, now: datetime.datetime, width: int | None = None, utf8: bool = True) -> str | None:
        """The line at a local time, in at most `width` columns; None before the first host has said anything."""
        if not self._began:
            return None
        parts = [*self._where(now), *self._of_hosts(), *self._figures(), *self._elapsed(now)]
        text = (" · " if utf8 else " | ").join(parts)
        if width is None or len(text) <= width:
            return text
        end = "…" if utf8 else "..."
        return (text[: max(0, width - len(end))] + end)[: max(0, width)]

    def _where(self, now: datetime.datetime) -> list[str]:
        points = f"[{len(self._complete)}/{len(self._runs_s)}]"
        if self._told is None:
            return [f"{points} getting ready"]
        since_s, length_s = now.timestamp() - self._told["t0"], self._length_s(self._told)
        if time_of(self._told["round"]) > 1:
            again = len(self._told["points"])
            points += f" repeating {again} {'point' if again == 1 else 'points'} that a host was late for"
        elif len(self._complete) == len(self._runs_s):
            return [f"{points} 100 %"]
        if since_s < 0:
            return [f"{points} starts in {format_duration(round(-since_s))}"]
        # with what later stages take
        length_s += self._told.get("after_s", 0.0)
        left_s = max(0.0, length_s - since_s)
        share = min(99, int(100 * since_s / length_s)) if length_s > 0 else 0
        end = now + datetime.timedelta(seconds=left_s)
        return [f"{points} {share} %", f"left {format_duration(round(left_s))} ({end:%H:%M:%S})"]

    def _length_s(self, told: Mapping[str, Any]) -> float:
        """From T0 to the end of the round's last point."""
        return max((each["offset_s"] + self._runs_s.get(each["id"], 0.0) for each in told["points"]), default=0.0)

    def _of_hosts(self) -> list[str]:
        failed = [f"{len(self._failed):,} failed"] if self._failed else []
        if self._hosts == 1:
            return failed
        if self._told is None:
            return [", ".join([f"{len(self._ready - self._failed):,} of {self._hosts:,} hosts ready", *failed])]
        well = self._hosts - len(self._failed)
        return [", ".join([f"{well:,} {'host' if well == 1 else 'hosts'} running", *failed])]

    def _figures(self) -> list[str]:
        last = self._last
        if last is None:
            return []
        some = f" of {last['hosts']:,} hosts" if last["hosts"] < self._hosts else ""
        if last["iops"] is None:
            return ["last point: no host measured it"]
        latency = f" {format_latency(last['lat_mean_ns'])}" if last["lat_mean_ns"] is not None else ""
        return [f"last {format_count(last['iops'])} IOPS {format_rate(last['bytes_per_s'])}{latency}{some}"]

    def _elapsed(self, now: datetime.datetime) -> list[str]:
        if self._told is None or now.timestamp() < self._told["t0"]:
            return []
        return [f"elapsed {format_duration(round(now.timestamp() - self._told['t0']))}"]


class Pace:
    """When a line is due where it cannot be rewritten: at the start, every so often, and when a host fails."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._due_s = 0.0
        self._told: tuple[bool, int] | None = None
        self._text: str | None = None

    def due(self, live: LiveLine, text: str, now_s: float) -> bool:
        """Whether to show `text` now; what says nothing new is never due."""
        news = (live.began, live.failed) != self._told
        if text == self._text or not (news or now_s >= self._due_s):
            return False
        self._told, self._text, self._due_s = (live.began, live.failed), text, now_s + self._interval_s
        return True
