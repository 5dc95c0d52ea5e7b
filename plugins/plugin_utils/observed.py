# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Figures that were published as observed on one shared volume, where there is no model to compute others from.

It must not know what was measured; a figure of the very same case is judged by, any other is only compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes, parse_size
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import did_you_mean
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import ExpectationError, expectation_profile

Json = dict[str, Any]

KIND = "observed"
KEYS = ("profile", "name", "volume", "tolerance", "workload")


def is_observed(profile: Mapping[str, Any]) -> bool:
    """Whether a profile has observations of kinds of volumes and no model."""
    return "model" not in profile


def check_volume(setting: Mapping[str, Any], profile: Mapping[str, Any]) -> str:
    """The kind of volume of a setting, one of the profile's; raises ExpectationError."""
    known = profile["volumes"]
    there_are = ", ".join(known)
    if "volume" not in setting:
        raise ExpectationError(f"hostmax_expect: {profile['name']} needs a kind of volume; give volume: {there_are}")
    named = str(setting["volume"])
    if named not in known:
        hint = did_you_mean(named, known)
        raise ExpectationError(f"hostmax_expect: no volume is named {named!r}{hint or ';'} there are: {there_are}")
    return named


def expected(item: Mapping[str, Any], workload: Mapping[str, Any]) -> Json | None:
    """The current observation of a workload's own case (pattern, block size, mix), or None."""
    mine = (seen for seen in _of_volume(item) if seen["current"])
    return next((seen for seen in mine if _same_pattern(seen, workload) and _same_block(seen, workload)), None)


def title(seen: Mapping[str, Any]) -> str:
    """An observation's name, with a bandwidth as it was published: `Large volume, ... read: 12,761 MiB/s`."""
    return f"{seen['name']}: {seen['published']}" if seen["unit"] == "bytes_per_s" else str(seen["name"])


def references(item: Mapping[str, Any], workload: Mapping[str, Any], unit: str, n_hosts: int) -> list[Json]:
    """Observations to compare with: of another date, block size or number of clients, and of no stated block size.

    Each one's `name` says what is unlike.
    """
    judged = expected(item, workload)
    profile = expectation_profile(item["profile"])
    kinds = [item["volume"]]
    if n_hosts == 1:
        kinds += [name for name, kind in profile["volumes"].items() if kind.get("of") == item["volume"]]
    found = []
    for seen in profile["observations"]:
        if seen["volume"] in kinds and seen is not judged and seen["unit"] == unit and _same_pattern(seen, workload):
            unlike = seen["block_size"] is not None and not _same_block(seen, workload)
            block = format_bytes(workload["block_size_bytes"])
            found.append({**seen, "name": f"{title(seen)} (here {block})" if unlike else title(seen)})
    return found


def lines(settings: Sequence[Mapping[str, Any]], workloads: Sequence[Mapping[str, Any]]) -> Iterator[Json]:
    """Figures to draw beside measured mixes of one pattern and block size: pure reads and pure writes, and whose."""
    for item in settings:
        if item["kind"] == KIND:
            for workload in workloads:
                seen = expected(item, workload)
                if seen:
                    yield {key: seen[key] for key in ("name", "volume", "read_percent", "unit", "value")}


def _of_volume(item: Mapping[str, Any]) -> Iterator[Json]:
    profile = expectation_profile(item["profile"])
    return (seen for seen in profile["observations"] if seen["volume"] == item["volume"])


def _same_block(seen: Mapping[str, Any], workload: Mapping[str, Any]) -> bool:
    return seen["block_size"] is not None and parse_size(seen["block_size"]) == workload["block_size_bytes"]


def _same_pattern(seen: Mapping[str, Any], workload: Mapping[str, Any]) -> bool:
    pattern = "random" if workload.get("rw", "").startswith("rand") else "sequential"
    # where a page does not say, it says so of every pattern and mix
    return seen["pattern"] in (None, pattern) and seen["read_percent"] in (None, workload["read_percent"])
