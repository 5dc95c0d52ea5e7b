# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Live values of sysctl keys and module parameters: set through the journal, told by what reads back, and put back.

Must not know: files of /etc, profiles, or which values are good ones.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional

from ansible_collections.hostmax.storage.plugins.module_utils import sysctl_keys
from ansible_collections.hostmax.storage.plugins.module_utils.journal import (
    LEFT,
    NOTHING,
    RESTORED,
    Entry,
    Handler,
    Journal,
    Outcome,
)
from ansible_collections.hostmax.storage.plugins.module_utils.sysctl_keys import PARAMETER, SYSCTL, Name, matches, same

SET = "set"
ALREADY = "already"
CLAMPED = "clamped"
REFUSED = "refused"
MISSING = "missing"
READ_ONLY = "read_only"
WRITE_ONLY = "write_only"
LEGACY = "legacy"
NOT_LOADED = "module_not_loaded"
OTHER_NAMESPACE = "other_namespace"

# values of a unit by key
State = Dict[str, Optional[str]]


class Result(NamedTuple):
    """What became of one wanted value."""

    name: Name
    before: str | None
    wanted: str
    after: str | None
    status: str
    note: str = ""
    changed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As the module returns it; values with one blank between words."""
        return {
            "kind": self.name.kind,
            "key": self.name.key,
            "before": _plain(self.before),
            "wanted": self.wanted,
            "after": _plain(self.after),
            "status": self.status,
            "note": self.note,
            "changed": self.changed,
        }


def _plain(value: str | None) -> str | None:
    return None if value is None else " ".join(sysctl_keys.tokens(value))


def unit_key(name: Name) -> str:
    """The journal's key for what a write to this name may change: `vm.dirty_bytes+vm.dirty_ratio`."""
    return "+".join(each.key for each in sysctl_keys.unit_of(name))


# -- looking ----------------------------------------------------------------------------------------------------------


def look_all(values: Mapping[Name, str], book: Journal, root: str = "/") -> list[Result]:
    """What would come of each value, as far as it can be seen without writing."""
    return [_look(name, wanted, book, root) for name, wanted in values.items()]


def _look(name: Name, wanted: str, book: Journal, root: str) -> Result:
    """The result where the value is there already or cannot be set; else `set` with the value after it as wanted."""
    if name.kind == SYSCTL and name.key in sysctl_keys.LEGACY:
        facts = sysctl_keys.look(name, root)
        note = f"Not set: {sysctl_keys.LEGACY[name.key]}."
        return Result(name, facts.value, wanted, facts.value, LEGACY, note)
    if name.kind == SYSCTL and name.key in sysctl_keys.ACTIONS:
        return Result(name, None, wanted, None, WRITE_ONLY, f"Not written: {sysctl_keys.ACTIONS[name.key]}.")
    facts = sysctl_keys.look(name, root)
    if not facts.exists:
        return _not_there(name, wanted, root)
    if not facts.readable:
        note = "Not written: it cannot be read, so it could not be put back."
        return Result(name, None, wanted, None, WRITE_ONLY, note)
    if matches(name, facts.value, wanted):
        return Result(name, facts.value, wanted, facts.value, ALREADY)
    if not facts.writable:
        return _not_writable(
            Result(name, facts.value, wanted, facts.value, READ_ONLY), "its mode allows no write", root
        )
    result = Result(name, facts.value, wanted, wanted, SET, changed=True)
    known = _known(book, name)
    if known and same(known["asked"].get(name.key), wanted) and same(known["ours"][-1][name.key], facts.value):
        # asked for before, and the kernel made this of it: asking again would change nothing
        return _read_back(result, facts.value)
    return result


def _not_there(name: Name, wanted: str, root: str) -> Result:
    if name.module is not None and not sysctl_keys.is_loaded(name.module, root):
        note = f"The kernel module {name.module} is not loaded, and cannot be; is it installed for this kernel?"
        return Result(name, None, wanted, None, NOT_LOADED, note)
    if name.of_network and not sysctl_keys.in_init_net(root):
        note = "It is not in this network namespace; set it on the machine itself, outside the container."
        return Result(name, None, wanted, None, OTHER_NAMESPACE, note)
    hint = sysctl_keys.did_you_mean(name, root)
    return Result(name, None, wanted, None, MISSING, f"This kernel does not have it{hint or '.'}")


