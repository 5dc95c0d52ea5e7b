# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Removing the test files of a run from the journal: only what it made, also where its file system is not mounted now.

Must not know: how the files are made and filled, fio, or when a run is restored.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from typing import Callable, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import bounded, device_uses, nfs_mount
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Entry,
    Handler,
    Outcome,
)
from ansible_collections.hostmax.storage.plugins.module_utils.test_file_places import KIND, draft_name, stat_of

# what a dead server may take of a restore, for each directory
REMOVE_S = 60.0
_HELD_OPEN_S = 5.0
# what NFS makes of a file that is removed while somebody has it open; gone when it is closed
_HELD_OPEN = ".nfs"
_SHOWN = 3


def _restore(entry: Entry, check: bool) -> Outcome:
    """Whatever touches the files of a dead server hangs for ever, so that is done apart and bounded."""
    facts = entry.facts
    outcome = _apart(entry, lambda: _remove(entry, check))
    if outcome is not None:
        return outcome
    if facts["fstype"] not in ("nfs", "nfs4"):
        return Outcome(
            LEFT, "{source} is not mounted on {mount_path} any more; mount it and restore again.".format(**facts)
        )
    # its test mount went with a restart, or was switched off before
    with nfs_mount.temporary(facts["source"], facts["options"]) as point:
        outcome = _apart(entry, lambda: _remove_elsewhere(entry, point, check))
    return outcome or Outcome(NOTHING)


def _apart(entry: Entry, work: Callable[[], Outcome | None]) -> Outcome | None:
    if not device_uses.is_remote(entry.facts["fstype"]):
        return work()
    try:
        done = bounded.call(work, REMOVE_S, "removal of {} from {}".format(entry.key, entry.facts["source"]))
    except bounded.TimedOut:
        return Outcome(LEFT, "its server ({source}) does not answer; restore again when it does.".format(**entry.facts))
    return None if done is None else Outcome(*done)


def _remove(entry: Entry, check: bool) -> Outcome | None:
    """None where the file system that held the directory is not mounted there any more."""
    path, facts = str(entry.key), entry.facts
    if _is_ours(path, entry):
        return _remove_from(path, facts["parents"], entry, check)
    there = [(mount.point, mount.source) for mount in device_uses.read_mounts()]
    if (facts["mount_path"], facts["source"]) not in there:
        return None
    return _nothing_of_ours(path, facts["parents"], check)


def _remove_elsewhere(entry: Entry, point: str, check: bool) -> Outcome:
    facts = entry.facts
    path, *parents = (
        os.path.join(point, facts["root"].lstrip("/"), os.path.relpath(each, facts["mount_path"]))
        for each in (str(entry.key), *facts["parents"])
    )
    if _is_ours(path, entry):
        return _remove_from(path, parents, entry, check)
    return _nothing_of_ours(path, parents, check)


def _nothing_of_ours(path: str, parents: Sequence[str], check: bool) -> Outcome:
    if stat_of(path) is not None:
        return Outcome(LEFT, "it is not the directory this run made; remove it if nobody needs it.")
    if not check:
        _remove_empty(parents)
    return Outcome(NOTHING)


def _is_ours(path: str, entry: Entry) -> bool:
    facts = stat_of(path)
    if facts is None or not stat.S_ISDIR(facts.st_mode):
        return False
    # made and not noted by a crash: the name, which is the run's, has to do, and nothing is in it
    return facts.st_ino == entry.done["inode"] if entry.done else not os.listdir(path)


def _remove_from(path: str, parents: Sequence[str], entry: Entry, check: bool) -> Outcome:
    foreign = []
    for name in sorted(os.listdir(path)):
        file = os.path.join(path, name)
        if not _is_own_file(file, name, entry):
            foreign.append(name)
        elif not check:
            os.unlink(file)
    others = [name for name in foreign if not name.startswith(_HELD_OPEN)]
    if others:
        rest = len(others) - _SHOWN
        names = ", ".join(others[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
        return Outcome(LEFT, f"it holds {names}, which this run did not make; look at that and remove the directory.")
    if check:
        return Outcome(RESTORED)
    end_s = time.monotonic() + _HELD_OPEN_S
    while True:
        try:
            os.rmdir(path)
            break
        except OSError as exc:
            if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY) or time.monotonic() > end_s:
                return Outcome(LEFT, f"it cannot be removed ({exc.strerror}); look at what is in it.")
        time.sleep(0.1)
    _remove_empty(parents)
    return Outcome(RESTORED)


def _is_own_file(path: str, name: str, entry: Entry) -> bool:
    facts = stat_of(path)
    if facts is None or not stat.S_ISREG(facts.st_mode):
        return False
    if name.startswith(draft_name(entry, "")):
        return True
    inode = ((entry.done or {}).get("files") or {}).get(name)
    return inode is not None and facts.st_ino == inode


def _remove_empty(parents: Sequence[str]) -> None:
    """Directories above, which hosts of one run share: the last host removes them."""
    for parent in reversed(parents):
        with contextlib.suppress(OSError):
            os.rmdir(parent)


HANDLERS: dict[str, Handler] = {KIND: _restore}
