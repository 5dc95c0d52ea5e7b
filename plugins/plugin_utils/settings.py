# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host's variables become its checked settings: every `hostmax_` name known, every value typed and sensible.

It must not know other hosts, the plan or the run directory.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import JobError, Target, file_bytes
from ansible_collections.hostmax.storage.plugins.module_utils.units import UnitError, parse_size
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import (
    PREFIX,
    ValueRefused,
    coerce,
    known_settings,
    unknown_setting,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import ExpectationError, check_expect
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError, resolve_workloads

Json = dict[str, Any]

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
MOST_THIN_VOLUMES = 200
# where null is a value of its own and not "not set"
_NULLABLE = ("hostmax_thin_cap",)
# either of them says which volumes a host has
_WHICH_VOLUMES = ("hostmax_volumes", "hostmax_thin_count")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
# (setting, smallest, largest): the numbers that argument_specs cannot bound
_RANGES = (
    ("hostmax_runtime_s", 1, 7 * 24 * 3600),
    ("hostmax_ramp_s", 0, 24 * 3600),
    ("hostmax_settle_s", 0, 3600),
    ("hostmax_patience_s", 5, 24 * 3600),
    ("hostmax_seed", 0, 2**63 - 1),
    ("hostmax_thin_count", 0, MOST_THIN_VOLUMES),
)


class SettingsError(ValueError):
    """Settings that cannot be used; one sentence for each fault, each naming the host."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)


@dataclass(frozen=True)
class Settings:
    """One host's settings. `values` holds all of them as plain data, as the plan records them."""

    host: str
    values: Mapping[str, Any]
    results: str
    runtime_s: int
    ramp_s: int
    settle_s: float | None
    volumes: tuple[Json, ...]
    thin: Json | None
    volume_counts: tuple[int, ...]
    workloads: tuple[Workload, ...]
    expect: Any
    fail_on: tuple[str, ...]
    seed: int

    @property
    def writes(self) -> bool:
        """Whether any workload writes."""
        return any(workload.writes for workload in self.workloads)


def plain(value: Any) -> Any:
    """Variables as ordinary Python data: no templates, no tags, keys and dates as text."""
    return json.loads(json.dumps(value, default=str))


def host_settings(variables: Mapping[str, Any], earlier: Mapping[str, Any] | None = None) -> Settings:
    """The settings in all variables of a host; raises SettingsError. Only `hostmax_` names are looked at.

    `earlier`: settings of the run that is resumed, which hold where the host is given none.
    """
    host = str(variables["inventory_hostname"])
    given = _taken_over(_read(host, variables), earlier or {})
    values = _coerce_all(host, given)
    try:
        return _make(host, variables, given, values)
    except (ValueRefused, ProfileError, ExpectationError, JobError, UnitError) as error:
        raise SettingsError([f"host {host}: {_end(str(error))}"]) from error


def _end(text: str) -> str:
    return text if text.endswith((".", "?")) else text + "."


def _read(host: str, variables: Mapping[str, Any]) -> Json:
    """The `hostmax_` variables as plain data."""
    given, faults = {}, []
    for name in sorted(name for name in variables if isinstance(name, str) and name.startswith(PREFIX)):
        unknown = unknown_setting(name)
        if unknown:
            faults.append(f"host {host}: {_end(unknown)}")
            continue
        try:
            given[name] = plain(variables[name])
        except Exception as error:  # a template that cannot be worked out raises what Jinja and ansible-core please
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            faults.append(f"host {host}: {name} cannot be worked out: {_end(reason)}")
    if faults:
        raise SettingsError(faults)
    return given


def _taken_over(given: Json, earlier: Mapping[str, Any]) -> Json:
    """What is given, completed by an earlier run's settings; what follows from a given one is not taken over."""
    left_out = {name for name, value in given.items() if value is not None or name in _NULLABLE}
    if left_out & set(_WHICH_VOLUMES):
        left_out |= set(_WHICH_VOLUMES)
    elif earlier.get("hostmax_volumes"):
        # these settings were not in force, and a count that is given asks for thin volumes
        left_out.add("hostmax_thin_count")
    if "hostmax_runtime_s" in left_out:
        left_out.add("hostmax_ramp_s")
    return {**given, **{name: value for name, value in earlier.items() if name not in left_out}}


def _coerce_all(host: str, given: Mapping[str, Any]) -> Json:
    values, faults = {}, []
    for name, spec in known_settings().items():
        try:
            null = name in _NULLABLE and name in given and given[name] in (None, "", "none", "null")
            value = None if null else coerce(given.get(name), spec, name)
            _check_range(name, value)
            values[name] = value
        except ValueRefused as error:
            faults.append(f"host {host}: {_end(str(error))}")
    if faults:
        raise SettingsError(faults)
    return values


def _check_range(name: str, value: Any) -> None:
    for ranged, least, most in _RANGES:
        if ranged == name and value is not None and not least <= value <= most:
            raise ValueRefused(f"{name} is {value}; it must be {least} to {most}")


def _make(host: str, variables: Mapping[str, Any], given: Mapping[str, Any], values: Json) -> Settings:
    runtime_s = values["hostmax_runtime_s"]
    if given.get("hostmax_ramp_s") is None:
        values["hostmax_ramp_s"] = min(values["hostmax_ramp_s"], runtime_s // 4)
    if values["hostmax_ramp_s"] >= runtime_s:
        raise ValueRefused(
            f"hostmax_ramp_s is {values['hostmax_ramp_s']} and hostmax_runtime_s is {runtime_s};"
            " the ramp must be shorter than the runtime"
        )
    workloads = _workloads(values["hostmax_workloads"])
    check_expect(values["hostmax_expect"], [workload.name for workload in workloads])
    volumes, thin = _volumes(host, variables, given, values)
    for volume in volumes:
        _check_fit(volume, workloads)
        if volume["kind"] == "directory":
            # each job has a file of its own: without a working set nobody knows how large
            for workload in workloads:
                file_bytes(workload)
        else:
            # for the guard, where the inventory does not say how large a volume is
            volume["needed_bytes"] = max(_needed_bytes(workload) for workload in workloads)
    return Settings(
        host=host,
        values=values,
        results=values["hostmax_results"],
        runtime_s=runtime_s,
        ramp_s=values["hostmax_ramp_s"],
        settle_s=values["hostmax_settle_s"],
        volumes=tuple(volumes),
        thin=thin,
        volume_counts=_volume_counts(values["hostmax_volume_counts"]),
        workloads=tuple(workloads),
        expect=values["hostmax_expect"],
        fail_on=tuple(values["hostmax_fail_on"]),
        seed=values["hostmax_seed"],
    )


def _volume_counts(counts: Sequence[int]) -> tuple[int, ...]:
    if not counts or min(counts) < 1:
        raise ValueRefused(f"hostmax_volume_counts is {list(counts)}; it must be a list of whole numbers above 0")
    return tuple(sorted(set(counts)))


def _workloads(entries: Sequence[Any]) -> list[Workload]:
    if not entries:
        raise ValueRefused("hostmax_workloads is empty; name at least one workload, for example 4k-randread")
    chosen: dict[str, Workload] = {}
    for place, entry in enumerate(entries):
        try:
            found = [Workload.from_mapping(entry)] if isinstance(entry, Mapping) else resolve_workloads([str(entry)])
        except (JobError, ProfileError) as error:
            raise ValueRefused(f"hostmax_workloads[{place}]: {error}") from error
        for workload in found:
            if chosen.setdefault(workload.name, workload) != workload:
                raise ValueRefused(f"hostmax_workloads[{place}]: two different workloads are named {workload.name!r}")
    return list(chosen.values())


# -- volumes --------------------------------------------------------------------------------------------------------


def _volumes(
    host: str, variables: Mapping[str, Any], given: Mapping[str, Any], values: Json
) -> tuple[list[Json], Json | None]:
    """The volumes named for the host, else thin volumes where they were asked for or the host is this machine."""
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
        "size_bytes": _size(values["hostmax_thin_size"], "hostmax_thin_size"),
        "cap": _cap(values["hostmax_thin_cap"]),
    }
    return _thin_volumes(thin, str(values["hostmax_thin_size"])), thin


def _is_local(host: str, variables: Mapping[str, Any]) -> bool:
    return host in LOCAL_NAMES or str(variables.get("ansible_connection")) == "local"


def _size(text: Any, where: str) -> int:
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
            found[key] = _size(value, f"hostmax_thin_cap.{key}") if key == "bytes_per_s" else value
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
        kind = entry.get("kind") or ("block" if path.startswith("/dev/") else "directory")
        if kind == "directory":
            path = _directory(where, entry)
        try:
            Target(name, path, 1, True)
        except JobError as error:
            raise ValueRefused(f"{where}: {error}") from error
        size_bytes = None if entry.get("size") is None else _size(entry["size"], f"{where}: size")
        told = {key: entry.get(key) for key in ("size", "identity", "overwrite")}
        if told["overwrite"] and not told["identity"]:
            raise ValueRefused(f"{where}: overwrite needs identity too; name the serial, WWN or IQN of the volume")
        volumes.append(_volume(name=name, path=path, size_bytes=size_bytes, kind=kind, **told))
    _refuse_doubles(volumes)
    return volumes


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


def _check_fit(volume: Json, workloads: Sequence[Workload]) -> None:
    size_bytes = volume["size_bytes"]
    for workload in workloads:
        needed = _needed_bytes(workload)
        if size_bytes is not None and needed > size_bytes:
            raise ValueRefused(
                f"volume {volume['name']}: the workload {workload.name} needs {needed} bytes of it, it has {size_bytes}"
            )


def _needed_bytes(workload: Workload) -> int:
    return max(workload.working_set_bytes or 0, workload.block_size_bytes * workload.num_jobs)
