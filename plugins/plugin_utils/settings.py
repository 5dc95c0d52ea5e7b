# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host's variables become its checked settings: every `hostmax_` name known, every value typed and sensible.

It must not know other hosts, the plan or the run directory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import JobError, file_bytes
from ansible_collections.hostmax.storage.plugins.module_utils.units import UnitError
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import (
    PREFIX,
    ValueRefused,
    coerce,
    known_settings,
    unknown_setting,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.conditions import (
    Condition,
    ConditionError,
    resolve_conditions,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import ExpectationError, check_expect
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_settings import (
    check_fit,
    needed_bytes,
    size_in_bytes,
    volumes_of,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.workload_settings import chosen_workloads

Json = dict[str, Any]

MOST_THIN_VOLUMES = 200
# where null is a value of its own and not "not set"
_NULLABLE = ("hostmax_thin_cap",)
# either of them says which volumes a host has
_WHICH_VOLUMES = ("hostmax_volumes", "hostmax_thin_count", "hostmax_nfs_volumes")
# repetitions of several conditions, each in an order of its own
DEFAULT_BLOCKS = 3
# (setting, smallest, largest): the numbers that argument_specs cannot bound
_RANGES = (
    ("hostmax_runtime_s", 1, 7 * 24 * 3600),
    ("hostmax_ramp_s", 0, 24 * 3600),
    ("hostmax_settle_s", 0, 3600),
    ("hostmax_patience_s", 5, 24 * 3600),
    ("hostmax_seed", 0, 2**63 - 1),
    ("hostmax_thin_count", 0, MOST_THIN_VOLUMES),
    ("hostmax_blocks", 1, 100),
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
    conditions: tuple[Condition, ...] = ()
    blocks: int = 1
    total_working_set_bytes: int | None = None
    # workloads whose working set the user wrote out
    own_working_sets: frozenset[str] = field(default_factory=frozenset)
    nic_bytes_per_s: int | None = None
    server_memory_bytes: int | None = None

    @property
    def writes(self) -> bool:
        """Whether any workload writes."""
        return any(workload.writes for workload in self.workloads)


def plain(value: Any) -> Any:
    """Variables as ordinary Python data: no templates, no tags, keys and dates as text."""
    return json.loads(json.dumps(value, default=str))


def host_settings(
    variables: Mapping[str, Any],
    earlier: Mapping[str, Any] | None = None,
    study: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings in all variables of a host; raises SettingsError. Only `hostmax_` names are looked at.

    `earlier`: settings of the run that is resumed, which hold where the host is given none; `study`: those that the
    playbook starts from, which come last.
    """
    host = str(variables["inventory_hostname"])
    given = _taken_over(_read(host, variables), earlier or {})
    given = {**given, **{name: value for name, value in (study or {}).items() if given.get(name) is None}}
    values = _coerce_all(host, given)
    try:
        return _make(host, variables, given, values)
    except (ValueRefused, ConditionError, ProfileError, ExpectationError, JobError, UnitError) as error:
        raise SettingsError([f"host {host}: {as_sentence(str(error))}"]) from error


def setting_values(variables: Mapping[str, Any]) -> Json:
    """All settings of a host by name, typed and with their defaults, and not yet seen together; SettingsError."""
    host = str(variables["inventory_hostname"])
    return _coerce_all(host, _read(host, variables))


def as_sentence(text: str) -> str:
    """The text with the sign a sentence ends with."""
    return text if text.endswith((".", "?")) else text + "."


def _read(host: str, variables: Mapping[str, Any]) -> Json:
    """The `hostmax_` variables as plain data."""
    given, faults = {}, []
    for name in sorted(name for name in variables if isinstance(name, str) and name.startswith(PREFIX)):
        unknown = unknown_setting(name)
        if unknown:
            faults.append(f"host {host}: {as_sentence(unknown)}")
            continue
        try:
            given[name] = plain(variables[name])
        except Exception as error:  # a template that cannot be worked out raises what Jinja and ansible-core please
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            faults.append(f"host {host}: {name} cannot be worked out: {as_sentence(reason)}")
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
            faults.append(f"host {host}: {as_sentence(str(error))}")
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
    workloads, own_working_sets = chosen_workloads(values["hostmax_workloads"], values["hostmax_read_percents"])
    check_expect(values["hostmax_expect"], [workload.name for workload in workloads])
    conditions = resolve_conditions(values["hostmax_conditions"])
    blocks = _blocks(values, conditions)
    volumes, thin = volumes_of(host, variables, given, values)
    _check_mounts(conditions, volumes)
    total_bytes = _size_of(values, "hostmax_total_working_set")
    for volume in volumes:
        check_fit(volume, workloads)
        if volume["kind"] == "directory":
            # each job has a file of its own: without a working set nobody knows how large
            for workload in workloads if total_bytes is None else ():
                file_bytes(workload)
        else:
            # for the guard, where the inventory does not say how large a volume is
            volume["needed_bytes"] = max(needed_bytes(workload) for workload in workloads)
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
        conditions=tuple(conditions),
        blocks=blocks,
        total_working_set_bytes=total_bytes,
        own_working_sets=own_working_sets,
        nic_bytes_per_s=_size_of(values, "hostmax_nic_bytes_per_s"),
        server_memory_bytes=_size_of(values, "hostmax_server_memory"),
    )


def _size_of(values: Json, name: str) -> int | None:
    """A setting that is a size, where it is set."""
    return None if values[name] is None else size_in_bytes(values[name], name)


def _volume_counts(counts: Sequence[int]) -> tuple[int, ...]:
    if not counts or min(counts) < 1:
        raise ValueRefused(f"hostmax_volume_counts is {list(counts)}; it must be a list of whole numbers above 0")
    return tuple(sorted(set(counts)))


def _blocks(values: Json, conditions: Sequence[Condition]) -> int:
    """How often all conditions are measured."""
    blocks = values["hostmax_blocks"]
    if blocks is None:
        return DEFAULT_BLOCKS if len(conditions) > 1 else 1
    if blocks > 1 and not conditions:
        raise ValueRefused(f"hostmax_blocks is {blocks}, and there is nothing to repeat; name hostmax_conditions")
    return int(blocks)


def _check_mounts(conditions: Sequence[Condition], volumes: Sequence[Json]) -> None:
    """Conditions that mount need volumes to mount, and volumes that are mounted need to be told how."""
    mounted = [volume["name"] for volume in volumes if volume.get("mount")]
    mounting = [condition.name for condition in conditions if condition.mount]
    if mounting and not mounted:
        raise ValueRefused(
            f"the condition {mounting[0]} mounts NFS and hostmax_nfs_volumes names no volume;"
            " name one, for example [{source: '10.0.0.4:/vol1'}]"
        )
    if mounted and not conditions:
        raise ValueRefused(
            "hostmax_nfs_volumes names volumes and hostmax_conditions does not say how to mount them;"
            " name a condition, for example baseline"
        )
    without = [condition.name for condition in conditions if not condition.mount]
    if mounted and without:
        raise ValueRefused(
            f"the condition {without[0]} has no mount options and hostmax_nfs_volumes are mounted; give it some, for"
            " example mount: hard,vers=3"
        )
