# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's view of block devices, by (major, minor): size, parts, what stands on what, and by what names they go.

It must not know volumes, runs or what is allowed: it states facts, the guard judges them.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import re
import stat
import struct
import time
from typing import Any, Callable, Iterator, NamedTuple, Tuple, TypeVar

T = TypeVar("T")
Dev = Tuple[int, int]

SECTOR_BYTES = 512
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO64_BYTES = 232
_CLAIM_TRIES = 3
_CLAIM_WAIT_S = 0.1

# Where the kernel keeps what tells one device from all others, best first; relative to its directory in sysfs.
_WWID_FILES = ("wwid", "device/wwid")
_SERIAL_FILES = ("serial", "device/serial", "device/cid")
_SCSI_ADDRESS = re.compile(r"[0-9]+:[0-9]+:[0-9]+:[0-9]+", re.ASCII)
_DM_AND_MD_FILES = ("dm/uuid", "dm/name", "md/uuid")
_LINK_DIRECTORIES = ("by-id", "by-path", "by-uuid", "by-partuuid", "by-label", "by-partlabel")


class Backing(NamedTuple):
    """What a loop device stands on: a block device, or a file by the device and inode of its file system."""

    path: str
    block: Dev | None
    file_id: tuple[int, int] | None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two loop devices that store their data in the same place, whatever it is called by now."""
        if self.block is not None:
            return ("block", self.block)
        return ("file", self.file_id) if self.file_id is not None else ("path", self.path)


def _remembered(method: Callable[[Any, Dev], T]) -> Callable[[Any, Dev], T]:
    """The first answer of a look at one device is the answer of that look."""

    @functools.wraps(method)
    def asked(kernel: Any, dev: Dev) -> T:
        key = (method.__name__, dev)
        if key not in kernel.answers:
            kernel.answers[key] = method(kernel, dev)
        answer: T = kernel.answers[key]
        return answer

    return asked


class Kernel:
    """One look at the block devices of this host; make a new one for a new look, because answers are remembered."""

    def __init__(self, sys: str = "/sys", proc: str = "/proc", dev: str = "/dev") -> None:
        self.sys, self.proc, self.dev = sys, proc, dev
        self.answers: dict[tuple[str, Dev], Any] = {}
        self._backings: dict[Dev, Backing] | None = None
        self._links: dict[str, list[str]] | None = None
        self._wwids: dict[Dev, str] | None = None

    # What a path is, and the kernel's own claim on it: the two calls that touch a device node.

    def node(self, path: str) -> os.stat_result:
        """The stat of what a path leads to, links followed; OSError when there is nothing."""
        return os.stat(path)

    def claim(self, path: str, tries: int = _CLAIM_TRIES) -> int:
        """An open descriptor that is the only claim on the device; OSError EBUSY when somebody else has it.

        Tried a few times, because device managers claim a device for a moment when they look at it.
        """
        while True:
            try:
                return os.open(path, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                tries -= 1
                if error.errno != errno.EBUSY or tries < 1:
                    raise
            time.sleep(_CLAIM_WAIT_S)

    # One device.

    @_remembered
    def directory(self, dev: Dev) -> str | None:
        """Its directory in sysfs, or None when the kernel has no such device."""
        link = os.path.join(self.sys, "dev", "block", f"{dev[0]}:{dev[1]}")
        return os.path.realpath(link) if os.path.isdir(link) else None

    def name(self, dev: Dev) -> str:
        """The kernel's name (sda1, dm-3), or major:minor when the kernel has no such device."""
        directory = self.directory(dev)
        return os.path.basename(directory).replace("!", "/") if directory else f"{dev[0]}:{dev[1]}"

    def path(self, dev: Dev) -> str:
        """The node the kernel's name leads to."""
        return os.path.join(self.dev, self.name(dev))

    def find(self, name: str) -> Dev | None:
        """The device of a kernel name."""
        text = _read(os.path.join(self.sys, "class", "block", name.replace("/", "!"), "dev"))
        return _dev(text) if text else None

    def fact(self, dev: Dev, *relative: str) -> str | None:
        """The first of these files in its sysfs directory that says anything."""
        directory = self.directory(dev)
        if directory is None:
            return None
        texts = (_read(os.path.join(directory, name)) for name in relative)
        return next((text for text in texts if text), None)

    def size_bytes(self, dev: Dev) -> int:
        return int(self.fact(dev, "size") or 0) * SECTOR_BYTES

    def sector_bytes(self, dev: Dev) -> int:
        """The logical block size: direct I/O in smaller pieces is refused by the kernel."""
        text = self.fact(self.whole_disk(dev) or dev, "queue/logical_block_size")
        return int(text or SECTOR_BYTES)

    def read_only(self, dev: Dev) -> bool:
        whole = self.whole_disk(dev)
        return self.fact(dev, "ro") == "1" or (whole is not None and self.fact(whole, "ro") == "1")

    # Its neighbours.

    @_remembered
    def whole_disk(self, dev: Dev) -> Dev | None:
        """The disk a partition is part of; None for what is not a partition."""
        directory = self.directory(dev)
        if directory is None or not os.path.exists(os.path.join(directory, "partition")):
            return None
        text = _read(os.path.join(os.path.dirname(directory), "dev"))
        return _dev(text) if text else None

    @_remembered
    def partitions(self, dev: Dev) -> list[Dev]:
        """The partitions the kernel sees on it now."""
        directory = self.directory(dev)
        parts = []
        for name in _list(directory) if directory else ():
            inside = os.path.join(directory or "", name)
            if name.startswith(os.path.basename(directory or "")) and os.path.exists(os.path.join(inside, "partition")):
                parts.append(_read(os.path.join(inside, "dev")))
        return sorted(_dev(text) for text in parts if text)

    @_remembered
    def holders(self, dev: Dev) -> list[Dev]:
        """What the kernel built on it: device mapper, RAID, bcache."""
        return self._linked(dev, "holders")

    @_remembered
    def slaves(self, dev: Dev) -> list[Dev]:
        """What the kernel built it from."""
        return self._linked(dev, "slaves")

    def _linked(self, dev: Dev, kind: str) -> list[Dev]:
        directory = self.directory(dev)
        found = (self.find(name) for name in (_list(os.path.join(directory, kind)) if directory else ()))
        return sorted(other for other in found if other is not None)

    def backings(self) -> dict[Dev, Backing]:
        """Every attached loop device of the host and what it stands on."""
        if self._backings is None:
            self._backings = {}
            for name in _list(os.path.join(self.sys, "class", "block")):
                base = os.path.join(self.sys, "class", "block", name)
                dev_text = _read(os.path.join(base, "dev")) if name.startswith("loop") else None
                path = _read(os.path.join(base, "loop", "backing_file")) if dev_text else None
                if dev_text and path:
                    self._backings[_dev(dev_text)] = self._backing(_dev(dev_text), path)
        return self._backings

    def _backing(self, loop: Dev, path: str) -> Backing:
        """By the loop driver, which knows the inode; by the name in sysfs where the driver cannot be asked."""
        status = _loop_status(self.path(loop), loop)
        if status is not None:
            file_dev, inode, block = status
            return Backing(path, _decode(block), None) if block else Backing(path, None, (file_dev, inode))
        try:
            found = os.stat(path)
        except OSError:
            return Backing(path, None, None)
        if stat.S_ISBLK(found.st_mode):
            return Backing(path, _decode(found.st_rdev), None)
        return Backing(path, None, (found.st_dev, found.st_ino))

    @_remembered
    def aliases(self, dev: Dev) -> dict[Dev, str]:
        """Other devices that store the same bytes, with how that comes: shared backing, or a second path to a disk."""
        found: dict[Dev, str] = {}
        own = self.backings().get(dev)
        for loop, backing in self.backings().items():
            if loop != dev and own is not None and backing.key == own.key:
                found[loop] = "which has the same backing file"
            elif backing.block == dev:
                found[loop] = "which stands on it"
        if own is not None and own.block is not None:
            found[own.block] = "on which it stands"
        wwid = self.wwids().get(dev)
        for other, text in self.wwids().items() if wwid else ():
            if other != dev and text == wwid:
                found[other] = "which has the same WWN"
        whole = self.whole_disk(dev)
        for twin in self.aliases(whole) if whole else ():
            for part in self.partitions(twin):
                if self.fact(part, "start") == self.fact(dev, "start"):
                    found[part] = "which is the same part of the same disk"
        return found

    @_remembered
    def below(self, dev: Dev) -> set[Dev]:
        """All it stands on, down to the disks: slaves, the disk of a partition, what backs a loop device."""
        found: set[Dev] = set()
        todo = [dev]
        while todo:
            current = todo.pop()
            lower = list(self.slaves(current))
            whole, backing = self.whole_disk(current), self.backings().get(current)
            lower += [whole] if whole else []
            if backing is not None and backing.block is not None:
                lower.append(backing.block)
            elif backing is not None and backing.file_id is not None:
                lower.append(_decode(backing.file_id[0]))
            fresh = [other for other in lower if other not in found and self.directory(other) is not None]
            found.update(fresh)
            todo += fresh
        return found

    # What it goes by.

    def wwids(self) -> dict[Dev, str]:
        """The world wide identifier of every whole disk that has one."""
        if self._wwids is None:
            self._wwids = {}
            for name in _list(os.path.join(self.sys, "class", "block")):
                base = os.path.join(self.sys, "class", "block", name)
                if os.path.exists(os.path.join(base, "partition")):
                    continue
                dev_text = _read(os.path.join(base, "dev"))
                texts = (_read(os.path.join(base, file)) for file in _WWID_FILES)
                wwid = next((text for text in texts if text), None)
                if dev_text and wwid:
                    self._wwids[_dev(dev_text)] = wwid
        return self._wwids

    def identities(self, dev: Dev) -> list[str]:
        """Every name that tells this device from others and outlives a reboot, best first.

        Kernel names (sdb) are not among them, they move; nor is the model, which many disks share.
        """
        whole = self.whole_disk(dev)
        found = list(self._hardware_identities(whole or dev))
        for file in _DM_AND_MD_FILES:
            text = self.fact(dev, file)
            if text:
                found.append(text)
            if text and text.startswith("mpath-"):
                found.append(text[len("mpath-") :])
                found += [name for slave in self.slaves(dev) for name in self._hardware_identities(slave)]
        found += self._links_to(dev)
        backing = self.backings().get(dev)
        if backing is not None and _still_there(backing):
            found.append(backing.path)
        return list(dict.fromkeys(found))

    def _hardware_identities(self, dev: Dev) -> Iterator[str]:
        wwid = self.fact(dev, *_WWID_FILES)
        if wwid:
            yield wwid
            kind, _unused, number = wwid.partition(".")
            if kind in ("naa", "eui") and number:
                yield from (number, "0x" + number)
        yield from self.serials(dev)
        parts = (self.directory(dev) or "").split("/")
        for part in parts:
            if part.startswith("session"):
                target = _read(os.path.join(self.sys, "class", "iscsi_session", part, "targetname"))
                if target:
                    yield target
                    # as udev writes it in by-path: .../target2:0:0/2:0:0:1/block/sda is LUN 1
                    yield from (f"{target}-lun-{each.split(':')[3]}" for each in parts if _SCSI_ADDRESS.fullmatch(each))

    def serials(self, dev: Dev) -> list[str]:
        """The serial numbers of a disk, which unrelated virtual machines may share."""
        disk = self.whole_disk(dev) or dev
        return [text for text in (self.fact(disk, *_SERIAL_FILES), self._unit_serial(disk)) if text]

    def _unit_serial(self, dev: Dev) -> str | None:
        """The unit serial number of a SCSI disk, from its vital product data page 0x80."""
        try:
            with open(os.path.join(self.directory(dev) or "", "device", "vpd_pg80"), "rb") as page:
                raw = page.read()
        except OSError:
            return None
        return raw[4 : 4 + int.from_bytes(raw[2:4], "big")].decode("ascii", "replace").strip(" \0") or None

    def _links_to(self, dev: Dev) -> list[str]:
        """Full path and last part of the links udev made to it under /dev/disk."""
        if self._links is None:
            self._links = {}
            for kind in _LINK_DIRECTORIES:
                directory = os.path.join(self.dev, "disk", kind)
                for name in _list(directory):
                    path = os.path.join(directory, name)
                    try:
                        target = os.path.basename(os.readlink(path))
                    except OSError:
                        continue
                    self._links.setdefault(target, []).extend((name, path))
        return self._links.get(os.path.basename(self.name(dev)), [])

    def model(self, dev: Dev) -> str | None:
        """Vendor and model, for people; never an identity."""
        disk = self.whole_disk(dev) or dev
        text = " ".join(part for part in (self.fact(disk, "device/vendor"), self.fact(disk, "device/model")) if part)
        return text or None


