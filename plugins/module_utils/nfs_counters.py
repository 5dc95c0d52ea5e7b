# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the kernel's NFS client did on some mounts between two moments: operations, events, connections, slots.

It must not know about points or limits. A reading is text alone, cheap and never asks a server; figures come later.
"""

from __future__ import annotations

import glob
import os
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import mountstats

Json = Dict[str, Any]

_SESSION_SLOTS = "module/nfs/parameters/max_session_slots"
_XPRT_INFO = "kernel/sunrpc/xprt-switches/*/xprt-*/xprt_info"
# summed over connections; those with _u are queue lengths summed at every send
_SUMMED = ("connects", "sends", "recvs", "bad_xids", "req_u", "bklog_u", "sending_u", "pending_u")


class Reading(NamedTuple):
    """The blocks of the watched mounts in /proc/self/mountstats at one moment."""

    time_s: float
    text: str


def read_text(path: str) -> str:
    """A small file of the kernel; empty where it does not exist or cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except OSError:
        return ""


class Connection(NamedTuple):
    """One connection as /sys/kernel/sunrpc shows it: its switch (the connections of one server), and its slots."""

    switch: str
    address: str
    port: int
    slots: int


class Watch:
    """The NFS mounts that some paths are on, each superblock once: found now, read whenever asked.

    ``paths`` must be absolute and without symbolic links: resolving them might wait for a server that is gone.
    """

    def __init__(self, paths: Iterable[str], proc: str = "/proc", sys: str = "/sys") -> None:
        self._file = os.path.join(proc, "self", "mountstats")
        self._sys = sys
        paths = list(paths)
        #: mount path -> the name under which its figures are told
        self.names: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        if paths:
            devices, self._addresses = read_mountinfo(read_text(os.path.join(proc, "self", "mountinfo")))
            self.names = _names(mountstats.parse(read_text(self._file)), devices, paths)

    def read(self, time_s: float) -> Reading:
        """A reading of this moment (``time_s``: what the caller's clock says)."""
        return Reading(time_s, mountstats.only(read_text(self._file), self.names))

    def difference(self, first: Reading, last: Reading) -> Json | None:
        """What happened on each mount between two readings, by name; None where no NFS mount is watched.

        A mount that was not there at both moments, or was mounted anew between them, is left out.
        """
        if not self.names:
            return None
        before = {mount.path: mount for mount in mountstats.nfs_mounts(first.text)}
        after = mountstats.nfs_mounts(last.text)
        connections = read_connections(self._sys)
        found: Json = {}
        owners: dict[Any, str] = {}
        for mount in after:
            name = self.names.get(mount.path)
            earlier = before.get(mount.path)
            if name is None or earlier is None or _is_another(earlier, mount):
                continue
            address = self._addresses.get(mount.path)
            transport = (address or mount.source.rpartition(":")[0], mount.vers, mount.connections)
            found[name] = {
                "seconds": last.time_s - first.time_s,
                "vers": mount.vers,
                "ops": _ops(earlier, mount),
                "events": _changed(earlier.events, mount.events),
                "bytes": _changed(earlier.bytes, mount.bytes),
                "xprt": _transport(earlier, mount, owners.get(transport)),
                "slots_limit": slots_of(mount, connections, address, after),
                "session_slots": session_slots(self._sys) if is_session(mount.vers) else None,
            }
            owners.setdefault(transport, name)
        return found


