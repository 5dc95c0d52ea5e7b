# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NFS mounts of a run: exactly these, each verified with the kernel, so that nothing decides unseen.

Must not know: profiles, what is measured; every change is in the journal before it is made.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from functools import partial
from typing import Any, Iterator, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import (
    bounded,
    fstab,
    host_state,
    nfs_faults,
    nfs_live,
    nfs_options,
    nfs_server,
    nfs_unmount,
)
from ansible_collections.hostmax.storage.plugins.module_utils.journal import NOTHING, Entry, Journal
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_faults import MountError
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_mount_plan import Step, Wanted, own, plan, want
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_unmount import DIRECTORY, MOUNT, READ_AHEAD

__all__ = ["HANDLERS", "MOUNT_S", "Wanted", "apply", "mount", "planned", "temporary", "unmount", "want"]

MOUNT_S = 60.0
HANDLERS = nfs_unmount.HANDLERS
_PROBE_S = 5.0
_TEMPORARY = ".mounts"


# -- doing it ---------------------------------------------------------------------------------------------------------


def apply(
    wanted: Sequence[Wanted], book: Journal, timeout_s: float = MOUNT_S, run: host_state.Run = host_state.run_command
) -> dict[str, Any]:
    """Make exactly these mounts and return {"mounts", "warnings", "changed"}; the same again changes nothing.

    Other mounts of the run stay. Everything is checked before the first change; what this call mounted is taken away
    again where a later mount fails.
    """
    with book.held():
        steps = plan(wanted, book)
        _check_possible(steps, run)
        warnings = _unmount_first(steps, book)
        made: list[Wanted] = []
        try:
            for step in steps:
                made += [step.wanted] if step.state != "keep" else []
                warnings += _settle(step, book, timeout_s)
        except (host_state.HostError, OSError) as exc:
            left = nfs_unmount.undo(book, _of([one.path for one in made]))["left"]
            if left or not isinstance(exc, host_state.HostError):
                raise MountError(
                    f"{str(exc).rstrip('.')}{'; still there: ' + ' '.join(left) if left else ''}."
                ) from exc
            raise
        results = [result_of(step) for step in steps]
    warnings += shared_caches(wanted)
    return {"mounts": results, "warnings": warnings, "changed": any(step.changed for step in steps)}


def planned(wanted: Sequence[Wanted], book: Journal, run: host_state.Run = host_state.run_command) -> dict[str, Any]:
    """What apply would return, as far as it can be known without changing anything."""
    steps = plan(wanted, book)
    _check_possible(steps, run)
    for step in steps:
        step.changed = step.state != "keep" or _fstab_differs(step.wanted, book)
    warnings = [f"{step.wanted.path} is mounted again, because {step.reason}." for step in steps if step.reason]
    return {
        "mounts": [result_of(step) for step in steps],
        "warnings": warnings + shared_caches(wanted),
        "changed": any(step.changed for step in steps),
    }


def _check_possible(steps: Sequence[Step], run: host_state.Run) -> None:
    """Refuse a host that cannot mount and a server that does not answer, where something is to be mounted."""
    to_do = [step for step in steps if step.state != "keep"]
    if to_do:
        nfs_faults.check_host(run)
    for step in to_do:
        server = nfs_server.parse_source(step.wanted.source).server
        nfs_server.check_answers(server, step.addresses, step.wanted.asked)


def _unmount_first(steps: Sequence[Step], book: Journal) -> list[str]:
    """All that is mounted again goes first, so that the kernel forgets the connections they share."""
    again = [step for step in steps if step.state == "remount"]
    if not again:
        return []
    gone = nfs_unmount.undo(book, _of([step.wanted.path for step in again], directories=False))
    if gone["left"]:
        raise MountError("The mounts cannot be made again: " + " ".join(gone["left"]))
    return gone["warnings"] + [
        f"{step.wanted.path} was mounted again, because {step.reason}." for step in again if step.reason
    ]


