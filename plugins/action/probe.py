# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Looking at a host from the controller: the module's answer, or that the host cannot be reached, in bounded time.

It must not know what is looked at.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import HostLink, HostLostError


class ActionModule(ActionBase):  # type: ignore[misc]
    """The module's arguments and result; ``lost`` with the reason where the host cannot be reached."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp
        host = str(task_vars["inventory_hostname"])
        try:
            found = HostLink(self, host).module("hostmax.storage.probe", self._task.args, task_vars)
        except HostLostError as error:
            Display().error(f"{host} cannot be reached: {error}")
            return {**result, "changed": False, "lost": str(error)}
        return {**result, **found}
