# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sentences that explain a condition by what the kernel's NFS client counted, beside the condition it stands on.

Must not know: where the figures come from (nfs_figures), or whether a difference is one by the statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.nfs_figures import METADATA

# a figure that changed by less explains nothing
NOTABLE = 0.15
# waits below this are rounding of the kernel's milliseconds
LEAST_WAIT_MS = 0.05
LEAST_WAITING = 0.5
LEAST_METADATA = 1.0


def explain(mine: Mapping[str, Any], theirs: Mapping[str, Any] | None, other: str | None) -> list[str]:
    """Sentences about what is notable in `mine`, and what is unlike `theirs`, the figures of the condition `other`."""
    theirs = theirs or {}
    beside = f"with {other}" if other else ""
    return [
        sentence
        for sentence in (
            _connections(mine, theirs, beside),
            _metadata(mine, theirs, beside),
            _times(mine, theirs, beside),
            _waiting(mine, theirs, beside),
            *_trouble(mine),
        )
        if sentence
    ]


def _changed(mine: float | None, theirs: float | None) -> bool:
    if mine is None or theirs is None:
        return False
    return abs(mine - theirs) > NOTABLE * max(abs(mine), abs(theirs))


def _instead(theirs: float | None, beside: str, text: str) -> str:
    return f", {text} {beside}" if theirs is not None and beside else ""


def _connections(mine: Mapping[str, Any], theirs: Mapping[str, Any], beside: str) -> str | None:
    count, before = mine.get("connections"), theirs.get("connections")
    if not count or (count == before):
        return None
    text = f"{count} connection{'' if count == 1 else 's'} to the server" + _instead(before, beside, f"{before}")
    sends = mine.get("in_flight")
    return f"{text}; {sends:.1f} requests under way on each." if sends is not None else f"{text}."


def _metadata(mine: Mapping[str, Any], theirs: Mapping[str, Any], beside: str) -> str | None:
    def total(figures: Mapping[str, Any]) -> float | None:
        found = [value for value in (figures.get("per_1000_ios") or {}).values() if value is not None]
        return sum(found) if found else None

    count, before = total(mine), total(theirs)
    if (
        count is None
        or max(count, before or 0.0) < LEAST_METADATA
        or (before is not None and not _changed(count, before))
    ):
        return None
    names = f"{', '.join(METADATA[:-1])} and {METADATA[-1]}"
    return f"{names}: {count:,.1f} for 1,000 I/Os" + _instead(before, beside, f"{before or 0:,.1f}") + "."


def _times(mine: Mapping[str, Any], theirs: Mapping[str, Any], beside: str) -> str | None:
    rtt, before = mine.get("rtt_ms"), theirs.get("rtt_ms")
    if rtt is None or (before is not None and not _changed(rtt, before)):
        return None
    return f"The server and the network took {_ms(rtt)} a request" + _instead(before, beside, _ms(before or 0)) + "."


def _waiting(mine: Mapping[str, Any], theirs: Mapping[str, Any], beside: str) -> str | None:
    queue, before = mine.get("queue_ms"), theirs.get("queue_ms")
    if (
        queue is None
        or max(queue, before or 0.0) < LEAST_WAIT_MS
        or (before is not None and not _changed(queue, before))
    ):
        return None
    text = f"A request waited {_ms(queue)} in the client before it was sent" + _instead(
        before, beside, _ms(before or 0)
    )
    slots, socket = mine.get("slot_wait") or 0.0, mine.get("socket_wait") or 0.0
    if slots >= LEAST_WAITING:
        limit = mine.get("slots_limit")
        text += f"; {slots:,.1f} of them waited for a slot" + (f" ({limit} a connection)" if limit else "")
    if socket >= LEAST_WAITING:
        text += f"; {socket:,.1f} of them waited for the socket"
    return text + "."


def _trouble(mine: Mapping[str, Any]) -> list[str]:
    texts = (
        ("retransmissions", "{:,} requests were sent again."),
        ("timeouts", "{:,} requests were not answered in time."),
        ("delays", "The server asked {:,} times to try again later."),
        ("reconnects", "{:,} connections were made anew."),
    )
    return [text.format(mine[key]) for key, text in texts if mine.get(key)]


def _ms(value: float) -> str:
    return f"{value:,.2f} ms"
