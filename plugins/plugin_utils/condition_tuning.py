# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tuning of a condition as plain data for the hosts: sysctl keys and module parameters of all its profiles.

It must not know how they are applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.plugin_utils.conditions import Condition

Json = dict[str, Any]


def tuning_data(condition: Condition, hosts: int) -> Json:
    """{keys: [{key, value}], module_parameters: [...]} of a condition; a later profile comes before an earlier one."""
    keys: dict[str, Json] = {}
    for entry in condition.tuning:
        if isinstance(entry, Mapping):
            keys.update({str(key): {"key": str(key), "value": str(value)} for key, value in entry.items()})
    return {"keys": list(keys.values()), "module_parameters": []}


def nconnect_of(condition: Condition) -> int:
    """How many connections a condition asks for."""
    return int(nfs_options.canonical(condition.mount or "").get("nconnect", "1"))