def device_number(node: os.stat_result) -> Dev:
    """The (major, minor) a device node stands for."""
    return _decode(node.st_rdev)


def _decode(number: int) -> Dev:
    return os.major(number), os.minor(number)


def _dev(text: str) -> Dev:
    major, _unused, minor = text.partition(":")
    return int(major), int(minor)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip(" \n\0") or None
    except OSError:
        return None


def _list(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _still_there(backing: Backing) -> bool:
    """Whether the name of a backing file still leads to what the loop device uses."""
    try:
        found = os.stat(backing.path)
    except OSError:
        return False
    if backing.block is not None:
        return stat.S_ISBLK(found.st_mode) and device_number(found) == backing.block
    return (found.st_dev, found.st_ino) == backing.file_id


def _loop_status(path: str, loop: Dev) -> tuple[int, int, int] | None:
    """Device and inode of the backing file, and the device number if it is a device, from the loop driver itself."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        node = os.fstat(handle)
        if not stat.S_ISBLK(node.st_mode) or device_number(node) != loop:
            return None
        answer = fcntl.ioctl(handle, _LOOP_GET_STATUS64, bytes(_LOOP_INFO64_BYTES))
    except OSError:
        return None
    finally:
        os.close(handle)
    file_dev, inode, block = struct.unpack_from("=QQQ", answer)
    return file_dev, inode, block
