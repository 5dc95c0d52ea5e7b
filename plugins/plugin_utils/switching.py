# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Switching one host to the condition of a stage: unmount, tune, mount; what the kernel then says is the answer.

It must not know how tuning and mounts are made, verified or put back; the modules on the host do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import HostLink

Json = dict[str, Any]


class SwitchError(Exception):
    """Why a host could not be switched; one sentence."""


def changes_hosts(plan: Mapping[str, Any]) -> bool:
    """Whether any condition of a plan changes anything on its hosts."""
    return any(each["mount"] or each["tuning"] for each in plan.get("conditions") or ())


def switch(link: HostLink, plan: Mapping[str, Any], host: str, number: int, task_vars: Any) -> Json:
    """{"mounts", "tuning"} as the host's modules returned them; raises SwitchError, HostLostError.

    Everything is unmounted first: connections and slots of a server are decided by its first mount. Of the tuning,
    what is no part of this condition has the value again that it had before the run.
    """
    stage = next(each for each in plan["stages"] if each["number"] == number)
    condition = next(each for each in plan["conditions"] if each["name"] == stage["condition"])
    run_id, nfs = plan["run_id"], plan["hosts"][host].get("nfs") or []

    def module(called: str, **arguments: Any) -> Json:
        done = link.module(f"hostmax.storage.{called}", {"run_id": run_id, **arguments}, task_vars)
        if done.get("failed"):
            raise SwitchError(
                f"it could not be set up for {condition['name']}: {done.get('msg') or 'no reason is known'}"
            )
        return done

    switched: Json = {"mounts": [], "tuning": {}}
    if nfs:
        module("nfs_mount", state="unmounted")
    if any(each["tuning"] for each in plan["conditions"]):
        data = condition["tuning_data"] if condition["tuning"] else {}
        wanted = {"state": "present", "name": condition["name"], **data} if data else {"state": "absent"}
        switched["tuning"] = module("sysctl_profile", persistent=False, **wanted)["tuning"]
    if nfs:
        mounts = [{**mount, "options": condition["mount"]} for mount in nfs]
        switched["mounts"] = module("nfs_mount", state="mounted", mounts=mounts)["mounts"]
    return switched


def remarks(switched: Mapping[str, Any]) -> list[str]:
    """What is not in effect as it was asked for."""
    told = [sentence for mount in switched["mounts"] for sentence in mount.get("differences") or ()]
    told += switched["tuning"].get("warnings") or []
    return list(dict.fromkeys(str(each) for each in told))
