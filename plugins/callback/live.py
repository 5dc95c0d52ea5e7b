# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One live line while a run measures: rewritten on a terminal, a plain line now and then in a log.

It must not know how hosts are measured: it follows the run's board. Whatever goes wrong in it, the play goes on.
"""

from __future__ import annotations

DOCUMENTATION = r"""
---
name: live
type: notification
short_description: One live line while a run measures
version_added: 0.1.0
description:
  - While a run measures, shows in one line the points that are complete, the percentage, the time left and the time of
    the end, the hosts that run and that failed, and the figures of the last complete point.
  - On a terminal the line stands below the output of Ansible and is rewritten every second. Elsewhere, and on a
    terminal that is C(dumb), a plain line is printed at the start, every O(interval_s), and when a host fails.
  - Works beside any callback that makes the output, and uses no colors.
author:
  - hostmax.storage contributors (@hostmax)
requirements:
  - To be enabled, as C(callbacks_enabled=hostmax.storage.live) in ansible.cfg or
    C(ANSIBLE_CALLBACKS_ENABLED=hostmax.storage.live) in the environment.
options:
  show:
    description: Where to show the line.
    type: str
    choices:
      tty: On a terminal only.
      always: On a terminal and, as plain lines, in a log.
      never: Nowhere.
    default: always
    env:
      - name: HOSTMAX_LIVE_SHOW
    ini:
      - section: callback_hostmax_live
        key: show
  interval_s:
    description: Seconds between two lines where the output is no terminal.
    type: float
    default: 30
    env:
      - name: HOSTMAX_LIVE_INTERVAL_S
    ini:
      - section: callback_hostmax_live
        key: interval_s
"""

import atexit
import contextlib
import datetime
import functools
import os
import sys
import threading
import time
from typing import Any, Callable

from ansible.plugins.callback import CallbackBase
from ansible_collections.hostmax.storage.plugins.plugin_utils.board import Board
from ansible_collections.hostmax.storage.plugins.plugin_utils.live_line import LiveLine, Pace
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import open_run

PLAN = "hostmax.storage.plan"
REPORT = "hostmax.storage.report"
TICK_S = 1.0
SHORTEST_INTERVAL_S = 1.0
USUAL_COLUMNS = 80
# to the left edge, then clear the line
ERASE = b"\r\x1b[K"


def never_fails(hook: Callable[..., None]) -> Callable[..., None]:
    """A fault in showing a line must not reach the play; it is told where somebody looks for it."""

    @functools.wraps(hook)
    def guarded(self: CallbackModule, *args: Any, **kwargs: Any) -> None:
        try:
            hook(self, *args, **kwargs)
        except Exception as error:
            with contextlib.suppress(Exception):
                self._display.vv(f"hostmax.storage.live shows nothing: {type(error).__name__}: {error}")

    return guarded


class TerminalLine:
    """A line below everything else on a terminal: taken away before something is displayed, drawn again afterwards.

    The lock is held for single writes only and never while somebody else's code runs: Ansible has a lock of its own
    around its output and its forks.
    """

    def __init__(self, display: Any, descriptor: int, encoding: str) -> None:
        self._display = display
        self._descriptor = descriptor
        self._encoding = encoding
        self._lock = threading.Lock()
        self._busy = 0
        self._shown = False
        # a worker process inherits all of this, but has nothing to do with the terminal
        self._pid = os.getpid()
        self._original = display.display
        display.display = self._displayed

    def draw(self, text: str) -> None:
        """Show the text instead of what the line shows; not in the middle of other output."""
        with self._lock:
            if not self._busy:
                os.write(self._descriptor, ERASE + text.encode(self._encoding, "replace"))
                self._shown = True

    def columns(self) -> int:
        """How much fits without a line break."""
        try:
            return (os.get_terminal_size(self._descriptor).columns or USUAL_COLUMNS) - 1
        except OSError:
            return USUAL_COLUMNS - 1

    def close(self) -> None:
        """Take the line away for good and leave the display as it was."""
        if os.getpid() != self._pid:
            return
        if self._display.display == self._displayed:
            self._display.display = self._original
        with self._lock:
            self._busy += 1
            self._erase()

    def _displayed(self, *args: Any, **kwargs: Any) -> Any:
        if os.getpid() != self._pid:
            return self._original(*args, **kwargs)
        with self._lock:
            self._busy += 1
            self._erase()
        try:
            return self._original(*args, **kwargs)
        finally:
            with self._lock:
                self._busy -= 1

    def _erase(self) -> None:
        if self._shown:
            self._shown = False
            with contextlib.suppress(OSError):
                os.write(self._descriptor, ERASE)


class Follower:
    """A thread that follows one run's board and shows its line until it is told to stop."""

    def __init__(self, display: Any, directory: str, interval_s: float, terminal: bool) -> None:
        self._display = display
        self._directory = directory
        self._pace = Pace(interval_s)
        self._encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        self._terminal = TerminalLine(display, sys.stdout.fileno(), self._encoding) if terminal else None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="hostmax-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Show nothing more."""
        self._stopped.set()
        if self._terminal:
            self._terminal.close()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2 * TICK_S)

    def _follow(self) -> None:
        try:
            run = open_run(self._directory)
            board, live, offset = Board(run), LiveLine(run.plan), 0
            while not self._stopped.wait(TICK_S):
                live.start(run.read_round())
                events, offset = board.read(offset)
                live.take(events)
                self._show(live)
        except Exception as error:
            if self._terminal:
                self._terminal.close()
            with contextlib.suppress(Exception):
                self._display.vv(f"hostmax.storage.live shows nothing: {type(error).__name__}: {error}")

    def _show(self, live: LiveLine) -> None:
        now = datetime.datetime.now().astimezone()
        text = live.line(now, self._terminal.columns() if self._terminal else None, speaks_utf8(self._encoding))
        if text is None or self._stopped.is_set():
            return
        if self._terminal:
            self._terminal.draw(text)
        elif self._pace.due(live, text, time.monotonic()):
            self._display.display(f"  {text}")


def speaks_utf8(encoding: str) -> bool:
    """Whether an encoding has the few signs beyond ASCII that the line uses."""
    try:
        "·…".encode(encoding)
    except (LookupError, UnicodeError):
        return False
    return True


def is_terminal() -> bool:
    """Whether the output goes to a terminal that can rewrite a line."""
    return bool(sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb")


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Learns the run directory from the plan, and ends when the report is made."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "hostmax.storage.live"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._follower: Follower | None = None
        # a play that is interrupted has no statistics
        atexit.register(self._stop)

    @never_fails
    def v2_runner_on_ok(self, result: Any) -> None:
        """The plan's directory begins the line."""
        if _action(result.task) == PLAN and result.result.get("directory"):
            self._begin(str(result.result["directory"]))

    @never_fails
    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """With the report there is nothing left to follow."""
        if _action(task) == REPORT:
            self._stop()

    @never_fails
    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The end of the playbook."""
        self._stop()

    def _begin(self, directory: str) -> None:
        self._stop()
        show, terminal = self.get_option("show"), is_terminal()
        if show == "always" or (show == "tty" and terminal):
            interval_s = max(SHORTEST_INTERVAL_S, float(self.get_option("interval_s")))
            self._follower = Follower(self._display, directory, interval_s, terminal)

    def _stop(self) -> None:
        follower, self._follower = self._follower, None
        if follower:
            follower.stop()


def _action(task: Any) -> str:
    """A task's action by its full name."""
    return str(getattr(task, "resolved_action", None) or task.action)
