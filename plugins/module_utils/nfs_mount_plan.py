# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which NFS mounts a run wants, and what has to be done for each on this host; what others would decide is refused.

Must not know: how anything is mounted or put back; nothing here changes the host.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import (
    fstab,
    host_state,
    nfs_live,
    nfs_options,
    nfs_server,
    nfs_unmount,
)
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Entry, Journal
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_faults import MountError
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_unmount import MOUNT

LARGEST_READ_AHEAD_KIB = 2**22
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True)
class Wanted:
    """One mount somebody asks for; ``path`` is absolute."""

    name: str
    source: str
    path: str
    options: str
    persistent: bool = False
    read_ahead_kib: int | None = None

    @property
    def asked(self) -> nfs_options.Options:
        """The options in canonical form."""
        return nfs_options.canonical(self.options)

    @property
    def nconnect(self) -> str:
        """How many connections are asked for; one where nothing is said."""
        return self.asked.get("nconnect", "1")


@dataclass
class Step:
    """What has to be done for one mount, and what came of it."""

    wanted: Wanted
    addresses: list[str]
    state: str  # keep, mount or remount
    reason: str = ""
    before: nfs_live.Live | None = None
    changed: bool = False


# -- what is asked for ------------------------------------------------------------------------------------------------


def want(run_id: str, mounts: Sequence[Mapping[str, Any]]) -> list[Wanted]:
    """Check by itself what is asked for, before looking at the host; a relative path is below the run's work dir."""
    wanted = [_want_one(host_state.work_dir(run_id), mount) for mount in mounts]
    for kind in ("name", "path"):
        seen = [getattr(one, kind) for one in wanted]
        twice = next((value for value in seen if seen.count(value) > 1), None)
        if twice is not None:
            raise MountError(f"Two NFS mounts have the {kind} {twice}; give each its own.")
    for one in wanted:
        for other in wanted:
            if other.path.startswith(one.path + "/"):
                raise MountError(f"The NFS mount {other.path} lies inside {one.path}; use paths beside each other.")
    return wanted


def _want_one(work_dir: str, mount: Mapping[str, Any]) -> Wanted:
    source, path = str(mount["source"]), str(mount.get("path") or "")
    nfs_server.parse_source(source)
    name = str(mount.get("name") or os.path.basename(path.rstrip("/")) or "")
    if not _NAME.fullmatch(name):
        raise MountError(f"The NFS mount of {source} has the name {name!r}; use letters, digits, '_', '-' and '.'.")
    if not path or "\0" in path or ".." in path.split("/"):
        raise MountError(f"The NFS mount of {source} has the path {path!r}; give a mount point without '..' in it.")
    path = os.path.normpath(os.path.join(work_dir, path))
    if path == "/" or path.startswith("//"):
        raise MountError(f"The NFS mount of {source} has the path {path}; give a directory below it.")
    options = nfs_options.merge(mount.get("options") or "")
    read_ahead = mount.get("read_ahead_kib")
    if read_ahead is not None and not 0 <= int(read_ahead) <= LARGEST_READ_AHEAD_KIB:
        raise MountError(f"The read-ahead of {path} is {read_ahead} KiB; use 0 to {LARGEST_READ_AHEAD_KIB}.")
    return Wanted(name, source, path, options, bool(mount.get("persistent")), read_ahead)


# -- what has to be done ----------------------------------------------------------------------------------------------


def plan(wanted: Sequence[Wanted], book: Journal) -> list[Step]:
    """What has to be done for each mount, changing nothing; refuses what would be decided by other mounts."""
    entries = own(book)
    steps = [_first_look(one, entries.get(one.path), book) for one in wanted]
    ours = {path for path, entry in entries.items() if nfs_unmount.visible(entry) is not None}
    listed = {step.wanted.path: step for step in steps}
    _check_agree(steps)
    for step in steps:
        for other in nfs_server.sharing(step.addresses, step.wanted.asked):
            mine = other.pid is None and other.path in ours
            why = _decides(step, other)
            if not why:
                continue
            if not mine or other.path not in listed:
                raise MountError(_conflict(step, other, why, mine))
            for affected in (step, listed[other.path]):
                if affected.state == "keep":
                    affected.state, affected.reason = "remount", why
    return steps


