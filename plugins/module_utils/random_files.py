# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filling files with data that nothing can compress or find twice: large blocks, several at once, past the page cache.

Must not know: volumes, runs or the journal; the files are there, and it ends within its bounds or says why it did not.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from typing import Callable, Sequence, Tuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes

CHUNK_BYTES = 4 * 2**20
# a part of a file that one worker writes; small enough that a flush of it is no long silence
PART_BYTES = 256 * 2**20
MOST_WORKERS = 8
# files are whole pieces of this, the largest unit that direct I/O asks for
GRAIN_BYTES = 4096
STALL_S = 180.0
# a storage slower than this is not measured with files of this size
SLOWEST_BYTES_PER_S = 10 * 2**20
SLACK_S = 300.0
_POLL_S = 0.05
_JOIN_S = 5.0
_RANDOM = "/dev/urandom"
_FULL = (errno.ENOSPC, errno.EDQUOT)

Watch = Callable[[int], None]
_Part = Tuple[str, int, int]


class LayoutError(host_state.HostError):
    """Why files cannot be laid out; one sentence."""


def limit_s(total_bytes: int) -> float:
    """How long filling so much may take at most."""
    return SLACK_S + total_bytes / SLOWEST_BYTES_PER_S


def fill(files: Sequence[tuple[str, int]], watch: Watch) -> None:
    """Fill each (path, bytes) from its beginning with random data of its own, and see it on the storage.

    ``watch`` is called about twenty times a second with the bytes written so far; what it raises ends the work.
    Raises LayoutError where the storage is full, fails, stands still for STALL_S or takes longer than ``limit_s``.
    """
    work = _Work(files)
    workers = [threading.Thread(target=work.run, daemon=True) for _number in range(work.workers)]
    total_bytes = sum(size for _path, size in files)
    began_s = moved_s = time.monotonic()
    seen_bytes = 0
    try:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            next((worker for worker in workers if worker.is_alive()), workers[0]).join(_POLL_S)
            now_s = time.monotonic()
            if work.done_bytes != seen_bytes:
                seen_bytes, moved_s = work.done_bytes, now_s
            watch(seen_bytes)
            _check_time(files, seen_bytes, total_bytes, now_s - moved_s, now_s - began_s)
    finally:
        work.stop = True
        end_s = time.monotonic() + _JOIN_S
        for worker in workers:
            # one that hangs in the kernel is not waited for
            worker.join(max(0.0, end_s - time.monotonic()))
    if work.error is not None:
        raise work.error
    if work.done_bytes != total_bytes:
        raise LayoutError(f"The files in {os.path.dirname(files[0][0])} were not laid out whole; restore the host.")
    watch(work.done_bytes)


def _check_time(
    files: Sequence[tuple[str, int]], done_bytes: int, total_bytes: int, still_s: float, since_s: float
) -> None:
    where = os.path.dirname(files[0][0])
    how_far = f"{format_bytes(done_bytes)} of {format_bytes(total_bytes)}"
    if still_s > STALL_S:
        raise LayoutError(
            f"Nothing more was written to {where} for {still_s:.0f} s, after {how_far}: does its storage answer?"
        )
    if since_s > limit_s(total_bytes):
        raise LayoutError(
            f"Laying out the files in {where} took longer than {since_s:.0f} s, for {how_far}: set a smaller "
            "working_set, or look at the storage."
        )


class _Work:
    """The parts of all files, shared by the workers, and how far they are."""

    def __init__(self, files: Sequence[tuple[str, int]]) -> None:
        self.stop = False
        self.error: LayoutError | None = None
        self.done_bytes = 0
        self.total_bytes = sum(size for _path, size in files)
        self._lock = threading.Lock()
        self._parts = _parts(files)
        self.workers = min(MOST_WORKERS, len(os.sched_getaffinity(0)), len(self._parts))

    def run(self) -> None:
        """What one worker does."""
        path = _RANDOM
        try:
            source = os.open(_RANDOM, os.O_RDONLY | os.O_CLOEXEC)
            try:
                with mmap.mmap(-1, CHUNK_BYTES) as buffer:
                    part = self._next()
                    while part is not None and not self.stop:
                        path = part[0]
                        self._write(part, source, buffer)
                        part = self._next()
            finally:
                os.close(source)
        except OSError as exc:
            self._fail(path, exc)

    def _next(self) -> _Part | None:
        with self._lock:
            return self._parts.pop(0) if self._parts else None

    def _fail(self, path: str, exc: OSError) -> None:
        with self._lock:
            self.stop = True
            if self.error is not None:
                return
            where = os.path.dirname(path)
            if exc.errno in _FULL:
                self.error = LayoutError(
                    f"The file system of {where} became full ({exc.strerror}) after {format_bytes(self.done_bytes)} of "
                    f"{format_bytes(self.total_bytes)} of files to measure: make room, or set a smaller working_set."
                )
            else:
                self.error = LayoutError(f"The file {path} cannot be laid out ({exc.strerror}): look at its storage.")

    def _write(self, part: _Part, source: int, buffer: mmap.mmap) -> None:
        path, position, end = part
        handle, direct = _open(path)
        try:
            while position < end and not self.stop:
                length = min(CHUNK_BYTES, end - position)
                with memoryview(buffer) as whole, whole[:length] as block:
                    _draw(source, block)
                    try:
                        _put(handle, block, position)
                    except OSError as exc:
                        if exc.errno != errno.EINVAL or not direct:
                            raise
                        # opened for direct I/O, which this file system has not
                        os.close(handle)
                        handle, direct = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW), False
                        _put(handle, block, position)
                position += length
                with self._lock:
                    self.done_bytes += length
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def _parts(files: Sequence[tuple[str, int]]) -> list[_Part]:
    """The first part of every file, then the second of every file, and so on: all files grow together."""
    places = []
    for number, (path, size) in enumerate(files):
        for turn, position in enumerate(range(0, size, PART_BYTES)):
            places.append((turn, number, (path, position, min(size, position + PART_BYTES))))
    return [part for _turn, _number, part in sorted(places)]


def _open(path: str) -> tuple[int, bool]:
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_DIRECT), True
    except OSError as exc:
        if exc.errno != errno.EINVAL:
            raise
    return os.open(path, flags), False


def _draw(source: int, block: memoryview) -> None:
    place = 0
    while place < len(block):
        place += os.readv(source, [block[place:]])


def _put(handle: int, block: memoryview, position: int) -> None:
    place = 0
    while place < len(block):
        place += os.pwritev(handle, [block[place:]], position + place)
