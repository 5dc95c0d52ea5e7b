# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Thin volumes of a run: sparse files on loop devices, capped; or plain sparse files where there is no root.

Must not know: fio, workloads, what is measured; every change is in the journal before it is made.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import (
    cgroup,
    host_state,
    loop_device,
    shared_mark,
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
from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes

LARGEST_COUNT = 200
SMALLEST_BYTES = 2**20
GRAIN_BYTES = 4096
_FREE_BYTES = 2**24
_PROBE_BYTES = 2**24


class ThinError(host_state.HostError):
    """Why thin volumes cannot be made; one sentence."""


@dataclass(frozen=True)
class Wanted:
    """The thin volumes somebody asks for; the size is rounded down to whole 4 KiB."""

    run_id: str
    count: int
    size_bytes: int
    cap: cgroup.Cap | None
    written_bytes: int = 0

    @property
    def names(self) -> list[str]:
        """thin01, thin02, …; as wide as the last number, so that they sort."""
        width = max(2, len(str(self.count)))
        return [f"thin{number:0{width}}" for number in range(1, self.count + 1)]


def want(run_id: str, count: int, size_bytes: int, cap: cgroup.Cap | None, written_bytes: int = 0) -> Wanted:
    """Check what is asked for by itself, before looking at the host; ``written_bytes`` is what all may come to hold."""
    host_state.work_dir(run_id)
    if not 1 <= count <= LARGEST_COUNT:
        raise ThinError(f"hostmax_thin_count is {count}; use 1 to {LARGEST_COUNT} thin volumes.")
    if size_bytes < SMALLEST_BYTES:
        raise ThinError(f"hostmax_thin_size is {size_bytes} bytes; use 1 MiB or more.")
    cgroup.check_cap(cap or {})
    cap = {name: (cap or {}).get(name) for name in ("iops", "bytes_per_s")}
    return Wanted(
        run_id, count, size_bytes // GRAIN_BYTES * GRAIN_BYTES, cap if any(cap.values()) else None, written_bytes
    )


def check_host(wanted: Wanted) -> cgroup.Hierarchy | None:
    """Check that this host can have them, changing nothing; the hierarchy that will cap them, if one will."""
    _check_file_system(wanted)
    if not host_state.is_root():
        return None
    fault = loop_device.fault()
    if fault:
        raise ThinError(fault)
    return cgroup.detect() if wanted.cap else None


def _check_file_system(wanted: Wanted) -> None:
    """Free space, sparse files, and files as large as asked for, tried on a file without a name."""
    place = host_state.state_root()
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    try:
        facts = os.statvfs(place)
        free_bytes = facts.f_bavail * facts.f_frsize
        needed_bytes = _FREE_BYTES + wanted.written_bytes
        if free_bytes < needed_bytes:
            raise ThinError(
                f"The file system of {place} has {format_bytes(free_bytes)} free, and the thin volumes of this run may "
                f"come to hold {format_bytes(needed_bytes)}; make room, or set a smaller working_set or fewer volumes."
            )
        with tempfile.TemporaryFile(dir=place) as probe:
            os.ftruncate(probe.fileno(), min(wanted.size_bytes, _PROBE_BYTES))
            if os.fstat(probe.fileno()).st_blocks * 512 >= SMALLEST_BYTES:
                raise ThinError(
                    f"The file system of {place} has no sparse files, so thin volumes would fill it; "
                    "use ext4, xfs or btrfs there."
                )
            os.ftruncate(probe.fileno(), wanted.size_bytes)
    except OSError as exc:
        raise _file_error(place, wanted.size_bytes, exc) from exc


def _file_error(path: str, size_bytes: int, exc: OSError) -> ThinError:
    if exc.errno in (errno.EFBIG, errno.EINVAL):
        return ThinError(
            f"The file system of {path} (or this user's limit on file sizes) does not allow a file of "
            f"{size_bytes} bytes; set a smaller hostmax_thin_size."
        )
    return ThinError(
        f"A sparse file of {size_bytes} bytes cannot be made in {path} ({exc.strerror}); "
        "make the directory writable and see that it has room."
    )


# -- making -----------------------------------------------------------------------------------------------------------


def create(
    run_id: str,
    count: int,
    size_bytes: int,
    cap: cgroup.Cap | None,
    book: Journal,
    run: host_state.Run = host_state.run_command,
    written_bytes: int = 0,
) -> dict[str, Any]:
    """Make a run's thin volumes and return {"volumes", "cgroup", "cap_by", "warnings", "changed"}.

    The cap holds for each volume and for each direction by itself, for the processes that join the cgroup. What failed
    half-way is put back before the error is raised. The same call again changes nothing and returns the same.
    """
    wanted = want(run_id, count, size_bytes, cap, written_bytes)
    with book.held():
        before = _made_before(wanted, book)
        if before is not None:
            return dict(before, changed=False)
        warnings: list[str] = []
        hierarchy = _look_for_cap(wanted, warnings)
        try:
            made = _create(wanted, hierarchy, book, run, warnings)
        except (host_state.HostError, OSError) as exc:
            left = remove(book)["left"]
            names = "; still there: " + ", ".join(item["what"] for item in left) if left else ""
            if names or not isinstance(exc, host_state.HostError):
                raise ThinError(f"The thin volumes of {run_id} cannot be made ({exc}){names}.") from exc
            raise
    return dict(made, changed=True)


def planned(
    run_id: str, count: int, size_bytes: int, cap: cgroup.Cap | None, book: Journal, written_bytes: int = 0
) -> dict[str, Any]:
    """What create would return, as far as it can be known without changing anything."""
    wanted = want(run_id, count, size_bytes, cap, written_bytes)
    before = _made_before(wanted, book)
    if before is not None:
        return dict(before, changed=False)
    warnings: list[str] = []
    hierarchy = _look_for_cap(wanted, warnings)
    volumes = [_volume(wanted, name, None, capped=hierarchy is not None) for name in wanted.names]
    version = hierarchy.version if hierarchy else None
    return {"volumes": volumes, "cgroup": None, "cap_by": version, "warnings": warnings, "changed": True}


def _made_before(wanted: Wanted, book: Journal) -> dict[str, Any] | None:
    """The result of the same call before, if all it made is still there."""
    request = _request(wanted)
    for entry in book.entries():
        if entry.kind == "thin_volumes" and entry.result is None:
            if entry.facts != request or entry.done is None or not _all_there(entry.done):
                raise ThinError(
                    f"The run {wanted.run_id} has other thin volumes on this host, or half-made ones; "
                    "restore it (hostmax.storage.restore) or use another run id."
                )
            return entry.done
    return None


def _request(wanted: Wanted) -> dict[str, Any]:
    return {"count": wanted.count, "size_bytes": wanted.size_bytes, "cap": wanted.cap, "root": host_state.is_root()}


def _all_there(made: dict[str, Any]) -> bool:
    loops = {loop.backing: loop.path for loop in loop_device.attached()}
    return all(
        os.path.exists(volume["backing"]) and loops.get(volume["backing"]) == volume["device"]
        for volume in made["volumes"]
    ) and (made["cgroup"] is None or os.path.isdir(made["cgroup"]))


def _look_for_cap(wanted: Wanted, warnings: list[str]) -> cgroup.Hierarchy | None:
    try:
        hierarchy = check_host(wanted)
    except cgroup.CgroupError as exc:
        warnings.append(str(exc) + " The thin volumes are made without a cap.")
        return None
    if not host_state.is_root():
        warnings.append(
            f"Without root the thin volumes are plain files in {host_state.work_dir(wanted.run_id)} without a cap: "
            "the figures show what this client and its file system can do, not a storage service."
        )
    return hierarchy


def _create(
    wanted: Wanted, hierarchy: cgroup.Hierarchy | None, book: Journal, run: host_state.Run, warnings: list[str]
) -> dict[str, Any]:
    whole = book.record("thin_volumes", key=wanted.run_id, **_request(wanted))
    _make_directory(_path(wanted, "volumes"), book)
    volumes = []
    if host_state.is_root():
        _make_directory(_path(wanted, "backing"), book)
        loops = [_make_device(wanted, name, book, run) for name in wanted.names]
        buffered = [loop.path for loop in loops if not loop.direct_io]
        if buffered:
            warnings.append(
                f"{len(buffered)} of {len(loops)} thin volumes have no direct I/O, because the file system of "
                f"{_path(wanted)} refuses it: the page cache of this host is measured too."
            )
        volumes = [_volume(wanted, name, loop, capped=hierarchy is not None) for name, loop in zip(wanted.names, loops)]
    else:
        for name in wanted.names:
            _make_file(_path(wanted, "volumes", name), wanted.size_bytes, book)
            volumes.append(_volume(wanted, name, None, capped=False))
    group = None
    if hierarchy is not None and wanted.cap is not None:
        group = cgroup.create(wanted.run_id, book, hierarchy)
        for loop in loops:
            cgroup.limit(group, hierarchy.version, loop.device, wanted.cap)
    version = hierarchy.version if hierarchy else None
    made: dict[str, Any] = {"volumes": volumes, "cgroup": group, "cap_by": version, "warnings": warnings}
    book.done(whole, **made)
    return made


def _volume(wanted: Wanted, name: str, loop: loop_device.Loop | None, capped: bool) -> dict[str, Any]:
    """A thin volume as everybody else knows volumes."""
    block = host_state.is_root()
    backing = _path(wanted, "backing", name + ".img") if block else _path(wanted, "volumes", name)
    return {
        "name": name,
        "path": "volumes/" + name,
        "size_bytes": wanted.size_bytes,
        "size": str(wanted.size_bytes),
        "identity": None,
        "overwrite": None,
        "kind": "block" if block else "file",
        "cap": wanted.cap if capped else None,
        "device": loop.path if loop else None,
        "backing": backing,
    }


def _path(wanted: Wanted, *parts: str) -> str:
    return os.path.join(host_state.work_dir(wanted.run_id), *parts)


def _make_directory(path: str, book: Journal) -> None:
    if os.path.isdir(path):
        return
    entry = book.record("directory", key=path)
    os.mkdir(path, 0o700)
    book.done(entry, inode=os.stat(path).st_ino)


def _make_file(path: str, size_bytes: int, book: Journal) -> int:
    """Make a sparse file that was not there, and return its inode."""
    if os.path.lexists(path):
        raise ThinError(f"{path} is there already; remove it or use another run id.")
    entry = book.record("file", key=path)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(handle, size_bytes)
            inode = os.fstat(handle).st_ino
        finally:
            os.close(handle)
    except OSError as exc:
        raise _file_error(path, size_bytes, exc) from exc
    book.done(entry, inode=inode)
    return inode


def _make_device(wanted: Wanted, name: str, book: Journal, run: host_state.Run) -> loop_device.Loop:
    backing = _path(wanted, "backing", name + ".img")
    inode = _make_file(backing, wanted.size_bytes, book)
    entry = book.record("loop_device", key=backing, inode=inode)
    # marked as the run's own, so that a restore after our sudden death ends it before it looks for its device
    loop = loop_device.attach(backing, lambda argv: run(["env", f"{host_state.MARK}={wanted.run_id}", *argv]))
    book.done(entry, path=loop.path, device=loop.device, direct_io=loop.direct_io)
    link = _path(wanted, "volumes", name)
    entry = book.record("symlink", key=link, target=loop.path)
    os.symlink(loop.path, link)
    book.done(entry)
    return loop


# -- putting back -----------------------------------------------------------------------------------------------------


def _remove_file(entry: Entry, check: bool) -> Outcome:
    path = str(entry.key)
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return Outcome(NOTHING)
    if not stat.S_ISREG(facts.st_mode) or (entry.done and entry.done["inode"] != facts.st_ino):
        return Outcome(LEFT, "it is not the file this run made; remove it if nobody needs it.")
    if check:
        return Outcome(RESTORED)
    loops = loop_device.on_file(path)
    if loops:
        return Outcome(LEFT, f"it is still attached to {loops[0].path}.")
    os.unlink(path)
    return Outcome(RESTORED)


def _remove_symlink(entry: Entry, check: bool) -> Outcome:
    path = str(entry.key)
    if not os.path.lexists(path):
        return Outcome(NOTHING)
    if not os.path.islink(path) or os.readlink(path) != entry.facts["target"]:
        return Outcome(LEFT, "it is not the link this run made; remove it if nobody needs it.")
    if not check:
        os.unlink(path)
    return Outcome(RESTORED)


def _remove_directory(entry: Entry, check: bool) -> Outcome:
    path = str(entry.key)
    try:
        inode = os.lstat(path).st_ino
    except FileNotFoundError:
        return Outcome(NOTHING)
    if entry.done and entry.done["inode"] != inode:
        return Outcome(LEFT, "it is not the directory this run made; remove it if nobody needs it.")
    if not check:
        try:
            os.rmdir(path)
        except OSError as exc:
            return Outcome(LEFT, f"it cannot be removed ({exc.strerror}); look at what is in it.")
    return Outcome(RESTORED)


HANDLERS: dict[str, Handler] = dict(
    cgroup.HANDLERS,
    **shared_mark.HANDLERS,
    thin_volumes=lambda entry, check: Outcome(NOTHING),
    directory=_remove_directory,
    file=_remove_file,
    loop_device=loop_device.restore,
    symlink=_remove_symlink,
)


def remove(book: Journal) -> dict[str, Any]:
    """Put back what making thin volumes changed: no volume, device, cgroup, link or file of them is left."""
    return book.restore(HANDLERS, kinds=HANDLERS)
