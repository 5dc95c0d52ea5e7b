# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NFS volumes of a study: what a user names, and which endpoint each host mounts.

It must not know how anything is mounted or measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import nfs_server
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import JobError, Target
from ansible_collections.hostmax.storage.plugins.module_utils.host_state import HostError
from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import ValueRefused

Json = dict[str, Any]

# below the run's work directory on a host
MOUNTS = "mounts"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


def nfs_volumes(entries: Sequence[Mapping[str, Any]]) -> list[Json]:
    """`hostmax_nfs_volumes` as volumes: {name, path, mount, source, servers}; raises ValueRefused."""
    volumes: list[Json] = []
    for place, entry in enumerate(entries):
        where = f"hostmax_nfs_volumes[{place}]"
        source = str(entry["source"])
        try:
            export = nfs_server.parse_source(source).export
            for server in entry.get("servers") or ():
                nfs_server.parse_source(_with_server(str(server), export))
        except HostError as error:
            raise ValueRefused(f"{where}: {error}") from error
        name = str(entry.get("name") or _name_of(export, place))
        if not _NAME.fullmatch(name):
            raise ValueRefused(f"{where}: the name {name!r} must be up to 64 letters, digits and signs of '_-.'")
        for key, value in (("name", name), ("source", source)):
            if any(volume[key] == value for volume in volumes):
                raise ValueRefused(f"{where}: the {key} {value} is that of another one; name each volume once")
        path = f"{MOUNTS}/{name}"
        try:
            Target(name, path, 1, False)
        except JobError as error:
            raise ValueRefused(f"{where}: {error}") from error
        servers = [str(server) for server in entry.get("servers") or ()]
        volumes.append({"name": name, "path": path, "mount": path, "source": source, "servers": servers})
    return volumes


def _name_of(export: str, place: int) -> str:
    """The last part of the export."""
    return _UNFIT.sub("_", export.rstrip("/").rsplit("/", 1)[-1]).strip("_.-") or f"nfs{place + 1:02}"


def _with_server(server: str, export: str) -> str:
    return f"[{server}]:{export}" if ":" in server and not server.startswith("[") else f"{server}:{export}"


def source_for(volume: Mapping[str, Any], host_number: int) -> str:
    """What host number `host_number` of the run (from 0) mounts: endpoints are given out in turn."""
    servers = volume.get("servers") or ()
    if not servers:
        return str(volume["source"])
    export = nfs_server.parse_source(str(volume["source"])).export
    return _with_server(str(servers[host_number % len(servers)]), export)


def mounts_of(volumes: Sequence[Mapping[str, Any]], host_number: int) -> list[Json]:
    """[{name, source, path}] of the NFS volumes of a host, as every stage mounts them."""
    return [
        {"name": volume["name"], "source": source_for(volume, host_number), "path": volume["mount"]}
        for volume in volumes
        if volume.get("mount")
    ]
