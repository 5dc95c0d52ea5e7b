# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tuning profiles: loaded, checked, stacked to one set of values, with a sentence on everything doubtful in them.

It must not know a host; what a host makes of the values, the module sysctl_profile says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import sysctl_keys
from ansible_collections.hostmax.storage.plugins.module_utils.sysctl_keys import SYSCTL, Name, SysctlError
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import (
    Json,
    ProfileError,
    load_profile,
    profile_names,
)

KIND = "tuning"
# a profile's value that is worked out from the number of clients and their connections
SLOTS_FORMULA = "slots_formula"
# Azure NetApp Files, "Linux concurrency best practices": requests per connection and per storage endpoint
SLOTS_PER_CONNECTION = 128
SLOTS_PER_ENDPOINT = 10_000
FEWEST_SLOTS, MOST_SLOTS = 2, 65_536
MOST_SESSION_SLOTS = 1024
_SLOTS = Name(sysctl_keys.PARAMETER, "sunrpc/tcp_max_slot_table_entries")
_SESSION_SLOTS = Name(sysctl_keys.PARAMETER, "nfs/max_session_slots")
_OWN = "hostmax_tuning"


@dataclass
class Tuning:
    """Values to set, in order, and what is to be said of them."""

    keys: list[Json] = field(default_factory=list)
    module_parameters: list[Json] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Entry:
    name: Name
    value: str
    origin: str