def _of(paths: Sequence[str], directories: bool = True) -> Any:
    """Picks the entries that belong to these mount points."""

    def belongs(entry: Entry) -> bool:
        if entry.kind == DIRECTORY:
            inside = any(path == entry.key or path.startswith(f"{entry.key}/") for path in paths)
            return directories and bool(entry.facts.get("mount_point")) and inside
        return str(entry.facts.get("path", entry.key)) in paths

    return belongs


def _settle(step: Step, book: Journal, timeout_s: float) -> list[str]:
    """Bring one mount to what is wanted."""
    wanted, warnings = step.wanted, []
    if step.state != "keep":
        warnings += _mount_one(step, book, timeout_s)
        step.changed = True
    live = nfs_live.look(wanted.path)
    if live is None:
        raise MountError(f"{wanted.path} was mounted, but the kernel shows no NFS mount there.")
    settled = [_settle_read_ahead(wanted, live, book), _settle_fstab(wanted, book)]
    step.changed = step.changed or any(settled)
    return warnings


def _mount_one(step: Step, book: Journal, timeout_s: float) -> list[str]:
    wanted = step.wanted
    hidden = nfs_server.hidden_holders(step.addresses, wanted.asked.get("vers", ""))
    old = own(book).get(wanted.path)
    if old is not None:
        book.restored(old.id, NOTHING)  # gone with a reboot, or unmounted by somebody
    _make_mount_point(wanted.path, book)
    entry = book.record(
        MOUNT, key=wanted.path, source=wanted.source, options=wanted.options, persistent=wanted.persistent
    )
    mount(wanted.source, wanted.path, wanted.options, timeout_s, book.run_id)
    live = nfs_live.look(wanted.path)
    if live is None:
        raise MountError(f"mount says that {wanted.path} is mounted, but the kernel shows no NFS mount there.")
    book.done(entry, device=live.mounted.device, fstype=live.mounted.fstype, effective=live.lasting)
    return _check_hidden(wanted, live, hidden)


def _check_hidden(wanted: Wanted, live: nfs_live.Live, hidden: int) -> list[str]:
    """A mount that cannot be seen from here may have decided."""
    got = live.effective.get("nconnect", "1")
    if not hidden or got == wanted.nconnect:
        return []
    raise MountError(
        f"{wanted.path} got nconnect={got} instead of nconnect={wanted.nconnect}: the kernel still holds the "
        f"connections of an earlier mount of {wanted.source} ({nfs_server.SERVERS} lists them), in a mount namespace "
        "that cannot be seen from here; end the container or service that was started while it was mounted."
    )


def _make_mount_point(path: str, book: Journal) -> None:
    """Make the directory and those above it that are missing, each in the journal first."""
    missing: list[str] = []
    place = path
    while not _is_directory(place):
        missing.insert(0, place)
        place = os.path.dirname(place)
    for directory in missing:
        entry = book.record(DIRECTORY, key=directory, mount_point=True)
        inode = bounded.call(partial(_mkdir, directory), _PROBE_S, f"making of {directory}")
        book.done(entry, inode=inode)


def _is_directory(path: str) -> bool:
    def look() -> bool:
        try:
            return bool(os.lstat(path)) and os.path.isdir(path)
        except FileNotFoundError:
            return False

    if bounded.call(look, _PROBE_S, f"look at {path}"):
        return True
    if bounded.call(lambda: os.path.lexists(path), _PROBE_S, f"look at {path}"):
        raise MountError(f"{path} is no directory; use another path for the mount.")
    return False


def _mkdir(path: str) -> int:
    os.mkdir(path, 0o755)
    return os.stat(path).st_ino


def mount(source: str, path: str, options: str, timeout_s: float = MOUNT_S, run_id: str = "") -> None:
    """Mount, in the foreground and once; raises MountError with one sentence. It does not touch any journal."""
    text = nfs_options.for_mounting(options)
    mark = {host_state.MARK: run_id} if run_id else None
    before = len(nfs_server.at(path))
    try:
        rc, out, err = bounded.command(["mount", "-t", "nfs", "-o", text, source, path], timeout_s, mark)
    except bounded.TimedOut:
        if len(nfs_server.at(path)) > before:
            nfs_unmount.unmount(path)
        raise MountError(
            f"{source} was not mounted within {timeout_s:g} s, so mounting was ended; the server takes connections "
            "but does not answer: look at it, or give more time."
        ) from None
    if rc != 0:
        raise MountError(nfs_faults.explain(err or out, source, path, options))


