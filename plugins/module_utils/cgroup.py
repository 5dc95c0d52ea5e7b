# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Caps on block devices by a cgroup of the run: cgroup v1 (blkio) or v2 (io), whichever can cap on this host.

Must not know: where the devices come from, fio, or how a run is laid out.

A cap is per direction and per device: reads may reach it and writes may reach it, at the same time, in both versions.
It binds only the processes that joined the group.
"""

from __future__ import annotations

import os
import re
import time
from typing import Callable, Dict, NamedTuple, Optional

from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Entry,
    Handler,
    Journal,
    Outcome,
)

Cap = Dict[str, Optional[int]]

V1 = "cgroup v1"
V2 = "cgroup v2"
MOUNTINFO = "/proc/self/mountinfo"
LARGEST_IOPS = 2**32 - 1
LARGEST_BYTES_PER_S = 2**63 - 1
_V1_FILES = {
    "blkio.throttle.read_iops_device": "iops",
    "blkio.throttle.write_iops_device": "iops",
    "blkio.throttle.read_bps_device": "bytes_per_s",
    "blkio.throttle.write_bps_device": "bytes_per_s",
}
_V2_LIMITS = {"rbps": "bytes_per_s", "wbps": "bytes_per_s", "riops": "iops", "wiops": "iops"}
_EMPTY_WAIT_S = 5.0
_POLL_S = 0.02


class CgroupError(host_state.HostError):
    """Why this host cannot cap, or a cap cannot be set; one sentence."""


class Hierarchy(NamedTuple):
    """A mounted cgroup hierarchy that can cap block devices."""

    version: str
    mount: str


def detect(mountinfo: str = MOUNTINFO) -> Hierarchy:
    """The hierarchy that caps here: v2 where it has the io controller, else v1 with blkio (as in hybrid set-ups)."""
    with open(mountinfo, encoding="utf-8", errors="surrogateescape") as handle:
        mounts = [_parse_mount(line) for line in handle]
    for kind, mount, _options in mounts:
        if kind == "cgroup2" and "io" in _words(os.path.join(mount, "cgroup.controllers")):
            return _writable(Hierarchy(V2, mount))
    for kind, mount, options in mounts:
        if kind == "cgroup" and "blkio" in options and os.path.exists(os.path.join(mount, next(iter(_V1_FILES)))):
            return _writable(Hierarchy(V1, mount))
    raise CgroupError(
        "This host cannot cap volumes: it has neither cgroup v2 with the io controller nor cgroup v1 blkio throttling; "
        "use a kernel with CONFIG_BLK_DEV_THROTTLING and mount one of them, or measure without hostmax_thin_cap."
    )


def _parse_mount(line: str) -> tuple[str, str, list[str]]:
    before, _separator, after = line.partition(" - ")
    mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), before.split()[4])
    kind, _source, options = after.split()[:3]
    return kind, mount, options.split(",")


def _words(path: str) -> list[str]:
    try:
        return _read(path).split()
    except OSError:
        return []


def _writable(found: Hierarchy) -> Hierarchy:
    if not os.access(found.mount, os.W_OK):
        raise CgroupError(
            f"This host cannot cap volumes: {found.version} at {found.mount} is read-only for this user "
            "(as in an unprivileged container); run as root on the host itself, or measure without hostmax_thin_cap."
        )
    return found


def check_cap(cap: Cap) -> None:
    """Refuse a cap that the kernel would not keep as it was written (it cuts IOPS to 32 bits in silence)."""
    for name, largest in (("iops", LARGEST_IOPS), ("bytes_per_s", LARGEST_BYTES_PER_S)):
        value = cap.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= largest):
            raise CgroupError(
                f"The cap's {name} is {value!r}; in hostmax_thin_cap give a whole number from 1 to {largest}."
            )


def create(run_id: str, journal: Journal, hierarchy: Hierarchy) -> str:
    """Make the run's group, journal first, and return its path."""
    if hierarchy.version == V2:
        _enable_io(journal, hierarchy.mount)
    path = os.path.join(hierarchy.mount, "hostmax-" + run_id)
    if os.path.exists(path):
        raise CgroupError(f"The cgroup {path} is there already; restore the run {run_id} first.")
    entry = journal.record("cgroup", key=path, run_id=run_id)
    try:
        os.mkdir(path, 0o755)
    except OSError as exc:
        raise CgroupError(f"The cgroup {path} cannot be made ({exc.strerror}).") from exc
    journal.done(entry, inode=os.stat(path).st_ino)
    return path


