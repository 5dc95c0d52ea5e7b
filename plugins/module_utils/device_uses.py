# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who uses the block devices of this host: mounts of every namespace, swap, boot paths, what stands on what.

It must not know volumes, runs or what is allowed: it states facts, the guard judges them.
"""

from __future__ import annotations

import os
import stat
from typing import Iterable, Iterator, NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils.block_device import Dev, Kernel, device_number
from ansible_collections.hostmax.storage.plugins.module_utils.mountstats import unescape

BOOT_PATHS = ("/", "/boot", "/boot/efi", "/usr", "/var")
# File systems whose source may look like a path but is served by somebody who may never answer a stat.
_REMOTE = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "virtiofs", "lustre", "glusterfs", "autofs")
_SHOWN = 3
_HOLDER_KINDS = {"LVM-": "LVM", "mpath-": "multipath", "CRYPT-": "dm-crypt", "DM-": "device mapper"}


class Mount(NamedTuple):
    """One line of a mountinfo."""

    point: str
    dev: Dev
    source: str
    fstype: str
    # what of the file system is mounted (`/` but for bind mounts and subvolumes), and how
    root: str = "/"
    options: str = ""


class Uses:
    """All mounts and swaps of the host, read once for all volumes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._rdevs: dict[str, Dev | None] = {}
        self._btrfs = _btrfs_members(kernel)
        self._mounts: dict[Dev, list[str]] = {}
        own = read_mounts(kernel.proc)
        for where, mounts in [("", own), *self._other_namespaces()]:
            for mount in mounts:
                for dev in self._devices(mount):
                    self._add_mount(dev, mount.point, where)
        self._swaps: set[Dev] = set()
        self._swap_files: dict[tuple[int, int], str] = {}
        self._read_swaps()
        self._boot = self._boot_devices({mount.point: mount for mount in own})

    def of(self, dev: Dev) -> list[str]:
        """What the device itself is used for, as ends of sentences: `is mounted on /data`."""
        found = []
        points = self._mounts.get(dev, [])
        if points:
            rest = len(points) - _SHOWN
            found.append(f"is mounted on {', '.join(points[:_SHOWN])}" + (f" and {rest} more" if rest > 0 else ""))
        if dev in self._swaps:
            found.append("is in use as swap")
        return found

    def boot_path(self, dev: Dev) -> str | None:
        """The boot or root path this device carries, alone or with others."""
        return self._boot.get(dev)

    def swap_file(self, file_id: tuple[int, int] | None) -> bool:
        """Whether a regular file, by device and inode, is in use as swap."""
        return file_id in self._swap_files

    def _add_mount(self, dev: Dev, point: str, where: str) -> None:
        points = self._mounts.setdefault(dev, [])
        if not any(known == point or known.startswith(point + " (") for known in points):
            points.append(point + where)

    def _other_namespaces(self) -> Iterator[tuple[str, list[Mount]]]:
        """The mounts of each further mount namespace, with who lives in it; read once, however many processes."""
        seen = {_link(os.path.join(self.kernel.proc, "self", "ns", "mnt"))}
        for pid in _numbers(self.kernel.proc):
            base = os.path.join(self.kernel.proc, pid)
            namespace = _link(os.path.join(base, "ns", "mnt"))
            if namespace is None or namespace in seen:
                continue
            mounts = _mounts(os.path.join(base, "mountinfo"))
            if mounts:
                seen.add(namespace)
                yield f" (in the mount namespace of process {pid}, {process_name(self.kernel.proc, pid)})", mounts

    def _devices(self, mount: Mount) -> set[Dev]:
        """The devices of a mount. Btrfs states a made-up number, so its source and all its members are looked up."""
        if mount.dev[0] != 0:
            return {mount.dev}
        if not mount.source.startswith("/") or mount.fstype.startswith(_REMOTE):
            return set()
        if mount.source not in self._rdevs:
            self._rdevs[mount.source] = self._rdev(mount.source)
        dev = self._rdevs[mount.source]
        return set() if dev is None else {dev, *self._btrfs.get(dev, ())}

    def _rdev(self, path: str) -> Dev | None:
        try:
            node = self.kernel.node(path)
        except OSError:
            return None
        return device_number(node) if stat.S_ISBLK(node.st_mode) else None

    def _read_swaps(self) -> None:
        for line in _lines(os.path.join(self.kernel.proc, "swaps"))[1:]:
            path = unescape(line.partition(" ")[0].partition("\t")[0])
            try:
                node = self.kernel.node(path)
            except OSError:
                continue
            if stat.S_ISBLK(node.st_mode):
                self._swaps.add(device_number(node))
            else:
                self._swap_files[node.st_dev, node.st_ino] = path

    def _boot_devices(self, mounts: dict[str, Mount]) -> dict[Dev, str]:
        """Every device under the boot and root path, down through slaves and partitions to the disks."""
        found: dict[Dev, str] = {}
        for path in BOOT_PATHS:
            point = path
            while point not in mounts and point != "/":
                point = os.path.dirname(point)
            for dev in self._devices(mounts[point]) if point in mounts else ():
                for lower in (dev, *self.kernel.below(dev)):
                    found.setdefault(lower, path)
        return found


class Reach(NamedTuple):
    """A device that a write to a volume would also hit, how to call it, and whether its mere existence is a use."""

    label: str
    use: str | None


