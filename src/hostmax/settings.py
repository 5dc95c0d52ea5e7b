# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a caller gives, checked before Ansible is started: names, types, paths; the collection's own words for faults.

It must not know what a setting means; the collection checks that once more, with the hosts' variables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import (
    ValueRefused,
    coerce,
    known_settings,
    unknown_setting,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import COLLECTION, did_you_mean
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectoryError, open_run

from hostmax.errors import BadInput

RESULTS, RUN, FAIL_ON = "hostmax_results", "hostmax_run", "hostmax_fail_on"
# no inventory: this machine, and whatever Ansible is configured to use by default is not looked at
THIS_MACHINE = {
    "all": {
        "hosts": {
            "localhost": {
                "ansible_connection": "local",
                "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            }
        }
    }
}
_TEMPLATE_SIGNS = ("{{", "{%", "{#")


def playbooks() -> list[str]:
    """The names `run` takes: every playbook of the collection."""
    return sorted(path.stem for path in (COLLECTION / "playbooks").glob("*.yml"))


def check_playbook(name: str) -> str:
    """The name, if it is one of `playbooks`; raises BadInput."""
    known = playbooks()
    if name in known:
        return name
    hint = did_you_mean(str(name), known)
    raise BadInput(f"no playbook is named {name!r}{hint or ';'} there are: {', '.join(known)}.")


def check_settings(settings: Mapping[str, Any], results: str | os.PathLike[str] | None) -> dict[str, Any]:
    """The settings as plain data; raises BadInput with a sentence for every fault. `results` is hostmax_results.

    They are data: a text with a template is refused, so that nobody who may only choose a value can run code.
    """
    given: dict[str, Any] = dict(settings)
    if results is not None:
        if RESULTS in given:
            raise BadInput(f"results and {RESULTS} are both given; they are the same, give one.")
        given[RESULTS] = results
    plain: dict[str, Any] = {}
    faults = []
    for name, value in given.items():
        try:
            plain[name] = _check(name, value)
        except ValueRefused as fault:
            faults.append(f"{str(fault).rstrip('.?')}.")
    if faults:
        raise BadInput(*faults)
    return plain


def _check(name: object, value: Any) -> Any:
    unknown = unknown_setting(str(name))
    if unknown:
        ours = str(name).startswith("hostmax_")
        raise ValueRefused(unknown if ours else f"{unknown}; variables of Ansible go into variables= or the inventory")
    plain = _plain(str(name), value)
    spec = known_settings()[str(name)]
    coerce(plain, spec, str(name))
    if spec.get("type") == "path" and isinstance(plain, str) and name == RESULTS:
        return str(Path(plain).expanduser().absolute())
    return plain


def _plain(name: str, value: Any) -> Any:
    try:
        text = json.dumps(value, default=os.fspath, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as fault:
        raise ValueRefused(f"{name} cannot be written as JSON ({fault}); give plain data") from None
    if any(sign in text for sign in _TEMPLATE_SIGNS) and _has_template(json.loads(text)):
        raise ValueRefused(f"{name} holds a template; settings given to Python are data, give the value itself")
    return json.loads(text)


def _has_template(value: Any) -> bool:
    if isinstance(value, str):
        return any(sign in value for sign in _TEMPLATE_SIGNS)
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_template, parts))


def check_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Variables of Ansible as plain data; raises BadInput. Their values are never shown."""
    ours = [name for name in variables if str(name).startswith("hostmax_")]
    if ours:
        raise BadInput(f"{ours[0]} is a setting; give it in settings, which are checked and shown in the report.")
    try:
        return dict(json.loads(json.dumps(dict(variables), default=os.fspath)))
    except (TypeError, ValueError, RecursionError):
        raise BadInput("variables cannot be written as JSON; give plain data.") from None


def check_inventory(inventory: str | os.PathLike[str] | Mapping[str, Any] | None) -> Path | dict[str, Any]:
    """The inventory as ansible-runner takes it; raises BadInput. None is this machine; an empty one is refused."""
    if inventory is None:
        return dict(THIS_MACHINE)
    if isinstance(inventory, Mapping):
        try:
            plain = json.loads(json.dumps(inventory, default=os.fspath))
        except (TypeError, ValueError, RecursionError) as fault:
            raise BadInput(f"the inventory cannot be written as JSON ({fault}); give plain data.") from None
        if not any(_has_hosts(group) for group in plain.values()):
            raise BadInput("the inventory names no host; name one, or give None for this machine.")
        return dict(plain)
    path = Path(os.fspath(inventory)).expanduser().absolute()
    if not path.exists():
        raise BadInput(f"the inventory {path} does not exist.")
    return path


def _has_hosts(group: Any) -> bool:
    if not isinstance(group, Mapping):
        return False
    children = group.get("children")
    return bool(group.get("hosts")) or any(
        _has_hosts(child) for child in (children.values() if isinstance(children, Mapping) else ())
    )


def check_run_directory(settings: Mapping[str, Any]) -> None:
    """That `hostmax_run` is a run directory that can be reported on; raises BadInput."""
    given = settings.get(RUN) or known_settings()[RUN]["default"]
    try:
        open_run(given)
    except RunDirectoryError as fault:
        raise BadInput(str(fault)) from None
