# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Directory volumes in a plan: which directory of its own a host gets for a run, and how large the file of each job is.

It must not know how files are made or removed; the host's journal does.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import file_bytes
from ansible_collections.hostmax.storage.plugins.module_utils.random_files import GRAIN_BYTES, limit_s
from ansible_collections.hostmax.storage.plugins.module_utils.test_file_places import is_directory
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import safe_file_name
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import Settings

Json = dict[str, Any]


def placed(settings_by_host: Mapping[str, Settings], workloads: Sequence[Workload], run_id: str) -> dict[str, Settings]:
    """The settings with every directory volume in a place of its own for this run and host.

    `given_path` stays what the user named. Raises JobError for a workload without a working set.
    """
    return {
        host: replace(settings, volumes=tuple(_placed(volume, workloads, run_id, host) for volume in settings.volumes))
        for host, settings in settings_by_host.items()
    }


def _placed(volume: Json, workloads: Sequence[Workload], run_id: str, host: str) -> Json:
    if not is_directory(volume):
        return volume
    own = safe_file_name(host)
    if volume.get("mount"):
        path = posixpath.join(volume["mount"], f"hostmax-{run_id}", own)
    else:
        path = posixpath.join(volume["path"], f"hostmax-{run_id}-{own}")
    # the endpoint is one of several, and no part of what the volume is
    given = volume.get("source") or volume["path"]
    kept = {key: item for key, item in volume.items() if key != "servers"}
    return {**kept, "path": path, "given_path": given, "files": file_sizes(workloads)}


def file_sizes(workloads: Sequence[Workload]) -> list[int]:
    """The bytes of each job's file: the most that any workload with so many jobs uses of it."""
    most = max(workload.num_jobs for workload in workloads)
    largest = [
        max(file_bytes(workload) for workload in workloads if workload.num_jobs > number) for number in range(most)
    ]
    return [-(-size // GRAIN_BYTES) * GRAIN_BYTES for size in largest]


def laid_out_bytes(volumes: Sequence[Mapping[str, Any]]) -> int:
    """What is written to a host's directory volumes before its first point."""
    return sum(sum(volume.get("files") or ()) for volume in volumes)


def layout_limit_s(volumes: Sequence[Mapping[str, Any]]) -> float:
    """How long a host may take at most to lay out its files; 0 where it has none."""
    total_bytes = laid_out_bytes(volumes)
    return limit_s(total_bytes) if total_bytes else 0.0
