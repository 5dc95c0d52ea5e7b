# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""May these volumes be read or written? One verdict a volume, in sentences; and the claim that keeps others off.

It must not know workloads, fio or who asks; it never changes, creates or opens anything for writing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Any, Collection, Iterator, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import directory_guard, test_file_places, units
from ansible_collections.hostmax.storage.plugins.module_utils.block_device import Dev, Kernel, device_number
from ansible_collections.hostmax.storage.plugins.module_utils.device_uses import Uses, footprint, writers
from ansible_collections.hostmax.storage.plugins.module_utils.signatures import PARTITION_TABLES, Signatures, probe

_CHOOSE = "name another volume"


class GuardError(Exception):
    """A volume that must not be touched; the message is one sentence for the user."""


class Held(NamedTuple):
    """The devices a `hold` keeps claimed: hand it to `judge_volumes`, whose own claim would meet this one."""

    devs: frozenset[Dev]


class _Case:
    """One volume under judgement."""

    def __init__(self, volume: dict[str, Any], base_dir: str | None) -> None:
        self.volume = volume
        self.name, self.path = str(volume["name"]), str(volume["path"])
        self.real_path = os.path.realpath(os.path.join(base_dir or "", self.path))
        self.title = f"volume {self.name} ({volume.get('given_path') or self.path})"
        identity = volume.get("identity")
        self.wanted = None if identity is None else str(identity).strip()
        self.kind: str | None = None
        self.dev: Dev | None = None
        self.file_id: tuple[int, int] | None = None
        self.size_bytes: int | None = None
        self.sector_bytes: int | None = None
        self.identities: list[str] = []
        self.serial: str | None = None
        self.model: str | None = None
        self.backing: str | None = None
        self.signatures: list[str] = []
        self.in_use: list[str] = []
        self.refusals: list[str] = []
        self.warnings: list[str] = []
        # of a directory volume: its file system, the directory that is there, and what is to be laid out in it
        self.room: tuple[int, str, int] | None = None

    def refuse(self, reason: str, advice: str) -> None:
        self.refusals.append(_clean(f"{self.title} {reason}: {advice}."))

    def warn(self, reason: str) -> None:
        self.warnings.append(_clean(f"{self.title} {reason}."))

    def object(self, writes: bool, reason: str, advice: str) -> None:
        """What forbids writing, and is only said where the volume is read."""
        if writes:
            self.refuse(reason, advice)
        else:
            self.warn(f"{reason}; it is only read")

    def verdict(self) -> dict[str, Any]:
        best = self.wanted if self.wanted in self.identities else next(iter(self.identities), None)
        return {
            "name": self.name,
            "path": self.path,
            "real_path": self.real_path,
            "major": self.dev[0] if self.dev else None,
            "minor": self.dev[1] if self.dev else None,
            "kind": self.kind,
            "size_bytes": self.size_bytes,
            "sector_bytes": self.sector_bytes,
            "identity": _clean(best) if best else None,
            "identities": [_clean(text) for text in self.identities],
            "serial": _clean(self.serial) if self.serial else None,
            "model": _clean(self.model) if self.model else None,
            "backing": _clean(self.backing) if self.backing else None,
            "signatures": self.signatures,
            "in_use": self.in_use,
            "refusals": self.refusals,
            "warnings": self.warnings,
        }


def judge_volumes(
    volumes: Sequence[dict[str, Any]],
    writes: bool,
    own_files: Collection[str] = (),
    signatures: bool = True,
    held: Held | None = None,
    base_dir: str | None = None,
    kernel: Kernel | None = None,
    own_mounts: Collection[str] = (),
) -> list[dict[str, Any]]:
    """A verdict for each volume; it may be used when its `refusals` are empty.

    `writes`: whether anything will be written (or trimmed); without it, what is in use is warned of and may be read.
    `own_files`: real paths of the regular files, and of the directories of files, that this run made.
    `own_mounts`: paths of the mounts this run made.
    `signatures=False` leaves out the slow part (blkid, open files) for volumes checked before and held since.
    `base_dir`: where relative paths begin, the work directory of the run.
    """
    kernel = kernel or Kernel()
    uses = Uses(kernel)
    cases = [_Case(volume, base_dir) for volume in volumes]
    for case in cases:
        if test_file_places.is_directory(case.volume):
            _look_at_directory(case, base_dir, own_mounts, own_files)
        elif _exists(case, kernel, own_files):
            _check_size(case)
            _check_identity(case)
    _check_named_twice(cases, kernel)
    _check_room(cases, own_files)
    for case in cases:
        _check_use(case, kernel, uses, writes)
        _check_claim(case, kernel, held, writes)
        if signatures:
            _check_signatures(case, kernel, writes)
    if signatures:
        _check_writers(cases, kernel, writes)
    return [case.verdict() for case in cases]