def _settle_read_ahead(wanted: Wanted, live: nfs_live.Live, book: Journal) -> bool:
    """Set the read-ahead of the mount and read it back; whether that was a change."""
    kib, device = wanted.read_ahead_kib, live.mounted.device
    if kib is None or kib == live.read_ahead_kib:
        return False
    udevadm = shutil.which("udevadm")
    if udevadm is not None:
        # a rule of nfs-utils may set it a moment after the mount
        with contextlib.suppress(bounded.TimedOut, OSError):
            bounded.command([udevadm, "settle", "--timeout=5"], 10.0)
    entry = book.record(READ_AHEAD, key=device, path=wanted.path, before=live.read_ahead_kib, wanted=kib)
    kept = nfs_live.set_read_ahead(device, kib)
    book.done(entry, written=kept)
    return kept != live.read_ahead_kib


def _fstab_line(wanted: Wanted, book: Journal) -> str | None:
    if not wanted.persistent:
        return None
    return fstab.line_for(book.run_id, wanted.source, wanted.path, "nfs", wanted.options)


def _fstab_differs(wanted: Wanted, book: Journal) -> bool:
    return fstab.ours(book.run_id, wanted.path) != _fstab_line(wanted, book)


def _settle_fstab(wanted: Wanted, book: Journal) -> bool:
    """Let fstab hold our line, or none; whether that was a change."""
    if not _fstab_differs(wanted, book):
        return False
    line = _fstab_line(wanted, book)
    entry = own(book)[wanted.path]
    # a mount that comes again from fstab after a restart is the run's as well
    book.done(entry.id, **dict(entry.done or {}, persistent=wanted.persistent))
    if line is not None:
        return fstab.add(book, wanted.path, line)
    return bool(nfs_unmount.undo(book, lambda e: e.kind == fstab.KIND and e.key == wanted.path)["restored"])


# -- what came of it --------------------------------------------------------------------------------------------------


def result_of(step: Step) -> dict[str, Any]:
    """One mount as modules return it; in check mode what is not mounted yet has null for what only the kernel knows."""
    wanted = step.wanted
    live = nfs_live.look(wanted.path) if step.state == "keep" or step.changed else None
    live = live if live is None or nfs_unmount.same_source(live.mounted.source, wanted.source) else None
    names = ("effective", "vers", "nconnect", "connections", "slots", "rsize", "wsize", "read_ahead_kib")
    result: dict[str, Any] = live.as_result() if live else dict.fromkeys(names)
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    found = nfs_options.differences(wanted.options, live.effective, page_bytes) if live else []
    sentences = [difference.sentence for difference in found]
    if live and live.connections != int(live.effective.get("nconnect", "1")):
        sentences.append(
            f"{live.effective['nconnect']} connections are in effect, the kernel shows {live.connections}."
        )
    if live and wanted.read_ahead_kib not in (None, live.read_ahead_kib):
        sentences.append(f"A read-ahead of {wanted.read_ahead_kib} KiB was asked, {live.read_ahead_kib} is in effect.")
    return {
        "name": wanted.name,
        "path": wanted.path,
        "source": wanted.source,
        "asked": wanted.options,
        **result,
        "differences": sentences,
        "unverified": nfs_options.unverifiable(wanted.options, live.effective) if live else [],
        "persistent": wanted.persistent,
        "changed": step.changed,
    }


def as_seen(wanted: Sequence[Wanted]) -> dict[str, Any]:
    """What is mounted at each path now, for a diff: source and options in effect, or nothing."""
    found = {}
    for one in wanted:
        live = nfs_live.look(one.path)
        if live is not None:
            options = [nfs_options.as_option(name, live.lasting[name]) for name in sorted(live.lasting)]
            source, kib = live.mounted.source, live.read_ahead_kib
            found[one.path] = {"source": source, "options": options, "read_ahead_kib": kib}
    return found


