# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent: a detached process that runs one host's plan against a clock, bounded by its own deadline.

It must not know about Ansible, other hosts or what the figures mean; it is told by files and answers by files.
Its last act, however it ends, is to put the host back from the journal.

Files in the work directory, which are the whole protocol:
  agent.json      who the agent is (pid, start ticks, boot)          written by the agent
  journal.json    the host's journal as it was before the first point  written by the agent
  go.json         a round: its points and T0 (schedule.py)           written by the controller
  progress.jsonl  layout | ready | moved | point | ended | failed | restored  appended by the agent
  claimed         the results are home, put the host back and go     written by the controller
  points/ID.json.gz, points/ID.sample.json                           written by the agent
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
import traceback
from typing import Any, Callable

from ansible_collections.hostmax.storage.plugins.module_utils import (
    fio_job,
    fio_output,
    fio_run,
    fio_tool,
    guard,
    handlers,
    host_state,
    journal,
    progress,
    random_files,
    restore,
    schedule,
    shared_mark,
    test_file_places,
    test_files,
)

POLL_S = 0.02
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36


class AgentError(Exception):
    """Why this host cannot measure; one sentence."""


class StoppedError(Exception):
    """Somebody asked this run to end, or its deadline passed."""


class MovedError(Exception):
    """The controller told another T0 while a round was under way."""


def write_json(path: str, document: Any) -> None:
    """Write a JSON file so that a reader sees all of it or none."""
    with open(path + ".new", "w", encoding="utf-8") as handle:
        json.dump(document, handle)
    os.replace(path + ".new", path)