def footprint(kernel: Kernel, dev: Dev) -> dict[Dev, Reach]:
    """All that a write to the device would hit: itself, its partitions, what is built on it, and all their aliases."""
    found = {dev: Reach("", None)}
    todo = [dev]
    slaves = [lower for lower in kernel.below(dev) if dev in _holders_of(kernel, lower)]
    for slave in slaves:
        for other, how in kernel.aliases(slave).items():
            if other not in slaves and other not in found:
                found[other] = Reach(f"{kernel.name(other)}, {how.replace(' it', ' ' + kernel.name(slave))}, ", None)
                todo.append(other)
    while todo:
        current = todo.pop()
        own = found[current].label
        for other, reach in _neighbours(kernel, current, own):
            if other not in found:
                found[other] = reach
                todo.append(other)
    whole = kernel.whole_disk(dev)
    if whole is not None and whole not in found:
        found[whole] = Reach(f"its disk {kernel.name(whole)} ", None)
        for holder in kernel.holders(whole):
            found.setdefault(holder, Reach("", f"its disk {kernel.name(whole)} is held by {_holder(kernel, holder)}"))
    return found


def _neighbours(kernel: Kernel, dev: Dev, own: str) -> Iterator[tuple[Dev, Reach]]:
    name = kernel.name(dev)
    for part in kernel.partitions(dev):
        yield part, Reach(f"{'its' if not own else name + chr(39) + 's'} partition {kernel.name(part)} ", None)
    for holder in kernel.holders(dev):
        yield (
            holder,
            Reach(f"{_holder(kernel, holder)}, built on {name}, ", f"{own}is held by {_holder(kernel, holder)}"),
        )
    for other, how in kernel.aliases(dev).items():
        standing = how == "which stands on it"
        label = f"{kernel.name(other)}, {how.replace(' it', ' ' + name)}, "
        yield other, Reach(label, f"{own}is the backing of {kernel.name(other)}" if standing else None)


def _holders_of(kernel: Kernel, dev: Dev) -> list[Dev]:
    found: list[Dev] = []
    todo = [dev]
    while todo:
        fresh = [holder for holder in kernel.holders(todo.pop()) if holder not in found]
        found += fresh
        todo += fresh
    return found


def _holder(kernel: Kernel, dev: Dev) -> str:
    """`dm-3 (LVM vg0-data)`, `md0 (RAID)`."""
    name, uuid = kernel.name(dev), kernel.fact(dev, "dm/uuid") or ""
    kinds = [text for prefix, text in _HOLDER_KINDS.items() if uuid.startswith(prefix)]
    if kinds or kernel.fact(dev, "dm/name"):
        return f"{name} ({kinds[0] if kinds else 'device mapper'} {kernel.fact(dev, 'dm/name') or ''})"
    return f"{name} (RAID)" if name.startswith("md") else name


def writers(kernel: Kernel, paths: Iterable[str]) -> dict[str, str]:
    """For each path some process has open for writing, `process 123 (fio)`. Slow on a host with many open files."""
    wanted = set(paths)
    found: dict[str, str] = {}
    for pid in _numbers(kernel.proc):
        base = os.path.join(kernel.proc, pid)
        for handle in _names(os.path.join(base, "fd")):
            path = _link(os.path.join(base, "fd", handle))
            if path in wanted and path is not None and _opened_for_writing(os.path.join(base, "fdinfo", handle)):
                found.setdefault(path, f"process {pid} ({process_name(kernel.proc, pid)})")
    return found


def _opened_for_writing(fdinfo: str) -> bool:
    flags = [line.split()[1] for line in _lines(fdinfo) if line.startswith("flags:")]
    return bool(flags) and int(flags[0], 8) & os.O_ACCMODE != os.O_RDONLY


def process_name(proc: str, pid: str) -> str:
    return "".join(_lines(os.path.join(proc, pid, "comm"))[:1]) or "?"


def _btrfs_members(kernel: Kernel) -> dict[Dev, set[Dev]]:
    """Every device of each mounted btrfs, by each of them: mountinfo names only one."""
    found: dict[Dev, set[Dev]] = {}
    base = os.path.join(kernel.sys, "fs", "btrfs")
    for uuid in _names(base):
        devs = [kernel.find(name) for name in _names(os.path.join(base, uuid, "devices"))]
        members = {dev for dev in devs if dev is not None}
        found.update((dev, members) for dev in members)
    return found


def _mounts(path: str) -> list[Mount]:
    found = []
    for line in _lines(path):
        left, _unused, right = line.partition(" - ")
        fields, after = left.split(" "), right.split(" ")
        if len(fields) > 4 and len(after) > 1:
            major, _unused, minor = fields[2].partition(":")
            options = ",".join([fields[5], *after[2:3]]) if len(fields) > 5 else ""
            device = (int(major), int(minor))
            found.append(Mount(unescape(fields[4]), device, unescape(after[1]), after[0], unescape(fields[3]), options))
    return found


def read_mounts(proc: str = "/proc") -> list[Mount]:
    """The mounts this process sees, in the order they were made; reading them asks no server."""
    return _mounts(os.path.join(proc, "self", "mountinfo"))


def mount_of(path: str, proc: str = "/proc") -> Mount:
    """The mount a real path is on, found by the path alone: nothing of it is touched."""
    on_the_way = [mount for mount in read_mounts(proc) if _is_below(path, mount.point)]
    longest = max((len(mount.point) for mount in on_the_way), default=0)
    # of several on one point, the last one is seen
    return ([mount for mount in on_the_way if len(mount.point) == longest] or [Mount("/", (0, 0), "?", "?")])[-1]


def _is_below(path: str, point: str) -> bool:
    return point == "/" or path == point or path.startswith(point + "/")


def is_remote(fstype: str) -> bool:
    """Whether a file system is served by somebody who may never answer."""
    return fstype.startswith(_REMOTE)


def _lines(path: str) -> list[str]:
    """The lines of a file of /proc; none when the process has gone or is not ours to see."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rstrip("\n").split("\n")
    except OSError:
        return []


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _numbers(proc: str) -> list[str]:
    return sorted((name for name in _names(proc) if name.isdigit()), key=int)