def own(book: Journal) -> dict[str, Entry]:
    """The run's mounts that were not put back yet, by mount point."""
    return {str(entry.key): entry for entry in book.entries() if entry.kind == MOUNT and entry.result is None}


def _first_look(one: Wanted, entry: Entry | None, book: Journal) -> Step:
    addresses = nfs_server.resolve(nfs_server.parse_source(one.source).server)
    step = Step(one, addresses, "mount")
    there = nfs_server.at(one.path)
    if one.persistent:
        fstab.check_free(book.run_id, one.path)
    if not there:
        return step
    if entry is None or nfs_unmount.visible(entry) is None:
        raise MountError(
            f"{one.path} is a mount point already ({there[-1].source}), and not of the run {book.run_id}"
            f"{_whose(one.path, book)}; unmount it or use another path."
        )
    step.before = nfs_live.look(one.path)
    step.reason = _reason_to_remount(one, entry, step.before)
    step.state = "remount" if step.reason else "keep"
    return step


def _whose(path: str, book: Journal) -> str:
    """Of which other run of ours a mount is, for a sentence."""
    for run_id in host_state.list_runs():
        if run_id != book.run_id:
            with contextlib.suppress(host_state.HostError):
                if path in own(Journal(os.path.join(host_state.work_dir(run_id), os.path.basename(book.path)))):
                    return f" but of the run {run_id}"
    return ""


def _reason_to_remount(one: Wanted, entry: Entry, live: nfs_live.Live | None) -> str:
    if not nfs_unmount.same_source(entry.facts["source"], one.source):
        return f"{entry.facts['source']} was mounted there"
    if not nfs_options.same(entry.facts["options"], one.options):
        return f"its options were {entry.facts['options']}"
    if live is None or entry.done is None:
        return "it was not mounted to the end"
    known = entry.done.get("effective")
    if known is not None and known != live.lasting:
        names = sorted(name for name in {*known, *live.lasting} if known.get(name) != live.lasting.get(name))
        return f"somebody changed its {', '.join(names)} meanwhile"
    return ""


def _check_agree(steps: Sequence[Step]) -> None:
    """Mounts that share connections cannot differ in how many there are."""
    for step in steps:
        for other in steps:
            if _share(step, other) and step.wanted.nconnect != other.wanted.nconnect:
                raise MountError(
                    f"{step.wanted.path} asks for nconnect={step.wanted.nconnect} and {other.wanted.path} for "
                    f"nconnect={other.wanted.nconnect}, but mounts of one server and version share their connections; "
                    "ask for the same."
                )


def _share(one: Step, other: Step) -> bool:
    asked = [step.wanted.asked for step in (one, other)]
    same = all(asked[0].get(name) == asked[1].get(name) for name in ("vers", "proto"))
    return same and bool(set(one.addresses) & set(other.addresses))


def _decides(step: Step, other: nfs_server.Mounted) -> str:
    """Why another mount's connections would not be the ones this mount asks for; empty where they would."""
    nconnect = other.options.get("nconnect", "1")
    if nconnect != step.wanted.nconnect:
        return f"nconnect={nconnect} would hold instead of nconnect={step.wanted.nconnect}"
    wanted = nfs_live.slot_limit()
    slots = [info["max_num_slots"] for info in nfs_live.transports(other.address)]
    if wanted is not None and slots and wanted not in slots and step.wanted.asked.get("proto", "tcp") == "tcp":
        return f"its {min(slots)} request slots would hold instead of the {wanted} set by now"
    return ""


def _conflict(step: Step, other: nfs_server.Mounted, why: str, mine: bool) -> str:
    server = nfs_server.parse_source(step.wanted.source).server
    what = "give it in the same call" if mine else "unmount it first, or ask for the same"
    return (
        f"{step.wanted.source} cannot be mounted on {step.wanted.path} as asked: {other.in_words} is a mount of the "
        f"same server {server} and version, and mounts of one server and version share their connections, so {why}; "
        f"{what}."
    )
