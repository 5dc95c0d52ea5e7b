# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a run's play ends in failure: the verdicts and gates of results.json against ``hostmax_fail_on``.

It must not know how verdicts are reached; the report is already written when it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CHOICES = ("fail", "inconclusive", "invalid", "never")
DEFAULT = ("fail", "invalid")
MOST_REASONS = 5


def reason_to_fail(results: Mapping[str, Any], fail_on: Sequence[str]) -> str | None:
    """One sentence why the play must fail, or None; ``never`` silences every other choice."""
    if "never" in fail_on:
        return None
    reasons = [
        f"{verdict['name']}: {verdict['status']} ({verdict['reason']})"
        for verdict in results["verdicts"]
        if verdict["status"] in fail_on
    ]
    if "invalid" in fail_on:
        reasons += [
            f"host {host['name']} {host['status']}: {host['reason']}"
            for host in results["hosts"]
            if host["status"] != "ok"
        ]
        not_counted = [point["id"] for point in results["points"] if not point["counted"]]
        if not_counted:
            shown = ", ".join(not_counted[:5]) + (" and more" if len(not_counted) > 5 else "")
            reasons.append(f"{len(not_counted)} of {len(results['points'])} points not counted: {shown}")
    more = f"; and {len(reasons) - MOST_REASONS} more in the report" if len(reasons) > MOST_REASONS else ""
    return "; ".join(reasons[:MOST_REASONS]) + more if reasons else None
