# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who on this host uses an NFS server, and whether it answers: all mounts that share its connections with a new one.

Must not know: runs, journals, or which mounts are ours. Nothing here asks a server through a mount, so nothing hangs.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import re
import socket
import time
from typing import Iterable, NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import bounded, host_state, mountstats, nfs_options

NFS_PORT = 2049
PORTMAP_PORT = 111
SERVERS = "/proc/fs/nfsfs/servers"
_CONNECT_S = 5.0
_NAME_S = 5.0
_GONE_POLL_S = 0.1


class ServerError(host_state.HostError):
    """Why a server cannot be used; one sentence."""


class Source(NamedTuple):
    """What is mounted: the server as it was written, and the export."""

    server: str
    export: str


class Mounted(NamedTuple):
    """One mount as mountinfo has it; ``pid`` is a process that sees it where that is not this one."""

    path: str
    source: str
    fstype: str
    device: str  # MAJ:MIN
    options: nfs_options.Options
    address: str | None
    pid: int | None = None

    @property
    def key(self) -> Key:
        """Which connections this mount uses."""
        return Key(self.address or "", self.options.get("vers", ""), self.options.get("proto", "tcp"))

    @property
    def in_words(self) -> str:
        """The mount for a sentence: where it is, and by whom where only another mount namespace has it."""
        if self.pid is None:
            return self.path
        return f"{self.path} (in the mount namespace of {_process_name(self.pid)}, pid {self.pid})"


class Key(NamedTuple):
    """What all mounts that share connections have in common: one nfs_client of the kernel."""

    address: str
    vers: str
    proto: str


# -- sources ----------------------------------------------------------------------------------------------------------


def parse_source(text: str) -> Source:
    """Server and export of `10.0.0.4:/vol1`, `nas:/vol1` or `[fd00::4]:/vol1`."""
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.%a-z]+\]|[^\s:\[\],]+):(/[^\s,]*)", text)
    if match is None:
        raise ServerError(f"The source {text!r} is not one: give server:/export, as in 10.0.0.4:/vol1.")
    return Source(match.group(1).strip("[]"), match.group(2))


def resolve(server: str) -> list[str]:
    """The IP addresses of a server; raises ServerError where its name has none."""
    literal = _as_address(server)
    if literal is not None:
        return [literal]
    try:
        return list(bounded.call(lambda: _look_up(server), _NAME_S, f"look-up of the name {server}"))
    except (OSError, host_state.HostError) as exc:
        raise ServerError(
            f"The server name {server} cannot be resolved on this host; correct it, or give the address in the source."
        ) from exc


def _look_up(server: str) -> list[str]:
    found = socket.getaddrinfo(server, NFS_PORT, type=socket.SOCK_STREAM)
    return sorted({str(entry[4][0]) for entry in found})


def _as_address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


# -- does it answer ---------------------------------------------------------------------------------------------------


def check_answers(server: str, addresses: Iterable[str], asked: nfs_options.Options) -> None:
    """Refuse a server that does not take TCP connections where NFS needs them, within about ten seconds."""
    if asked.get("proto", "tcp").rstrip("6") != "tcp":
        return
    port = int(asked.get("port", NFS_PORT))
    ports = [port]
    if asked.get("vers", "").startswith("3") and not ("port" in asked and "mountport" in asked):
        ports.append(PORTMAP_PORT)
    for number in ports:
        faults = [_connect_fault(address, number) for address in list(addresses)[:2]]
        if all(faults):
            raise ServerError(f"The NFS server {server} {faults[0]}.")


def _connect_fault(address: str, port: int) -> str | None:
    """What is wrong with a port, as the end of a sentence; None where it takes a connection."""
    what = "no NFS server runs there" if port != PORTMAP_PORT else "NFSv3 needs rpcbind there, NFSv4 does not"
    try:
        socket.create_connection((address, port), timeout=_CONNECT_S).close()
    except socket.timeout:
        return f"does not answer on port {port} within {_CONNECT_S:g} s; check the address, the network and firewalls"
    except ConnectionRefusedError:
        return f"refuses connections on port {port}; {what}, or a firewall is in between"
    except OSError as exc:
        return f"cannot be reached on port {port} ({exc.strerror or exc}); check the address and the network"
    return None


# -- mounts -----------------------------------------------------------------------------------------------------------


def mounts(proc: str = "/proc", pid: int | None = None) -> list[Mounted]:
    """All mounts that this process, or another one, sees, in the order in which they were made."""
    path = os.path.join(proc, "self" if pid is None else str(pid), "mountinfo")
    with open(path, encoding="utf-8", errors="surrogateescape") as handle:
        return [_parse_mount(line, pid) for line in handle]


def _parse_mount(line: str, pid: int | None) -> Mounted:
    before, _separator, after = line.partition(" - ")
    first, last = before.split(), after.split()
    options = nfs_options.effective(last[2] if len(last) > 2 else "", first[5])
    return Mounted(
        mountstats.unescape(first[4]),
        mountstats.unescape(last[1]),
        last[0],
        first[2],
        options,
        _plain(options.get("addr")),
        pid,
    )


def _plain(address: str | None) -> str | None:
    return None if address is None else _as_address(address) or address