def _enable_io(journal: Journal, mount: str) -> None:
    """Let children of this group cap, if they may not yet."""
    path = os.path.join(mount, "cgroup.subtree_control")
    if "io" in _words(path):
        return
    entry = journal.record("cgroup_io_controller", key=path, run_id=journal.run_id)
    try:
        _write(path, "+io")
    except OSError as exc:
        raise CgroupError(
            f"This host cannot cap volumes: the io controller cannot be enabled in {path} ({exc.strerror}); "
            "run on the host itself and not in a container, or measure without hostmax_thin_cap."
        ) from exc
    journal.done(entry)


def limit(path: str, version: str, device: str, cap: Cap) -> None:
    """Cap one device (MAJ:MIN) for the group's processes, each direction by itself, and read the caps back."""
    if version == V1:
        wanted = {name: f"{device} {cap[quantity]}" for name, quantity in _V1_FILES.items() if cap.get(quantity)}
    else:
        limits = (f"{name}={cap[quantity]}" for name, quantity in _V2_LIMITS.items() if cap.get(quantity))
        wanted = {"io.max": " ".join((device, *limits))}
    for name, line in wanted.items():
        target = os.path.join(path, name)
        try:
            _write(target, line)
            kept = [found for found in _read(target).splitlines() if found.split()[:1] == [device]]
        except OSError as exc:
            raise CgroupError(f"The cap {line!r} cannot be set in {target} ({exc.strerror}).") from exc
        if len(kept) != 1 or not set(line.split()) <= set(kept[0].split()):
            raise CgroupError(
                "The cap {!r} was written to {} but reads back as {!r}; this host does not keep it.".format(
                    line, target, "; ".join(kept)
                )
            )


def join(path: str, pid: int) -> None:
    """Put a process (all its threads, and what it forks from now on) under the caps of the group."""
    _write(os.path.join(path, "cgroup.procs"), str(pid))


def members(path: str) -> list[int]:
    """The processes that are in the group."""
    return [int(word) for word in _read(os.path.join(path, "cgroup.procs")).split()]


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def _write(path: str, text: str) -> None:
    """One write call, as these files want it."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


# -- putting back -----------------------------------------------------------------------------------------------------


def _remove_group(entry: Entry, check: bool) -> Outcome:
    """Remove the run's group, after ending the run's own processes in it; with others in it, it stays."""
    path = str(entry.key)
    try:
        inode = os.stat(path).st_ino
    except FileNotFoundError:
        return Outcome(NOTHING)
    if entry.done and entry.done.get("inode") != inode:
        return Outcome(LEFT, "it is not the one this run made; remove it with rmdir if nobody needs it.")
    if check:
        return Outcome(RESTORED)
    if members(path):
        host_state.end_processes(entry.facts["run_id"], grace_s=2.0)
    error = _wait_for(lambda: _rmdir(path))
    if error is None:
        return Outcome(RESTORED)
    inside = ", ".join(str(pid) for pid in members(path))
    return Outcome(
        LEFT,
        f"it still holds the processes {inside}, which are not of this run or cannot be ended; end them, "
        "then restore again."
        if inside
        else f"{path}: {error.strerror}.",
    )


def _rmdir(path: str) -> OSError | None:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError as exc:
        return exc
    return None


def _wait_for(attempt: Callable[[], OSError | None]) -> OSError | None:
    """Try until there is no error or the time is over: a process that was killed leaves its group a moment later."""
    end_s = time.monotonic() + _EMPTY_WAIT_S
    error = attempt()
    while error is not None and time.monotonic() < end_s:
        time.sleep(_POLL_S)
        error = attempt()
    return error


def _disable_io(entry: Entry, check: bool) -> Outcome:
    """Take the io controller from the children again, unless another group caps by now."""
    path = str(entry.key)
    if "io" not in _words(path):
        return Outcome(NOTHING)
    parent = os.path.dirname(path)
    own = "hostmax-" + entry.facts["run_id"]
    others = sorted(set(os.listdir(parent)) - {own})
    users = [name for name in others if _words(os.path.join(parent, name, "io.max"))]
    if users:
        return Outcome(LEFT, f"the group {users[0]} has caps by it now; restore again when it is gone.")
    if not check:
        try:
            _write(path, "-io")
        except OSError as exc:
            return Outcome(LEFT, f"the io controller cannot be disabled ({exc.strerror}); others use it now.")
    return Outcome(RESTORED)


HANDLERS: dict[str, Handler] = {"cgroup": _remove_group, "cgroup_io_controller": _disable_io}
