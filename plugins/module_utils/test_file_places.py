# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a directory volume's files are, what they are called while they are made, and whether there is room for them.

Must not know: how they are made, filled or removed.
"""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.journal import Entry
from ansible_collections.hostmax.storage.plugins.module_utils.random_files import LayoutError
from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes

KIND = "test_directory"
# left free beside the files, for the journal and whatever else writes there
FREE_BYTES = 2**24


def is_directory(volume: dict[str, Any]) -> bool:
    """Whether a volume of the agent's payload is a directory with files."""
    return volume.get("kind") == "directory"


def where(volume: dict[str, Any], base_dir: str | None) -> tuple[str, str, tuple[str, ...]]:
    """(the directory that is there, the volume's own directory, the directories to make between them); real paths.

    What is there is the test mount, or for a user's volume the directory above.
    """
    path = os.path.normpath(os.path.join(base_dir or "", str(volume["path"])))
    above = os.path.normpath(os.path.join(base_dir or "", volume.get("mount") or os.path.dirname(path)))
    inside = os.path.relpath(path, above).split(os.sep)
    if os.pardir in inside or inside == [os.curdir]:
        raise LayoutError(f"The directory {path} of volume {volume['name']} is not below {above}: make another run.")
    root = os.path.realpath(above)
    steps = [os.path.join(root, *inside[: number + 1]) for number in range(len(inside))]
    return root, steps[-1], tuple(steps[:-1])


def room_fault(path: str, needed_bytes: int) -> str | None:
    """Why files of so many bytes do not fit into the file system of a path; None where they do."""
    facts = os.statvfs(path)
    free_bytes = facts.f_bavail * facts.f_frsize
    # file systems without a size of their own (ramfs, some FUSE) tell none
    if not facts.f_blocks or free_bytes >= needed_bytes + FREE_BYTES:
        return None
    return (
        f"the files of this run need {format_bytes(needed_bytes)} in {path} and {format_bytes(FREE_BYTES)} beside "
        f"them, its file system has {format_bytes(free_bytes)} free"
    )


def draft_name(entry: Entry, name: str) -> str:
    """What a file is called until its inode is in the journal; nobody else can know it."""
    return ".{}.{}".format(entry.facts["token"], name)


def stat_of(path: str) -> os.stat_result | None:
    """The facts of what is at a path, links not followed; None where there is nothing."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