def refusals(verdicts: Sequence[dict[str, Any]]) -> list[str]:
    """All refusals of all volumes, in order."""
    return [sentence for verdict in verdicts for sentence in verdict["refusals"]]


@contextlib.contextmanager
def hold(
    volumes: Sequence[dict[str, Any]], base_dir: str | None = None, kernel: Kernel | None = None
) -> Iterator[Held]:
    """Claim every block volume, and other devices that store the same bytes, so that nobody can mount or use them.

    Takes volumes or, better, their verdicts: then a name that leads to another device by now is an error too.
    The claim does not hinder fio. Release it before a loop device is detached.
    """
    kernel = kernel or Kernel()
    with contextlib.ExitStack() as open_files:
        devs = set()
        for volume in volumes:
            case = _Case(volume, base_dir)
            if test_file_places.is_directory(volume):
                # of the run's own, and nobody can mount over it unseen: looked at again before each point
                continue
            node = _node(case, kernel)
            if stat.S_ISREG(node.st_mode) and volume.get("kind") == "file":
                continue
            dev = device_number(node)
            if not stat.S_ISBLK(node.st_mode) or dev != (volume.get("major", dev[0]), volume.get("minor", dev[1])):
                raise GuardError(f"{case.title} leads to another device than a moment ago: {_CHOOSE}.")
            for other in (dev, *kernel.aliases(dev)):
                if other not in devs:
                    path = case.real_path if other == dev else kernel.path(other)
                    open_files.callback(os.close, _claimed(case, kernel, path, other))
                    devs.add(other)
        yield Held(frozenset(devs))


def _node(case: _Case, kernel: Kernel) -> os.stat_result:
    try:
        return kernel.node(case.real_path)
    except OSError as error:
        raise GuardError(f"{case.title} cannot be found ({error.strerror}): {_CHOOSE}.") from None


def _claimed(case: _Case, kernel: Kernel, path: str, dev: Dev) -> int:
    try:
        handle = kernel.claim(path)
    except OSError as error:
        what = "is in use by somebody else" if error.errno == errno.EBUSY else f"cannot be claimed ({error.strerror})"
        raise GuardError(_clean(f"{case.title} {what}, {path}: end that use or {_CHOOSE}.")) from None
    if device_number(os.fstat(handle)) != dev:
        os.close(handle)
        raise GuardError(_clean(f"{case.title} leads to another device than a moment ago: {_CHOOSE}."))
    return handle


def _exists(case: _Case, kernel: Kernel, own_files: Collection[str]) -> bool:
    """Whether the path leads to something that can be a volume; fills in what it is."""
    try:
        node = kernel.node(case.real_path)
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        reason = "does not exist" if missing else f"cannot be seen ({error.strerror})"
        case.refuse(reason, "correct the path; a missing volume is never created")
        return False
    if stat.S_ISBLK(node.st_mode):
        return _is_device(case, kernel, device_number(node))
    if not stat.S_ISREG(node.st_mode):
        what = "a directory" if stat.S_ISDIR(node.st_mode) else "neither a disk nor a file"
        case.refuse(f"is not a block device but {what}", "host_max measures block devices, name one")
        return False
    case.kind, case.size_bytes, case.file_id = "file", node.st_size, (node.st_dev, node.st_ino)
    if case.volume.get("kind") != "file" or case.real_path not in own_files or node.st_nlink > 1:
        case.refuse("is a file that this run did not make", "name a block device, files of the user are never used")
        return False
    return True


def _look_at_directory(
    case: _Case, base_dir: str | None, own_mounts: Collection[str], own_directories: Collection[str]
) -> None:
    """A directory is judged alike for reading and writing: its files are laid out first."""
    found = directory_guard.look(case.volume, base_dir, own_mounts, own_directories)
    case.kind, case.real_path, case.size_bytes = "directory", found.real_path, found.needed_bytes
    for reason, advice in found.reasons:
        case.refuse(reason, advice)
    case.warnings += [_clean(f"{case.title} {warning}.") for warning in found.warnings]
    if found.file_system is not None and not found.reasons:
        case.room = (found.file_system, found.above, found.needed_bytes)


