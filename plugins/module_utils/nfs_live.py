# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the kernel really does on an NFS mount: options in effect, connections, request slots, read-ahead.

Must not know: what was asked, runs or journals; it reads /proc and /sys only, so a dead server cannot hang it.
"""

from __future__ import annotations

import glob
import os
from typing import Any, NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state, mountstats, nfs_options, nfs_server

BDI = "/sys/class/bdi"
XPRTS = "/sys/kernel/sunrpc/xprt-switches/*/xprt-*"
SLOT_LIMIT = "/proc/sys/sunrpc/tcp_max_slot_table_entries"
# of this one moment, not of what was asked: a boot or another address of the client changes them
_PASSING = ("addr", "clientaddr", "mountaddr", "mountport", "mountvers", "mountproto", "namlen")


class Live(NamedTuple):
    """An NFS mount as the kernel has it now; None for what this kernel does not show."""

    mounted: nfs_server.Mounted
    effective: nfs_options.Options
    connections: int
    slots: int | None
    read_ahead_kib: int | None

    @property
    def lasting(self) -> nfs_options.Options:
        """The options that stay the same over a reboot or another address of this host."""
        return {name: value for name, value in self.effective.items() if name not in _PASSING}

    def as_result(self) -> dict[str, Any]:
        """What modules return of it; sizes in bytes, read-ahead in KiB."""
        return {
            "effective": dict(sorted(self.effective.items())),
            "vers": self.effective.get("vers"),
            "nconnect": int(self.effective.get("nconnect", "1")),
            "connections": self.connections,
            "slots": self.slots,
            "rsize": int(self.effective.get("rsize", "0")) or None,
            "wsize": int(self.effective.get("wsize", "0")) or None,
            "read_ahead_kib": self.read_ahead_kib,
        }


def look(path: str) -> Live | None:
    """The visible mount at this path, if it is an NFS mount; raises HostError where /proc cannot be read."""
    try:
        there = nfs_server.at(path)
        stats = [mount for mount in mountstats.read() if mount.path == path]
    except OSError as exc:
        raise host_state.HostError(f"The mounts of this host cannot be read ({exc.strerror}).") from exc
    if not there or not stats or there[-1].fstype not in ("nfs", "nfs4"):
        return None
    mounted, seen = there[-1], stats[-1]
    # the flags of the mount itself (noatime, ro) stand in mountinfo only, the attribute times in mountstats only
    effective = dict(mounted.options, **_shown(seen.options, mounted.options))
    return Live(
        mounted, effective, len(seen.xprts), _slots(mounted.address, seen.xprts), read_ahead_kib(mounted.device)
    )


def _shown(opts: str, of_mount: nfs_options.Options) -> nfs_options.Options:
    shown = nfs_options.effective(opts)
    # of the superblock here, of the mount there: what the mount says counts
    for name in ("write", "atime", "diratime", "suid", "dev", "exec"):
        if of_mount.get(name) != nfs_options.DEFAULTS.get(name):
            shown.pop(name, None)
    return shown


def _slots(address: str | None, xprts: Any) -> int | None:
    """The limit on requests under way of the mount's connections, the smallest; None before Linux 5.14."""
    ports = {int(xprt.get("srcport", 0)) for xprt in xprts} - {0}
    exact, likely = [], []
    for info in transports(address):
        likely.append(info["max_num_slots"])
        if info.get("src_port") in ports:
            exact.append(info["max_num_slots"])
    return min(exact or likely, default=None)


def transports(address: str | None, port: int = nfs_server.NFS_PORT) -> list[dict[str, int]]:
    """The kernel's connections to a server's NFS port, with the numbers of their xprt_info."""
    found = []
    for directory in sorted(glob.glob(XPRTS)):
        info = _numbers(_read(os.path.join(directory, "xprt_info")))
        there = _read(os.path.join(directory, "dstaddr")).strip()
        if there == address and info.get("dst_port") == port and "max_num_slots" in info:
            found.append(info)
    return found


def _numbers(text: str) -> dict[str, int]:
    pairs = (line.partition("=")[::2] for line in text.splitlines())
    return {name: int(value) for name, value in pairs if value.strip().isdigit()}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""


def slot_limit() -> int | None:
    """The limit on requests that the next new connection gets; None while sunrpc is not loaded."""
    text = _read(SLOT_LIMIT).strip()
    return int(text) if text.isdigit() else None


def read_ahead_kib(device: str) -> int | None:
    """The read-ahead of a mount's device (MAJ:MIN) in KiB."""
    text = _read(os.path.join(BDI, device, "read_ahead_kb")).strip()
    return int(text) if text.isdigit() else None


def set_read_ahead(device: str, kib: int) -> int:
    """Write the read-ahead of a mount's device in KiB and return what reads back."""
    path = os.path.join(BDI, device, "read_ahead_kb")
    try:
        with open(path, "w", encoding="ascii") as handle:
            handle.write(str(kib))
    except OSError as exc:
        raise host_state.HostError(f"The read-ahead cannot be set in {path} ({exc.strerror}).") from exc
    kept = read_ahead_kib(device)
    if kept is None:
        raise host_state.HostError(f"The read-ahead cannot be read back from {path}.")
    return kept