class Agent:
    """One host's part of one run.

    ``plan`` is the payload: run_id, volumes, own_files, cgroup, deadline_s, go_wait_s, linger_s, alone, and points (id,
    hash, ramp_s, runtime_s, reads, writes, engine, num_jobs, log_interval_ms, volumes, job). ``alone`` says that no
    other host measures, so that a late point only makes the following ones later.
    """

    def __init__(self, work_dir: str, plan: dict[str, Any]) -> None:
        self.work_dir = work_dir
        self.plan = plan
        self.stop_reason: str | None = None
        self._volumes = {volume["name"]: volume for volume in plan["volumes"]}
        self._engines: dict[tuple[str, int], tuple[str, str | None]] = {}
        self._held: Any = None
        self._marks: shared_mark.Marks | None = None
        self._laid_out: list[str] = []

    def say(self, event: str, **facts: Any) -> None:
        """Append one event to the progress file."""
        progress.say(self.work_dir, event, **facts)

    def stop(self, reason: str) -> None:
        """Ask the agent to end at the next moment it looks."""
        self.stop_reason = self.stop_reason or reason

    def stopping(self) -> bool:
        """Whether the run has to end now."""
        return self.stop_reason is not None

    # -- the life of a run ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Get ready, wait for the start, measure every round that is told, wait until the results are claimed."""
        try:
            with contextlib.ExitStack() as held:
                host = self._get_ready(held)
                self._measure_rounds(host)
        except (AgentError, guard.GuardError, random_files.LayoutError, journal.JournalError) as exc:
            self.say("failed", reason=str(exc))
            self._wait(self._claimed, self.plan["linger_s"])
        except StoppedError as exc:
            self.say("failed", reason=str(exc))
        except OSError as exc:
            self.say("failed", reason=f"{exc.filename or self.work_dir}: {exc.strerror}")
        except Exception as exc:
            self.say("failed", reason=f"the agent met a fault it does not know ({type(exc).__name__}: {exc})")
            raise

    def _claimed(self) -> bool:
        return os.path.exists(os.path.join(self.work_dir, "claimed"))

    def _wait(self, done: Callable[[], bool], limit_s: float) -> bool:
        """Wait until ``done()`` or the limit; False when the limit or a stop came first."""
        end_s = time.monotonic() + limit_s
        while not done():
            if self.stopping() or time.monotonic() > end_s:
                return False
            time.sleep(POLL_S)
        return True

    def _get_ready(self, held: contextlib.ExitStack) -> fio_run.Host:
        fio = fio_tool.find_fio()
        if fio is None:
            raise AgentError("fio is not installed; install fio {}.{} or newer.".format(*fio_tool.MINIMUM))
        version = fio_tool.read_version(fio, host_state.run_command)
        fault = fio_tool.version_fault(version)
        if fault:
            raise AgentError(fault)
        self._check_jobs()
        self._choose_engines(fio)
        writes = any(point["writes"] for point in self.plan["points"])
        verdicts = self._judge(list(self._volumes), writes)
        if writes:
            # claimed until the last point has ended: nobody can mount or use a volume between two points
            self._held = held.enter_context(guard.hold(verdicts, base_dir=self.work_dir))
        os.makedirs(os.path.join(self.work_dir, "points"), mode=0o700, exist_ok=True)
        book = restore.open_journal(self.plan["run_id"])
        self._lay_out(book)
        # the controller keeps a copy beside the results; of what was done to the host, not of what stood on volumes
        write_json(os.path.join(self.work_dir, "journal.json"), book.as_document())
        if writes and not self.plan["alone"]:
            # a directory of files is this host's own, whoever else uses the file system
            markable = [verdict for verdict in verdicts if verdict["kind"] != "directory"]
            self._marks = shared_mark.write(book, markable, self.plan, self.work_dir)
        devices = {v["name"]: (v["major"], v["minor"]) for v in verdicts if v["kind"] == "block"}
        self.say(
            "ready",
            fio_version=version,
            engines=[
                {"wanted": wanted, "io_depth": depth, "used": used, "note": note}
                for (wanted, depth), (used, note) in self._engines.items()
            ],
            volumes=verdicts,
        )
        paths = {v["name"]: v.get("mount") or v["path"] for v in verdicts if v["kind"] != "block"}
        paths = {name: os.path.join(self.work_dir, path) for name, path in paths.items()}
        return fio_run.Host(self.plan["run_id"], self.work_dir, fio, self.plan.get("cgroup"), devices, paths)

    def _lay_out(self, book: journal.Journal) -> None:
        """Make the files of directory volumes, before the host says that it is ready; then see what they can do."""
        volumes = [volume for volume in self._volumes.values() if test_file_places.is_directory(volume)]
        self._laid_out = test_files.lay_out(book, volumes, self.work_dir, self.say, self._raise_if_stopping)
        for volume in volumes:
            sizes = [
                int(dict(dict(fio_job.parse_job(point["job"]))["global"])["bs"])
                for point in self.plan["points"]
                if point["direct"] and volume["name"] in point["volumes"]
            ]
            fault = test_files.refuses_direct(volume, self.work_dir, min(sizes)) if sizes else None
            if fault:
                raise AgentError(fault)

    def _raise_if_stopping(self) -> None:
        if self.stopping():
            raise StoppedError(self.stop_reason)

    def _check_jobs(self) -> None:
        """Every job must name the volumes that the guard is asked about, by the same paths, and nothing else."""
        for point in self.plan["points"]:
            named = fio_job.targets_of(point["job"])
            judged = [(name, self._volumes.get(name, {}).get("path")) for name in point["volumes"]]
            if named != judged:
                raise AgentError(
                    f"The job of point {point['id']} names other files than the volumes that were checked; "
                    "the plan was damaged or changed, make another run."
                )

    def _choose_engines(self, fio: str) -> None:
        """The engine for each depth: a host may give a shallow ring and refuse a deep one."""
        available = fio_tool.read_engines(fio, host_state.run_command)
        for point in self.plan["points"]:
            key = (point["engine"], point["io_depth"])
            if key not in self._engines:
                try:
                    self._engines[key] = fio_tool.choose_engine(point["engine"], available, point["io_depth"])
                except fio_tool.ToolError as exc:
                    raise AgentError(str(exc)) from exc
            used, note = self._engines[key]
            if used == "libaio" and not point["direct"]:
                raise AgentError(f"{note} libaio is synchronous without direct I/O: set direct.")

    def _judge(self, names: list[str], writes: bool) -> list[dict[str, Any]]:
        """The guard's word on these volumes; one refusal ends the run on this host."""
        verdicts: list[dict[str, Any]] = guard.judge_volumes(
            [self._volumes[name] for name in names],
            writes=writes,
            own_files=[*self.plan["own_files"], *self._laid_out],
            own_mounts=self.plan.get("own_mounts", ()),
            signatures=self._held is None,
            held=self._held,
            base_dir=self.work_dir,
        )
        refusals = guard.refusals(verdicts)
        if refusals:
            raise AgentError(" ".join(refusals))
        return verdicts

    # -- rounds -----------------------------------------------------------------------------------------------------

    def _measure_rounds(self, host: fio_run.Host) -> None:
        """Every round that is told, until the results are claimed or nobody asks for them any more."""
        told = self._wait(
            lambda: schedule.read(self.work_dir) is not None or self._claimed(), float(self.plan["go_wait_s"])
        )
        if self._claimed():
            # another host refused, so that the run ended before its first point
            return
        if not told:
            raise StoppedError(self.stop_reason or f"no start was given within {self.plan['go_wait_s']:.0f} s")
        current = schedule.read(self.work_dir)
        if self._marks is not None:
            # every host has marked its volumes by now: none that is told T0 is still getting ready
            self._marks.check_and_remove()
        while current is not None:
            try:
                for due in current.points:
                    self._measure_one(host, current, due)
                self.say("ended", round=current.number)
                current = self._next_round(current)
            except MovedError:
                current = schedule.read(self.work_dir)
                self.say("moved")

    def _next_round(self, current: schedule.Round) -> schedule.Round | None:
        """The round that is told after ``current``, or None."""
        self._wait(
            lambda: self._claimed() or schedule.has_changed(self.work_dir, current), float(self.plan["linger_s"])
        )
        if self._claimed() or self.stopping() or not schedule.has_changed(self.work_dir, current):
            return None
        return schedule.read(self.work_dir)

    def _measure_one(self, host: fio_run.Host, current: schedule.Round, due: schedule.Due) -> None:
        """Run one point when it is due, and keep its sample; MovedError where the round begins anew meanwhile."""
        point = next(each for each in self.plan["points"] if each["id"] == due.id)
        due_s = self._wait_until_due(current, due)
        shift_s = current.shift_s()
        planned_s = current.t0_s + due.offset_s + shift_s
        late_s = time.monotonic() - due_s
        if late_s > schedule.LATEST_SHARE * point["runtime_s"] and not self.plan["alone"]:
            fault = f"it was not started: the host was busy until {late_s:.1f} s after its time"
            sample = fio_run.not_started(point, fault)
        else:
            planned_s += max(0.0, late_s) if self.plan["alone"] else 0.0
            sample = self._run_fio(host, current, point)
            if schedule.has_changed(self.work_dir, current):
                raise MovedError
        begun_s = sample["window"]["start_s"] - point["ramp_s"] if sample["window"] else sample["started_s"]
        # a point that was left out is late by all of it, however short it is
        sample["late_s"] = max(late_s, point["runtime_s"]) if begun_s is None else begun_s - planned_s
        sample.update(round=current.number, clock_shift_s=shift_s)
        self._keep(point, sample)

    def _wait_until_due(self, current: schedule.Round, due: schedule.Due) -> float:
        """Sleep until a point is due; that moment on the monotonic clock."""
        due_s = current.due_s(due)

        def is_time() -> bool:
            return time.monotonic() >= due_s or schedule.has_changed(self.work_dir, current)

        self._wait(is_time, max(0.0, due_s - time.monotonic()) + 1.0)
        if self.stopping():
            raise StoppedError(self.stop_reason)
        if schedule.has_changed(self.work_dir, current):
            raise MovedError
        return due_s

    def _run_fio(self, host: fio_run.Host, current: schedule.Round, point: dict[str, Any]) -> dict[str, Any]:
        engine, note = self._engines[point["engine"], point["io_depth"]]
        point = dict(point, job=point["job"].replace("\nioengine=io_uring\n", f"\nioengine={engine}\n"))
        if point["writes"]:
            self._judge(point["volumes"], writes=True)
        used = [self._volumes[name] for name in point["volumes"]]
        test_files.check(restore.open_journal(self.plan["run_id"]), used, self.work_dir)
        sample = fio_run.measure(host, point, lambda: self.stopping() or schedule.has_changed(self.work_dir, current))
        sample["engine"] = {"used": engine, "note": note}
        return sample

    def _keep(self, point: dict[str, Any], sample: dict[str, Any]) -> None:
        path = os.path.join(self.work_dir, "points", point["id"] + ".sample.json")
        write_json(path, fio_output.pack_sample(sample))
        self.say(
            "point",
            id=point["id"],
            round=sample["round"],
            status=sample["status"],
            faults=sample["faults"][:3],
            # where fio failed before its first I/O, nobody knows when that would have been
            late_s=sample["late_s"] if sample["window"] or sample["started_s"] is None else None,
            **headline(sample),
        )
        if self.stopping():
            raise StoppedError(self.stop_reason)

    def put_back(self) -> None:
        """Restore the host from the journal, and leave no file where that succeeded and the results were claimed.

        What cannot be put back is said and left to the next restore.
        """
        try:
            left = restore.open_journal(self.plan["run_id"]).restore(handlers.HANDLERS)["left"]
        except journal.JournalError as exc:
            left = [{"what": "journal", "why": str(exc)}]
        if self._claimed() and not left:
            host_state.remove_work_dir(self.plan["run_id"])
        else:
            self.say("restored", left=left)


