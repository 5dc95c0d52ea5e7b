# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Loop devices on our own files: attached with direct I/O, found again by their file, detached.

Must not know: runs, plans, caps; a device is known by its backing file's path and inode, never by its number.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import time
from typing import NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Entry,
    Outcome,
)

LOOP_CLR_FD = 0x4C01
LOOP_GET_STATUS64 = 0x4C05
_INFO_BYTES = 232
_CONTROL = "/dev/loop-control"
_DETACH_WAIT_S = 5.0
_POLL_S = 0.02
_ATTEMPTS = 3


class LoopError(host_state.HostError):
    """Why a loop device cannot be attached or detached; one sentence."""


class Loop(NamedTuple):
    """An attached loop device."""

    path: str
    device: str  # MAJ:MIN
    direct_io: bool
    backing: str


def find_losetup() -> str | None:
    """The losetup of this host, also where a user's PATH leaves the system directories out."""
    return shutil.which("losetup", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin")))


def fault() -> str | None:
    """Why this host cannot attach loop devices; None where it can."""
    if find_losetup() is None:
        return "losetup is not installed on this host; install util-linux, or set hostmax_thin_count to 0."
    if not os.path.exists(_CONTROL):
        return (
            f"This host has no loop devices ({_CONTROL} is missing); load the kernel module loop, "
            "give the container its loop devices, or set hostmax_thin_count to 0."
        )
    return None


def attached() -> list[Loop]:
    """Every attached loop device of this host."""
    found = []
    for name in sorted(os.listdir("/sys/block")):
        if name.startswith("loop"):
            try:
                found.append(_read_loop(name))
            except OSError:
                continue  # not attached, or detached just now
    return found


def _read_loop(name: str) -> Loop:
    base = "/sys/block/" + name
    return Loop(
        "/dev/" + name,
        _line(base + "/dev"),
        _line(base + "/loop/dio") == "1",
        _line(base + "/loop/backing_file"),
    )


def _line(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as handle:
        return handle.read().rstrip("\n")


def on_file(backing: str) -> list[Loop]:
    """The loop devices whose backing file stands, or before it was removed stood, at this path."""
    return [loop for loop in attached() if loop.backing in (backing, backing + " (deleted)")]


def attach(backing: str, run: host_state.Run) -> Loop:
    """Attach a file to a free loop device, with direct I/O where its file system can; the result says whether it is."""
    losetup = find_losetup() or "losetup"
    message = ""
    for direct in ("on",) * _ATTEMPTS + ("off",) * _ATTEMPTS:
        _rc, _out, message = run([losetup, "--find", "--show", "--direct-io=" + direct, backing])
        # Asked of the kernel and not of losetup: older ones attach, fail to set direct I/O, and return an error.
        found = on_file(backing)
        if found:
            return found[0]
    raise LoopError(
        "No loop device can be attached to {}: {}; free loop devices with losetup -d, "
        "or set a smaller hostmax_thin_count.".format(backing, " ".join(message.split()) or "losetup gave no reason")
    )


def _inode(handle: int) -> int:
    info = fcntl.ioctl(handle, LOOP_GET_STATUS64, bytes(_INFO_BYTES))
    return int(struct.unpack_from("=Q", info, 8)[0])


def restore(entry: Entry, check: bool) -> Outcome:
    """Detach every loop device of the recorded backing file, whether or not its name came to be recorded."""
    backing, inode = str(entry.key), entry.facts["inode"]
    found = on_file(backing)
    if not found:
        return Outcome(NOTHING)
    for loop in found:
        handle = os.open(loop.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # Checked and detached through one open file: the number cannot be given to another file in between.
            if _inode(handle) != inode:
                return Outcome(LEFT, f"{loop.path} is attached to another file of that name.")
            if not check:
                fcntl.ioctl(handle, LOOP_CLR_FD)
        finally:
            os.close(handle)
    return Outcome(RESTORED) if check else _wait_detached(backing)


def _wait_detached(backing: str) -> Outcome:
    """The kernel detaches when the last one who has the device open closes it."""
    end_s = time.monotonic() + _DETACH_WAIT_S
    left = on_file(backing)
    while left and time.monotonic() < end_s:
        time.sleep(_POLL_S)
        left = on_file(backing)
    if left:
        return Outcome(LEFT, f"{left[0].path} is still in use; unmount it or end what has it open.")
    return Outcome(RESTORED)