def as_expected(wanted: Sequence[Wanted]) -> dict[str, Any]:
    """What would be mounted at each path, as far as what is asked tells it."""
    found = as_seen(wanted)
    for one in wanted:
        before = found.get(one.path, {})
        options = {**nfs_options.DEFAULTS, **one.asked}
        same = not nfs_options.differences(one.options, nfs_options.canonical(",".join(before.get("options", []))))
        if not before or not same or not nfs_unmount.same_source(before["source"], one.source):
            shown = [nfs_options.as_option(name, options[name]) for name in sorted(options)]
            found[one.path] = {"source": one.source, "options": shown, "read_ahead_kib": one.read_ahead_kib}
    return found


def shared_caches(wanted: Sequence[Wanted]) -> list[str]:
    """A warning for each of our mounts that shares its cache and its counters with another mount of the same export."""
    table = nfs_server.mounts()
    found = []
    for one in wanted:
        mine = [mount for mount in table if mount.path == one.path][-1:]
        others = [m.path for m in table if mine and m.device == mine[0].device and m.path != one.path]
        if others:
            found.append(
                f"{one.path} shares its cache, its counters and most of its options with {others[0]}, a mount of the "
                "same export."
            )
    return found


# -- taking away ------------------------------------------------------------------------------------------------------


def unmount(book: Journal, paths: Sequence[str] | None = None, check: bool = False) -> dict[str, Any]:
    """Unmount these mounts of the run, or all; {"restored": [what], "warnings", "changed"}; raises for what stays."""
    chosen = sorted(own(book)) if paths is None else list(paths)
    if paths is None:
        chosen += [str(entry.key) for entry in book.entries() if entry.kind == fstab.KIND]
    with contextlib.nullcontext() if check or not os.path.exists(book.path) else book.held():
        pick = _of(chosen)
        everything = paths is None
        result = nfs_unmount.undo(
            book, lambda e: pick(e) or (everything and e.kind == DIRECTORY and bool(e.facts.get("mount_point"))), check
        )
    if result["left"]:
        raise MountError("Not everything was unmounted: " + " ".join(result["left"]))
    return {"restored": result["restored"], "warnings": result["warnings"], "changed": bool(result["restored"])}


# -- for a moment -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def temporary(source: str, options: str, timeout_s: float = MOUNT_S) -> Iterator[str]:
    """A private mount of a source for a moment, as a path; unmounted at the end, bounded also with a dead server.

    Raises HostError where the server does not answer. What an earlier process left here by its sudden death is
    unmounted first.
    """
    parsed, asked = nfs_server.parse_source(source), nfs_options.canonical(options)
    nfs_faults.check_host()
    nfs_server.check_answers(parsed.server, nfs_server.resolve(parsed.server), asked)
    root = os.path.join(host_state.state_root(), _TEMPORARY)
    _clear_temporary(root)
    path = os.path.join(root, f"{os.getpid()}-{secrets.token_hex(4)}")
    os.makedirs(path, mode=0o700)
    try:
        mount(source, path, options, timeout_s)
        try:
            yield path
        finally:
            nfs_unmount.unmount(path)
    finally:
        # the state directory too where this made it: it goes only while nothing is in it
        for directory in (path, root, host_state.state_root())[: 2 if os.environ.get(host_state.STATE_VARIABLE) else 3]:
            with contextlib.suppress(OSError):
                if not nfs_server.at(directory):
                    os.rmdir(directory)


def _clear_temporary(root: str) -> None:
    """End the temporary mounts of processes that died; a name begins with the process that made it."""
    try:
        names = os.listdir(root)
    except FileNotFoundError:
        return
    for name in names:
        pid = name.partition("-")[0]
        if pid.isdigit() and host_state.identity(int(pid)) is not None:
            continue
        path = os.path.join(root, name)
        with contextlib.suppress(host_state.HostError, OSError):
            if nfs_server.at(path):
                nfs_unmount.unmount(path)
            os.rmdir(path)
