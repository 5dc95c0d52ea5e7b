# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of measuring on one host: start the agent, tell it T0, follow it, bring its samples home.

It must not know what the figures mean. The phases are separate tasks, so that hosts meet between them.
A host that is lost on the way does not fail the play: it is named, and the others go on.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import host_plan, rounds, run_directory, switching
from ansible_collections.hostmax.storage.plugins.plugin_utils.follow import Follower, say
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import HostLink, HostLostError
from ansible_collections.hostmax.storage.plugins.plugin_utils.layout_line import LayoutLine
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_progress import stage_line

READY_WAIT_S = 900.0
RETRY_S = 0.05
CLOCK_EXCHANGES = 5

Json = dict[str, Any]


class InterruptedRunError(Exception):
    """Somebody pressed Ctrl-C or ended the controller."""


class ActionModule(ActionBase):  # type: ignore[misc]
    """Phases of a host: stage, start, go, follow. Phases of all hosts, run once: agree, confirm, repeat."""

    _supports_check_mode = False
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Json:
        result: Json = super().run(tmp, task_vars)
        del tmp
        phases: dict[str, Callable[[Json], Json]] = {
            "stage": self._stage,
            "start": self._start,
            "agree": self._agree,
            "go": self._go,
            "confirm": self._confirm,
            "follow": self._follow,
            "repeat": self._repeat,
        }
        _validation, args = self.validate_argument_spec(
            argument_spec={
                "phase": {"type": "str", "required": True, "choices": list(phases)},
                "directory": {"type": "path", "required": True},
                "host": {"type": "dict", "default": {}},
                "thin": {"type": "dict", "default": {}},
                "stage": {"type": "int", "default": 1},
            },
        )
        self._task_vars = task_vars
        self._name = str(task_vars["inventory_hostname"])
        self._link = HostLink(self, self._name)
        numbers = (signal.SIGINT, signal.SIGTERM)
        try:
            self._run = run_directory.open_run(args["directory"])
            previous = {number: signal.signal(number, self._interrupt) for number in numbers}
            try:
                result.update({"changed": False, **phases[args["phase"]](args)})
            except InterruptedRunError:
                self._clean_after_interrupt()
                raise
            finally:
                for number, handler in previous.items():
                    signal.signal(number, handler)
        except run_directory.RunDirectoryError as error:
            raise AnsibleActionFail(str(error)) from None
        return result

    # -- phases of one host -----------------------------------------------------------------------------------------

    def _stage(self, args: Json) -> Json:
        """Switch the host to the condition of a stage, and keep what is in effect then."""
        plan = self._run.plan
        if not switching.changes_hosts(plan) or self._is_lost():
            return {"skipped": True}
        try:
            switched = switching.switch(self._link, plan, self._name, args["stage"], self._task_vars)
        except HostLostError as error:
            return self._lose("unreachable", str(error))
        except switching.SwitchError as error:
            lost = self._lose("failed", str(error))
            # what was set up before is not waited with: before the first stage no agent is there to put it back
            self._put_back()
            return lost
        self._run.write_stage(self._name, args["stage"], switched)
        for sentence in switching.remarks(switched):
            Display().warning(f"{self._name}: {sentence}")
        return {"changed": True}

    def _start(self, args: Json) -> Json:
        """Start the agent, wait until it is ready, keep the host's facts and its clock's offset."""
        if self._is_lost():
            return {"skipped": True}
        self._run.make_latest()
        payload = host_plan.for_host(self._run.plan, self._name, args["thin"])
        try:
            started = self._link.module(
                "hostmax.storage.agent", {"run_id": self._run.run_id, "plan": payload}, self._task_vars
            )
            if started.get("failed"):
                return self._fail(started.get("msg", "the agent could not be started"))
            self._link.work_dir, self._link.pid = started["work_dir"], started["pid"]
            ready, boot_id = self._wait_for_ready()
            if ready["event"] != "ready":
                return self._fail(ready["reason"])
            clock, reach_s = self._link.clock(1 if payload["alone"] else CLOCK_EXCHANGES)
            if clock is None:
                return self._fail("the host's clock could not be read (date +%s.%N)")
            journal = self._link.read_json("journal.json")
        except HostLostError as error:
            return self._lose("unreachable", str(error))
        facts = {
            **args["host"],
            "fio_version": ready["fio_version"],
            "engines": ready["engines"],
            "volumes": host_plan.known_volumes(payload["volumes"], ready["volumes"], args["thin"]),
            "cap_by": args["thin"].get("cap_by"),
            "warnings": args["thin"].get("warnings", []) + [w for v in ready["volumes"] for w in v["warnings"]],
            "clock": {"before": clock, "after": None},
            "reach_s": reach_s,
            "boot_id": boot_id,
            "work_dir": self._link.work_dir,
            "pid": self._link.pid,
        }
        self._run.write_facts(self._name, facts)
        self._run.write_journal(self._name, journal)
        say(self._run, self._name, {"event": "ready"})
        for note in {engine["note"] for engine in ready["engines"] if engine["note"]}:
            Display().warning(f"{self._name}: {note}")
        return {}

    def _go(self, _args: Json) -> Json:
        """Tell the agent the round, T0 on its own clock."""
        facts, told = self._recall(), self._run.read_round()
        if facts is None or told is None:
            return {"skipped": True}
        again = [point["id"] for point in told["points"]]
        before = (self._run.read_start(self._name) or {}).get("late", {})
        late = {point_id: late_s for point_id, late_s in before.items() if point_id not in again}
        mine = {**told, "t0": told["t0"] + facts["clock"]["before"]["offset_s"]}
        try:
            fault = self._link.tell(mine, give_up_s=told["t0"])
        except HostLostError as error:
            return self._lose("unreachable", str(error))
        if fault:
            return self._lose("failed", fault)
        start = {"round": told["round"], "attempt": told["attempt"], "at_s": time.time(), "late": late}
        self._run.write_start(self._name, start)
        return {}

    def _follow(self, _args: Json) -> Json:
        """Show each point as it ends and bring its sample and raw output home, until the round has ended."""
        facts, told = self._recall(), self._run.read_round()
        if facts is None or told is None:
            return {"skipped": True}
        follower = Follower(self._run, self._name, self._link, facts, told)
        try:
            reason = follower.follow()
            clock, _reach_s = self._link.clock(1 if len(self._run.plan["hosts"]) == 1 else CLOCK_EXCHANGES)
            self._run.write_facts(self._name, {**facts, "clock": {**facts["clock"], "after": clock}})
        except HostLostError as error:
            return self._lose("unreachable", str(error), points_measured=follower.measured)
        start = self._run.read_start(self._name) or {}
        self._run.write_start(self._name, {**start, "late": {**start.get("late", {}), **follower.late}})
        if reason:
            return self._lose("failed", reason, points_measured=follower.measured)
        if self._run.read_status(self._name)[0] != "late":
            self._run.write_status(self._name, "ok", None)
        say(self._run, self._name, {"event": "ended", "round": told["round"]})
        return {"points_measured": follower.measured}

    # -- phases of all hosts ----------------------------------------------------------------------------------------

    def _agree(self, args: Json) -> Json:
        """T0 of a stage on the controller's clock, far enough ahead for every host to be told before."""
        if not self._live():
            raise AnsibleActionFail("No host of this run can measure; the reasons are above.")
        line = stage_line(self._run.plan, args["stage"])
        if line:
            Display().display(line)
        self._run.write_round(rounds.first_round(self._run.plan, args["stage"], time.time() + self._lead_s(1)))
        return {}

    def _confirm(self, _args: Json) -> Json:
        """Whether every host knew T0 before it came; where one did not, T0 is moved for all of them."""
        told = self._run.read_round() or {}
        starts = {host: self._run.read_start(host) for host in self._live()}
        again = len(self._run.plan["hosts"]) > 1 and not rounds.told_in_time(told, starts)
        if again:
            attempt = told["attempt"] + 1
            Display().display("  A host could not be told in time; T0 is moved for all of them.")
            self._run.write_round(rounds.moved(told, time.time() + self._lead_s(attempt)))
        return {"again": again}

    def _repeat(self, _args: Json) -> Json:
        """Which points a late host makes necessary again, once; a host that was late again is marked."""
        told, plan = self._run.read_round() or {}, self._run.plan
        if not self._live():
            return {"again": False}
        starts = {host: self._run.read_start(host) or {} for host in self._live()}
        late = rounds.late_hosts(plan, told, {host: start.get("late", {}) for host, start in starts.items()})
        sentences: dict[str, str] = {}
        for point_id, hosts in late.items():
            for host, seconds in hosts.items():
                sentences.setdefault(host, f"it began {point_id} {seconds:.1f} s after the others")
        if rounds.time_of(told["round"]) > 1:
            for host, sentence in sentences.items():
                self._run.write_status(host, "late", f"{sentence}, and again when the point was repeated")
                Display().warning(f"{host}: {sentence}, and again when the point was repeated")
            return {"again": False}
        for host, sentence in sentences.items():
            Display().warning(f"{host}: {sentence}; what it was late for is measured once more")
        if late:
            self._run.write_repeats(late)
            self._run.write_round(rounds.repeat_round(plan, told, list(late), time.time() + self._lead_s(1)))
        return {"again": bool(late)}

    def _live(self) -> list[str]:
        """The hosts that were started and not lost since."""
        hosts = [host for host in self._run.plan["hosts"] if self._run.read_facts(host) is not None]
        return [host for host in hosts if self._run.read_status(host)[0] in (None, "ok", "late")]

    def _lead_s(self, attempt: int) -> float:
        live = self._live()
        reach_s = max((self._run.read_facts(host) or {}).get("reach_s", 0.0) for host in live)
        writes = len(live) > 1 and any(point["writes"] for point in self._run.plan["points"])
        marks = max(len(self._run.plan["hosts"][host]["volumes"]) for host in live) if writes else 0
        return rounds.lead_s(len(live), int(self._task_vars.get("ansible_forks") or 5), reach_s, attempt, marks)

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _recall(self) -> Json | None:
        """The host's facts, and its link; None for a host that was not started or was lost."""
        facts = self._run.read_facts(self._name)
        if facts is None or self._is_lost():
            return None
        self._link.work_dir, self._link.pid = facts["work_dir"], facts["pid"]
        return facts

    def _is_lost(self) -> bool:
        """Whether the host measures no more, or never did."""
        return self._run.read_status(self._name)[0] in ("failed", "unreachable")

    def _wait_for_ready(self) -> tuple[Json, str | None]:
        end_s = time.time() + READY_WAIT_S
        layout = LayoutLine(self._name)
        while time.time() < end_s:
            seen = self._link.progress(layout.seen, end_s)
            for event in seen.events:
                if event["event"] != "layout":
                    return event, seen.boot_id
                # as long as it goes on; the agent itself bounds it
                end_s = time.time() + READY_WAIT_S
                layout.note(event)
            if not seen.alive:
                break
            time.sleep(layout.pause_s(RETRY_S))
        reason = "the agent ended before it was ready, or did not get ready in time"
        return {"event": "failed", "reason": reason}, None

    def _fail(self, reason: str) -> Json:
        """A host that must not measure: the run ends before its first point."""
        self._run.write_status(self._name, "failed", reason)
        return {"failed": True, "msg": f"{self._name}: {reason}"}

    def _lose(self, status: str, reason: str, **facts: Any) -> Json:
        """A host that measures no more: named at once, and the others go on."""
        self._run.write_status(self._name, status, reason)
        say(self._run, self._name, {"event": "lost", "reason": reason})
        return {**facts, "lost": reason}

    # -- interruption -----------------------------------------------------------------------------------------------

    def _interrupt(self, _number: int, _frame: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise InterruptedRunError

    def _clean_after_interrupt(self) -> None:
        """A cancelled controller runs no always: section, so the host is put back from here."""
        self._run.write_status(self._name, "failed", "interrupted on the controller")
        if len(self._run.plan["hosts"]) > 1:
            # with fewer forks than hosts not every host has a worker that could do this for it
            how = f"hostmax.storage.stop -e hostmax_run={self._run.path}"
            Display().warning(f"{self._name} is being put back; see to it that all hosts are, with {how}")
        self._put_back()

    def _put_back(self) -> None:
        try:
            done = self._link.module("hostmax.storage.restore", {"run_id": self._run.run_id}, self._task_vars)
        except HostLostError as error:
            Display().warning(f"{self._name}: {error}; its agent puts it back by itself, and so does the next run")
            return
        if done.get("failed") or done.get("left_count"):
            Display().warning(f"{self._name}: {done.get('msg')}")
