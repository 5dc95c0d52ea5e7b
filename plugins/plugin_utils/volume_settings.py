# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The volumes of one host as its settings name them: block devices, directories, NFS volumes, or thin ones to make.

It must not know workloads, except how much of a volume they need, or other hosts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import JobError, Target
from ansible_collections.hostmax.storage.plugins.module_utils.units import UnitError, parse_size
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import ValueRefused
from ansible_collections.hostmax.storage.plugins.plugin_utils.nfs_volumes import nfs_volumes

Json = dict[str, Any]

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


def volumes_of(
    host: str, variables: Mapping[str, Any], given: Mapping[str, Any], values: Json
) -> tuple[list[Json], Json | None]:
    """The volumes named for the host, else thin volumes where they were asked for or the host is this machine."""
    if values["hostmax_nfs_volumes"]:
        if values["hostmax_volumes"]:
            raise ValueRefused("hostmax_nfs_volumes and hostmax_volumes both name volumes; give one of them")
        mounted = nfs_volumes(values["hostmax_nfs_volumes"])
        return [_volume(**{**volume, "kind": "directory"}) for volume in mounted], None
    if values["hostmax_volumes"]:
        return _named_volumes(values["hostmax_volumes"]), None
    asked_for = given.get("hostmax_thin_count") is not None or _is_local(host, variables)
    if not asked_for or not values["hostmax_thin_count"]:
        raise ValueRefused(
            "hostmax_volumes names no volume; name its raw volumes,"
            " or set hostmax_thin_count to make thin volumes on it"
        )
    thin = {
        "count": values["hostmax_thin_count"],
        "size_bytes": size_in_bytes(values["hostmax_thin_size"], "hostmax_thin_size"),
        "cap": _cap(values["hostmax_thin_cap"]),
    }
    return _thin_volumes(thin, str(values["hostmax_thin_size"])), thin


def _is_local(host: str, variables: Mapping[str, Any]) -> bool:
    return host in LOCAL_NAMES or str(variables.get("ansible_connection")) == "local"


def size_in_bytes(text: Any, where: str) -> int:
    try:
        return parse_size(text)
    except UnitError as error:
        raise ValueRefused(f"{where}: {error}") from error


def _cap(cap: Mapping[str, Any] | None) -> Json | None:
    """The cap of each thin volume in each direction; None where nothing is capped."""
    found: Json = {}
    for key in ("iops", "bytes_per_s"):
        value = (cap or {}).get(key)
        if value is not None:
            found[key] = size_in_bytes(value, f"hostmax_thin_cap.{key}") if key == "bytes_per_s" else value
            if not isinstance(found[key], int) or found[key] < 1:
                raise ValueRefused(f"hostmax_thin_cap.{key} is {value!r}; it must be a whole number above 0")
    unknown = [key for key in cap or {} if key not in ("iops", "bytes_per_s")]
    if unknown:
        raise ValueRefused(f"hostmax_thin_cap has the unknown key {unknown[0]!r}; use iops, bytes_per_s")
    return {"iops": found.get("iops"), "bytes_per_s": found.get("bytes_per_s")} if found else None


def _volume(**facts: Any) -> Json:
    empty = {"size_bytes": None, "size": None, "identity": None, "overwrite": None, "cap": None}
    return {"name": None, "path": None, **empty, "kind": "block", **facts}


def _thin_volumes(thin: Mapping[str, Any], size: str) -> list[Json]:
    width = max(2, len(str(thin["count"])))
    names = [f"thin{number:0{width}}" for number in range(1, thin["count"] + 1)]
    return [
        _volume(name=name, path=f"volumes/{name}", size_bytes=thin["size_bytes"], size=size, cap=thin["cap"])
        for name in names
    ]


def _named_volumes(entries: Sequence[Mapping[str, Any]]) -> list[Json]:
    width = max(2, len(str(len(entries))))
    volumes = []
    for place, entry in enumerate(entries):
        where = f"hostmax_volumes[{place}]"
        name = entry.get("name") or f"vol{place + 1:0{width}}"
        if not _NAME.fullmatch(name) or len(name) > 64:
            raise ValueRefused(f"{where}: the name {name!r} must be up to 64 letters, digits and signs of '_-.'")
        path = entry["path"]
        if not path.startswith("/"):
            raise ValueRefused(f"{where}: the path {path!r} is not absolute; give one like /dev/disk/by-path/…")
        kind = entry.get("kind") or _kind(entry)
        if kind == "directory":
            path = _directory(where, entry)
        try:
            Target(name, path, 1, True)
        except JobError as error:
            raise ValueRefused(f"{where}: {error}") from error
        size_bytes = None if entry.get("size") is None else size_in_bytes(entry["size"], f"{where}: size")
        told = {key: entry.get(key) for key in ("size", "identity", "overwrite")}
        if told["overwrite"] and not told["identity"]:
            raise ValueRefused(f"{where}: overwrite needs identity too; name the serial, WWN or IQN of the volume")
        volumes.append(_volume(name=name, path=path, size_bytes=size_bytes, kind=kind, **told))
    _refuse_doubles(volumes)
    return volumes


def _kind(entry: Mapping[str, Any]) -> str:
    """What an entry must mean that does not say it: only devices are below /dev, or have a size or an identity."""
    of_a_device = any(entry.get(key) is not None for key in ("size", "identity", "overwrite"))
    return "block" if of_a_device or str(entry["path"]).startswith("/dev/") else "directory"


def _directory(where: str, entry: Mapping[str, Any]) -> str:
    """The path of a directory volume; what holds for devices only is refused."""
    for key in ("size", "identity", "overwrite"):
        if entry.get(key) is not None:
            raise ValueRefused(
                f"{where}: {key} is of a block device, and {entry['path']} is a directory; leave {key} out, or set"
                " kind: block where the path leads to a device"
            )
    return posixpath.normpath(str(entry["path"]))


def _refuse_doubles(volumes: Sequence[Json]) -> None:
    for key in ("path", "name", "identity"):
        first: dict[str, int] = {}
        for place, volume in enumerate(volumes):
            value = posixpath.normpath(volume[key]) if key == "path" else volume[key]
            if value is not None and value in first:
                raise ValueRefused(
                    f"hostmax_volumes[{place}]: the {key} {value} is that of hostmax_volumes[{first[value]}];"
                    f" name each volume once, with its own {key}"
                )
            first[value] = place


def check_fit(volume: Json, workloads: Sequence[Workload]) -> None:
    size_bytes = volume["size_bytes"]
    for workload in workloads:
        needed = needed_bytes(workload)
        if size_bytes is not None and needed > size_bytes:
            raise ValueRefused(
                f"volume {volume['name']}: the workload {workload.name} needs {needed} bytes of it, it has {size_bytes}"
            )


def needed_bytes(workload: Workload) -> int:
    return max(workload.working_set_bytes or 0, workload.block_size_bytes * workload.num_jobs)