def slots(clients: int, nconnect: int) -> int:
    """Requests in flight per connection that keep all clients below what one storage endpoint takes."""
    return max(FEWEST_SLOTS, min(SLOTS_PER_CONNECTION, SLOTS_PER_ENDPOINT // (max(1, clients) * max(1, nconnect))))


def load_tuning(name: str, clients: int = 1, nconnect: int = 1) -> Tuning:
    """One profile with all it says; raises ProfileError where it is not there or not usable."""
    return resolve([name], clients, nconnect)


def resolve(
    setting: Iterable[Any],
    clients: int = 1,
    nconnect: int = 1,
    sunrpc_slots: str | int | None = None,
    session_slots: str | int | None = None,
) -> Tuning:
    """Stack profiles and own values in order; of what is said twice the last counts, and that is told.

    ``setting`` is that of ``hostmax_tuning``: names of profiles, or mappings of keys to values. Raises ProfileError.
    """
    tuning = Tuning()
    stacked: dict[Name, _Entry] = {}
    for place, item in enumerate(setting):
        name, entries = _read_item(item, place, clients, nconnect)
        tuning.names.append(name)
        _stack(stacked, _without_repeats(entries, tuning), tuning)
    for entry in _slot_settings(sunrpc_slots, session_slots, clients, nconnect):
        stacked.pop(entry.name, None)
        stacked[entry.name] = entry
    _flag(stacked.values(), tuning)
    for entry in stacked.values():
        if entry.name.kind == SYSCTL:
            tuning.keys.append({"key": entry.name.key, "value": entry.value, "profile": entry.origin})
        else:
            module, parameter = entry.name.key.split("/")
            said = {"module": module, "parameter": parameter, "value": entry.value, "profile": entry.origin}
            tuning.module_parameters.append(said)
    return tuning


def largest_nconnect(mounts: Iterable[Mapping[str, Any]]) -> int:
    """The most connections that one of these mounts asks for, in its own options or in its profile's; 1 for none."""
    most = 1
    for mount in mounts or ():
        texts = [str(mount.get("options") or "")]
        if mount.get("profile") in profile_names("mount"):
            texts.append(str(load_profile("mount", str(mount["profile"])).get("options", "")))
        most = max([most, *(int(found) for text in texts for found in re.findall(r"\bnconnect=([0-9]{1,4})\b", text))])
    return most


# -- reading ----------------------------------------------------------------------------------------------------------


def _read_item(item: Any, place: int, clients: int, nconnect: int) -> tuple[str, list[_Entry]]:
    if isinstance(item, str):
        profile = load_profile(KIND, item)
        return item, _read_profile(profile, item, clients, nconnect)
    if isinstance(item, Mapping) and item:
        origin = f"{_OWN}[{place}]"
        return origin, [_entry(sysctl_keys.sysctl_name, (key,), value, origin) for key, value in item.items()]
    raise ProfileError(
        f"{_OWN}[{place}] is {item!r}; it must be the name of a tuning profile or a mapping of sysctl keys to values"
    )


def _read_profile(profile: Json, origin: str, clients: int, nconnect: int) -> list[_Entry]:
    found = []
    try:
        for each in profile["keys"]:
            found.append(_entry(sysctl_keys.sysctl_name, (each["key"],), each["value"], origin))
        for each in profile.get("module_parameters", ()):
            value = slots(clients, nconnect) if each["value"] == SLOTS_FORMULA else each["value"]
            found.append(_entry(sysctl_keys.parameter_name, (each["module"], each["parameter"]), value, origin))
    except (KeyError, TypeError) as error:
        raise ProfileError(f"the tuning profile {origin} is not usable: an entry has no {error}") from error
    return found


def _entry(make: Any, parts: Sequence[Any], value: Any, origin: str) -> _Entry:
    try:
        name = sysctl_keys.preferred(make(*parts))
        return _Entry(name, sysctl_keys.clean_value(value, name.key), origin)
    except SysctlError as error:
        text = str(error)
        raise ProfileError(f"{origin}: {text[0].lower()}{text[1:].rstrip('.')}") from error


def _slot_settings(
    sunrpc_slots: str | int | None, session_slots: str | int | None, clients: int, nconnect: int
) -> Iterable[_Entry]:
    wanted = _number("hostmax_sunrpc_slots", sunrpc_slots, FEWEST_SLOTS, MOST_SLOTS, "auto or none", ("auto",))
    if wanted is not None:
        value = slots(clients, nconnect) if wanted == "auto" else wanted
        yield _Entry(_SLOTS, str(value), "hostmax_sunrpc_slots")
    wanted = _number("hostmax_nfs41_session_slots", session_slots, 1, MOST_SESSION_SLOTS, "none")
    if wanted is not None:
        yield _Entry(_SESSION_SLOTS, str(wanted), "hostmax_nfs41_session_slots")


def _number(
    setting: str, value: str | int | None, least: int, most: int, words: str, known: Sequence[str] = ()
) -> str | int | None:
    text = str(value).strip().lower()
    if value is None or text in ("", "none"):
        return None
    if text in known:
        return text
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise ProfileError(f"{setting} is {value!r}; it must be a whole number from {least} to {most}, {words}")
    return int(text)


# -- what is doubtful -------------------------------------------------------------------------------------------------


def _without_repeats(entries: Iterable[_Entry], tuning: Tuning) -> list[_Entry]:
    """Each name once; the last value counts, as when the list is applied line by line."""
    last: dict[Name, _Entry] = {}
    for entry in entries:
        earlier = last.pop(entry.name, None)
        if earlier and not sysctl_keys.same(earlier.value, entry.value):
            tuning.warnings.append(
                f"{entry.origin} gives {entry.name.key} twice, {earlier.value} and {entry.value}; the last counts."
            )
        elif earlier:
            tuning.warnings.append(f"{entry.origin} gives {entry.name.key} = {entry.value} twice.")
        last[entry.name] = entry
    return list(last.values())


def _stack(stacked: dict[Name, _Entry], entries: Iterable[_Entry], tuning: Tuning) -> None:
    for entry in entries:
        earlier = stacked.pop(entry.name, None)
        if earlier and not sysctl_keys.same(earlier.value, entry.value):
            tuning.warnings.append(
                f"{entry.name.key} is {earlier.value} in {earlier.origin} and {entry.value} in {entry.origin}; "
                "the last counts."
            )
        partner = Name(SYSCTL, sysctl_keys.PARTNERS.get(entry.name.key, ""))
        if partner in stacked:
            cleared = stacked.pop(partner)
            tuning.warnings.append(
                f"{partner.key} of {cleared.origin} is left out, because {entry.name.key} of {entry.origin} clears it."
            )
        stacked[entry.name] = entry


def _flag(entries: Iterable[_Entry], tuning: Tuning) -> None:
    """Keys that will not be written."""
    for entry in entries:
        for table, word in ((sysctl_keys.LEGACY, "set"), (sysctl_keys.ACTIONS, "written")):
            if entry.name.kind == SYSCTL and entry.name.key in table:
                why = table[entry.name.key]
                tuning.warnings.append(f"{entry.name.key} of {entry.origin} is not {word}: {why}.")
