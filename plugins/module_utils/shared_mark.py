# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two hosts with one volume, found out by writing: each marks its volumes, and after all have, looks for its own marks.

It must not know the plan's workloads or how hosts meet; a mark is only put on what the guard allowed to be written.
What stood in the block is in the journal before the mark is written, and comes back as it was.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import mmap
import os
import stat
import uuid
import zlib
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils.guard import GuardError
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Entry,
    Handler,
    Journal,
    JournalError,
    Outcome,
)

KIND = "shared_mark"
MAGIC = b"hostmax.storage mark/1\n"
# the smallest piece that every disk, also one with sectors of 4 KiB, reads and writes at once
BLOCK_BYTES = 4096
_ADVICE = "name each volume for one host, or set hostmax_shared_volumes: true where two hosts may write the same volume"


class SharedMarkError(GuardError):
    """A volume that another host has too; one sentence for each."""


class _Place(NamedTuple):
    """The block of a volume that carries the mark: its last whole one."""

    path: str
    offset_bytes: int
    length_bytes: int


class _Mark(NamedTuple):
    """One mark that this host wrote: its journal entry, and the block's bytes before and with it."""

    entry_id: int
    title: str
    place: _Place
    original: bytes
    marked: bytes


class Marks:
    """The marks of this host."""

    def __init__(self, book: Journal, run_id: str) -> None:
        self._book, self._run_id = book, run_id
        self._marks: list[_Mark] = []

    def add(self, mark: _Mark) -> None:
        """Remember a mark that is recorded and about to be written."""
        self._marks.append(mark)

    def check_and_remove(self) -> None:
        """Once every host has marked its volumes: raise SharedMarkError where a mark is not ours any more.

        Blocks that carry our marks get their own bytes back, also before the error is raised.
        """
        try:
            with self._book.held():
                faults = [fault for fault in map(self._remove, self._marks) if fault]
        except JournalError as error:
            raise SharedMarkError(str(error)) from error
        self._marks = []
        if faults:
            raise SharedMarkError(" ".join(faults))

    def _remove(self, mark: _Mark) -> str | None:
        try:
            with _opened(mark.place) as handle:
                found = _read(handle, mark.place)
                if found != mark.marked:
                    return _other(mark.title, found, self._run_id)
                _write(handle, mark.place, mark.original)
        except OSError as error:
            return f"The mark on {mark.title} cannot be taken away ({error.strerror}): restore the host."
        self._book.restored(mark.entry_id)
        return None


def write(book: Journal, verdicts: Sequence[dict[str, Any]], plan: dict[str, Any], base_dir: str) -> Marks:
    """Mark every volume that a point of ``plan`` (the agent's payload) writes; none where hosts may share volumes.

    ``verdicts``: the guard's, without refusals, for a hold that lasts. Raises SharedMarkError where a volume carries
    the mark of this run already; what was marked before that is put back.
    """
    run_id, host = str(plan["run_id"]), str(plan.get("host") or "this host")
    marks = Marks(book, run_id)
    if plan.get("shared_volumes"):
        return marks
    written = {name for point in plan["points"] if point["writes"] for name in point["volumes"]}
    token = uuid.uuid4().hex
    try:
        with book.held():
            for verdict in verdicts:
                if verdict["name"] in written and verdict["size_bytes"] >= _block_bytes(verdict):
                    _mark(marks, book, verdict, (run_id, host, token), base_dir)
    except BaseException as error:
        with contextlib.suppress(SharedMarkError):
            marks.check_and_remove()
        if isinstance(error, JournalError):
            raise SharedMarkError(str(error)) from error
        raise
    return marks


