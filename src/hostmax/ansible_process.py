# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One ansible-playbook under ansible-runner, in a private directory of its own, with its events and a clean end.

It must not know what the playbook does; it starts it, hands over what it says, and ends it and its workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import shutil
import signal
import sys
import sysconfig
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import COLLECTION

from hostmax.errors import AnsibleMissing, RunFailed

PROGRAM = "ansible-playbook"
# how often ansible-runner asks whether it is to cancel
POLL_S = 0.25
# what Ansible and its workers get to put hosts back after they were asked to end
GRACE_S = 30.0
KILL_WAIT_S = 5.0
LINES_KEPT = 200
COLLECTIONS = "ANSIBLE_COLLECTIONS_PATH"
# what must be so: plain lines as they come, and an inventory that cannot be read is never taken for "this machine"
FIXED = {
    "PYTHONUNBUFFERED": "1",
    "ANSIBLE_STDOUT_CALLBACK": "default",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
    "ANSIBLE_NOCOWS": "1",
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
}
# what ansible-runner sets against the user's own configuration, unless the user set the variable
LEFT_TO_THE_USER = ("ANSIBLE_HOST_KEY_CHECKING",)


@dataclass(frozen=True, slots=True)
class Play:
    """What is to be played. `settings` may be seen by anybody; `variables` are kept in a private file."""

    playbook: str
    inventory: Path | Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    check: bool = False
    forks: int | None = None
    limit: str | None = None


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """A new directory for this user only, removed with all in it."""
    path = Path(tempfile.mkdtemp(prefix="hostmax-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def environment(own: Mapping[str, str], given: Mapping[str, str], private: Path) -> dict[str, str]:
    """The variables to set for Ansible besides the program's `own`; raises AnsibleMissing.

    The directory of this Python, not resolved, comes first on PATH: its Ansible is beside it in a venv.
    """
    beside = [str(Path(sys.executable).parent), sysconfig.get_path("scripts")]
    path = os.pathsep.join([*dict.fromkeys(beside), {**own, **given}.get("PATH", os.defpath)])
    program = shutil.which(PROGRAM, path=path)
    if program is None:
        raise AnsibleMissing(
            f"{PROGRAM} was found neither in {beside[0]} nor on PATH; install it into this program's environment:"
            f" {sys.executable} -m pip install ansible-core"
        )
    changes = {**given, **FIXED, "PATH": path, "ANSIBLE_LOCAL_TEMP": str(private / "tmp")}
    root = str(COLLECTION.absolute().parents[2])
    configured = {**own, **given}.get(COLLECTIONS)
    if configured:
        changes[COLLECTIONS] = os.pathsep.join([root, configured])
    elif os.path.dirname(program) not in beside:
        # another Python's Ansible does not look where this package is installed
        changes[COLLECTIONS] = os.pathsep.join([root, "~/.ansible/collections", "/usr/share/ansible/collections"])
    return changes


class AnsibleProcess:
    """A playbook that runs. All methods are for one thread; ansible-runner has a thread of its own."""

    def __init__(self, play: Play, private: Path) -> None:
        self.exit_code: int | None = None
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._queue: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._fault: Exception | None = None
        self._main: host_state.Identity | None = None
        self._workers: dict[int, host_state.Identity] = {}
        self._asked_s: float | None = None
        self._end_at_s = float("inf")
        own = dict(os.environ)
        changes = environment(own, play.env, private)
        kept = [name for name in LEFT_TO_THE_USER if name in own or name in changes]
        self._thread = threading.Thread(
            target=self._work,
            args=(_runner_arguments(play, private, changes), kept),
            name="hostmax-ansible",
            daemon=True,
        )
        self._thread.start()

    # -- the caller's thread ----------------------------------------------------------------------------------------

    def events(self, wait_s: float) -> tuple[list[Mapping[str, Any]], bool]:
        """(ansible-runner's events that came, whether more may come); waits for the first one at most `wait_s`."""
        found: list[Mapping[str, Any]] = []
        with contextlib.suppress(queue.Empty):
            event = self._queue.get(timeout=wait_s)
            while event is not None:
                found.append(event)
                event = self._queue.get_nowait()
            self._thread.join()
            # what it raises while it is being ended is of no interest
            if self._fault is not None and self._asked_s is None:
                raise RunFailed(f"ansible-runner could not run the playbook: {self._fault}") from None
            return found, False
        return found, True

    def interrupt(self) -> None:
        """Ask Ansible to end, as Ctrl-C does: its workers then put their hosts back. After GRACE_S it is killed."""
        if self._asked_s is not None:
            return
        self._asked_s = time.monotonic()
        self._note_workers()
        # before its first event nothing has been started
        self._end_at_s = self._asked_s + GRACE_S if self._signal(signal.SIGINT) else 0.0

    def finish(self) -> None:
        """Wait for the end after `interrupt`; another Ctrl-C meanwhile kills Ansible and its workers at once."""
        try:
            self._thread.join()
            self.end_workers()
        except BaseException:
            self._end_at_s = 0.0
            self._thread.join()
            self.end_workers(at_once=True)
            raise

    def end_workers(self, at_once: bool = False) -> None:
        """Wait for workers that outlive Ansible; those that are there after GRACE_S are killed, each by its id."""
        for wait_s, killed in ((0.0 if at_once else GRACE_S, False), (KILL_WAIT_S, True)):
            end_s = time.monotonic() + wait_s
            while left := [who for who in self._workers.values() if host_state.is_alive(who)]:
                for who in left if killed else ():
                    _kill_group(who)
                if time.monotonic() > end_s:
                    break
                time.sleep(0.05)

    def _signal(self, number: int) -> bool:
        """Whether the signal could be sent: to the very ansible-playbook that told its id, and to nobody else."""
        if self._main is None or not host_state.is_alive(self._main):
            return False
        with contextlib.suppress(OSError):
            os.kill(self._main["pid"], number)
            return True
        return False

    def _note_workers(self) -> None:
        """Ansible's workers have sessions of their own, so that killing its group does not reach them."""
        if self._main is None:
            return
        pid = self._main["pid"]
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            for who in map(host_state.identity, map(int, children)):
                if who is not None:
                    self._workers[who["pid"]] = who

    # -- ansible-runner's thread ------------------------------------------------------------------------------------

    def _work(self, arguments: dict[str, Any], kept: Sequence[str]) -> None:
        try:
            from ansible_runner.interface import init_runner

            runner = init_runner(**arguments, event_handler=self._hear, cancel_callback=self._is_to_be_killed)
            for name in LEFT_TO_THE_USER:
                if name not in kept:
                    runner.config.env.pop(name, None)
            # relative paths, and an ansible.cfg, mean what they mean for ansible-playbook where the program is
            with contextlib.suppress(OSError):
                runner.config.cwd = os.getcwd()
            runner.run()
            self.exit_code = runner.rc
        except Exception as fault:  # whatever ansible-runner raises is told as one sentence by events()
            self._fault = fault
        finally:
            self._queue.put(None)

    def _hear(self, event: Mapping[str, Any]) -> bool:
        text = event.get("stdout")
        if text:
            self.lines.extend(text.splitlines())
        if self._main is None and event.get("pid"):
            self._main = host_state.identity(int(event["pid"]))
        self._queue.put(event)
        # no file for the event
        return False

    def _is_to_be_killed(self) -> bool:
        if self._asked_s is None or time.monotonic() < self._end_at_s:
            return False
        # none is forked between looking and killing
        self._signal(signal.SIGSTOP)
        self._note_workers()
        return True


def _kill_group(who: host_state.Identity) -> None:
    """SIGKILL to a worker and what it started, where it leads a group of its own."""
    with contextlib.suppress(OSError):
        if os.getpgid(who["pid"]) == who["pid"]:
            os.killpg(who["pid"], signal.SIGKILL)
        else:
            os.kill(who["pid"], signal.SIGKILL)


def _runner_arguments(play: Play, private: Path, changes: Mapping[str, str]) -> dict[str, Any]:
    options = ["--check"] if play.check else []
    if play.variables:
        options += ["-e", f"@{_write_private(private / 'variables.json', play.variables)}"]
    # ansible-runner forgets settings that it is given together with suppress_env_files, but reads this file
    _write_private(private / "env" / "settings", {"pexpect_timeout": POLL_S, "suppress_output_file": True})
    return {
        "private_data_dir": str(private),
        "playbook": f"hostmax.storage.{play.playbook}",
        "inventory": str(play.inventory) if isinstance(play.inventory, Path) else dict(play.inventory),
        "extravars": dict(play.settings),
        "envvars": dict(changes),
        "cmdline": shlex.join(options),
        "limit": play.limit,
        "forks": play.forks,
        "quiet": True,
        "suppress_env_files": True,
        # the user's own cache of facts, if any
        "fact_cache_type": "",
    }


def _write_private(path: Path, document: Mapping[str, Any]) -> Path:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(dict(document)), encoding="utf-8")
    return path
