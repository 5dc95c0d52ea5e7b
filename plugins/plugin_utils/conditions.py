# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Conditions: client practices stacked on each other, each with its whole option string and tuning worked out.

It must not know hosts, stages or what is measured; options are joined by nfs_options, tuning by tuning_profiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import (
    ProfileError,
    did_you_mean,
    load_profile,
    profile_names,
)

Json = dict[str, Any]

KEYS = ("name", "title", "on", "mount", "tuning")
# YAML reads the word `on` as true, and what is made of it as JSON has that as a text
_ON = (True, "true", "True")
MOST_CONDITIONS = 50
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_LONGEST_NAME = 40


class ConditionError(ValueError):
    """Conditions that cannot be used; the message is one sentence for the user."""


@dataclass(frozen=True)
class Condition:
    """One practice as it is measured: `mount` is the whole option string, None where nothing is mounted.

    `on` is the nearest condition below it that is measured too; `adds` is what it adds to the one named in its data.
    """

    name: str
    title: str
    on: str | None
    mount: str | None
    tuning: tuple[Any, ...]
    adds: str

    def as_document(self, baseline: str) -> Json:
        """The condition in plan.json; `baseline` is the first one's name."""
        return {
            "name": self.name,
            "title": self.title,
            "on": self.on,
            "baseline": baseline,
            "mount": self.mount,
            "tuning": [each if isinstance(each, str) else "own keys" for each in self.tuning],
            "adds": self.adds,
        }


def resolve_conditions(entries: Sequence[Any]) -> list[Condition]:
    """The conditions meant by names of sets, names of conditions and own mappings, in order, each once.

    An own condition may stand on a named one or on an own one before it. Raises ConditionError.
    """
    known = dict(named_conditions())
    chosen: dict[str, Condition] = {}
    for place, entry in enumerate(entries):
        where = f"hostmax_conditions[{place}]"
        if isinstance(entry, Mapping):
            own = _stack(entry, known, where)
            if own.name in chosen or own.name in named_conditions():
                raise ConditionError(f"{where}: there is a condition named {own.name!r} already; rename it")
            known[own.name] = chosen[own.name] = own
            continue
        for name in _meant_by(str(entry), known, where):
            chosen.setdefault(name, known[name])
    if len(chosen) > MOST_CONDITIONS:
        raise ConditionError(f"hostmax_conditions names {len(chosen)} conditions; measure {MOST_CONDITIONS} at most")
    return [replace(each, on=_nearest(each.on, known, chosen)) for each in chosen.values()]


def _meant_by(name: str, known: Mapping[str, Condition], where: str) -> Sequence[str]:
    sets = condition_sets()
    if name in sets:
        return sets[name]
    if name in known:
        return (name,)
    hint = did_you_mean(name, [*known, *sets])
    there_are = f"; there are: {', '.join(sorted(known))} and the sets {', '.join(sorted(sets))}"
    raise ConditionError(f"{where}: no condition is named {name!r}{hint or there_are}")


def _nearest(name: str | None, known: Mapping[str, Condition], chosen: Mapping[str, Condition]) -> str | None:
    """The nearest condition below that is measured too."""
    while name is not None and name not in chosen:
        name = known[name].on
    return name


@cache
def condition_sets() -> dict[str, tuple[str, ...]]:
    """The names of the condition sets, each with the conditions that are measured when the set is named."""
    found = {}
    for name in profile_names("conditions"):
        profile = load_profile("conditions", name)
        found[name] = tuple(profile.get("default") or [str(each["name"]) for each in profile["conditions"]])
    return found


@cache
def named_conditions() -> dict[str, Condition]:
    """Every condition of every set by its name; a name may stand in one set only."""
    found: dict[str, Condition] = {}
    for set_name in profile_names("conditions"):
        for place, entry in enumerate(load_profile("conditions", set_name)["conditions"]):
            try:
                condition = _stack(entry, found, f"condition {place + 1}")
            except ConditionError as error:
                raise ProfileError(f"the condition set {set_name} is not usable: {error}") from error
            if condition.name in found:
                raise ProfileError(f"the condition {condition.name} stands in two sets, one of them {set_name}")
            found[condition.name] = condition
    return found


