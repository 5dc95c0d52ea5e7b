# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an agent says while it works: one JSON line an event, and who on this host is measuring.

It must not know what is measured; it only writes and reads events.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

NAME = "progress.jsonl"
# an agent whose last word is one of these runs no point any more, unless it is told another round
LAST_WORDS = ("ended", "failed", "restored")


def say(work_dir: str, event: str, **facts: Any) -> None:
    """Append one event to the progress file of a run."""
    line = json.dumps(dict(facts, event=event, time_s=time.time()))
    with open(os.path.join(work_dir, NAME), "a", encoding="utf-8") as handle:
        handle.write(line + "\n")


def read(work_dir: str) -> list[dict[str, Any]]:
    """The whole events so far; a line still being written is left out."""
    try:
        with open(os.path.join(work_dir, NAME), encoding="utf-8") as handle:
            lines = handle.read().split("\n")[:-1]
    except OSError:
        return []
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def is_measuring(run_id: str) -> bool:
    """Whether this run's agent is alive and still has points to run."""
    if not host_state.is_alive(host_state.read_agent(run_id)):
        return False
    events = read(host_state.work_dir(run_id))
    return not events or events[-1]["event"] not in LAST_WORDS


def refusal_while_measuring(own_run_id: str = "") -> str | None:
    """Why a run may not begin on this host now, or None: two runs at once would measure each other."""
    for run_id in host_state.list_runs():
        if run_id != own_run_id and is_measuring(run_id):
            return (
                f"Run {run_id} is measuring on this host; two runs at once would measure each other: "
                f"wait for it, or end it with hostmax.storage.stop -e hostmax_run={run_id}."
            )
    return None
