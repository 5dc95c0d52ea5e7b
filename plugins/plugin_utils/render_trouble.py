# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What went wrong, in sentences: hosts that did not take part, gates that failed, why a run is not complete.

Must not know: pages or terminals; of a thousand hosts it tells a screen's worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import clean, gate_name, plural

# sentences about hosts; each tells of all hosts with the same reason
MOST_SENTENCES = 20
_WORDS = {"failed": ("failed", "failed"), "unreachable": ("is", "are"), "late": ("was", "were")}


def failed_hosts(results: dict[str, Any]) -> list[str]:
    """A sentence for every reason why hosts did not take part as planned, with all hosts of which it is true."""
    found: dict[tuple[str, str], list[str]] = {}
    for host in results["hosts"]:
        if host["status"] != "ok":
            reason = _sentence(host["reason"] or "no reason recorded")
            found.setdefault((host["status"], reason), []).append(clean(host["name"]))
    sentences = [_failed(status, hosts, reason) for (status, reason), hosts in found.items()]
    hidden = sum(len(hosts) for hosts in list(found.values())[MOST_SENTENCES:])
    more = [f"{plural(hidden, 'more host')} did not take part: results.json names them."] if hidden else []
    return sentences[:MOST_SENTENCES] + more


def _failed(status: str, hosts: Sequence[str], reason: str) -> str:
    verb = _WORDS[status][len(hosts) > 1]
    words = verb if status == "failed" else f"{verb} {status}"
    return f"{'Host' if len(hosts) == 1 else 'Hosts'} {some(hosts)} {words}: {reason}"


def failed_gates(results: dict[str, Any]) -> list[str]:
    """A sentence for every gate that failed, with all the points of which the same is true."""
    found: dict[tuple[str, str], list[str]] = {}
    for point in results["points"]:
        for gate in point["gates"]:
            if gate["passed"] is False:
                found.setdefault((gate_name(gate), _sentence(gate["text"])), []).append(clean(point["id"]))
    return [f"{name}, {some(points)}: {text}" for (name, text), points in found.items()]


def run_reasons(results: dict[str, Any]) -> list[str]:
    """Why the run is partial or invalid; empty when it is complete."""
    run = results["run"]
    if run["status"] == "complete":
        return []
    reasons = failed_hosts(results)
    if run["points_measured"] < run["points_planned"]:
        reasons.append(f"Only {run['points_measured']} of {plural(run['points_planned'], 'point')} were measured.")
    partial = [clean(point["id"]) for point in results["points"] if point["status"] == "partial"]
    if partial:
        verb = "was" if len(partial) == 1 else "were"
        reasons.append(f"{plural(len(partial), 'point')} {verb} not measured by all hosts: {some(partial)}.")
    uncounted = [clean(p["id"]) for p in results["points"] if not p["counted"] and p["status"] != "partial"]
    if uncounted:
        verb = "is" if len(uncounted) == 1 else "are"
        reasons.append(f"{plural(len(uncounted), 'point')} {verb} not counted: {some(uncounted)}.")
    return reasons or ["The run did not end as planned; no further reason was recorded."]


def some(names: Sequence[str]) -> str:
    """`a, b and 4 more`."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2:,} more"


def _sentence(text: str) -> str:
    """With exactly one full stop."""
    text = clean(text)
    return text if text.endswith((".", "!", "?")) else text + "."