def _check_room(cases: Sequence[_Case], own_directories: Collection[str]) -> None:
    """The files of all volumes that share a file system need room together; those that are there have it."""
    waiting = [case for case in cases if case.room and case.real_path not in own_directories]
    for file_system in dict.fromkeys(case.room[0] for case in waiting if case.room):
        alike = [case for case in waiting if case.room and case.room[0] == file_system]
        needed = sum(case.room[2] for case in alike if case.room)
        fault = test_file_places.room_fault(alike[0].room[1], needed) if alike[0].room else None
        if fault:
            alike[0].refuse(f"has too little room: {fault}", "make room, or set a smaller working_set")


def _is_device(case: _Case, kernel: Kernel, dev: Dev) -> bool:
    case.kind, case.dev = "block", dev
    if kernel.directory(dev) is None:
        case.refuse(f"leads to {dev[0]}:{dev[1]}, a device the kernel does not have", "correct the path")
        return False
    case.size_bytes, case.sector_bytes = kernel.size_bytes(dev), kernel.sector_bytes(dev)
    case.identities = kernel.identities(dev)
    case.serial, case.model = next(iter(kernel.serials(dev)), None), kernel.model(dev)
    backing = kernel.backings().get(dev)
    case.backing = backing.path if backing else None
    if case.size_bytes == 0:
        case.refuse("has no size", "attach or insert what it should hold")
    return case.size_bytes > 0


def _check_size(case: _Case) -> None:
    declared, needed = case.volume.get("size"), case.volume.get("needed_bytes")
    declared = case.volume.get("size_bytes") if declared is None else declared
    size_bytes = case.size_bytes or 0
    measured = f"{units.format_bytes(size_bytes)} ({size_bytes} bytes)"
    try:
        if declared is not None and not units.size_matches(declared, size_bytes):
            shown = units.format_bytes(declared) if isinstance(declared, int) else declared
            case.refuse(f"has {measured}, but the inventory says {shown}", "correct the path or the size")
    except units.UnitError as error:
        case.refuse("has a size that cannot be read", str(error).rstrip("."))
    if needed is not None and size_bytes < needed:
        case.refuse(f"has {measured}, but {units.format_bytes(needed)} are needed", "name a larger volume")


def _check_identity(case: _Case) -> None:
    wanted = case.wanted
    if wanted is None or wanted in case.identities:
        return
    found = "is known as " + ", ".join(case.identities) if case.identities else "has no identity the kernel knows"
    case.refuse(f"should be {wanted}, but {found}", "correct the path or the identity")


def _check_named_twice(cases: Sequence[_Case], kernel: Kernel) -> None:
    for position, case in enumerate(cases):
        for earlier in cases[:position]:
            how = _same_bytes(case, earlier, kernel)
            if how:
                case.refuse(f"{how} volume {earlier.name} ({earlier.path})", "name each storage once")


def _same_bytes(case: _Case, other: _Case, kernel: Kernel) -> str | None:
    """How writing one of two volumes would hit the other."""
    if "directory" in (case.kind, other.kind):
        return "is in the same directory as" if case.real_path == other.real_path else None
    for one, two in ((case, other), (other, case)):
        backing = kernel.backings().get(one.dev) if one.dev else None
        if two.file_id is not None and backing is not None and backing.file_id == two.file_id:
            return "is a loop device on the file of" if one is case else "is the file under the loop device of"
    if case.dev is None or other.dev is None:
        return "is the same file as" if case.file_id is not None and case.file_id == other.file_id else None
    if case.dev == other.dev:
        return f"is the same device ({case.dev[0]}:{case.dev[1]}) as"
    if other.dev in kernel.aliases(case.dev) or case.dev in kernel.aliases(other.dev):
        return "stores its data in the same place as"
    if other.dev in kernel.below(case.dev):
        return "is part of, or stands on,"
    return "carries" if case.dev in kernel.below(other.dev) else None