def _not_writable(result: Result, why: str, root: str) -> Result:
    if result.name.of_network and not sysctl_keys.in_init_net(root):
        note = f"It cannot be set in this network namespace ({why}); set it on the machine itself."
        return result._replace(status=OTHER_NAMESPACE, note=note, changed=False)
    note = f"It cannot be set here ({why}); as root on the machine itself it may be."
    return result._replace(status=READ_ONLY, note=note, changed=False)


# -- setting ----------------------------------------------------------------------------------------------------------


def set_all(values: Mapping[Name, str], book: Journal, root: str = "/") -> list[Result]:
    """Set each value that can be set, journal first, and say what reads back; none stops the others."""
    results = [_set(name, wanted, book, root) for name, wanted in values.items()]
    return [_settled(result, book, root) for result in results]


def _settled(result: Result, book: Journal, root: str) -> Result:
    """A value that a later write has changed again (keys may depend on one another) is told as it is now."""
    if result.status not in (SET, ALREADY):
        return result
    now = sysctl_keys.read(result.name, root)
    if matches(result.name, now, result.wanted):
        return result
    for entry in book.entries():
        if entry.result is None and (entry.kind, entry.key) == (result.name.kind, unit_key(result.name)) and entry.done:
            book.done(entry.id, **{**entry.done, "ours": [_state(result.name, root)]})
    note = f"It was set, and became {_plain(now)} again by another key of this tuning."
    return result._replace(after=now, status=CLAMPED, note=note)


def _set(name: Name, wanted: str, book: Journal, root: str) -> Result:
    result = _look(name, wanted, book, root)
    if result.status != SET:
        return result
    entry = _begin(book, name, wanted, root)
    failure = _write(name, wanted, result.before, root)
    state = _state(name, root)
    ours = (_ours(entry)[:-1] or [state]) if failure else [state]
    book.done(entry.id, ours=ours, asked={} if failure else {name.key: wanted})
    if failure is None:
        return _read_back(result, state[name.key])
    if entry.done is None and _same_state(state, entry.facts["before"]):
        book.restored(entry.id, NOTHING)
    return _failed(result._replace(after=state[name.key], changed=False), failure, root)


def _known(book: Journal, name: Name) -> dict[str, Any] | None:
    """What an earlier call noted when it had set this name; None where it did not, or did not come to an end."""
    key = unit_key(name)
    for entry in book.entries():
        if entry.result is None and (entry.kind, entry.key) == (name.kind, key) and entry.of_this_boot:
            return entry.done if entry.done and "pending" not in entry.done else None
    return None


def _begin(book: Journal, name: Name, wanted: str, root: str) -> Entry:
    """Record the state before the first change; say what is about to be written on top of what was ours."""
    before = _state(name, root)
    pending = {name.key: wanted}
    number = book.record(
        name.kind,
        unit_key(name),
        before=before,
        written={**_cleared(before, name), **pending},
        pending=pending,
        root=root,
        net_namespace=sysctl_keys.net_namespace(),
    )
    entry = next(entry for entry in book.entries() if entry.id == number)
    if entry.done is not None or entry.facts["pending"] != pending:
        died = entry.done is None or "pending" in entry.done
        # an attempt that died may have made the value what it is now
        ours = [*_ours(entry), *([before] if died else []), {**_cleared(before, name), **pending}]
        book.done(number, ours=ours, pending=pending)
        entry = entry._replace(done={"ours": ours, "pending": pending})
    return entry


def _cleared(before: State, name: Name) -> State:
    """What a write makes of the partner: 0."""
    return {key: "0" for key in before if key != name.key}


def _state(name: Name, root: str) -> State:
    return {each.key: sysctl_keys.read(each, root) for each in sysctl_keys.unit_of(name)}


def _write(name: Name, wanted: str, before: str | None, root: str) -> OSError | None:
    """Write; where the kernel refuses, it may have taken the first of several numbers already: those are put back."""
    try:
        sysctl_keys.write(name, wanted, root)
    except OSError as exc:
        if before is not None and not same(sysctl_keys.read(name, root), before):
            with contextlib.suppress(OSError):
                sysctl_keys.write(name, before, root)
        return exc
    return None


