# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The test files of directory volumes: a directory of the run's own with a file for each job, made and filled.

Must not know: workloads, Ansible, how it is removed; every change is in the journal before it is made.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import time
import uuid
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import (
    device_uses,
    host_state,
    random_files,
)
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import file_name
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Entry, Journal
from ansible_collections.hostmax.storage.plugins.module_utils.random_files import LayoutError
from ansible_collections.hostmax.storage.plugins.module_utils.test_file_places import (
    KIND,
    draft_name,
    is_directory,
    room_fault,
    stat_of,
    where,
)
from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes

SAY_S = 2.0
_LASTING = ("vers", "proto", "port", "sec")

Say = Callable[..., None]


class _Place(NamedTuple):
    """Where a volume's files are: its directory, those between it and the one that is there, and each file's size."""

    title: str
    path: str
    parents: tuple[str, ...]
    sizes: dict[str, int]

    @property
    def total_bytes(self) -> int:
        return sum(self.sizes.values())


# -- making -----------------------------------------------------------------------------------------------------------


def lay_out(
    book: Journal,
    volumes: Sequence[dict[str, Any]],
    base_dir: str,
    say: Say,
    check_stop: Callable[[], None] = lambda: None,
) -> list[str]:
    """Make and fill the files of all directory volumes at once; return the real paths of their directories.

    ``say("layout", done_bytes=…, total_bytes=…)`` at the start, the end and every SAY_S between them; ``check_stop``
    is called often and may raise. The same call again writes nothing. Raises LayoutError, JournalError.
    """
    places = [_place(volume, base_dir) for volume in volumes if is_directory(volume)]
    missing = [place for place in places if not _is_laid_out(book, place)]
    for place in missing:
        _check_room(place, [other for other in missing if other is not place])
    files = [file for place in missing for file in _make(book, place)]
    if files:
        random_files.fill(files, _Teller(say, sum(size for _path, size in files), check_stop))
    for place in missing:
        host_state.sync_directory(place.path)
        entry = _entry_of(book, place.path)
        if entry is not None:
            book.done(entry.id, **dict(entry.done or {}, laid_out=True))
    return [place.path for place in places]


def check(book: Journal, volumes: Iterable[dict[str, Any]], base_dir: str) -> None:
    """Raise LayoutError where a file is not there any more, is another's or was shortened since it was laid out."""
    for volume in volumes:
        if is_directory(volume):
            place = _place(volume, base_dir)
            if not _is_laid_out(book, place):
                raise LayoutError(
                    f"The files of {place.title} in {place.path} are not there as they were laid out; was something "
                    "removed there, or another file system mounted? Make another run."
                )


def _place(volume: dict[str, Any], base_dir: str) -> _Place:
    _root, path, parents = where(volume, base_dir)
    sizes = {file_name(number): int(size) for number, size in enumerate(volume["files"])}
    return _Place(f"volume {volume['name']}", path, parents, sizes)


def _entry_of(book: Journal, path: str) -> Entry | None:
    entries = [entry for entry in book.entries() if (entry.kind, entry.key) == (KIND, path) and entry.result is None]
    return entries[-1] if entries else None


def _is_laid_out(book: Journal, place: _Place) -> bool:
    entry = _entry_of(book, place.path)
    done = (entry.done if entry else None) or {}
    if not done.get("laid_out"):
        return False
    for name, size in place.sizes.items():
        facts = stat_of(os.path.join(place.path, name))
        if facts is None or facts.st_ino != done["files"].get(name) or facts.st_size < size:
            return False
    return True


def _check_room(place: _Place, others: Sequence[_Place]) -> None:
    """All volumes of this host that share a file system need room together."""
    there = _deepest(place.path)
    dev = os.stat(there).st_dev
    alike = [other for other in others if os.stat(_deepest(other.path)).st_dev == dev]
    sentence = room_fault(there, place.total_bytes + sum(other.total_bytes for other in alike))
    if sentence:
        raise LayoutError(
            f"The {place.title} has too little room: {sentence}; make room, or set a smaller working_set."
        )


def _lasting(options: str) -> str:
    """Of a mount's options those with which the same files are found again."""
    return ",".join(option for option in options.split(",") if option.partition("=")[0] in _LASTING)


