# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Following one host through one round: its events as they come, its samples brought home, and why it ended.

It must not know Ansible's tasks or what the figures mean.
"""

from __future__ import annotations

import time
from typing import Any

from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import rounds
from ansible_collections.hostmax.storage.plugins.plugin_utils.board import Board
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import HostLink, Progress
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_progress import board_lines
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectory

Json = dict[str, Any]

# fio's own start and end, and with several hosts some time more: looking too early costs the controller another look
FIO_START_S, MORE_HOSTS_S = 0.35, 0.15
LONGEST_SLEEP_S = 10.0
RETRY_S = 0.1
# an agent that is stopped (SIGSTOP) this long after it should have spoken is given up
STOPPED_S = 10.0


def say(run: RunDirectory, host: str, event: Json, left_s: float = 0.0) -> None:
    """Put an event on the run's board, and show what it comes to."""
    headlines = Board(run).note(host, event)
    for line in board_lines(run.plan, host, event, headlines, left_s):
        Display().display(line, color="red" if event["event"] == "lost" else None)


class Follower:
    """One host, one round. ``measured`` counts points that came home, ``late`` is {point: seconds after its time}."""

    def __init__(self, run: RunDirectory, host: str, link: HostLink, facts: Json, told: Json) -> None:
        self._run = run
        self._plan = run.plan
        self._host = host
        self._link = link
        self._facts = facts
        self._told = told
        self._seen = 0
        self._patience_s = float(self._plan["settings"]["hostmax_patience_s"])
        self.measured = 0
        self.late: dict[str, float] = {}

    @property
    def end_s(self) -> float:
        """When the round should have ended."""
        return rounds.due_s(self._plan, self._told, len(self._told["points"]))

    def follow(self) -> str | None:
        """Until the round has ended: None, or why the host measures no more. Raises HostLostError."""
        give_up_s = self.end_s + self._patience_s
        while True:
            seen = self._link.progress(self._seen, give_up_s)
            self._seen += len(seen.events)
            for event in seen.events:
                word = self._take(event, give_up_s)
                if word is not None:
                    return word or None
            reason = self._fault(seen)
            if reason:
                return reason
            time.sleep(self._pause_s())

    def collect(self) -> None:
        """Bring home every sample of this round that the host has, and no more waiting."""
        for event in self._link.progress(0).events:
            if event["event"] == "point" and event["round"] == self._told["round"]:
                self._bring_home(event, 0.0)

    def _take(self, event: Json, give_up_s: float) -> str | None:
        """Act on one event: None to go on, "" at the end of the round, or why the host measures no more."""
        kind = event["event"]
        if kind == "moved":
            self.measured, self.late = 0, {}
        elif kind == "point" and event["round"] == self._told["round"]:
            if not self._bring_home(event, give_up_s):
                return f"the sample of {event['id']} could not be read on the host"
            self.measured += 1
            if event["late_s"] is not None:
                self.late[event["id"]] = event["late_s"]
            left_s = self.end_s + self._told.get("after_s", 0.0) - time.time()
            say(self._run, self._host, {**event, "round": rounds.time_of(event["round"])}, left_s)
        elif kind == "failed":
            return str(event["reason"])
        elif kind == "ended" and event["round"] == self._told["round"]:
            return ""
        elif kind == "restored":
            # an agent that was told another round too late has put the host back already; one that is told again what
            # a host was late for has measured it all the same
            late = rounds.time_of(self._told["round"]) > 1 or self.measured >= len(self._told["points"])
            return "" if late else "its agent was not told the next condition in time and put the host back"
        return None

    def _bring_home(self, event: Json, give_up_s: float) -> bool:
        found = self._link.sample(event["id"], give_up_s)
        if found is None:
            return False
        self._run.add_sample(self._host, *found)
        return True

    def _fault(self, seen: Progress) -> str | None:
        """Why nothing more is to be expected of an agent that said nothing of an end."""
        if not seen.alive:
            return None if seen.events else self._link.why_gone(self._facts.get("boot_id"), seen.boot_id)
        behind_s = time.time() - rounds.due_s(self._plan, self._told, self.measured)
        if seen.state in ("T", "t") and behind_s > STOPPED_S:
            return "its agent was stopped by a signal and does not go on (state T)"
        if behind_s > rounds.overdue_s(self._plan, self._told, self.measured):
            return f"its agent is there and says nothing (state {seen.state}); it did not end its point in time"
        return None

    def _pause_s(self) -> float:
        """Sleep until the running point should have ended, then look often; never longer than a liveness check."""
        if self.measured >= len(self._told["points"]):
            return RETRY_S
        due_s = rounds.due_s(self._plan, self._told, self.measured) + FIO_START_S
        due_s += MORE_HOSTS_S if len(self._plan["hosts"]) > 1 else 0.0
        return min(LONGEST_SLEEP_S, max(RETRY_S, due_s - time.time()))