def _check_use(case: _Case, kernel: Kernel, uses: Uses, writes: bool) -> None:
    """Mounts, swap, holders, boot and root path of all that a write would hit; and whether it can be written at all."""
    found = []
    if uses.swap_file(case.file_id):
        found.append("is in use as swap")
    if case.dev is not None:
        reached = footprint(kernel, case.dev)
        whole = kernel.whole_disk(case.dev)
        for dev, reach in reached.items():
            found += [reach.label + text for text in uses.of(dev)] + ([reach.use] if reach.use else [])
            boot_path = uses.boot_path(dev) if dev != whole else None
            found += [f"{reach.label}carries {boot_path} of this host"] if boot_path else []
            backing = kernel.backings().get(dev)
            if backing is not None and uses.swap_file(backing.file_id):
                found.append(f"{reach.label}has a backing file that is in use as swap")
        if writes and kernel.read_only(case.dev):
            case.refuse("is read-only", f"make it writable or {_CHOOSE}")
    for text in found:
        _in_use(case, writes, text)


def _in_use(case: _Case, writes: bool, text: str) -> None:
    sentence = text if text.startswith(("is ", "carries ", "has ")) else f"is in use: {text}"
    case.in_use.append(_clean(f"{case.title} {sentence}."))
    case.object(writes, sentence, f"end that use or {_CHOOSE}")


def _check_claim(case: _Case, kernel: Kernel, held: Held | None, writes: bool) -> None:
    """What the kernel itself says: a device mounted in any namespace, or member of a pool, cannot be claimed again."""
    if case.dev is None or not case.size_bytes:
        return
    for dev in (case.dev, *kernel.aliases(case.dev)):
        if held is not None and dev in held.devs:
            continue
        path = case.real_path if dev == case.dev else kernel.path(dev)
        try:
            os.close(kernel.claim(path, tries=1) if case.in_use else kernel.claim(path))
        except OSError as error:
            if error.errno != errno.EBUSY:
                case.refuse(f"cannot be opened, {path} ({error.strerror})", "run with become, or correct the device")
            elif not case.in_use:
                _in_use(case, writes, f"is claimed by the kernel or another process, {path}")


def _check_signatures(case: _Case, kernel: Kernel, writes: bool) -> None:
    """Partition tables, file systems and members of anything; overwritten only if named exactly, with the identity."""
    if case.dev is None or not case.size_bytes:
        return
    parts = [kernel.name(part) for part in kernel.partitions(case.dev)]
    found = probe(case.real_path)
    case.signatures = list(found.types)
    if found.fault is not None:
        case.object(writes, f"cannot be proved to be empty: {found.fault}", f"clear that up or {_CHOOSE}")
    agreed = case.volume.get("overwrite")
    tables = _partition_tables(found, agreed)
    if parts and not tables:
        case.object(writes, f"has partitions ({', '.join(parts)})", f"remove them or {_CHOOSE}")
    for signature in found.types:
        refused = _not_agreed(case, signature, agreed)
        if refused is not None or not writes:
            case.object(writes, f"carries the signature {signature}", refused or "")


def _partition_tables(found: Signatures, agreed: str | None) -> bool:
    """Whether the partitions the kernel sees come from a table that is agreed to be overwritten."""
    return found.types == (agreed,) and agreed in PARTITION_TABLES


def _not_agreed(case: _Case, signature: str, agreed: str | None) -> str | None:
    """What to do about a signature, or None when the user agreed to lose it and said of which device."""
    wanted = case.wanted
    known = ", ".join(case.identities) or "none is known, so clear it by hand"
    if agreed is None:
        return f"clear it (wipefs), {_CHOOSE}, or give this volume overwrite: {signature} and its identity ({known})"
    if agreed != signature:
        return f"overwrite names {agreed}, only what was found may be overwritten, {_CHOOSE}"
    if wanted is None:
        return f"overwrite also needs the identity of the volume ({known})"
    if wanted not in case.identities:
        return "overwrite needs the identity of the volume, and the one given is another's"
    if wanted.startswith("iqn."):
        return f"overwrite needs the identity of one volume, a target may have many ({known})"
    return None


def _check_writers(cases: Sequence[_Case], kernel: Kernel, writes: bool) -> None:
    """A process that writes without a claim: a virtual machine, a database, an fio that was left behind."""
    paths = {path: case for case in cases if case.dev for path in (case.real_path, kernel.path(case.dev))}
    for path, process in writers(kernel, paths).items():
        _in_use(paths[path], writes, f"is open for writing in {process}")


def _clean(text: str) -> str:
    """One line that any encoding of a report can carry."""
    return " ".join(text.split()).encode("utf-8", "backslashreplace").decode("utf-8")
