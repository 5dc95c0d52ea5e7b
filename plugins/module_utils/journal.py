# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The journal of one run on one host: what is about to change, on disk before it changes, and how far it was put back.

Must not know: how any kind of change is undone; the handlers given to restore know that.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import Any, Callable, Collection, Iterator, Mapping, NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

SCHEMA = "hostmax.journal/1"
NAME = "journal.jsonl"
LOCK_WAIT_S = 30.0
_POLL_S = 0.05

RESTORED = "restored"
NOTHING = "nothing to do"
LEFT = "left"
# fact of an entry in a journal that goes on over restarts: the boot in which the change was made
BOOT = "boot_id"


class JournalError(host_state.HostError):
    """Why a journal cannot be read or written; one sentence."""


class Entry(NamedTuple):
    """One recorded change: its facts from before, what was known once it was done, and how it was put back."""

    id: int
    kind: str
    key: str | None
    facts: dict[str, Any]
    done: dict[str, Any] | None
    result: str | None
    why_left: str | None

    @property
    def of_this_boot(self) -> bool:
        """Whether the change was made since the host was started; live values of an earlier boot are gone."""
        return bool(self.facts.get(BOOT, host_state.boot_id()) == host_state.boot_id())

    @property
    def what(self) -> str:
        """The change in words: `file /var/lib/hostmax/…/thin01.img`."""
        return "{} {}".format(self.kind.replace("_", " "), self.key or self.id)


class Outcome(NamedTuple):
    """What a handler did, or in check mode would do: RESTORED, NOTHING or LEFT, and for the last one why."""

    state: str
    why: str = ""


_FIELDS = {"record": ("kind", "key", "facts"), "done": ("facts",), "restored": ("result",), "left": ("why",)}

Handler = Callable[[Entry, bool], Outcome]


