# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the hosts of a run may measure together: what no host can see by itself, because it sees only its own side.

It must not know how a host was looked at; it compares what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# identifiers that are given once in the world; serial numbers and paths are alike on virtual machines that have nothing
# to do with each other
WORLDWIDE = ("naa.", "eui.", "uuid.")


def refusals(found: Mapping[str, Mapping[str, Any]], writes: bool) -> list[str]:
    """One sentence for each reason why these hosts must not begin; ``found`` is what the probe returned, by host."""
    return [*_one_machine(found), *(_shared_volumes(found) if writes else [])]


def _one_machine(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    first: dict[str, str] = {}
    sentences = []
    for host, seen in found.items():
        other = first.setdefault(str(seen.get("machine") or f"host {host}"), host)
        if other != host:
            sentences.append(
                f"The hosts {other} and {host} are the same machine, and would measure each other: "
                f"take one of them out of the inventory, or leave it out with --limit '!{host}'."
            )
    return sentences


def _shared_volumes(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    first: dict[str, tuple[str, str]] = {}
    sentences = []
    for host, seen in found.items():
        for volume in seen.get("volumes") or ():
            title = f"{volume['name']} ({volume['path']})"
            for identity in volume.get("identities") or ():
                if not str(identity).startswith(WORLDWIDE):
                    continue
                other, theirs = first.setdefault(identity, (host, title))
                if other != host:
                    sentences.append(
                        f"The volume {title} of host {host} is the volume {theirs} of host {other} ({identity}), "
                        "and this run writes: two hosts never write the same volume, name it for one of them."
                    )
    return sentences
