# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""`run`: a playbook of the collection from Python, from its input to typed results, and back from every way it can end.

It must not know how Ansible is started or what figures mean.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from hostmax import settings as given
from hostmax.ansible_process import AnsibleProcess, Play, private_directory
from hostmax.errors import BadInput, Cancelled, EventHandlerFailed, HostmaxError, RunEnded, RunFailed, TimedOut
from hostmax.events import Event, Finished, Status
from hostmax.results import Plan, Results
from hostmax.watch import Watch

LOOK_S = 0.2
# a host that hangs must not keep the caller for ever; agents end by themselves
STOP_LIMIT_S = 600.0
REPORT_LIMIT_S = 600.0
OUTPUT_LINES = 40


@dataclass(frozen=True, slots=True)
class Run:
    """A playbook that came to its end.

    status     passed: exit code 0. failed: measured, but a verdict, a point or a host did not hold (`reason` says
               which; hostmax_fail_on decides what counts). planned: check mode. done: restore or stop.
    directory  the run directory; None in check mode and for restore and stop
    report     its report.html
    results    results.json; None where nothing was to be measured
    plan       in check mode, what would be done
    """

    playbook: str
    status: Status
    exit_code: int
    reason: str | None = None
    directory: Path | None = None
    report: Path | None = None
    results: Results | None = None
    plan: Plan | None = None