def _now_utc() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Journal:
    """An append-only file of JSON lines; every line is on disk before the method that writes it returns."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.run_id = os.path.basename(os.path.dirname(os.path.abspath(path)))
        self._handle = -1
        self._held_lines: list[dict[str, Any]] = []
        self._end = 0

    # -- writing ------------------------------------------------------------------------------------------------------

    def record(self, kind: str, key: str | None = None, **facts: Any) -> int:
        """Write down a change that is about to be made, and return its id.

        A change with the same kind and key that was not put back yet keeps its first record: the first original counts.
        """
        with self.held():
            if self.run_id == host_state.PREPARED:
                facts = dict(facts, **{BOOT: host_state.boot_id()})
            else:
                self._check_boot()
            entries = self.entries()
            for entry in entries:
                if key is not None and (entry.kind, entry.key) == (kind, key) and entry.result is None:
                    return entry.id
            new_id = max((entry.id for entry in entries), default=0) + 1
            self._append({"op": "record", "id": new_id, "kind": kind, "key": key, "facts": facts})
        return new_id

    def _check_boot(self) -> None:
        """No host could put back what two hosts, or two boots, changed; putting back itself is always allowed."""
        header = self.header()
        if header is not None and header.get("boot_id") != host_state.boot_id():
            raise JournalError(
                f"The journal {self.path} was begun by another host, or before a restart of this one: where hosts "
                f"share the file system of {host_state.state_root()}, give each a place of its own with "
                f"{host_state.STATE_VARIABLE} in its environment; after a restart, restore the run first."
            )

    def done(self, entry_id: int, **facts: Any) -> None:
        """Write down that a recorded change was made, with what became known by it."""
        self._append({"op": "done", "id": entry_id, "facts": facts})

    def restored(self, entry_id: int, result: str = RESTORED) -> None:
        """Write down that a recorded change was put back, or that there was nothing to put back."""
        self._append({"op": "restored", "id": entry_id, "result": result})

    def _append(self, line: dict[str, Any]) -> None:
        with self.held():
            lines = [dict(line, time_utc=_now_utc())]
            if not self._held_lines:
                lines.insert(0, self._new_header())
            try:
                self._write("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode())
            except OSError as exc:
                raise JournalError(
                    f"The journal {self.path} cannot be written ({exc.strerror}), so the change was not made; "
                    "make room or make it writable, then start again."
                ) from exc
            self._held_lines += lines

    def _new_header(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "run_id": self.run_id, "created_utc": _now_utc(), "boot_id": host_state.boot_id()}

    def _write(self, data: bytes) -> None:
        """Append after the last whole line; what a crash or a full disk left behind it is cut off first."""
        os.ftruncate(self._handle, self._end)
        position = self._end
        while data:
            written = os.pwrite(self._handle, data, position)
            data, position = data[written:], position + written
        os.fsync(self._handle)
        self._end = position

    # -- one at a time ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def held(self, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
        """Keep every other process from writing or restoring this journal; may be nested."""
        if self._handle >= 0:
            yield
            return
        try:
            handle = self._open_locked(wait_s)
        except OSError as exc:
            raise JournalError(f"The journal {self.path} cannot be opened ({exc.strerror}).") from exc
        try:
            self._held_lines, self._end = self._read()
            self._handle = handle
            yield
        finally:
            self._handle = -1
            os.close(handle)

    def _open_locked(self, wait_s: float) -> int:
        new = not os.path.exists(self.path)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            if new:
                host_state.sync_directory(os.path.dirname(os.path.abspath(self.path)))
            end_s = time.monotonic() + wait_s
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return handle
                except BlockingIOError:
                    pass
                if time.monotonic() > end_s:
                    raise JournalError(
                        f"The run {self.run_id} is being changed or restored by another process on this host; "
                        "wait for it to end, then try again."
                    )
                time.sleep(_POLL_S)
        except BaseException:
            os.close(handle)
            raise

    # -- reading ------------------------------------------------------------------------------------------------------

    def _lines(self) -> list[dict[str, Any]]:
        return self._held_lines if self._handle >= 0 else self._read()[0]

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        """All whole lines and where they end; an unfinished last line was never acted upon and does not count."""
        try:
            with open(self.path, "rb") as handle:
                whole = handle.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return [], 0
        except OSError as exc:
            raise JournalError(f"The journal {self.path} cannot be read ({exc.strerror}).") from exc
        return [self._parse(number, raw) for number, raw in enumerate(whole, 1)], sum(len(raw) + 1 for raw in whole)

    def _parse(self, number: int, raw: bytes) -> dict[str, Any]:
        try:
            line: dict[str, Any] = json.loads(raw.decode("utf-8"))
            for name in ("schema",) if number == 1 else ("id", *_FIELDS[line["op"]]):
                line[name]
        except (ValueError, KeyError, TypeError) as exc:
            raise JournalError(
                f"The journal {self.path} is damaged in line {number}; put back by hand what its other lines name, "
                "then remove the directory it stands in."
            ) from exc
        if number == 1 and line["schema"] != SCHEMA:
            raise JournalError(
                "The journal {} has the schema {!r}, this version reads {!r}; "
                "restore with the version that wrote it.".format(self.path, line["schema"], SCHEMA)
            )
        return line

    def header(self) -> dict[str, Any] | None:
        """The first line: schema, run id, time and boot; None where the journal was not begun."""
        lines = self._lines()
        return lines[0] if lines else None

    def entries(self) -> list[Entry]:
        """All recorded changes, oldest first, with what is known of each by now."""
        found: dict[int, Entry] = {}
        for line in self._lines()[1:]:
            if line["op"] == "record":
                found[line["id"]] = Entry(
                    line["id"], line["kind"], line["key"], line["facts"], done=None, result=None, why_left=None
                )
            elif line["id"] in found:
                found[line["id"]] = _apply(found[line["id"]], line)
        return list(found.values())

    def as_document(self) -> dict[str, Any]:
        """The journal as one JSON document, for the copy in the run directory."""
        empty = {"schema": SCHEMA, "run_id": self.run_id, "created_utc": None, "boot_id": None}
        document: dict[str, Any] = dict(self.header() or empty)
        document["entries"] = [entry._asdict() for entry in self.entries()]
        return document

    # -- putting back -------------------------------------------------------------------------------------------------

    def restore(
        self,
        handlers: Mapping[str, Handler],
        wait_s: float = LOCK_WAIT_S,
        check: bool = False,
        kinds: Collection[str] | None = None,
    ) -> dict[str, Any]:
        """Put every change back, the last one first; return {"restored": [what], "left": [{"what", "why"}]}.

        A handler that leaves something, fails or is missing does not keep the others from being put back; what was left
        is tried again by the next restore. With ``check`` nothing is changed, and the same is returned. With ``kinds``
        only changes of these kinds are put back.
        """
        result: dict[str, Any] = {"restored": [], "left": []}
        if not os.path.exists(self.path):
            return result
        with contextlib.nullcontext() if check else self.held(wait_s):
            for entry in reversed(self.entries()):
                if entry.result is None and (kinds is None or entry.kind in kinds):
                    outcome = _undo(entry, handlers, check)
                    if not check:
                        self._note(entry, outcome)
                    if outcome.state == RESTORED:
                        result["restored"].append(entry.what)
                    elif outcome.state == LEFT:
                        result["left"].append({"what": entry.what, "why": outcome.why})
        return result

    def _note(self, entry: Entry, outcome: Outcome) -> None:
        """Write the outcome down; a full disk must not stop a restore, whose handlers find nothing to do next time."""
        try:
            if outcome.state != LEFT:
                self.restored(entry.id, outcome.state)
            elif entry.why_left != outcome.why:
                self._append({"op": "left", "id": entry.id, "why": outcome.why})
        except JournalError:
            pass


def _apply(entry: Entry, line: dict[str, Any]) -> Entry:
    if line["op"] == "done":
        return entry._replace(done=line["facts"])
    if line["op"] == "restored":
        return entry._replace(result=line["result"])
    return entry._replace(why_left=line["why"])


def _undo(entry: Entry, handlers: Mapping[str, Handler], check: bool) -> Outcome:
    handler = handlers.get(entry.kind)
    if handler is None:
        return Outcome(LEFT, "this version does not know how to put it back; restore with the version that made it.")
    try:
        return handler(entry, check)
    except host_state.HostError as exc:
        return Outcome(LEFT, str(exc))
    except OSError as exc:
        return Outcome(LEFT, f"{exc.filename or entry.what}: {exc.strerror}.")