def _mark(marks: Marks, book: Journal, verdict: dict[str, Any], signed: tuple[str, str, str], base_dir: str) -> None:
    title = "volume {name} ({path})".format(**verdict)
    length = _block_bytes(verdict)
    place = _Place(verdict["real_path"], verdict["size_bytes"] // length * length - length, length)
    try:
        with _opened(place) as handle:
            if verdict["kind"] == "block" and not _is_device(handle, verdict):
                raise SharedMarkError(f"The {title} leads to another device than a moment ago: name another volume.")
            original = _read(handle, place)
            if (_parse(original) or {}).get("run") == signed[0]:
                raise SharedMarkError(_other(title, original, signed[0]))
            marked = _text(signed, verdict["name"], length)
            own = bool(verdict["backing"] and verdict["backing"].startswith(os.path.realpath(base_dir) + os.sep))
            entry = book.record(
                KIND,
                # of its own for every mark: the first record of a key is kept, and it would name another token
                key="{} {}".format(verdict["real_path"], signed[2]),
                run=signed[0],
                paths=_paths(verdict, base_dir),
                offset_bytes=place.offset_bytes,
                length_bytes=length,
                token=signed[2],
                original=base64.b64encode(zlib.compress(original)).decode("ascii"),
                own=own or verdict["kind"] == "file",
            )
            marks.add(_Mark(entry, title, place, original, marked))
            _write(handle, place, marked)
    except OSError as error:
        raise SharedMarkError(
            f"The {title} cannot be marked, so nobody knows whether another host has it ({error.strerror}): "
            "look at the volume, or set hostmax_shared_volumes: true."
        ) from error


def _paths(verdict: dict[str, Any], base_dir: str) -> list[str]:
    """Where the volume is found again after a restart, which may give the kernel's names to other disks."""
    links = [text for text in verdict["identities"] if text.startswith("/dev/disk/")]
    return list(dict.fromkeys([os.path.join(base_dir, verdict["path"]), verdict["real_path"], *links]))


def _other(title: str, found: bytes, run_id: str) -> str:
    """What it means that a block carries these bytes and not our mark."""
    mark = _parse(found) or {}
    if mark.get("run") != run_id:
        return f"The {title} was written by somebody else while this run got ready, another host has it too: {_ADVICE}."
    return f"The {title} is the volume {mark['volume']} of host {mark['host']}: {_ADVICE}."


def _block_bytes(verdict: dict[str, Any]) -> int:
    return max(BLOCK_BYTES, verdict["sector_bytes"] or 0)


def _text(signed: tuple[str, str, str], volume: str, length: int) -> bytes:
    """A block that says who wrote it; names longer than it are cut, the token tells marks apart."""
    run_id, host, token = signed
    facts = json.dumps({"run": run_id, "host": host[:255], "volume": volume[:64]})
    return (_beginning(token) + facts.encode("ascii") + b"\n").ljust(length, b"\0")


def _beginning(token: str) -> bytes:
    """What tells a mark from all others, within the first sector: a crash may leave a block half written."""
    return MAGIC + token.encode("ascii") + b"\n"


def _parse(block: bytes) -> dict[str, Any] | None:
    """What a mark says; None for a block that carries none."""
    if not block.startswith(MAGIC):
        return None
    try:
        facts = json.loads(block[len(MAGIC) :].split(b"\n", 2)[1].decode("ascii"))
        return {key: str(facts[key]) for key in ("run", "host", "volume")}
    except (ValueError, LookupError, TypeError):
        return None


# -- reading and writing past every cache of this host ----------------------------------------------------------------


@contextlib.contextmanager
def _opened(place: _Place) -> Iterator[int]:
    """The volume, open for direct I/O; some file systems have none, which is told when it is opened or first used."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = -1
    try:
        handle = os.open(place.path, flags | os.O_DIRECT)
        _read(handle, place)
    except OSError as error:
        if handle >= 0:
            os.close(handle)
        if error.errno != errno.EINVAL:
            raise
        handle = os.open(place.path, flags | os.O_SYNC)
    try:
        yield handle
    finally:
        os.close(handle)


def _is_device(handle: int, verdict: dict[str, Any]) -> bool:
    node = os.fstat(handle)
    number = (os.major(node.st_rdev), os.minor(node.st_rdev))
    return stat.S_ISBLK(node.st_mode) and number == (verdict["major"], verdict["minor"])


def _read(handle: int, place: _Place) -> bytes:
    # cached pages of a file that was opened without direct I/O; nothing else has any
    os.posix_fadvise(handle, place.offset_bytes, place.length_bytes, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(-1, place.length_bytes) as buffer:
        if os.preadv(handle, [buffer], place.offset_bytes) != place.length_bytes:
            raise OSError(errno.EIO, "a block of it could not be read whole", place.path)
        return buffer[:]


def _write(handle: int, place: _Place, content: bytes) -> None:
    with mmap.mmap(-1, place.length_bytes) as buffer:
        buffer[:] = content
        if os.pwritev(handle, [buffer], place.offset_bytes) != place.length_bytes:
            raise OSError(errno.EIO, "a block of it could not be written whole", place.path)
    os.fsync(handle)


# -- putting back -----------------------------------------------------------------------------------------------------


def _restore(entry: Entry, check: bool) -> Outcome:
    """Put the bytes back into the block that still carries this very mark, by whatever path it is found."""
    facts, seen = entry.facts, False
    foreign = None
    for path in _there(facts["paths"]):
        place = _Place(os.path.realpath(path), facts["offset_bytes"], facts["length_bytes"])
        try:
            with _opened(place) as handle:
                found = _read(handle, place)
                if found.startswith(_beginning(facts["token"])):
                    if not check:
                        _write(handle, place, zlib.decompress(base64.b64decode(facts["original"])))
                    return Outcome(RESTORED)
                seen, foreign = True, foreign or _parse(found)
        except OSError:
            continue
    # another host of this run read the block before we marked it, and puts back what we would
    if foreign and foreign["run"] != facts["run"] and not facts["own"]:
        return Outcome(LEFT, "it carries the mark of run {run} on host {host}; restore that first.".format(**foreign))
    if seen or facts["own"]:
        # written over since, or thin volumes that are removed with all that is in them
        return Outcome(NOTHING)
    return Outcome(LEFT, "the volume is not there; attach it and restore again, its last block carries a mark.")


def _there(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if os.path.exists(path)]


HANDLERS: dict[str, Handler] = {KIND: _restore}
