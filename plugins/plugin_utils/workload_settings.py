# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What `hostmax_workloads` means: names, sets and mappings become workloads, in the mixes and working sets asked for.

It must not know hosts or volumes, except how many volumes share a working set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes
from ansible_collections.hostmax.storage.plugins.module_utils.workload import JobError, Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import ValueRefused
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError, resolve_workloads

# of a name that says its mix: 8k-rand-r75
_MIX = re.compile(r"-r(100|[0-9]{1,2})")


def chosen_workloads(entries: Sequence[Any], read_percents: Sequence[int]) -> tuple[list[Workload], frozenset[str]]:
    """The workloads in order, each once, and the names of those whose own working set was written by the user.

    With `read_percents` each pattern runs once in each of these mixes. Raises ValueRefused.
    """
    if not entries:
        raise ValueRefused("hostmax_workloads is empty; name at least one workload, for example 4k-randread")
    chosen: dict[str, Workload] = {}
    own: set[str] = set()
    for place, entry in enumerate(entries):
        try:
            found = [Workload.from_mapping(entry)] if isinstance(entry, Mapping) else resolve_workloads([str(entry)])
            found = _mixed(found, read_percents)
        except (JobError, ProfileError) as error:
            raise ValueRefused(f"hostmax_workloads[{place}]: {error}") from error
        for workload in found:
            if chosen.setdefault(workload.name, workload) != workload:
                raise ValueRefused(f"hostmax_workloads[{place}]: two different workloads are named {workload.name!r}")
            if isinstance(entry, Mapping) and workload.working_set_bytes is not None:
                own.add(workload.name)
    return list(chosen.values()), frozenset(own)


def _mixed(workloads: Iterable[Workload], read_percents: Sequence[int]) -> list[Workload]:
    """Each pattern of these workloads in each of the mixes."""
    if not read_percents:
        return list(workloads)
    wrong = [percent for percent in read_percents if not 0 <= percent <= 100]
    if wrong:
        raise ValueRefused(f"hostmax_read_percents has {wrong[0]}; a share of reads is 0 to 100")
    found: dict[str, Workload] = {}
    for workload in workloads:
        for percent in dict.fromkeys(read_percents):
            mixed = _of_mix(workload, percent)
            found.setdefault(mixed.name, mixed)
    return list(found.values())


def _of_mix(workload: Workload, percent: int) -> Workload:
    """A workload with another share of reads, and a name that says so."""
    stem = _MIX.sub("", workload.name)
    if stem == workload.name:
        size = format_bytes(workload.block_size_bytes).replace(" ", "").replace("iB", "").lower()
        stem = f"{size}-{'rand' if workload.random else 'seq'}"
    word = {100: "read", 0: "write"}.get(percent, "rw")
    return replace(
        workload,
        name=f"{stem}-r{percent}",
        rw=f"rand{word}" if workload.random else word,
        read_percent=percent,
    )


def split_working_set(
    workloads: Iterable[Workload], total_bytes: int | None, volumes: int, own: frozenset[str]
) -> list[Workload]:
    """The workloads with their share of a working set that all volumes of all hosts have together.

    Those whose working set the user wrote keep it. Raises ValueRefused where a share is too small for its jobs.
    """
    if total_bytes is None:
        return list(workloads)
    found = []
    for workload in workloads:
        if workload.name in own:
            found.append(workload)
            continue
        unit = workload.block_size_bytes * workload.num_jobs
        share = total_bytes // volumes // unit * unit
        if not share:
            raise ValueRefused(
                f"hostmax_total_working_set is {format_bytes(total_bytes)} for {volumes:,} "
                f"{'volume' if volumes == 1 else 'volumes'} together: "
                f"{workload.name} needs {format_bytes(unit)} of each at least"
            )
        found.append(replace(workload, working_set_bytes=share))
    return found