def headline(sample: dict[str, Any]) -> dict[str, Any]:
    """The few figures of a sample that a progress line shows: total IOPS, bytes/s and mean latency."""
    parts = [part for volume in sample["volumes"].values() for part in (volume["read"], volume["write"]) if part]
    ios = sum(part["lat_ns"]["n"] for part in parts if part["lat_ns"])
    weighted = sum(part["lat_ns"]["n"] * part["lat_ns"]["mean"] for part in parts if part["lat_ns"])
    return {
        "iops": sum(part["iops"] for part in parts),
        "bytes_per_s": sum(part["bytes_per_s"] for part in parts),
        "lat_mean_ns": weighted / ios if ios else None,
        "ios": ios,
    }


def _serve(work_dir: str, plan: dict[str, Any]) -> None:
    """The detached process: bounded by SIGALRM at its deadline, stopped by SIGTERM, SIGINT or SIGHUP ignored."""
    agent = Agent(work_dir, plan)
    signal.signal(signal.SIGTERM, lambda *_ignored: agent.stop("the run was stopped"))
    signal.signal(signal.SIGALRM, lambda *_ignored: agent.stop("the agent's deadline passed"))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.alarm(int(plan["deadline_s"]) + 1)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NAME, b"hostmax-agent", 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    write_json(os.path.join(work_dir, "agent.json"), host_state.identity(os.getpid()))
    try:
        agent.run()
    finally:
        agent.put_back()


def start(work_dir: str, plan: dict[str, Any]) -> None:
    """Start the agent as a process of its own (own session, no terminal, no inherited files) and return at once.

    fork and not exec: the code is already in memory, so nothing has to be installed on the host or left there.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    status = 1
    try:
        os.umask(0o077)
        os.chdir(work_dir)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open("agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.closerange(3, 4096)
        _serve(work_dir, plan)
        status = 0
    except BaseException:
        traceback.print_exc(file=open("agent.log", "a", encoding="utf-8"))  # noqa: SIM115
    finally:
        sys.stderr.flush()
        os._exit(status)
