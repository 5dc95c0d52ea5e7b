# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The callback's own parts: a line that never mixes with other output, and faults that never reach the play."""

from __future__ import annotations

import os
import threading
import types

import pytest
from ansible_collections.hostmax.storage.plugins.callback import live

ERASED = "\r\x1b[K"


class Display:
    """As much of Ansible's display as the callback uses, writing to the same place as the line."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.verbose = []

    def display(self, msg, **_options):
        os.write(self.descriptor, f"{msg}\n".encode())

    def vv(self, msg):
        self.verbose.append(msg)


@pytest.fixture
def screen():
    reading, writing = os.pipe()

    def shown():
        os.set_blocking(reading, False)
        try:
            return os.read(reading, 65536).decode()
        except BlockingIOError:
            return ""

    yield Display(writing), shown
    os.close(reading)
    os.close(writing)


def test_the_line_is_taken_away_before_anything_else_is_displayed(screen):
    display, shown = screen
    line = live.TerminalLine(display, display.descriptor, "utf-8")
    line.draw("[0/2] 1 %")
    display.display("TASK [next]")
    display.display("ok: [h1]")
    line.draw("[0/2] 2 %")
    line.close()
    assert shown() == f"{ERASED}[0/2] 1 %{ERASED}TASK [next]\nok: [h1]\n{ERASED}[0/2] 2 %{ERASED}"


def test_nothing_is_drawn_in_the_middle_of_other_output(screen):
    display, shown = screen
    line = None

    def display_slowly(self, msg, **_options):
        line.draw("too early")
        os.write(self.descriptor, msg.encode())

    display.display = types.MethodType(display_slowly, display)
    line = live.TerminalLine(display, display.descriptor, "utf-8")
    display.display("whole")
    assert shown() == "whole"


def test_a_closed_line_is_never_drawn_and_the_display_is_as_before(screen):
    display, shown = screen
    before = display.display
    line = live.TerminalLine(display, display.descriptor, "utf-8")
    assert display.display != before
    line.close()
    line.draw("late")
    display.display("after")
    assert shown() == "after\n"
    assert display.display == before


def test_a_worker_process_leaves_the_line_alone(screen):
    display, shown = screen
    line = live.TerminalLine(display, display.descriptor, "utf-8")
    line.draw("line")
    child = os.fork()
    if child == 0:
        display.display("from a worker")
        line.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert shown() == f"{ERASED}linefrom a worker\n"


def test_the_lock_is_not_held_while_ansible_displays(screen):
    # Ansible forks while it holds the lock of its own output: two locks in two orders would hang the play
    display, _shown = screen
    held = []
    line = None

    def look(self, msg, **_options):
        held.append(line._lock.locked())

    display.display = types.MethodType(look, display)
    line = live.TerminalLine(display, display.descriptor, "utf-8")
    display.display("x")
    assert held == [False]


@pytest.mark.parametrize(("encoding", "speaks"), [("utf-8", True), ("ascii", False), ("latin-1", False), ("?", False)])
def test_signs_beyond_ascii_are_used_only_where_the_encoding_has_them(encoding, speaks):
    assert live.speaks_utf8(encoding) is speaks


@pytest.mark.parametrize(
    ("tty", "term", "rewrites"),
    [(True, "xterm", True), (True, "dumb", False), (True, None, False), (False, "xterm", False)],
)
def test_a_line_is_rewritten_on_a_terminal_that_can(monkeypatch, tty, term, rewrites):
    monkeypatch.setattr(live.sys, "stdout", types.SimpleNamespace(isatty=lambda: tty))
    monkeypatch.delenv("TERM", raising=False)
    if term:
        monkeypatch.setenv("TERM", term)
    assert live.is_terminal() is rewrites


# -- what it learns from the play -----------------------------------------------------------------------------------


def task(action):
    return types.SimpleNamespace(action=action, resolved_action=None)


def ok(action, **result):
    return types.SimpleNamespace(task=task(action), result=result)


@pytest.fixture
def callback(monkeypatch):
    started = []

    class Follower:
        def __init__(self, display, directory, interval_s, terminal):
            self.directory, self.interval_s, self.stopped = directory, interval_s, False
            started.append(self)

        def stop(self):
            self.stopped = True

    monkeypatch.setattr(live, "Follower", Follower)
    monkeypatch.setattr(live, "is_terminal", lambda: False)
    plugin = live.CallbackModule()
    plugin._display = Display(2)
    options = {"show": "always", "interval_s": 30.0}
    monkeypatch.setattr(plugin, "get_option", options.__getitem__)
    return types.SimpleNamespace(plugin=plugin, started=started, options=options)


def test_the_line_follows_the_run_from_its_plan_to_its_report(callback):
    plugin, started = callback.plugin, callback.started
    plugin.v2_runner_on_ok(ok("ansible.builtin.debug", directory="/elsewhere"))
    assert started == []
    plugin.v2_runner_on_ok(ok("hostmax.storage.plan", directory="/run"))
    plugin.v2_playbook_on_task_start(task("hostmax.storage.measure"), False)
    assert [(each.directory, each.interval_s, each.stopped) for each in started] == [("/run", 30.0, False)]
    plugin.v2_playbook_on_task_start(task("hostmax.storage.report"), False)
    assert started[0].stopped


def test_a_check_that_makes_no_run_directory_is_not_followed(callback):
    callback.plugin.v2_runner_on_ok(ok("hostmax.storage.plan", directory=None))
    assert callback.started == []


@pytest.mark.parametrize(("show", "tty", "follows"), [("never", True, 0), ("tty", False, 0), ("tty", True, 1)])
def test_the_user_says_where_the_line_is_shown(callback, monkeypatch, show, tty, follows):
    callback.options["show"] = show
    monkeypatch.setattr(live, "is_terminal", lambda: tty)
    callback.plugin.v2_runner_on_ok(ok("hostmax.storage.plan", directory="/run"))
    assert len(callback.started) == follows


def test_a_fault_in_the_line_is_told_and_goes_no_further(callback):
    callback.plugin.v2_runner_on_ok(types.SimpleNamespace())
    assert "shows nothing: AttributeError" in callback.plugin._display.verbose[0]


def test_a_run_directory_that_cannot_be_read_ends_the_thread_and_nothing_else(screen, tmp_path):
    display, shown = screen
    before = threading.active_count()
    follower = live.Follower(display, str(tmp_path / "gone"), 30.0, terminal=False)
    follower._thread.join(timeout=30)
    assert "does not exist" in display.verbose[0]
    follower.stop()
    assert (threading.active_count(), shown()) == (before, "")
