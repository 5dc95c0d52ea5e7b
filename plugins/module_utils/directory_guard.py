# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""May a run make its own directory of test files here? Reasons against it, as ends of sentences with advice.

It must not know workloads, fio or who asks; it never changes or creates anything.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, Collection, NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import device_uses, test_file_places
from ansible_collections.hostmax.storage.plugins.module_utils.random_files import LayoutError

# file systems in which a test file would be no file
_NOT_STORAGE = ("proc", "sysfs", "devtmpfs", "cgroup", "cgroup2", "debugfs", "tracefs", "configfs", "securityfs")
_IN_MEMORY = ("tmpfs", "ramfs")


class Findings(NamedTuple):
    """What was found of one directory volume: (reason, advice) against it, warnings, and which file system it is."""

    real_path: str
    reasons: list[tuple[str, str]]
    warnings: list[str]
    needed_bytes: int
    file_system: int | None
    above: str


def look(
    volume: dict[str, Any], base_dir: str | None, own_mounts: Collection[str], own_directories: Collection[str]
) -> Findings:
    """Judge one volume of kind directory by itself.

    ``own_mounts``: paths of the mounts this run made; ``own_directories``: those the journal says it made.
    """
    needed = sum(int(size) for size in volume.get("files") or ())
    try:
        above, path, _parents = test_file_places.where(volume, base_dir)
    except LayoutError as error:
        return Findings(
            str(volume["path"]), [(f"is damaged in the plan ({error})", "make another run")], [], 0, None, ""
        )
    reasons: list[tuple[str, str]] = []
    warnings: list[str] = []
    found = Findings(path, reasons, warnings, needed, None, above)
    if not volume.get("files"):
        reasons.append(("has no files in the plan", "make another run"))
    try:
        node = os.stat(above)
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        reason = f"needs the directory {above}, which " + (
            "does not exist" if missing else f"cannot be seen ({error.strerror})"
        )
        reasons.append((reason, "make or mount it, or correct the path"))
        return found
    if not stat.S_ISDIR(node.st_mode):
        reasons.append(_no_directory(above, node))
        return found
    own = [os.path.realpath(os.path.join(base_dir or "", point)) for point in own_mounts]
    _judge_mount(volume, above, node, own, reasons)
    _judge_file_system(above, reasons, warnings)
    if os.path.lexists(path) and path not in own_directories:
        reasons.append((f"is there already, {path}", "remove it, or make another run"))
    return found._replace(file_system=node.st_dev)


def _no_directory(above: str, node: os.stat_result) -> tuple[str, str]:
    if stat.S_ISBLK(node.st_mode):
        return (f"is to be a directory, and {above} is a block device", "set kind: block for it")
    if stat.S_ISREG(node.st_mode):
        return (
            f"is to be a directory, and {above} is a file",
            "name a directory or a block device, files of the user are never used",
        )
    return (f"is to be a directory, and {above} is something else", "name a directory")


def _judge_mount(
    volume: dict[str, Any],
    above: str,
    node: os.stat_result,
    own_mounts: Collection[str],
    reasons: list[tuple[str, str]],
) -> None:
    """What is to be on a test mount must not end up on this host's own disk where that is not mounted."""
    if not volume.get("mount"):
        return
    if above not in own_mounts:
        reasons.append((f"names {above}, which is no mount of this run", "make another run"))
    elif node.st_dev == os.stat("/").st_dev or device_uses.mount_of(above).point != above:
        reasons.append((f"is not mounted on {above}", "mount it again; nothing is written to the disk under it"))


def _judge_file_system(above: str, reasons: list[tuple[str, str]], warnings: list[str]) -> None:
    fstype = device_uses.mount_of(above).fstype
    if fstype in _NOT_STORAGE:
        reasons.append((f"is in {above}, which is no storage ({fstype})", "name a directory on the storage to measure"))
    elif os.statvfs(above).f_flag & os.ST_RDONLY:
        reasons.append((f"needs files in {above}, which is read-only", "mount it writable or name another directory"))
    elif not os.access(above, os.W_OK | os.X_OK):
        reasons.append((f"needs files in {above}, where this user may not write", "change that, or run with become"))
    elif fstype in _IN_MEMORY:
        warnings.append(f"is in this host's memory ({fstype}), not on storage")
