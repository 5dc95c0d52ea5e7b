# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tuning from the controller: profiles become values, then the module of the same name sets them on the host.

It must not know how values are set, or what a profile holds.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import tuning_profiles
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import plain

MODULE = "hostmax.storage.sysctl_profile"
_OF_CONTROLLER = ("profiles", "sunrpc_slots", "nfs41_session_slots", "clients", "nconnect", "mounts")


class ActionModule(ActionBase):  # type: ignore[misc]
    """The module's arguments and result; what is told of the profiles stands first in its warnings."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp
        arguments = dict(plain(self._task.args))
        told: list[str] = []
        if arguments.get("state", "present") == "present":
            told = self._resolve(arguments, task_vars)
        for name in _OF_CONTROLLER:
            arguments.pop(name, None)
        for sentence in told:
            Display().warning(sentence)
        result.update(self._execute_module(MODULE, arguments, task_vars=task_vars))
        if "tuning" in result:
            result["tuning"]["warnings"] = told + list(result["tuning"]["warnings"])
        return result

    def _resolve(self, arguments: dict[str, Any], task_vars: Any) -> list[str]:
        """Put what the profiles say before what is given by itself."""
        clients = arguments.get("clients") or len(task_vars.get("ansible_play_hosts_all") or [0])
        nconnect = arguments.get("nconnect") or tuning_profiles.largest_nconnect(arguments.get("mounts") or [])
        try:
            tuning = tuning_profiles.resolve(
                arguments.get("profiles") or [],
                int(clients),
                int(nconnect),
                arguments.get("sunrpc_slots"),
                arguments.get("nfs41_session_slots"),
            )
        except (ProfileError, TypeError, ValueError) as error:
            raise AnsibleActionFail(str(error)) from None
        arguments["keys"] = tuning.keys + list(arguments.get("keys") or [])
        arguments["module_parameters"] = tuning.module_parameters + list(arguments.get("module_parameters") or [])
        if tuning.names and not arguments.get("name"):
            arguments["name"] = ", ".join(tuning.names)
        return tuning.warnings
