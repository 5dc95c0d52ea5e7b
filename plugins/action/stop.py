# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ending a run on one host, whoever started it and whether they are still there: end, bring home, put back.

It must not know how anything is put back, or what was measured.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import run_directory
from ansible_collections.hostmax.storage.plugins.plugin_utils.follow import Follower
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import HostLink, HostLostError

END_WAIT_S = 20.0
# a controller that still follows the run collects and restores by itself; it looks about once in this time
FOLLOWER_WAIT_S = 3.0

Json = dict[str, Any]


class ActionModule(ActionBase):  # type: ignore[misc]
    """``run`` is a run directory or a run's id; ``results`` is where run directories are looked for by their id."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Json:
        result: Json = super().run(tmp, task_vars)
        del tmp
        _validation, args = self.validate_argument_spec(
            argument_spec={
                "run": {"type": "str", "required": True},
                "results": {"type": "path", "default": "results"},
            },
        )
        host = str(task_vars["inventory_hostname"])
        link = HostLink(self, host)
        try:
            run = _find(args["run"], args["results"])
            run_id = run.run_id if run else Path(args["run"]).name
            if run and not self._task.check_mode:
                self._end(run, host, link)
            done = link.module("hostmax.storage.restore", {"run_id": run_id}, task_vars)
            if run and not self._task.check_mode and host in run.plan["hosts"]:
                _mark(run, host, "failed", "the run was stopped")
        except run_directory.RunDirectoryError as error:
            raise AnsibleActionFail(str(error)) from None
        except HostLostError as error:
            if run:
                _mark(run, host, "unreachable", str(error))
            message = f"{host} cannot be reached ({error}), run {run_id} goes on there until its agent ends."
            Display().warning(message)
            return {**result, "changed": False, "left_count": 1, "msg": message, "directory": _path(run)}
        return {**result, **done, "directory": _path(run)}

    def _end(self, run: run_directory.RunDirectory, host: str, link: HostLink) -> None:
        """End the agent and bring home what it measured, unless a controller that still follows it does."""
        facts = run.read_facts(host)
        if facts is None:
            return
        link.work_dir, link.pid = facts["work_dir"], facts["pid"]
        link.end_agent(END_WAIT_S)
        end_s = time.time() + FOLLOWER_WAIT_S
        while run.read_status(host)[0] is None and time.time() < end_s:
            time.sleep(0.2)
        told = run.read_round()
        if told is not None and run.read_status(host)[0] is None:
            Follower(run, host, link, facts, told).collect()


def _find(name: str, results: str) -> run_directory.RunDirectory | None:
    """The run directory that is named, or that has this id below ``results``; None where there is none."""
    for path in (Path(name).expanduser(), Path(results).expanduser() / name):
        if path.is_dir():
            return run_directory.open_run(path)
    return None


def _mark(run: run_directory.RunDirectory, host: str, status: str, reason: str) -> None:
    if run.read_status(host)[0] is None:
        run.write_status(host, status, reason)


def _path(run: run_directory.RunDirectory | None) -> str | None:
    return str(run.path) if run else None
