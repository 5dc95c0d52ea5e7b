# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings a user can give, read from the roles' argument_specs (the one truth), and values made to fit them.

It must not know hosts, volumes or plans; settings.py gives the values their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import COLLECTION, did_you_mean

Json = dict[str, Any]

PREFIX = "hostmax_"
_TRUE = ("true", "yes", "on", "1", "y", "t")
_FALSE = ("false", "no", "off", "0", "n", "f")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_UNITS = {"_s": " of seconds", "_ms": " of milliseconds", "_bytes": " of bytes", "bytes_per_s": " of bytes a second"}


class ValueRefused(ValueError):  # noqa: N818 - read as a sentence where it is raised
    """A value that does not fit; the message is the part of a sentence that follows the setting's name."""


@cache
def known_settings() -> dict[str, Json]:
    """Every `hostmax_` option of every role of this collection, by name."""
    found: dict[str, Json] = {}
    for path in sorted((COLLECTION / "roles").glob("*/meta/argument_specs.yml")):
        specs = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        for entry_point in specs.values():
            for name, spec in (entry_point.get("options") or {}).items():
                if name.startswith(PREFIX):
                    found.setdefault(name, spec)
    return found


def unknown_setting(name: str) -> str | None:
    """What to say about a name nobody reads, or None for a known one."""
    if name in known_settings():
        return None
    hint = did_you_mean(name, known_settings())
    return f"no setting is named {name}{hint or '; the settings are listed in the README and by ansible-doc -t role'}"


def coerce(value: Any, spec: Mapping[str, Any], where: str) -> Any:
    """The value as the spec's type; raises ValueRefused with `where`, the value and what is allowed.

    Command-line values are strings: numbers, booleans, and lists or mappings in JSON or YAML are read from them.
    """
    if value is None:
        return spec.get("default")
    kind = spec.get("type", "str")
    result = _READERS[kind](value, spec, where)
    choices = spec.get("choices")
    for item in result if kind == "list" else [result]:
        if choices and item not in choices:
            hint = did_you_mean(str(item), map(str, choices))
            allowed = ", ".join(map(str, choices))
            which = "any" if kind == "list" else "one"
            raise ValueRefused(f"{where} is {item!r}{hint or ';'} it must be {which} of {allowed}")
    return result


def _refuse(value: object, where: str, allowed: str) -> ValueRefused:
    return ValueRefused(f"{where} is {value!r}; it must be {allowed}")


def _of_what(where: str) -> str:
    """` of seconds` where the setting's name carries a unit."""
    return next((words for suffix, words in _UNITS.items() if where.endswith(suffix)), "")


def _int(value: Any, _spec: Mapping[str, Any], where: str) -> int:
    text = str(value).strip()
    if isinstance(value, float) and value.is_integer():
        text = str(int(value))
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise _refuse(value, where, f"a whole number{_of_what(where)}")
    return int(text)


def _float(value: Any, _spec: Mapping[str, Any], where: str) -> float:
    text = str(value).strip()
    if isinstance(value, bool) or not _NUMBER.fullmatch(text):
        raise _refuse(value, where, f"a number{_of_what(where)}")
    return float(text)


def _bool(value: Any, _spec: Mapping[str, Any], where: str) -> bool:
    text = str(value).strip().lower()
    if text not in _TRUE + _FALSE:
        raise _refuse(value, where, "true or false")
    return text in _TRUE


def _str(value: Any, _spec: Mapping[str, Any], where: str) -> str:
    if isinstance(value, (bool, Mapping, list)):
        raise _refuse(value, where, "a text")
    return str(value)


def _raw(value: Any, _spec: Mapping[str, Any], where: str) -> Any:
    return _read_text(value, where)


def _read_text(value: Any, where: str) -> Any:
    """A list or mapping written as text (`-e 'x=[1, 2]'`) as such; everything else unchanged."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise _refuse(value, where, "JSON or YAML where it begins with [ or {") from error


def _list(value: Any, spec: Mapping[str, Any], where: str) -> list[Any]:
    value = _read_text(value, where)
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, Sequence):
        raise _refuse(value, where, "a list")
    if None in value:
        raise _refuse(value, where, "a list without empty entries")
    element = {"type": spec.get("elements", "raw"), "options": spec.get("options")}
    return [coerce(item, element, f"{where}[{place}]") for place, item in enumerate(value)]


def _dict(value: Any, spec: Mapping[str, Any], where: str) -> Json:
    value = _read_text(value, where)
    if not isinstance(value, Mapping):
        raise _refuse(value, where, "a mapping")
    options: Mapping[str, Json] | None = spec.get("options")
    if options is None:
        return dict(value)
    for key in value:
        if key not in options:
            hint = did_you_mean(str(key), options)
            raise ValueRefused(f"{where} has the unknown key {key!r}{hint or ';'} use {', '.join(options)}")
    for key, option in options.items():
        if option.get("required") and value.get(key) is None:
            raise ValueRefused(f"{where} has no {key}; give one")
    return {key: coerce(value.get(key), option, f"{where}.{key}") for key, option in options.items()}


_READERS = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "path": _str,
    "raw": _raw,
    "list": _list,
    "dict": _dict,
}