def read_mountinfo(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """(device number of the superblock, server's address) by mount path; the last of mounts at one place."""
    devices: dict[str, str] = {}
    addresses: dict[str, str] = {}
    for row in (line.split() for line in text.splitlines()):
        if len(row) < 5:
            continue
        path = mountstats.unescape(row[4])
        devices[path] = row[2]
        options = dict(word.partition("=")[::2] for word in row[-1].split(","))
        addresses.pop(path, None)
        if "addr" in options:
            addresses[path] = options["addr"]
    return devices, addresses


def _names(mounts: list[mountstats.Mount], devices: Mapping[str, str], paths: Sequence[str]) -> dict[str, str]:
    """Mounts of one superblock have the same counters under several paths: the first one stands for all."""
    names: dict[str, str] = {}
    seen = set()
    for path in paths:
        mount = mountstats.find(mounts, path)
        if mount is None or not mount.is_nfs:
            continue
        superblock = devices.get(mount.path, mount.path)
        if superblock in seen:
            continue
        seen.add(superblock)
        taken = mount.source in names.values()
        names[mount.path] = f"{mount.source} on {mount.path}" if taken else mount.source
    return names


def read_connections(sys: str = "/sys") -> list[Connection]:
    """The connections of NFS and RPC that are open now; none where the kernel does not tell (before 5.14)."""
    found = []
    for path in glob.glob(os.path.join(sys, _XPRT_INFO)):
        info = dict(line.partition("=")[::2] for line in read_text(path).splitlines())
        port, slots = info.get("src_port", ""), info.get("max_num_slots", "")
        if port.isdigit() and slots.isdigit():
            directory = os.path.dirname(path)
            address = read_text(os.path.join(directory, "dstaddr")).strip()
            found.append(Connection(os.path.dirname(directory), address, int(port), int(slots)))
    return found


def slots_of(
    mount: mountstats.Mount,
    connections: Sequence[Connection],
    address: str | None,
    mounts: Iterable[mountstats.Mount] = (),
) -> int | None:
    """How many requests each connection of a mount may have under way; None where that cannot be told.

    NFSv4 shows no source ports: its connections are those to the same address that belong to no other of ``mounts``.
    """
    own = {xprt.get("srcport", 0) for xprt in mount.xprts} - {0}
    taken = {xprt.get("srcport", 0) for each in mounts for xprt in each.xprts} - {0}
    others = {each.switch for each in connections if each.port in taken}
    slots = {
        each.slots
        for each in connections
        if each.port in own or (not own and each.address == address and each.switch not in others)
    }
    # where several servers' connections fit and differ, it is not known which are this mount's
    return min(slots) if slots and (own or len(slots) == 1) else None


def session_slots(sys: str = "/sys") -> int | None:
    """How many slots the client asks for in a session of NFSv4.1 and newer; the server may grant fewer."""
    text = read_text(os.path.join(sys, _SESSION_SLOTS)).strip()
    return int(text) if text.isdigit() else None


def is_session(vers: str | None) -> bool:
    """Whether this version of NFS has sessions (4.1 and newer)."""
    return vers is not None and vers.startswith("4.") and vers != "4.0"


def _is_another(first: mountstats.Mount, last: mountstats.Mount) -> bool:
    """Whether another file system is mounted at this place now: a younger one, or one whose counters began anew."""
    younger = first.age_s is not None and last.age_s is not None and last.age_s < first.age_s
    fewer = any(last.ops.get(name, op)["ops"] < op["ops"] for name, op in first.ops.items())
    return younger or fewer or first.source != last.source


def _changed(first: Mapping[str, int], last: Mapping[str, int]) -> dict[str, int]:
    return {name: value - first.get(name, 0) for name, value in last.items() if value != first.get(name, 0)}


def _ops(first: mountstats.Mount, last: mountstats.Mount) -> dict[str, dict[str, int]]:
    """The operations that ended in between, with all their figures."""
    found = {}
    for name, figures in last.ops.items():
        before = first.ops.get(name, {})
        passed = {field: value - before.get(field, 0) for field, value in figures.items()}
        if any(passed.values()):
            found[name] = passed
    return found


def _transport(first: mountstats.Mount, last: mountstats.Mount, shared_with: str | None) -> Json:
    """The connections of a mount together; ``shared_with`` names an earlier mount whose connections these are."""
    pairs = list(zip(first.xprts, last.xprts))
    sums = {key: sum(after.get(key, 0) - before.get(key, 0) for before, after in pairs) for key in _SUMMED}
    return {
        "protocol": last.xprts[0]["protocol"] if last.xprts else None,
        "connections": len(last.xprts),
        **sums,
        # connections that were made anew; some kernels count each of them twice under `connects`
        "reconnected": sum(after.get("connects", 0) > before.get("connects", 0) for before, after in pairs),
        # the most slots that were ever in use at once on one connection, since it was made
        "max_slots": max((xprt.get("max_slots", 0) for xprt in last.xprts), default=0),
        "per_connection_sends": [after.get("sends", 0) - before.get("sends", 0) for before, after in pairs],
        "shared_with": shared_with,
    }
