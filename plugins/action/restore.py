# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Restoring from the controller: a run's own agent is asked first, where it waits for that; else the module does it.

It must not know how anything is put back.
"""

from __future__ import annotations

import os
import shlex
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import run_directory
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import AGENT, HostLink, HostLostError

# the agent detaches a few hundred volumes in this time; where it does not, the module goes on
ASK_TIMES, ASK_PAUSE_S = 300, 0.05


class ActionModule(ActionBase):  # type: ignore[misc]
    """The module's arguments and result, and ``directory``: the run directory whose agent may still wait."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp
        arguments = dict(self._task.args)
        directory = arguments.pop("directory", None)
        host = str(task_vars["inventory_hostname"])
        self._link = HostLink(self, host)
        try:
            if directory and not self._task.check_mode:
                asked = self._ask_agent(str(directory), host)
                if asked:
                    return {**result, **asked}
            return {**result, **self._link.module("hostmax.storage.restore", arguments, task_vars)}
        except HostLostError as error:
            message = f"{host} cannot be reached ({error}) and was not put back; "
            if not directory:
                return {**result, "failed": True, "msg": f"{message}try again when it can."}
            # the run's verdict says how the play ends
            message += "its agent does it by itself, or hostmax.storage.restore when it can be reached."
            Display().warning(message)
            return {**result, "changed": False, "runs": [], "left_count": 0, "msg": message}

    def _ask_agent(self, directory: str, host: str) -> dict[str, Any] | None:
        """Claim the results, so that the agent puts the host back and goes; None where it left anything."""
        try:
            run = run_directory.open_run(directory)
            facts = run.read_facts(host)
        except run_directory.RunDirectoryError:
            return None
        if not facts:
            return None
        work_dir, pid = shlex.quote(facts["work_dir"]), int(facts["pid"])
        claimed = shlex.quote(os.path.join(facts["work_dir"], "claimed"))
        answer = self._link.ask(
            f"grep -qs '^Name:.{AGENT}' /proc/{pid}/status && touch {claimed} && n=0 && "
            f"while [ -e {work_dir} ] && grep -qs '^State:.[^ZTt]' /proc/{pid}/status && [ $n -lt {ASK_TIMES} ]; "
            f"do sleep {ASK_PAUSE_S}; n=$((n+1)); done; "
            f"[ -e {work_dir} ] || echo gone"
        )
        if answer["stdout"].split() != ["gone"]:
            return None
        message = f"Run {run.run_id} was put back by its own agent, nothing left."
        return {"changed": True, "runs": [], "left_count": 0, "msg": message}
