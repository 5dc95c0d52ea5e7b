# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Taking our NFS mounts away again: bounded also with a dead server, told who is in the way, never somebody else's.

Must not know: what is mounted why, options, modules.
"""

from __future__ import annotations

import os
import time
from typing import Callable

from ansible_collections.hostmax.storage.plugins.module_utils import (
    bounded,
    fstab,
    host_state,
    nfs_live,
    nfs_server,
    thin_volumes,
)
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Entry,
    Handler,
    Journal,
    Outcome,
)
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_faults import MountError

MOUNT, READ_AHEAD, DIRECTORY = "nfs_mount", "read_ahead", "directory"
UNMOUNT_S = 30.0
_FORCE_S = 10.0
_BUSY_S = 5.0
_POLL_S = 0.2
_STAT_S = 5.0
_HOLDERS_SHOWN = 5


def unmount(path: str, timeout_s: float = UNMOUNT_S) -> str | None:
    """Unmount what is visible at a path; a warning where force was needed, None where all went well.

    A mount that is busy stays, and MountError names who uses it. Where the server is dead, what was not written yet is
    given up and the mount is detached: this is only for mounts of our own.
    """
    before = len(nfs_server.at(path))
    end_s = time.monotonic() + timeout_s
    busy_end_s = time.monotonic() + min(_BUSY_S, timeout_s)
    while True:
        try:
            rc, _out, err = bounded.command(["umount", path], max(1.0, end_s - time.monotonic()))
        except bounded.TimedOut:
            return _force(path, before)
        if len(nfs_server.at(path)) < before or not before:
            return None
        if "busy" not in err:
            raise MountError(f"{path} cannot be unmounted: {' '.join(err.split()) or f'umount returned {rc}'}.")
        # what was closed a moment ago may still be written
        if time.monotonic() >= busy_end_s:
            raise MountError(_busy(path))
        time.sleep(_POLL_S)


def _busy(path: str) -> str:
    found = nfs_server.holders(path)
    names = ", ".join(found[:_HOLDERS_SHOWN]) + (" and others" if len(found) > _HOLDERS_SHOWN else "")
    return f"{path} is busy: {names or 'something the kernel does not name'} uses it; end that, then try again."


def _force(path: str, before: int) -> str:
    """Last resort: give up what waits for the server, then take the mount out of sight."""
    for how in (["-f"], ["-f", "-l"], ["-l"]):
        if len(nfs_server.at(path)) >= before:
            try:
                bounded.command(["umount", *how, path], _FORCE_S)
            except bounded.TimedOut:
                continue
    if len(nfs_server.at(path)) >= before:
        raise MountError(
            f"{path} cannot be unmounted, not even by force: its server does not answer; restart the host."
        )
    return f"The server of {path} did not answer, so it was unmounted by force; what was not written yet is lost."


# -- what is ours -----------------------------------------------------------------------------------------------------


def same_source(one: str, other: str) -> bool:
    """Whether two sources mean the same export of the same server name; a slash at the end means nothing."""
    return one.rstrip("/") == other.rstrip("/")


def visible(entry: Entry) -> nfs_server.Mounted | None:
    """The mount of a journal entry where it is still there and still the one the run made.

    One that was mounted again from our line in fstab after a restart is the run's as well.
    """
    there = nfs_server.at(str(entry.key))
    if not there or not same_source(there[-1].source, entry.facts["source"]):
        return None
    known = {**entry.facts, **(entry.done or {})}
    if not known.get("persistent") and known.get("device", there[-1].device) != there[-1].device:
        return None
    return there[-1]


def _restore_mount(entry: Entry, check: bool) -> Outcome:
    path = str(entry.key)
    there = nfs_server.at(path)
    if not there:
        return Outcome(NOTHING)
    if visible(entry) is None:
        return Outcome(LEFT, f"{there[-1].source} is mounted there now, which is not this run's mount.")
    return Outcome(RESTORED) if check else Outcome(RESTORED, unmount(path) or "")


def _restore_read_ahead(entry: Entry, check: bool) -> Outcome:
    """Back to the value of before, where the mount is still there: its device goes with the mount."""
    device = str(entry.key)
    kept = nfs_live.read_ahead_kib(device)
    here = [mount.device for mount in nfs_server.at(entry.facts["path"])]
    if device not in here or not entry.of_this_boot or kept in (None, entry.facts["before"]):
        return Outcome(NOTHING)
    if kept != (entry.done or entry.facts).get("written", entry.facts["wanted"]):
        return Outcome(LEFT, f"it is {kept} KiB now, which this run did not set.")
    if not check:
        nfs_live.set_read_ahead(device, entry.facts["before"])
    return Outcome(RESTORED)


def _restore_directory(entry: Entry, check: bool) -> Outcome:
    """As for every directory, but never through a mount that still covers it."""
    path = str(entry.key)
    if nfs_server.at(path):
        return Outcome(LEFT, "something is still mounted there.")
    if not entry.facts.get("mount_point"):
        return thin_volumes.HANDLERS[DIRECTORY](entry, check)
    # its parent may be on a dead server
    state, why = bounded.call(
        lambda: list(thin_volumes.HANDLERS[DIRECTORY](entry, check)), _STAT_S, f"removal of {path}"
    )
    return Outcome(state, why)


HANDLERS: dict[str, Handler] = dict(
    fstab.HANDLERS,
    **{MOUNT: _restore_mount, READ_AHEAD: _restore_read_ahead, DIRECTORY: _restore_directory},
)


def undo(book: Journal, wanted: Callable[[Entry], bool], check: bool = False) -> dict[str, list[str]]:
    """Put back the entries of the run that ``wanted`` picks, the last first; {"restored", "left", "warnings"}.

    What is left is told in sentences; a directory that others still use is not worth one.
    """
    result: dict[str, list[str]] = {"restored": [], "left": [], "warnings": []}
    if not os.path.exists(book.path):
        return result
    for entry in reversed(book.entries()):
        if entry.result is not None or entry.kind not in HANDLERS or not wanted(entry):
            continue
        try:
            outcome = HANDLERS[entry.kind](entry, check)
        except host_state.HostError as exc:
            outcome = Outcome(LEFT, str(exc))
        if outcome.state == LEFT:
            if entry.kind != DIRECTORY:
                result["left"].append(f"{entry.what}: {outcome.why}")
            continue
        if not check:
            book.restored(entry.id, outcome.state)
        if outcome.state == RESTORED:
            result["restored"].append(entry.what)
            result["warnings"] += [outcome.why] if outcome.why else []
    return result