def run(
    playbook: str = "host_max",
    *,
    inventory: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
    results: str | os.PathLike[str] | None = None,
    on_event: Callable[[Event], object] | None = None,
    output: Callable[[str], object] | None = None,
    cancel: threading.Event | None = None,
    timeout_s: float | None = None,
    check: bool = False,
    forks: int | None = None,
    limit: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Run:
    """Run a playbook of hostmax.storage (host_max, report, restore, stop) and return when it has ended.

    inventory  a path, or a mapping as in a YAML inventory; None is this machine. Text in it may be templates.
    settings   the collection's settings, names beginning with hostmax_; shown in the report, so no secrets.
    variables  other variables for Ansible, for example passwords; kept in a private file while it runs, never shown.
    results    directory for run directories (hostmax_results); without it `results` below the current directory.
    on_event   told what happens, in the thread that called. What it raises does not end the run: it is not called
               again, and EventHandlerFailed is raised at the end. KeyboardInterrupt and SystemExit do end it.
    output     called with each line Ansible says, as on_event; nothing is printed without it.
    cancel     set it from anywhere to end the run; hosts are put back, then Cancelled is raised.
    timeout_s  seconds for the whole call until the run is ended in the same way with TimedOut; putting back comes on
               top. None: no limit. A plan's own length is `planned_s` of Planned.
    check      Ansible's check mode: the plan is returned and nothing is changed.
    forks      hosts Ansible talks to at once; limit: a pattern that leaves out other hosts.
    env        environment variables for Ansible on top of this program's.

    Raises BadInput (nothing was changed), RunFailed (nothing usable was measured), Cancelled, TimedOut,
    AnsibleMissing, EventHandlerFailed; all are HostmaxError. Safe to call from several threads at once.
    """
    start_s = time.monotonic()
    if timeout_s is not None and not timeout_s > 0:
        raise BadInput(f"timeout_s is {timeout_s}; it must be a number of seconds above 0.")
    if forks is not None and forks < 1:
        raise BadInput(f"forks is {forks}; it must be a whole number above 0.")
    play = Play(
        playbook=given.check_playbook(playbook),
        inventory=given.check_inventory(inventory),
        settings=given.check_settings(settings or {}, results),
        variables=given.check_variables(variables or {}),
        env=dict(env or {}),
        check=check,
        forks=forks,
        limit=limit,
    )
    if playbook == "report":
        given.check_run_directory(play.settings)
    watch = Watch(on_event, output)
    try:
        cause = _play(play, watch, cancel, None if timeout_s is None else start_s + timeout_s)
        if cause is not None:
            raise _ended(cause, play, watch)
        return _told(_result(play, watch), watch)
    except HostmaxError as error:
        error.output = "\n".join([*watch.lines][-OUTPUT_LINES:])
        if watch.fault is not None and not isinstance(error, EventHandlerFailed):
            error.add_note(f"Before that on_event or output raised {watch.fault!r}.")
        raise


# -- while it runs --------------------------------------------------------------------------------------------------


def _play(play: Play, watch: Watch, cancel: threading.Event | None, end_s: float | None) -> type[RunEnded] | None:
    """Play to the end, or to what ended it early: its exception, with hosts not put back yet."""
    if cancel is not None and cancel.is_set():
        return Cancelled
    cause: type[RunEnded] | None = None
    with private_directory() as private:
        process = AnsibleProcess(play, private)
        watch.lines = process.lines
        try:
            more = True
            while more:
                events, more = process.events(LOOK_S)
                watch.see(events)
                if cause is None:
                    cause = _cause(cancel, end_s)
                    if cause is not None:
                        process.interrupt()
            watch.exit_code = process.exit_code
            process.end_workers()
        except BaseException:
            # Ctrl-C in the caller's thread, or an end of the program: nothing may go on behind its back
            process.interrupt()
            process.finish()
            if watch.directory is not None:
                _put_back(play, watch)
            raise
    return cause


def _cause(cancel: threading.Event | None, end_s: float | None) -> type[RunEnded] | None:
    if cancel is not None and cancel.is_set():
        return Cancelled
    return TimedOut if end_s is not None and time.monotonic() > end_s else None


# -- how it ended ---------------------------------------------------------------------------------------------------


def _result(play: Play, watch: Watch) -> Run:
    """What came out of a playbook that ended by itself; raises BadInput or RunFailed."""
    exit_code = 1 if watch.exit_code is None else watch.exit_code
    results = _read_results(watch.directory)
    reason = " ".join(watch.sentences()) or None
    if exit_code != 0 and not (results and results["run"]["points_measured"]):
        if watch.nothing_changed():
            raise BadInput(*watch.sentences())
        failed = RunFailed(*watch.sentences())
        failed.exit_code, failed.directory, failed.results = exit_code, watch.directory, results
        raise failed
    status: Status = "passed" if exit_code == 0 else "failed"
    if exit_code == 0 and results is None:
        status = "planned" if play.check else "done"
    report = watch.directory / "report.html" if watch.directory is not None and results is not None else None
    return Run(
        playbook=play.playbook,
        status=status,
        exit_code=exit_code,
        reason=reason if exit_code else None,
        directory=watch.directory,
        report=report,
        results=results,
        plan=cast("Plan | None", watch.plan),
    )


def _told(run_: Run, watch: Watch) -> Run:
    """The run, after its last event; raises EventHandlerFailed where telling failed."""
    watch.tell(Finished(run_.status, run_.exit_code, run_.directory))
    if watch.fault is None:
        return run_
    failed = EventHandlerFailed(f"on_event or output raised {watch.fault!r}; the run went on without it.")
    failed.run = run_
    raise failed from watch.fault


def _ended(cause: type[RunEnded], play: Play, watch: Watch) -> RunEnded:
    """What to raise for a run that was ended, after its hosts were put back and its report was made."""
    left = _put_back(play, watch) if watch.directory is not None else ()
    results = _partial_results(play, watch.directory)
    what = "was cancelled" if cause is Cancelled else "did not end within timeout_s and was ended"
    measured = results["run"]["points_measured"] if results else 0
    planned = f" of {results['run']['points_planned']}" if results else ""
    sentences = [f"The run {what}; {measured}{planned} points were measured."]
    if watch.directory is None:
        sentences = [f"The run {what} before it had begun to change anything."]
    error = cause(*sentences, *left)
    error.directory, error.results, error.left = watch.directory, results, left
    return error


def _put_back(play: Play, watch: Watch) -> tuple[str, ...]:
    """End the run on every host with the playbook stop; returns what is left, a sentence each."""
    stop = replace(play, playbook="stop", settings={given.RUN: str(watch.directory)}, check=False)
    after = Watch(None, watch.output_only())
    try:
        given_up = _play(stop, after, None, time.monotonic() + STOP_LIMIT_S)
    except HostmaxError as error:
        return error.sentences
    if given_up:
        return (f"Putting the hosts back took longer than {STOP_LIMIT_S:.0f} s and was given up; run stop again.",)
    return () if after.exit_code == 0 else after.sentences()


def _partial_results(play: Play, directory: Path | None) -> Results | None:
    """The results of a run that was ended, if it measured anything; stop made the report, if it got that far."""
    if directory is None or not (directory / "samples.jsonl").exists():
        return None
    results = _read_results(directory)
    if results is None:
        settings = {given.RUN: str(directory), given.FAIL_ON: ["never"]}
        report = Play("report", dict(given.THIS_MACHINE), settings, env=play.env)
        with contextlib.suppress(HostmaxError):
            _play(report, Watch(None, None), None, time.monotonic() + REPORT_LIMIT_S)
        results = _read_results(directory)
    return results


def _read_results(directory: Path | None) -> Results | None:
    try:
        return cast(Results, json.loads((directory / "results.json").read_text("utf-8"))) if directory else None
    except (OSError, ValueError):
        return None