def _deepest(path: str) -> str:
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _make(book: Journal, place: _Place) -> list[tuple[str, int]]:
    """The directory and its empty files; returned are (path, bytes) to fill.

    A file gets its name only when its inode is in the journal, so that nobody else's can ever be taken for it.
    """
    entry = _entry_of(book, place.path)
    if entry is None:
        if os.path.lexists(place.path):
            raise LayoutError(f"The directory {place.path} is there already: remove it, or make another run.")
        mount = device_uses.mount_of(_deepest(place.path))
        book.record(
            KIND,
            key=place.path,
            name=place.title,
            source=mount.source,
            fstype=mount.fstype,
            options=_lasting(mount.options),
            mount_path=mount.point,
            root=mount.root,
            parents=list(place.parents),
            files=list(place.sizes),
            token=uuid.uuid4().hex,
        )
        _make_directory(place)
        entry = _entry_of(book, place.path)
    if entry is None:
        raise host_state.HostError(f"The journal {book.path} lost the record of {place.path}; restore the run.")
    done = dict(entry.done or {"inode": os.lstat(place.path).st_ino, "files": {}})
    if entry.done is None:
        book.done(entry.id, **done)
    drafts = {
        name: os.path.join(place.path, draft_name(entry, name)) for name in place.sizes if name not in done["files"]
    }
    for path in drafts.values():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    done["files"] = {**done["files"], **{name: os.lstat(path).st_ino for name, path in drafts.items()}}
    book.done(entry.id, **done)
    for name, path in drafts.items():
        _give_name(path, os.path.join(place.path, name))
    return [(os.path.join(place.path, name), size) for name, size in place.sizes.items()]


def _make_directory(place: _Place) -> None:
    try:
        for _attempt in range(20):
            for parent in place.parents:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(parent, 0o700)
            try:
                os.mkdir(place.path, 0o700)
                return
            except FileNotFoundError:
                # another host of this run removed the directory above, empty by then
                time.sleep(0.1)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place.path)
    except OSError as exc:
        raise LayoutError(
            f"The directory {exc.filename or place.path} for {place.title} cannot be made ({exc.strerror}): make the "
            "one above writable, or name another."
        ) from exc


def _give_name(draft: str, path: str) -> None:
    """Without taking the name from a file that has it."""
    try:
        os.link(draft, path)
        os.unlink(draft)
        return
    except FileExistsError:
        raise LayoutError(
            f"{path} is there already, and this run did not make it: find out who writes there."
        ) from None
    except OSError as exc:
        if exc.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
    # a file system without hard links
    if os.path.lexists(path):
        raise LayoutError(f"{path} is there already, and this run did not make it: find out who writes there.")
    os.rename(draft, path)


class _Teller:
    """Says how far the layout is, now and then."""

    def __init__(self, say: Say, total_bytes: int, check_stop: Callable[[], None]) -> None:
        self._say, self._total_bytes, self._check_stop = say, total_bytes, check_stop
        self._said_s, self._said_all = float("-inf"), False

    def __call__(self, done_bytes: int) -> None:
        self._check_stop()
        now_s = time.monotonic()
        whole = done_bytes == self._total_bytes and not self._said_all
        if now_s - self._said_s >= SAY_S or whole:
            self._said_s, self._said_all = now_s, whole or self._said_all
            self._say("layout", done_bytes=done_bytes, total_bytes=self._total_bytes)


def refuses_direct(volume: dict[str, Any], base_dir: str, block_bytes: int) -> str | None:
    """Why blocks of this size cannot be read with direct I/O from the first file of a volume; None where they can."""
    place = _place(volume, base_dir)
    path = os.path.join(place.path, next(iter(place.sizes)))
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            with mmap.mmap(-1, block_bytes) as buffer:
                os.preadv(handle, [buffer], 0)
        finally:
            os.close(handle)
    except OSError as exc:
        if exc.errno != errno.EINVAL:
            raise
        fstype = device_uses.mount_of(place.path).fstype
        return (
            f"The {place.title} ({place.path}) is on a file system ({fstype}) that refuses direct I/O in blocks of "
            f"{format_bytes(block_bytes)}: name another directory, or set direct: false for its workloads, which then "
            "measure this host's memory too."
        )
    return None
