# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tuning of a condition as plain data for the hosts: sysctl keys and module parameters of all its profiles.

It must not know how they are applied; what is doubtful in them tuning_profiles says.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.plugin_utils import tuning_profiles
from ansible_collections.hostmax.storage.plugins.plugin_utils.conditions import Condition, ConditionError
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError

Json = dict[str, Any]


def tuning_of(condition: Condition, hosts: int) -> tuple[Json, list[str]]:
    """({keys, module_parameters}, what is doubtful in them) of a condition; raises ConditionError.

    Slots that a profile works out are those for as many `hosts`, with the connections of this condition.
    """
    nconnect = int(nfs_options.canonical(condition.mount or "").get("nconnect", "1"))
    try:
        tuning = tuning_profiles.resolve(condition.tuning, hosts, nconnect)
    except ProfileError as error:
        raise ConditionError(f"hostmax_conditions: the tuning of {condition.name}: {error}") from error
    return {"keys": tuning.keys, "module_parameters": tuning.module_parameters}, tuning.warnings
