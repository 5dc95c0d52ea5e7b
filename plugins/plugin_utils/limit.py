# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a rule for limits is given, and what it answers.

It must not know any rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import Caps

Json = dict[str, Any]

# what was found on fewer of the hosts did not hold the total back
MOST_HOSTS = 0.5


@dataclass(frozen=True, slots=True)
class Limit:
    """What held a point back: a kind, one sentence, and the figures that show it."""

    kind: str
    text: str
    evidence: tuple[str, ...]

    def to_mapping(self) -> Json:
        return {"kind": self.kind, "text": self.text, "evidence": list(self.evidence)}


@dataclass(frozen=True, slots=True)
class Context:
    """A measured point, its workload, the hosts' facts, their volumes' caps, the ladder's lightest point, settings."""

    point: Mapping[str, Any]
    workload: Mapping[str, Any]
    hosts: Mapping[str, Json]
    caps: Mapping[tuple[str, str], Caps]
    lightest: Mapping[str, Any] | None
    settings: Mapping[str, Any] = field(default_factory=dict)


def on_most(found: Sequence[str], of: int) -> bool:
    """Whether what was found, a sentence a host, was found on most of ``of`` hosts."""
    return bool(found) and len(found) > MOST_HOSTS * of