def at(path: str, proc: str = "/proc") -> list[Mounted]:
    """The mounts of this namespace whose mount point is this path, the visible one last."""
    return [mount for mount in mounts(proc) if mount.path == path]


def all_nfs(proc: str = "/proc") -> list[Mounted]:
    """The NFS mounts of every mount namespace that shares this process' network, each once; ours first."""
    own = [mount for mount in mounts(proc) if mount.fstype in ("nfs", "nfs4")]
    here, network = (_namespace(proc, "self", name) for name in ("mnt", "net"))
    seen = {here}
    for name in sorted(os.listdir(proc)):
        if not name.isdigit():
            continue
        there = _namespace(proc, name, "mnt")
        if there is None or there in seen or _namespace(proc, name, "net") != network:
            continue
        seen.add(there)
        try:
            found = mounts(proc, int(name))
        except OSError:
            seen.discard(there)  # ended just now; another process may show the same namespace
            continue
        known = {(mount.device, mount.path) for mount in own}
        own += [m for m in found if m.fstype in ("nfs", "nfs4") and (m.device, m.path) not in known]
    return own


def _namespace(proc: str, name: str, kind: str) -> str | None:
    try:
        return os.readlink(os.path.join(proc, name, "ns", kind))
    except OSError:
        return None


def sharing(addresses: Iterable[str], asked: nfs_options.Options, proc: str = "/proc") -> list[Mounted]:
    """The mounts that a mount of this server with these options would share its connections with."""
    wanted = {_plain(address) for address in addresses}
    vers, proto = asked.get("vers", ""), asked.get("proto", "tcp").rstrip("6")
    return [
        mount
        for mount in all_nfs(proc)
        if mount.address in wanted and mount.options.get("proto") == proto and _may_be(vers, mount.options["vers"])
    ]


def _may_be(asked: str, mounted: str) -> bool:
    """Whether a mount that asks for this version may get that one; without a minor version the newest is taken."""
    if not asked:
        return True
    return mounted == asked or (asked == "4" and mounted.startswith("4"))


# -- the kernel's list of servers -------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One NFS client of the kernel: all that share its version and server share its connections."""

    major: str
    address: str
    port: int
    users: int


def rows(path: str = SERVERS) -> list[Row]:
    """The kernel's list of the servers it holds connections to, of this network namespace; empty without NFS."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            lines = handle.read().splitlines()[1:]
    except OSError:
        return []
    found = []
    for line in lines:
        words = line.split()
        try:
            address = str(ipaddress.ip_address(bytes.fromhex(words[1])))
            found.append(Row(words[0].lstrip("v"), address, int(words[2], 16), int(words[3])))
        except (ValueError, IndexError):
            continue
    return found


def hidden_holders(addresses: Iterable[str], vers: str, port: int = NFS_PORT, wait_s: float = 5.0) -> int:
    """How many clients of this server and version the kernel keeps that no mount to be seen here explains.

    Waits up to ``wait_s`` for them to go: the kernel lets go a moment after the last unmount.
    """
    wanted = [_plain(address) or address for address in addresses]
    end_s = time.monotonic() + wait_s
    while True:
        held = _unexplained(wanted, vers[:1], port)
        if held <= 0 or time.monotonic() >= end_s:
            return max(0, held)
        time.sleep(_GONE_POLL_S)


def _unexplained(addresses: list[str], major: str, port: int) -> int:
    kept = [
        row for row in rows() if row.address in addresses and row.port == port and (row.major == major or not major)
    ]
    keys = {mount.key for mount in all_nfs() if mount.address in addresses}
    return len(kept) - len([key for key in keys if not major or key.vers.startswith(major)])


def _process_name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as handle:
            return handle.read().strip()
    except OSError as exc:
        return "a process that ended" if exc.errno in (errno.ENOENT, errno.ESRCH) else "a process"


def holders(path: str, proc: str = "/proc") -> list[str]:
    """The processes of this host that keep a mount busy, as `fio (pid 812)`: by open files, directory or program."""
    inside = path.rstrip("/") + "/"
    found = []
    for name in sorted(filter(str.isdigit, os.listdir(proc)), key=int):
        if int(name) != os.getpid() and any(t == path or t.startswith(inside) for t in _used_by(proc, name)):
            found.append(f"{_process_name(int(name))} (pid {name})")
    found += [f"the mount {mount.path}" for mount in mounts(proc) if mount.path.startswith(inside)]
    return found


def _used_by(proc: str, name: str) -> Iterable[str]:
    """What a process has open, works in and runs; read from the kernel's names, never from the files themselves."""
    base = os.path.join(proc, name)
    links = [os.path.join(base, kind) for kind in ("cwd", "root", "exe")]
    with contextlib.suppress(OSError):
        links += [os.path.join(base, "fd", number) for number in os.listdir(os.path.join(base, "fd"))]
    for link in links:
        try:
            yield os.readlink(link)
        except OSError:
            continue
    try:
        with open(os.path.join(base, "maps"), encoding="utf-8", errors="surrogateescape") as handle:
            for line in handle:
                words = line.split(None, 5)
                if len(words) == 6:
                    yield words[5].rstrip("\n")
    except OSError:
        return
