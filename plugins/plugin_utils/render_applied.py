# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each condition asked for and what was in effect on the hosts, as lines of a table.

Must not know: how mounts and tunings are made, or the format in which the table is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import clean

Json = dict[str, Any]

HEADS = ("Condition", "Hosts", "Asked for", "In effect", "Connections", "Slots each", "Tuned keys", "Unlike")
# addresses say nothing of a practice
_EVERYDAY = ("rw", "addr", "clientaddr", "mountaddr", "mountport", "mountvers", "mountproto", "namlen", "local_lock")
# what the kernel does where nothing else is asked (nfs(5)); results.json has all of it
_DEFAULTS = {
    **dict.fromkeys(("ac", "acl", "dev", "diratime", "exec", "lock", "rdirplus", "resvport", "sharecache"), "yes"),
    **dict.fromkeys(("suid", "write"), "yes"),
    **dict.fromkeys(("fsc", "softreval", "sync"), "no"),
    **{"atime": "relatime", "lookupcache": "all", "retrans": "2", "sec": "sys", "timeo": "600", "minorversion": "0"},
}
MOST_UNLIKE = 4


def applied_rows(results: Json) -> list[tuple[str, ...]]:
    """A line for every condition and every way in which hosts applied it (see HEADS)."""
    rows = []
    for condition in results["conditions"]:
        alike: dict[tuple[str, ...], list[str]] = {}
        for host, applied in condition["applied"].items():
            alike.setdefault(_applied(condition, applied), []).append(clean(host))
        name, asked = clean(condition["title"]), _asked(condition)
        if not alike:
            rows.append((name, "none", asked, *["not known"] * 4, ""))
        for cells, hosts in alike.items():
            who = f"all {len(hosts)}" if len(hosts) == len(results["hosts"]) else _some(hosts)
            rows.append((name, who, asked, *cells))
    return rows


def _asked(condition: Json) -> str:
    tuning = ", ".join(clean(name) for name in condition["tuning"])
    return clean(condition["mount"] or "-").replace(",", ", ") + (f"; {tuning}" if tuning else "")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _applied(condition: Json, applied: Json) -> tuple[str, ...]:
    mounts = applied["mounts"]
    effective = list(dict.fromkeys(_options(mount) for mount in mounts))
    counts = ("connections", "slots")
    numbers = [", ".join(sorted({str(mount[key]) for mount in mounts if mount[key] is not None})) for key in counts]
    sentences = [clean(sentence) for mount in mounts for sentence in mount["differences"]]
    sentences += [clean(word) for word in applied["warnings"]]
    sentences += [_key(key) for key in applied["tuning"] if key["status"] not in (None, "set", "already")]
    unlike = list(dict.fromkeys(sentences))
    hidden = len(unlike) - MOST_UNLIKE
    unlike = unlike[:MOST_UNLIKE] + ([f"and {hidden} more in results.json"] if hidden > 0 else [])
    return (
        " | ".join(effective) or "-",
        *(text or "-" for text in numbers),
        _tuned(applied["tuning"]),
        " ".join(unlike),
    )


def _options(mount: Json) -> str:
    shown_options = [
        clean(name if value in (None, "", "true", "True") else f"{name}={value}")
        for name, value in mount["effective"].items()
        if name not in _EVERYDAY and value != _DEFAULTS.get(name)
    ]
    return ", ".join(shown_options)


def _tuned(keys: Sequence[Json]) -> str:
    if not keys:
        return "-"
    inside = sum(1 for key in keys if key["status"] in ("set", "already"))
    return f"{inside} of {len(keys)}"


def _key(key: Json) -> str:
    note = f" ({clean(key['note'])})" if key["note"] else ""
    return f"{clean(key['key'])}: {clean(key['status']).replace('_', ' ')}{note}."
