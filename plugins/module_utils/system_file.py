# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file below /etc put in place through the journal: whole or not at all, and put back only while it is still ours.

Must not know: what the file is for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from typing import Any, NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Entry,
    Handler,
    Journal,
    Outcome,
)

KIND = "system_file"
DIRECTORY = "system_directory"
MODE = 0o644
_DRAFT = ".hostmax-draft"
_LABEL = "security.selinux"


class SystemFileError(host_state.HostError):
    """Why a file cannot be put in place; one sentence."""


class Held(NamedTuple):
    """What a path holds: the content (None where there is no file), and who may do what with it."""

    content: str | None
    mode: int
    uid: int
    gid: int
    label: str | None

    @property
    def sha256(self) -> str | None:
        """Of the content; None where there is no file."""
        return None if self.content is None else sha256(self.content)

    @property
    def as_facts(self) -> dict[str, Any]:
        """As the journal keeps it."""
        return {
            "existed": self.content is not None,
            "content": self.content,
            "mode": self.mode,
            "uid": self.uid,
            "gid": self.gid,
            "label": self.label,
            "sha256_before": self.sha256,
        }


def sha256(content: str) -> str:
    """The SHA-256 of a text as it stands in the file, in hex."""
    return hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()


def look(path: str) -> Held:
    """What the path holds now; raises SystemFileError for what is not a plain file."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Held(None, MODE, 0, 0, None)
    if not stat.S_ISREG(facts.st_mode):
        raise SystemFileError(f"{path} is not a plain file, so it is not replaced; move it away.")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as handle:
            content = handle.read()
    except OSError as exc:
        raise SystemFileError(f"{path} cannot be read ({exc.strerror}).") from exc
    label = None
    with contextlib.suppress(OSError):
        label = os.getxattr(path, _LABEL, follow_symlinks=False).decode("ascii", "replace")
    return Held(content, stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid, label)


def put(book: Journal, path: str, content: str | None, mode: int = MODE) -> bool:
    """Make the file hold this content, journal first; None: there is to be no file. Whether anything was changed.

    An existing file keeps its mode and owner. Raises SystemFileError; the file is then as it was.
    """
    with book.held():
        now = look(path)
        if now.content == content:
            return False
        try:
            _make_parent(book, os.path.dirname(path))
            entry = _begin(book, path, now, content)
            if content is None:
                _unlink(path)
            elif now.content is None:
                replace(path, now._replace(content=content, mode=mode, uid=os.geteuid(), gid=os.getegid()))
            else:
                replace(path, now._replace(content=content))
        except OSError as exc:
            raise SystemFileError(f"{path} cannot be written ({exc.strerror}).") from exc
        book.done(entry, ours=[_name(content)])
    return True


def _name(content: str | None) -> str | None:
    return None if content is None else sha256(content)


def _begin(book: Journal, path: str, now: Held, content: str | None) -> int:
    """Record the file as it was before the first change; say which contents may be found from now on as ours."""
    number = book.record(KIND, path, **now.as_facts, ours=[_name(content)])
    entry = next(entry for entry in book.entries() if entry.id == number)
    ours = _ours(entry)
    if _name(content) not in ours:
        book.done(number, ours=[*ours, _name(content)])
    return number


def _ours(entry: Entry) -> list[str | None]:
    return list((entry.done or entry.facts)["ours"])


def _make_parent(book: Journal, path: str) -> None:
    """Make a missing directory of /etc; one level, as packages would."""
    if not os.path.isdir(path):
        entry = book.record(DIRECTORY, path)
        os.mkdir(path, 0o755)
        book.done(entry, inode=os.stat(path).st_ino)


def replace(path: str, new: Held) -> None:
    """Put a whole new file in the place of the old one: after a crash there is either, never a part."""
    draft = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}{_DRAFT}")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)  # of an attempt that died
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write((new.content or "").encode("utf-8", "surrogateescape"))
            stream.flush()
            if os.geteuid() == 0:
                os.fchown(stream.fileno(), new.uid, new.gid)
            os.fchmod(stream.fileno(), new.mode)
            if new.label:
                with contextlib.suppress(OSError):  # no SELinux any more
                    os.setxattr(draft, _LABEL, new.label.encode("ascii", "replace"))
            os.fsync(stream.fileno())
        os.rename(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    host_state.sync_directory(os.path.dirname(path))


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
        host_state.sync_directory(os.path.dirname(path))


# -- putting back -----------------------------------------------------------------------------------------------------


def _restore_file(entry: Entry, check: bool) -> Outcome:
    """Put the content, mode and owner back, where the file still holds what was put there."""
    path, facts = str(entry.key), entry.facts
    draft = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}{_DRAFT}")
    if not check:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(draft)
    now = look(path)
    if now.sha256 == facts["sha256_before"]:
        return Outcome(NOTHING)
    if now.sha256 not in _ours(entry):
        before = "it was not there before" if not facts["existed"] else "its content before stands in the journal"
        what = "removed" if now.content is None else "changed"
        return Outcome(LEFT, f"it was {what} by somebody else since; {before}, put it right by hand.")
    if check:
        return Outcome(RESTORED)
    if facts["existed"]:
        replace(path, Held(facts["content"], facts["mode"], facts["uid"], facts["gid"], facts["label"]))
    else:
        _unlink(path)
    return Outcome(RESTORED)


def _restore_directory(entry: Entry, check: bool) -> Outcome:
    """Remove a directory that was made for a file of ours; with something else in it, it stays."""
    path = str(entry.key)
    try:
        inode = os.lstat(path).st_ino
    except FileNotFoundError:
        return Outcome(NOTHING)
    if entry.done and entry.done["inode"] != inode:
        return Outcome(NOTHING)  # somebody made it anew
    if check:
        return Outcome(RESTORED)
    try:
        os.rmdir(path)
    except OSError:
        return Outcome(NOTHING)  # others have put files into it, which is what it is for
    return Outcome(RESTORED)


HANDLERS: dict[str, Handler] = {KIND: _restore_file, DIRECTORY: _restore_directory}
