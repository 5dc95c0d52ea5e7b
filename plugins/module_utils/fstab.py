# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Our own line for a mount in /etc/fstab: added and taken out again, every other line kept byte for byte.

Must not know: NFS, mounting; a line is ours by the mark of its run among its options.
"""

from __future__ import annotations

import os
import re

from ansible_collections.hostmax.storage.plugins.module_utils import host_state, mountstats, system_file
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    NOTHING,
    RESTORED,
    Entry,
    Handler,
    Journal,
    Outcome,
)

PATH = "/etc/fstab"
KIND = "fstab_line"
MARK = "x-hostmax.run="
# a boot goes on without the server, and does not try before the network is up
_ALWAYS = ("nofail", "_netdev")


class FstabError(host_state.HostError):
    """Why /etc/fstab cannot be changed; one sentence."""


def line_for(run_id: str, source: str, path: str, fstype: str, options: str) -> str:
    """Our line for a mount, without its end."""
    words = [word for word in options.split(",") if word and word not in _ALWAYS]
    options = ",".join([*words, *_ALWAYS, MARK + run_id])
    return f"{_escape(source)} {_escape(path)} {fstype} {options} 0 0"


def _escape(word: str) -> str:
    return re.sub(r"[\s\\#]", lambda match: f"\\{ord(match.group()):03o}", word)


def ours(run_id: str, path: str, name: str = PATH) -> str | None:
    """The line of this run for this mount point that stands in the file."""
    return next((line for line in _lines(name) if _is_ours(line, run_id, path)), None)


def check_free(run_id: str, path: str, name: str = PATH) -> None:
    """Refuse a mount point for which the file has a line of somebody else."""
    for number, line in enumerate(_lines(name), 1):
        if _mount_point(line) == path and not _is_ours(line, run_id, path):
            raise FstabError(
                f"{name} has a line for {path} already (line {number}); remove it, use another path, "
                "or leave persistent at false."
            )


def add(book: Journal, path: str, line: str, name: str = PATH) -> bool:
    """Let the file hold exactly this line of the run for this mount point; whether that was a change."""
    check_free(book.run_id, path, name)
    lines = _lines(name)
    if [known for known in lines if _is_ours(known, book.run_id, path)] == [line]:
        return False
    lines = [known for known in lines if not _is_ours(known, book.run_id, path)]
    text = "\n".join(lines)
    # put back with the line: whether the file's last line had an end
    ended = not lines or lines[-1] == ""
    entry = book.record(KIND, key=path, file=name, ended=ended, run_id=book.run_id)
    _write(name, text + ("" if ended else "\n") + line + "\n")
    book.done(entry, line=line)
    return True


def _lines(name: str) -> list[str]:
    """The lines without their ends; an empty last one where the last line has an end."""
    try:
        with open(name, encoding="utf-8", errors="surrogateescape", newline="") as handle:
            text = handle.read()
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise FstabError(f"{name} cannot be read ({exc.strerror}).") from exc
    return text.split("\n")


def _fields(line: str) -> list[str]:
    return [] if line.lstrip().startswith("#") else line.split()


def _mount_point(line: str) -> str | None:
    fields = _fields(line)
    return os.path.normpath(mountstats.unescape(fields[1])) if len(fields) > 1 else None


def _is_ours(line: str, run_id: str, path: str) -> bool:
    fields = _fields(line)
    return len(fields) > 3 and MARK + run_id in fields[3].split(",") and _mount_point(line) == path


def _write(name: str, text: str) -> None:
    """Put the whole new content in place at once; owner, mode and label stay."""
    real = os.path.realpath(name)
    before = system_file.look(real)
    if before.content is None:
        before = before._replace(uid=os.geteuid(), gid=os.getegid())
    try:
        system_file.replace(real, before._replace(content=text))
    except OSError as exc:
        raise FstabError(f"{name} cannot be written ({exc.strerror}); its content is as it was.") from exc


def _take_out(entry: Entry, check: bool) -> Outcome:
    """Take our line out."""
    name, run_id, path = entry.facts["file"], entry.facts["run_id"], str(entry.key)
    lines = _lines(name)
    kept = [line for line in lines if not _is_ours(line, run_id, path)]
    if kept == lines:
        return Outcome(NOTHING)
    if not check:
        if not entry.facts["ended"] and kept[-1:] == [""] and _is_ours(lines[-2], run_id, path):
            kept.pop()
        _write(name, "\n".join(kept))
    return Outcome(RESTORED)


HANDLERS: dict[str, Handler] = {KIND: _take_out}