def _stack(entry: Mapping[str, Any], known: Mapping[str, Condition], where: str) -> Condition:
    """A condition on top of the one it stands on."""
    entry = {"on" if key in _ON else key: value for key, value in entry.items()}
    name, on = _check_names(entry, known, where)
    below = known[on] if on is not None else None
    mount, own = _options(entry.get("mount"), f"{where}: the condition {name!r}")
    tuning = _tuning(entry.get("tuning"), f"{where}: the condition {name!r}")
    texts = [text for text in (below.mount if below else None, own) if text]
    return Condition(
        name=name,
        title=str(entry.get("title") or name),
        on=on,
        mount=nfs_options.merge(*texts) if texts else None,
        tuning=(*(below.tuning if below else ()), *tuning),
        adds=_adds(mount, tuning),
    )


def _check_names(entry: Mapping[str, Any], known: Mapping[str, Condition], where: str) -> tuple[str, str | None]:
    unknown = [str(key) for key in entry if key not in KEYS]
    if unknown:
        hint = did_you_mean(unknown[0], KEYS)
        raise ConditionError(f"{where} has the unknown key {unknown[0]!r}{hint or ';'} use {', '.join(KEYS)}")
    name = str(entry.get("name") or "")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ConditionError(f"{where}: the name {name!r} must be up to {_LONGEST_NAME} letters, digits, '_', '-', '.'")
    if entry.get("on") is None:
        return name, None
    on = str(entry["on"])
    if on not in known:
        hint = did_you_mean(on, known)
        raise ConditionError(
            f"{where}: the condition {name!r} stands on {on!r}, which is not known before it"
            f"{hint or '; name one that comes earlier, or leave `on` out'}"
        )
    return name, on


def _options(value: Any, where: str) -> tuple[str | None, str | None]:
    """(as it was written, as mount options) of a condition's `mount`: options, or the name of a mount profile."""
    if value is None or value == "":
        return None, None
    if not isinstance(value, str):
        raise ConditionError(f"{where} has the mount {value!r}; give mount options as one text, such as nocto,vers=3")
    text = value
    if value in profile_names("mount"):
        text = str(load_profile("mount", value)["options"])
    try:
        _refuse_contradictions(text, where)
        return value, nfs_options.merge(text)
    except nfs_options.OptionError as error:
        raise ConditionError(f"{where}: {error}") from error


def _refuse_contradictions(text: str, where: str) -> None:
    """Two words of one text that want the same thing otherwise: which of them is meant nobody can know."""
    wanted: dict[str, tuple[str, str]] = {}
    for word in (part.strip() for part in text.split(",")):
        for name, value in nfs_options.canonical(word).items():
            earlier, earlier_value = wanted.setdefault(name, (word, value))
            if earlier_value != value:
                raise ConditionError(f"{where} has the mount options {earlier} and {word}, which contradict each other")


def _tuning(value: Any, where: str) -> tuple[Any, ...]:
    """Names of tuning profiles and mappings of keys; which of them exist is asked later, of tuning_profiles."""
    if value is None or value == "":
        return ()
    entries = [value] if isinstance(value, (str, Mapping)) else value
    if not isinstance(entries, Sequence) or not all(isinstance(each, (str, Mapping)) for each in entries):
        raise ConditionError(f"{where} has the tuning {value!r}; name tuning profiles, or give a mapping of keys")
    return tuple(entries)


def _adds(mount: str | None, tuning: Iterable[Any]) -> str:
    """What a condition adds, as a user reads it."""
    keys = [
        each if isinstance(each, str) else ", ".join(f"{key}={value}" for key, value in each.items()) for each in tuning
    ]
    parts = [mount] if mount else []
    parts += [f"tuning {', '.join(keys)}"] if keys else []
    return "; ".join(parts) or "nothing"