def _read_back(result: Result, after: str | None) -> Result:
    result = result._replace(after=after, changed=not same(after, result.before))
    if matches(result.name, after, result.wanted):
        return result
    note = f"The kernel made {_plain(after)} of {result.wanted}."
    return result._replace(status=CLAMPED, note=note)


def _failed(result: Result, failure: OSError, root: str) -> Result:
    reason = failure.strerror or "no reason given"
    if isinstance(failure, PermissionError) or reason == os.strerror(30):
        return _not_writable(result, reason, root)
    return result._replace(status=REFUSED, note=f"The kernel refuses this value ({reason}); it is as before.")


# -- putting back -----------------------------------------------------------------------------------------------------


def _ours(entry: Entry) -> list[State]:
    """The states that this run may have left the unit in."""
    return list(entry.done["ours"]) if entry.done else [dict(entry.facts["written"])]


def _same_state(first: State, second: State) -> bool:
    return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)


def _restore(entry: Entry, check: bool) -> Outcome:
    """Write the value from before, where the value now is one this run wrote, or what the kernel made of it."""
    facts, root = entry.facts, str(entry.facts["root"])
    names = [Name(entry.kind, key) for key in facts["before"]]
    now: State = {name.key: sysctl_keys.read(name, root) for name in names}
    if None in now.values() or _same_state(now, facts["before"]):
        return Outcome(NOTHING)  # a module that was unloaded took its values with it
    ours = any(_same_state(now, state) for state in _ours(entry))
    if not entry.of_this_boot and not ours:
        return Outcome(NOTHING)  # the restart has put it back
    elsewhere = entry.of_this_boot and names[0].of_network and facts["net_namespace"] != sysctl_keys.net_namespace()
    if elsewhere:
        return Outcome(LEFT, "it was set in another network namespace; restore there, or end that namespace.")
    if not ours and not _is_made_of_ours(entry, now, check):
        return Outcome(
            LEFT, f"it is {_words(now)} now, which this run did not set; before it was {_words(facts['before'])}."
        )
    if check:
        return Outcome(RESTORED)
    return _write_back(names, facts["before"], root)


def _is_made_of_ours(entry: Entry, now: State, check: bool) -> bool:
    """Whether the run died between a write and its reading back, and the kernel makes this value of what it wrote."""
    pending = entry.facts["pending"] if entry.done is None else entry.done.get("pending")
    if not pending or check:
        return bool(pending)
    root = str(entry.facts["root"])
    names = [Name(entry.kind, key) for key in now]
    for key, value in pending.items():
        try:
            sysctl_keys.write(Name(entry.kind, key), value, root)
        except OSError:
            return False
    made = {name.key: sysctl_keys.read(name, root) for name in names}
    if not _same_state(made, now):
        _write_back(names, now, root)
        return False
    return True


def _write_back(names: Iterable[Name], before: State, root: str) -> Outcome:
    """Write values; of a pair the one that is not 0, which clears the other."""
    names = list(names)
    steps = [(name, str(before[name.key])) for name in names if len(names) == 1 or before[name.key] != "0"]
    if not steps:
        # both 0: the kernel clears the other one only where this one changes
        ratio = next(name for name in names if name.key.endswith("_ratio"))
        steps = [(ratio, "1"), (ratio, "0")]
    for name, value in steps:
        try:
            sysctl_keys.write(name, value, root)
        except OSError as exc:
            return Outcome(LEFT, f"{_plain(value)} cannot be written to {name.key} ({exc.strerror}).")
    now: State = {name.key: sysctl_keys.read(name, root) for name in names}
    if not _same_state(now, before):
        return Outcome(LEFT, f"{_words(before)} was written and {_words(now)} reads back.")
    return Outcome(RESTORED)


def _words(state: State) -> str:
    if len(state) == 1:
        return str(_plain(next(iter(state.values()))))
    return ", ".join(f"{key} = {_plain(value)}" for key, value in state.items())


HANDLERS: dict[str, Handler] = {SYSCTL: _restore, PARAMETER: _restore}
