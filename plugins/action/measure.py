# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of measuring on one host: start the agent, agree on T0, follow it, bring its samples home.

It must not know what the figures mean. The phases are separate tasks, so that hosts meet between them.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import signal
import time
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import host_plan, run_directory
from ansible_collections.hostmax.storage.plugins.plugin_utils.board import Board
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_progress import board_lines

READY_WAIT_S = 900.0
# the agent's own deadline ends it; this is how long we look for it beyond the plan's end
PATIENCE_S = 120.0
FIO_START_S = 0.35
# T0 is this far ahead, so that every host can be told before
LEAD_S, LEAD_PER_HOST_S = 0.1, 0.15
CLOCK_EXCHANGES = 3
LONGEST_SLEEP_S = 10.0
RETRY_S = 0.1


class InterruptedRunError(Exception):
    """Somebody pressed Ctrl-C or ended the controller."""


class ActionModule(ActionBase):  # type: ignore[misc]
    """Phases: start, agree (once), go, follow."""

    _supports_check_mode = False
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp
        _validation, args = self.validate_argument_spec(
            argument_spec={
                "phase": {"type": "str", "required": True, "choices": ["start", "agree", "go", "follow"]},
                "directory": {"type": "path", "required": True},
                "host": {"type": "dict", "default": {}},
                "thin": {"type": "dict", "default": {}},
                "t0": {"type": "float"},
            },
        )
        self._task_vars = task_vars
        self._name = str(task_vars["inventory_hostname"])
        self._run = run_directory.open_run(args["directory"])
        handle = {"start": self._start, "agree": self._agree, "go": self._go, "follow": self._follow}[args["phase"]]
        previous = {number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            result.update(handle(args))
        except InterruptedRunError:
            self._clean_after_interrupt()
            raise
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        return result

    # -- phases -----------------------------------------------------------------------------------------------------

    def _start(self, args: dict[str, Any]) -> dict[str, Any]:
        """Start the agent, wait until it is ready, keep the host's facts and its clock's offset."""
        self._run.make_latest()
        payload = host_plan.for_host(self._run.plan, self._name, args["thin"])
        started = self._execute_module(
            module_name="hostmax.storage.agent",
            module_args={"run_id": self._run.run_id, "plan": payload},
            task_vars=self._task_vars,
        )
        if started.get("failed"):
            return self._fail(started.get("msg", "the agent could not be started"), **started)
        self._work_dir, self._pid = started["work_dir"], started["pid"]
        ready = self._wait_for_ready()
        if ready["event"] == "failed":
            return self._fail(ready["reason"])
        offset_s, uncertainty_s = self._clock()
        facts = {
            **args["host"],
            "fio_version": ready["fio_version"],
            "engines": ready["engines"],
            "volumes": host_plan.known_volumes(payload["volumes"], ready["volumes"], args["thin"]),
            "cap_by": args["thin"].get("cap_by"),
            "warnings": args["thin"].get("warnings", []) + [w for v in ready["volumes"] for w in v["warnings"]],
            "clock_offset_s": offset_s,
            "clock_uncertainty_s": uncertainty_s,
            "work_dir": self._work_dir,
            "pid": self._pid,
        }
        self._run.write_facts(self._name, facts)
        journal = self._low_level_execute_command(f"cat {shlex.quote(os.path.join(self._work_dir, 'journal.json'))}")
        self._run.write_journal(self._name, json.loads(journal["stdout"]))
        for note in {engine["note"] for engine in ready["engines"] if engine["note"]}:
            Display().warning(f"{self._name}: {note}")
        return {"changed": False}

    def _agree(self, _args: dict[str, Any]) -> dict[str, Any]:
        """T0 on the controller's clock, far enough ahead for every host to be told."""
        hosts = len(self._run.plan["hosts"])
        return {"changed": False, "t0": time.time() + LEAD_S + LEAD_PER_HOST_S * hosts}

    def _go(self, args: dict[str, Any]) -> dict[str, Any]:
        """Tell the agent T0 on its own clock."""
        facts = self._recall()
        text = json.dumps({"t0": args["t0"] + facts["clock_offset_s"]})
        path = shlex.quote(os.path.join(self._work_dir, "go.json"))
        told = self._low_level_execute_command(f"printf %s {shlex.quote(text)} > {path}.new && mv {path}.new {path}")
        if told["rc"] != 0:
            return self._fail(f"T0 could not be written on the host: {told['stderr'].strip()}")
        return {"changed": False}

    def _follow(self, args: dict[str, Any]) -> dict[str, Any]:
        """Show each point as it ends and bring its sample and raw output home, until the agent has ended."""
        self._recall()
        last = self._run.plan["points"][-1]
        end_s = args["t0"] + last["offset_s"] + last["ramp_s"] + last["runtime_s"]
        seen, measured = 0, 0
        while True:
            events, alive = self._progress(seen, end_s + PATIENCE_S)
            seen += len(events)
            for event in events:
                if event["event"] == "point":
                    self._bring_home(event["id"])
                    measured += 1
                headlines = Board(self._run).note(self._name, event)
                for line in board_lines(self._run.plan, self._name, event, headlines, end_s - time.time()):
                    Display().display(line)
                if event["event"] == "failed":
                    return self._fail(event["reason"], points_measured=measured)
                if event["event"] == "ended":
                    self._run.write_status(self._name, "ok", None)
                    return {"changed": False, "points_measured": measured}
            if not alive and not events:
                return self._fail(self._why_gone(), points_measured=measured)
            if time.time() > end_s + PATIENCE_S:
                return self._fail("the agent did not end its plan in time", points_measured=measured)
            if not events:
                time.sleep(self._pause(args["t0"], measured))

    # -- talking to the host ----------------------------------------------------------------------------------------

    def _recall(self) -> dict[str, Any]:
        facts = self._run.read_facts(self._name)
        if facts is None:
            raise AnsibleActionFail(f"{self._name}: the agent was not started; run the phase start first.")
        self._work_dir, self._pid = facts["work_dir"], facts["pid"]
        return facts

    def _progress(self, skip: int, give_up_s: float) -> tuple[list[dict[str, Any]], bool]:
        """Events after the first ``skip``, and whether the agent is alive; waits out a lost connection."""
        path = shlex.quote(os.path.join(self._work_dir, "progress.jsonl"))
        command = (
            f"tail -n +{skip + 1} {path} 2>/dev/null; grep -qs '^State:.[^Z]' /proc/{self._pid}/status && echo alive"
        )
        while True:
            try:
                answer = self._low_level_execute_command(command)
                break
            except AnsibleConnectionFailure as exc:
                if time.time() > give_up_s:
                    raise
                Display().display(f"{self._name}: connection lost ({exc}); the agent goes on, trying again")
                time.sleep(2.0)
        lines = answer["stdout"].splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return events, "alive" in lines

    def _why_gone(self) -> str:
        """Why the agent is not there any more, although it said nothing of an end."""
        there = self._low_level_execute_command(f"[ -e {shlex.quote(self._work_dir)} ] && echo there")
        if there["rc"] == 0:
            return "the agent ended without a word; was it killed?"
        return "the run was ended on the host and its files are gone; somebody restored the host meanwhile"

    def _wait_for_ready(self) -> dict[str, Any]:
        end_s = time.time() + READY_WAIT_S
        while time.time() < end_s:
            events, alive = self._progress(0, end_s)
            if events:
                return events[0]
            if not alive:
                break
            time.sleep(RETRY_S / 2)
        return {"event": "failed", "reason": "the agent ended before it was ready, or did not get ready in time"}

    def _clock(self) -> tuple[float, float]:
        """(host clock minus ours, half the round trip) of the quickest of a few exchanges; seconds."""
        exchanges = []
        for _unused in range(CLOCK_EXCHANGES):
            sent_s = time.time()
            answer = self._low_level_execute_command("date +%s.%N")
            back_s = time.time()
            try:
                host_s = float(answer["stdout"].strip().splitlines()[-1])
            except (IndexError, ValueError):
                continue
            exchanges.append(((back_s - sent_s) / 2, host_s - (sent_s + back_s) / 2))
        if not exchanges:
            raise AnsibleActionFail(f"{self._name}: the host's clock could not be read (date +%s.%N).")
        uncertainty_s, offset_s = min(exchanges)
        return offset_s, uncertainty_s

    def _bring_home(self, point_id: str) -> None:
        base = shlex.quote(os.path.join(self._work_dir, "points", point_id))
        answer = self._low_level_execute_command(f"cat {base}.sample.json && echo && base64 {base}.json.gz")
        if answer["rc"] != 0:
            raise AnsibleActionFail(
                f"{self._name}: the sample of {point_id} could not be read: {answer['stderr'].strip()}"
            )
        line, _newline, encoded = answer["stdout"].partition("\n")
        self._run.add_sample(self._name, json.loads(line), base64.b64decode(encoded))

    # -- words ------------------------------------------------------------------------------------------------------

    def _pause(self, t0: float, measured: int) -> float:
        """Sleep until the running point should have ended, then look often; never longer than a liveness check."""
        points = self._run.plan["points"]
        if measured >= len(points):
            return RETRY_S
        point = points[measured]
        due_s = t0 + point["offset_s"] + point["ramp_s"] + point["runtime_s"] + FIO_START_S
        return float(min(LONGEST_SLEEP_S, max(RETRY_S, due_s - time.time())))

    def _fail(self, reason: str, **facts: Any) -> dict[str, Any]:
        """The host's failure, kept for the report and said in one sentence."""
        self._run.write_status(self._name, "failed", reason)
        facts.pop("changed", None)
        return {**facts, "failed": True, "msg": f"{self._name}: {reason}", "changed": False}

    # -- interruption -----------------------------------------------------------------------------------------------

    def _interrupt(self, _number: int, _frame: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise InterruptedRunError

    def _clean_after_interrupt(self) -> None:
        """A cancelled controller runs no always: section, so the host is put back from here."""
        self._run.write_status(self._name, "failed", "interrupted on the controller")
        self._execute_module(
            module_name="hostmax.storage.restore",
            module_args={"run_id": self._run.run_id},
            task_vars=self._task_vars,
        )
