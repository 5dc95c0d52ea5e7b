# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of a playbook while it runs: from ansible-runner's events and the run's board, told to the caller.

It must not know how Ansible is run or what is done with what it says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.board import Board
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectory

from hostmax.events import Event, HostLost, Planned, TaskStarted, board_event

PLAN, PROBE, REPORT = "hostmax.storage.plan", "hostmax.storage.probe", "hostmax.storage.report"
# tasks that only look: where nothing else was started, nothing was changed
LOOKING = (PLAN, PROBE)
ERROR_MARK = "[ERROR]: "
FAILED, UNREACHABLE = "runner_on_failed", "runner_on_unreachable"
MOST_SENTENCES = 20


class Watch:
    """Collects what matters, and tells `on_event` and `output`; `fault` is what one of them raised, and then neither
    is called again."""

    def __init__(self, on_event: Callable[[Event], object] | None, output: Callable[[str], object] | None) -> None:
        self.fault: Exception | None = None
        self.directory: Path | None = None
        self.plan: Mapping[str, Any] | None = None
        self.exit_code: int | None = None
        # the last lines of the output
        self.lines: deque[str] = deque()
        self._on_event = on_event
        self._output = output
        self._board: Board | None = None
        self._read_bytes = 0
        self._failures: list[str] = []
        self._lost: dict[str, str] = {}
        self._only_looked = True

    def see(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take in events of ansible-runner, then what is new on the run's board."""
        for event in events:
            self._say(event.get("stdout") or "")
            self._take(str(event.get("event")), event.get("event_data") or {})
        if self._board is not None:
            said, self._read_bytes = self._board.read(self._read_bytes)
            for news in map(board_event, said):
                if isinstance(news, HostLost):
                    self._lose(news.host, news.reason)
                elif news is not None:
                    self.tell(news)

    def tell(self, event: Event) -> None:
        """Tell the caller one event."""
        self._call(self._on_event, event)

    def output_only(self) -> Callable[[str], object] | None:
        """The caller's `output`, unless it raised."""
        return None if self.fault else self._output

    def nothing_changed(self) -> bool:
        """Whether no task was started but those that look, and all hosts could be reached."""
        return self._only_looked and not self._lost

    def sentences(self) -> tuple[str, ...]:
        """Why the playbook failed, a sentence for each host; in Ansible's words where no task did."""
        found = list(dict.fromkeys(self._failures))
        told = " ".join(found)
        found += [f"{host}: {reason}" for host, reason in self._lost.items() if reason not in told]
        if not found:
            found = [" ".join(_errors_of(self.lines)) or f"Ansible ended with exit code {self.exit_code}."]
        more = [f"And {len(found) - MOST_SENTENCES} more."] if len(found) > MOST_SENTENCES else []
        return (*found[:MOST_SENTENCES], *more)

    # -- events -----------------------------------------------------------------------------------------------------

    def _take(self, kind: str, data: Mapping[str, Any]) -> None:
        action = str(data.get("task_action") or data.get("resolved_action") or "")
        result = data.get("res") or {}
        if kind == "playbook_on_task_start":
            self.tell(TaskStarted(str(data.get("name") or data.get("task") or "")))
        elif kind == "runner_on_start":
            self._only_looked = self._only_looked and action in LOOKING
        elif kind == "runner_on_ok" and action == PLAN and "run_id" in result:
            self._take_plan(result)
        elif kind == "runner_on_ok" and result.get("lost"):
            self._lose(str(data.get("host")), str(result["lost"]))
        elif kind in (FAILED, UNREACHABLE) and not data.get("ignore_errors"):
            self._take_failure(kind, action, str(data.get("host")), result)
        if kind in ("runner_on_ok", FAILED) and action == REPORT and result.get("directory"):
            self.directory = Path(result["directory"])

    def _take_plan(self, result: Mapping[str, Any]) -> None:
        self.plan = result.get("plan")
        if result.get("directory"):
            self.directory = Path(result["directory"])
            self._board = Board(RunDirectory(self.directory))
        hosts = tuple(map(str, result["hosts"]))
        self.tell(Planned(result["run_id"], self.directory, int(result["points"]), float(result["planned_s"]), hosts))

    def _take_failure(self, kind: str, action: str, host: str, result: Mapping[str, Any]) -> None:
        message = " ".join(str(result.get("msg") or "failed without a word").split())
        if kind == UNREACHABLE:
            self._lose(host, f"unreachable: {message}")
            return
        if action not in (PLAN, REPORT) and not message.startswith(host):
            message = f"{host}: {message}"
        self._failures.append(message)

    def _lose(self, host: str, reason: str) -> None:
        """A host is lost; the board and Ansible may both say so, and it is told once."""
        if host not in self._lost:
            self._lost[host] = reason
            self.tell(HostLost(host, reason))

    # -- the caller -------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        for line in text.splitlines() if self._output else ():
            self._call(self._output, line)

    def _call(self, function: Callable[[Any], object] | None, what: object) -> None:
        if function is None or self.fault is not None:
            return
        try:
            function(what)
        except Exception as fault:  # the caller's own; told to it when the run has ended
            self.fault = fault


def _errors_of(lines: Iterable[str]) -> list[str]:
    """Ansible's last error, its wrapped lines put together."""
    found: list[str] = []
    inside = False
    for line in lines:
        if line.startswith(ERROR_MARK):
            found, inside = [line.removeprefix(ERROR_MARK).strip()], True
        elif inside and line.strip():
            found.append(line.strip())
        else:
            inside = False
    return found
