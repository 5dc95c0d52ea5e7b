# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether what hosts are to be prepared with can be used, all of it, before the first of them is changed.

It must not know how anything is applied; it only reads settings and profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils import mount_profiles, tuning_profiles
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import as_sentence

Json = dict[str, Any]


def faults(host: str, values: Mapping[str, Any], clients: int) -> list[str]:
    """One sentence for each setting of a host that no preparation can be made of."""
    found = []
    mounts = values["hostmax_nfs_mounts"]
    try:
        tuning_profiles.resolve(
            values["hostmax_tuning"],
            clients,
            tuning_profiles.largest_nconnect(mounts),
            values["hostmax_sunrpc_slots"],
            values["hostmax_nfs41_session_slots"],
        )
    except (ProfileError, TypeError, ValueError) as error:
        found.append(f"host {host}: {as_sentence(str(error))}")
    paths: set[str] = set()
    for place, mount in enumerate(mounts):
        where = f"host {host}: hostmax_nfs_mounts[{place}]"
        try:
            mount_profiles.resolve(mount.get("profile"), str(mount.get("options") or ""))
        except ProfileError as error:
            found.append(f"{where}: {as_sentence(str(error))}")
        path = str(mount.get("path") or "")
        if not path.startswith("/") or path.rstrip("/") == "":
            found.append(f"{where}: the path {path!r} is no absolute path of a directory; give one like /mnt/vol1.")
        elif path.rstrip("/") in paths:
            found.append(f"{where}: the path {path} is that of another mount; give each its own.")
        paths.add(path.rstrip("/"))
        if ":/" not in str(mount.get("source") or ""):
            found.append(f"{where}: the source {mount.get('source')!r} is not one like 10.0.0.4:/vol1.")
    return found


def describe(values: Mapping[str, Any]) -> str:
    """What a host is going to have, in one line."""
    tuning = ", ".join(item if isinstance(item, str) else f"{len(item)} own keys" for item in values["hostmax_tuning"])
    mounts = ", ".join(f"{mount['source']} on {mount['path']}" for mount in values["hostmax_nfs_mounts"])
    return f"tuning {tuning or 'none'}; mounts {mounts or 'none'}"
