# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Mounting from the controller: names of profiles become options, and each host takes its endpoint of a volume.

It must not know how anything is mounted; the module does.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import mount_profiles
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError


class ActionModule(ActionBase):  # type: ignore[misc]
    """The module's arguments and result, with ``profile`` and ``servers`` of each mount resolved."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp
        arguments = dict(self._task.args)
        if isinstance(arguments.get("mounts"), list):
            hosts = [str(host) for host in task_vars["ansible_play_hosts_all"]]
            number = hosts.index(str(task_vars["inventory_hostname"]))
            try:
                arguments["mounts"] = [_resolved(mount, number) for mount in arguments["mounts"]]
            except ProfileError as error:
                return {**result, "failed": True, "msg": f"hostmax_nfs_mounts cannot be used: {error}"}
        module = self._execute_module(
            module_name="hostmax.storage.nfs_mount", module_args=arguments, task_vars=task_vars
        )
        return {**result, **module}


def _resolved(mount: Any, host_number: int) -> Any:
    """One mount for the module; what is no mapping is left for the module's own check."""
    if not isinstance(mount, dict):
        return mount
    wanted = {key: value for key, value in mount.items() if key not in ("profile", "servers")}
    options = mount_profiles.resolve(mount.get("profile"), str(mount.get("options") or ""))
    for remark in mount_profiles.remarks(options):
        Display().warning(f"{mount.get('path')}: {remark}")
    wanted["options"] = options
    if mount.get("source"):
        wanted["source"] = mount_profiles.endpoint(str(mount["source"]), mount.get("servers") or [], host_number)
    return wanted
