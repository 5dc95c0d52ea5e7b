# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a client kept talking to its NFS server all through a point: nothing sent again, no connection lost.

It must not know about gates or limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def faults(counters: Mapping[str, Any] | None) -> list[str] | None:
    """A sentence for every mount of a host on which requests were sent again; None where it has no NFS mounts.

    A connection that was made anew without one request sent again had been closed for lack of use, which is no fault:
    requests that are under way when a connection breaks are sent again.
    """
    mounts = (counters or {}).get("nfs")
    if not mounts:
        return None
    return [f"{name}: {fault}" for name, mount in mounts.items() if (fault := _fault(mount))]


def _fault(mount: Mapping[str, Any]) -> str | None:
    ops = mount["ops"].values()
    again = sum(max(0, op["transmissions"] - op["ops"]) for op in ops)
    timeouts = sum(op["timeouts"] for op in ops)
    if not again and not timeouts:
        return None
    words = [f"{again:,} requests were sent again"]
    if timeouts:
        words.append(f"{timeouts:,} were not answered in time")
    reconnected = mount["xprt"]["reconnected"]
    if reconnected:
        words.append(f"{reconnected} of {mount['xprt']['connections']} connections were made anew")
    return ", ".join(words)
