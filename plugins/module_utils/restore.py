# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Putting a host back: which runs on it are over, and for each: end its processes, undo its journal, remove its files.

Must not know: how a kind of change is undone, which is the business of the handlers.
"""

from __future__ import annotations

import calendar
import os
import time
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import handlers, host_state
from ansible_collections.hostmax.storage.plugins.module_utils.journal import NAME, Journal, JournalError

# The agent undoes its own journal when it is asked to end; it gets the time for that before it is killed.
GRACE_S = 20.0


def open_journal(run_id: str) -> Journal:
    """The journal of a run on this host."""
    return Journal(os.path.join(host_state.work_dir(run_id), NAME))


def due_runs(min_age_s: float) -> list[str]:
    """The runs of this host that are over: agent ended, an earlier boot, or no agent for ``min_age_s``; oldest last.

    The standing preparation is none of them.
    """
    runs = [run_id for run_id in host_state.list_runs() if run_id != host_state.PREPARED]
    return [run_id for run_id in runs if _is_due(run_id, min_age_s)]


def is_prepared() -> bool:
    """Whether a preparation stands on this host."""
    return os.path.isdir(host_state.work_dir(host_state.PREPARED))


def _is_due(run_id: str, min_age_s: float) -> bool:
    agent = host_state.read_agent(run_id)
    if agent is not None:
        return not host_state.is_alive(agent)
    try:
        header = open_journal(run_id).header()
    except JournalError:
        header = None
    if header is not None and header.get("boot_id") != host_state.boot_id():
        return True
    return time.time() - _begun_s(run_id, header) >= min_age_s


def _begun_s(run_id: str, header: dict[str, Any] | None) -> float:
    try:
        return float(calendar.timegm(time.strptime((header or {})["created_utc"], "%Y-%m-%dT%H:%M:%SZ")))
    except (KeyError, TypeError, ValueError):
        pass
    try:
        return os.stat(host_state.work_dir(run_id)).st_mtime
    except OSError:
        return 0.0


def restore_run(run_id: str, keep_results: bool = False, check: bool = False) -> dict[str, Any]:
    """End a run's processes, put its changes back, remove its work directory when nothing was left of it.

    Returns {"run_id", "ended": processes, "restored": [what], "left": [{"what", "why"}], "removed": bool, "changed"}.
    """
    path = host_state.work_dir(run_id)
    running = host_state.processes_of_run(run_id)
    survivors = [] if check else host_state.end_processes(run_id, GRACE_S)
    left = [
        {"what": f"process {who['pid']}", "why": "it cannot be ended; it hangs in I/O or belongs to another user."}
        for who in survivors
    ]
    restored: list[str] = []
    try:
        result = open_journal(run_id).restore(handlers.HANDLERS, check=check)
        restored = result["restored"]
        left += result["left"]
    except JournalError as exc:
        left.append({"what": "journal", "why": str(exc)})
    removed = not left and not keep_results and os.path.lexists(path)
    if removed and not check:
        try:
            host_state.remove_work_dir(run_id)
        except OSError as exc:
            removed = False
            left.append({"what": f"directory {path}", "why": f"{exc.filename or path}: {exc.strerror}."})
        except host_state.HostError as exc:
            removed = False
            left.append({"what": f"directory {path}", "why": str(exc)})
    ended = [who["pid"] for who in running if who not in survivors]
    changed = bool(ended or restored or removed)
    return {
        "run_id": run_id,
        "ended": ended,
        "restored": restored,
        "left": left,
        "removed": removed,
        "changed": changed,
    }


def restore_host(
    run_id: str | None, min_age_s: float, keep_results: bool = False, check: bool = False, prepared: bool = False
) -> list[dict[str, Any]]:
    """Restore one run, whatever state it is in; without a run id every run of this host that is over.

    ``prepared``: after these, what the standing preparation changed as well.
    """
    due = due_runs(min_age_s) if run_id is None else [run_id]
    if prepared and is_prepared() and host_state.PREPARED not in due:
        due.append(host_state.PREPARED)
    return [restore_run(name, keep_results, check) for name in due]


def summary(runs: list[dict[str, Any]]) -> str:
    """What a restore came to, in one sentence."""
    if not runs:
        return "No run on this host is waiting to be restored."
    restored = sum(len(run["restored"]) for run in runs)
    left = [f"{item['what']} of {run['run_id']}: {item['why']}" for run in runs for item in run["left"]]
    what = f"{restored} change{'' if restored == 1 else 's'} of {', '.join(run['run_id'] for run in runs)} put back"
    ended = sum(len(run.get("ended", ())) for run in runs)
    if ended:
        # an agent puts back what it can before it goes
        what = f"{ended} process{'' if ended == 1 else 'es'} ended, {what}"
    if left:
        return f"{what}, {len(left)} left: {' '.join(left)}"
    return f"{what}, nothing left."
