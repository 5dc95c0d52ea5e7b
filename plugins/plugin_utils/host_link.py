# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The link to one host's agent: commands bounded in time, tried again while a connection is lost, and what they answer.

It must not know plans, rounds or the run directory; it is handed an action plugin for its connection.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.utils.display import Display

Json = dict[str, Any]

# a command to the agent takes milliseconds; one that takes longer than this is not answered any more
ANSWER_S = 20.0
# a module is sent, unpacked and run
MODULE_S = 120.0
LOST_PAUSE_S = 2.0
AGENT = "hostmax-agent"
# what Ansible says where a module could not be sent through a pipe
_NOT_SENT = 'Data could not be sent to remote host "[^"]*". Make sure this host can be reached over ssh: '


class HostLostError(Exception):
    """The host did not answer for as long as it was waited for; the message says why, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The agent's new events, its process's state (a letter of /proc, None where it is gone), and the host's boot."""

    events: list[Json]
    state: str | None
    boot_id: str | None

    @property
    def alive(self) -> bool:
        """Whether the agent's process is there."""
        return self.state not in (None, "Z", "X")


@contextlib.contextmanager
def answer_within(limit_s: float) -> Iterator[None]:
    """Raise AnsibleConnectionFailure where what is done inside takes longer; ssh itself may wait for minutes."""

    def ring(_number: int, _frame: Any) -> None:
        raise AnsibleConnectionFailure(f"no answer within {limit_s:.0f} s")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class HostLink:
    """Commands on one host. ``work_dir`` and ``pid`` are the agent's, once it was started."""

    def __init__(self, action: Any, host: str, work_dir: str = "", pid: int = 0) -> None:
        self._action = action
        self._host = host
        self.work_dir = work_dir
        self.pid = pid

    # -- reaching the host ------------------------------------------------------------------------------------------

    def ask(self, command: str, give_up_s: float = 0.0) -> Json:
        """The answer {rc, stdout, stderr} of a shell command; tried again until ``give_up_s`` (epoch) while it is lost.

        Raises HostLostError after that.
        """
        lost_s = None
        while True:
            try:
                with answer_within(ANSWER_S):
                    answer: Json = self._action._low_level_execute_command(command)
                break
            except AnsibleConnectionFailure as exc:
                self._drop()
                if time.time() > give_up_s:
                    raise HostLostError(_reason(exc, lost_s)) from exc
                if lost_s is None:
                    lost_s = time.time()
                    Display().warning(f"{self._host}: connection lost ({_words(exc)}); its agent goes on, trying again")
                time.sleep(LOST_PAUSE_S)
        if lost_s is not None:
            Display().display(f"  {self._host}: connected again after {time.time() - lost_s:.0f} s")
        return answer

    def module(self, name: str, args: Json, task_vars: Any) -> Json:
        """Run a module of the collection on the host; raises HostLostError where it cannot be reached."""
        try:
            with answer_within(MODULE_S):
                done: Json = self._action._execute_module(module_name=name, module_args=args, task_vars=task_vars)
        except AnsibleConnectionFailure as exc:
            self._drop()
            raise HostLostError(_words(exc)) from exc
        if done.get("unreachable"):
            raise HostLostError(str(done.get("msg") or "no reason was given"))
        return done

    def _drop(self) -> None:
        """Let go of a connection that is dead but held open, so that the next command makes a new one."""
        for child in _children():
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGTERM)
        with contextlib.suppress(Exception), answer_within(ANSWER_S):
            self._action._connection.reset()

    # -- the host and its agent -------------------------------------------------------------------------------------

    def clock(self, exchanges: int, give_up_s: float = 0.0) -> tuple[Json | None, float]:
        """({offset_s: host clock minus ours, uncertainty_s: half the round trip, at_s: ours}, longest round trip).

        The exchange with the shortest round trip is taken. None where the host's clock cannot be read.
        """
        found, reach_s = [], 0.0
        for _unused in range(exchanges):
            sent_s = time.time()
            answer = self.ask("date +%s.%N", give_up_s)
            back_s = time.time()
            reach_s = max(reach_s, back_s - sent_s)
            with contextlib.suppress(IndexError, ValueError):
                host_s = float(answer["stdout"].strip().splitlines()[-1])
                middle_s = (sent_s + back_s) / 2
                found.append(((back_s - sent_s) / 2, host_s - middle_s, middle_s))
        if not found:
            return None, reach_s
        uncertainty_s, offset_s, at_s = min(found)
        return {"offset_s": offset_s, "uncertainty_s": uncertainty_s, "at_s": at_s}, reach_s

    def progress(self, skip: int, give_up_s: float = 0.0) -> Progress:
        """The agent's events after the first ``skip``, and whether it is there."""
        path = shlex.quote(os.path.join(self.work_dir, "progress.jsonl"))
        # the events last: a line that is still being written has no end
        answer = self.ask(
            f"sed -n '/^Name:.{AGENT}/,$ s/^State:.\\(.\\).*/state \\1/p' /proc/{self.pid}/status 2>/dev/null; "
            f"echo boot $(cat /proc/sys/kernel/random/boot_id); tail -n +{skip + 1} {path} 2>/dev/null",
            give_up_s,
        )
        lines = answer["stdout"].splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        words = dict(line.split(" ", 1) for line in lines if line.startswith(("state ", "boot ")))
        return Progress(events, words.get("state"), words.get("boot"))

    def tell(self, told: Json, give_up_s: float = 0.0) -> str | None:
        """Give the agent a round (on its own clock); a sentence where that failed."""
        path = shlex.quote(os.path.join(self.work_dir, "go.json"))
        text = shlex.quote(json.dumps(told))
        answer = self.ask(f"printf %s {text} > {path}.new && mv {path}.new {path}", give_up_s)
        return None if answer["rc"] == 0 else f"T0 could not be written on the host: {answer['stderr'].strip()}"

    def read_json(self, name: str, give_up_s: float = 0.0) -> Json:
        """A JSON file of the agent's work directory."""
        answer = self.ask(f"cat {shlex.quote(os.path.join(self.work_dir, name))}", give_up_s)
        document: Json = json.loads(answer["stdout"])
        return document

    def sample(self, point_id: str, give_up_s: float = 0.0) -> tuple[Json, bytes | None] | None:
        """The sample of a point and fio's own output (gz), None for output where there was none; None for no sample."""
        base = shlex.quote(os.path.join(self.work_dir, "points", point_id))
        raw = f"if [ -e {base}.json.gz ]; then base64 {base}.json.gz; fi"
        answer = self.ask(f"cat {base}.sample.json && echo && {raw}", give_up_s)
        line, _newline, encoded = answer["stdout"].partition("\n")
        # a terminal, which ssh has without pipelining, ends lines with a carriage return too
        if answer["rc"] != 0 or not line.rstrip().endswith("}"):
            return None
        return json.loads(line), base64.b64decode(encoded) or None

    def why_gone(self, boot_id: str | None, now_boot_id: str | None) -> str:
        """Why the agent is not there any more, although it said nothing of an end."""
        if boot_id and now_boot_id and boot_id != now_boot_id:
            return "the host was restarted during the run"
        if self.ask(f"[ -e {shlex.quote(self.work_dir)} ]")["rc"] == 0:
            return "the agent ended without a word; was it killed?"
        return "the run was ended on the host and its files are gone; somebody restored the host meanwhile"

    def end_agent(self, wait_s: float) -> None:
        """Ask the agent to end, if it is there, and wait until it has; it ends its fio and puts the host back."""
        is_agent = f"grep -qs '^Name:.{AGENT}' /proc/{self.pid}/status"
        self.ask(
            f"{is_agent} && kill -TERM {self.pid} && n=0 && "
            f"while {is_agent} && [ $n -lt {int(wait_s / 0.1)} ]; do sleep 0.1; n=$((n+1)); done"
        )


def _children() -> list[int]:
    """This worker's own child processes: ssh clients, where there are any."""
    pid = os.getpid()
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def _words(exc: Exception) -> str:
    """What ssh said, without Ansible's words before it, on one line."""
    text = " ".join(str(exc).split())
    for before in ("Task failed: ", "Failed to connect to the host via ssh: ", _NOT_SENT, "ssh: "):
        text = re.sub(f"^{before}", "", text)
    return text.rstrip(".") or type(exc).__name__


def _reason(exc: Exception, lost_s: float | None) -> str:
    if lost_s is None:
        return f"it cannot be reached ({_words(exc)})"
    since = time.strftime("%H:%M:%S", time.gmtime(lost_s))
    return f"it cannot be reached since {since} UTC ({_words(exc)})"
