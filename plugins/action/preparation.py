# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to checking a preparation: the settings of all hosts, before the first of them is changed.

It must not know what a profile says or how it is applied.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.action import plan
from ansible_collections.hostmax.storage.plugins.plugin_utils import preparation
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import SettingsError, setting_values


class ActionModule(plan.ActionModule):
    """Runs once for all hosts of a play, on the controller; nothing is done on a host."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super(plan.ActionModule, self).run(tmp, task_vars)
        del tmp
        hosts = [str(host) for host in self._play_hosts(task_vars)]
        of_the_play = self._variables_of_the_play(task_vars)
        faults: list[str] = []
        told: dict[str, list[str]] = {}
        for host in hosts:
            own = task_vars["hostvars"][host]
            try:
                values = setting_values(plan.HostVariables(host, own, of_the_play, self._templar))
            except SettingsError as error:
                faults += error.sentences
                continue
            wrong = preparation.faults(host, values, len(hosts))
            faults += wrong
            if not wrong:
                told.setdefault(preparation.describe(values), []).append(host)
        if faults:
            raise AnsibleActionFail(plan.shortened("\n".join(faults)))
        for what, which in told.items():
            names = ", ".join(which[:4]) + (f" and {len(which) - 4} more" if len(which) > 4 else "")
            Display().display(f"  {names}: {what}")
        return {**result, "changed": False}
