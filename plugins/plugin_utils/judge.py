# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Verdicts: each ladder's host maximum against what was expected, with source, date and tolerance.

It must not know how points are measured or drawn; it compares numbers that passed their gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes, format_count, format_rate
from ansible_collections.hostmax.storage.plugins.plugin_utils.advice import nic_bytes_per_s
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import (
    Expectation,
    ExpectationError,
    observed_references,
    published_references,
    resolve_expectations,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import WHOLE_IO_BYTES

Json = dict[str, Any]

# what was promised by the storage cannot be refused where the client did not ask for it
CLIENT_LIMITS = (
    *("client_cpu", "client_softirq", "queue_depth", "offered_rate", "network", "nfs_slots", "nfs_session_slots"),
    "tcp_socket",
    "nfs_client",
)
USER_FIGURE, OBSERVED = "figure", "observed"
# so far above what the storage is allowed to give that something else must have answered
SUSPICIOUS = 1.10


@dataclass(slots=True)
class Judged:
    """The verdicts, the published figures to compare with, and warnings about suspicious numbers."""

    verdicts: list[Json] = field(default_factory=list)
    references: list[Json] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def judge(
    plan: Mapping[str, Any],
    hosts: Mapping[str, Json],
    points: Sequence[Json],
    ladders: Sequence[Json],
    summaries: Sequence[Json] = (),
) -> Judged:
    """Every expectation of the run against the ladder it is for, or of a comparison against the best condition."""
    judged, nic = Judged(), nic_bytes_per_s(plan["settings"])
    by_id = {point["id"]: point for point in points}
    volumes = {name: host["volumes"] for name, host in hosts.items() if host["volumes"]}
    for ladder in best_conditions(summaries, points) if summaries else ladders:
        workload = by_id[ladder["rungs"][0]["point"]]["workload"]
        most = max(rung["volumes"] for rung in ladder["rungs"])
        setting = plan["settings"].get("hostmax_expect")
        try:
            expectations = resolve_expectations(setting, volumes, workload, most, ladder["unit"])
        except ExpectationError as exc:
            # a host that was never reached has volumes of unknown size
            judged.warnings.append(f"{ladder['workload']} was not judged: {exc}.")
            continue
        for expectation in expectations:
            judged.verdicts.append(verdict(expectation, ladder, by_id, nic))
            judged.warnings += _suspicions(expectation, ladder)
        judged.references += _references(volumes, workload, ladder, by_id)
        judged.references = _once(judged.references, _observed(setting, volumes, workload, ladder, by_id))
        capped = any(volume.get("cap") for each in volumes.values() for volume in each)
        if capped and workload["block_size_bytes"] > WHOLE_IO_BYTES:
            judged.warnings.append(
                f"{ladder['workload']} cannot be compared with the caps of thin volumes: the kernel cuts I/Os of more "
                f"than {format_bytes(WHOLE_IO_BYTES)} in pieces and charges them up to twice."
            )
    return judged


def best_conditions(summaries: Sequence[Json], points: Sequence[Json]) -> list[Json]:
    """For each workload what a ladder says of a host maximum: the highest mean of a condition, at the most volumes.

    `over_blocks` is that condition's summary; each rung is its block that came nearest to the mean.
    """
    found = []
    for workload in dict.fromkeys(summary["workload"] for summary in summaries):
        mine = [summary for summary in summaries if summary["workload"] == workload]
        most = max(summary["volumes"] for summary in mine)
        whole = [summary for summary in mine if summary["volumes"] == most]
        best = max(whole, key=lambda summary: float(summary["mean"] or 0.0))
        unit = best["unit"]
        same = [p for p in points if (p["workload"]["name"], p["volumes"]) == (workload, most)]
        own = [p for p in same if p["condition"] == best["condition"]]
        counted = [p for p in own if p["counted"] and p["total"]]
        nearest = min(counted, key=lambda p: abs(float(p["total"][unit]) - best["mean"])) if counted else None
        top = {"value": best["mean"], "volumes": most, "point": nearest["id"]} if nearest else None
        rung = {"volumes": most, "point": (nearest or own[0])["id"]}
        found.append({"workload": workload, "unit": unit, "rungs": [rung], "maximum": top, "over_blocks": best})
    return found


def verdict(expectation: Expectation, ladder: Json, points: Mapping[str, Json], nic: float | None = None) -> Json:
    """Pass when the maximum reaches the expected figure less its tolerance; of several blocks, its whole interval."""
    status, reason, measured = _compare(expectation, ladder, points)
    point = points[ladder["maximum"]["point"]] if ladder["maximum"] else None
    if status == "fail" and point and nic and expectation.kind == OBSERVED:
        status, reason = _carried(expectation, point, nic, reason)
    plain = expectation.to_mapping()
    plain.pop("parts")
    return {
        **plain,
        "measured": measured,
        "status": status,
        "reason": reason,
        "point": point["id"] if point else None,
    }


def _carried(expectation: Expectation, point: Json, nic: float, reason: str) -> tuple[str, str]:
    """No verdict on a volume whose figure the clients' networks together cannot carry."""
    block = 1 if expectation.unit == "bytes_per_s" else point["workload"]["block_size_bytes"]
    together = len(point["hosts_measured"]) * nic
    if together >= (1 - expectation.tolerance) * expectation.value * block:
        return "fail", reason
    share, count = reason.partition(";")[0], len(point["hosts_measured"])
    return "inconclusive", f"{share}, but {count} client(s) of {format_rate(nic)} of network carry no more"


def _compare(expectation: Expectation, ladder: Json, points: Mapping[str, Json]) -> tuple[str, str, float | None]:
    top = points[ladder["maximum"]["point"]] if ladder["maximum"] else None
    if top is None:
        return "invalid", "no point of this workload passed its gates", None
    blocks = _over_blocks(expectation, ladder)
    measured = float(blocks["mean"] if blocks else top["total"][expectation.unit])
    low, high = (blocks["ci95_low"], blocks["ci95_high"]) if blocks else (None, None)
    least = (1 - expectation.tolerance) * expectation.value
    share = f"{measured / expectation.value:.1%} of {_figure(expectation.value, expectation.unit)}"
    if blocks:
        share += f" with {blocks['condition']}"
    allowed = f"at least {1 - expectation.tolerance:.0%} is asked for"
    if low is None or high is None:
        if measured >= least:
            return "pass", f"{share}; {allowed}; 1 run, no interval", measured
    elif blocks and low >= least:
        return "pass", f"{share}; {allowed}; {blocks['n']} blocks", measured
    elif blocks and high >= least:
        bounds = f"{low / expectation.value:.1%} to {high / expectation.value:.1%}"
        return "inconclusive", f"{share}; {allowed}, and the interval of {blocks['n']} blocks is {bounds}", measured
    limit = top["limit"] or {"kind": "unknown", "text": "not identified"}
    most = max(rung["volumes"] for rung in ladder["rungs"])
    missing = [rung["volumes"] for rung in ladder["rungs"] if not points[rung["point"]]["counted"]]
    if most in missing:
        return "invalid", f"{share}, but the point with all {most} volumes did not pass its gates", measured
    if limit["kind"] in CLIENT_LIMITS and expectation.kind != USER_FIGURE:
        return (
            "inconclusive",
            f"{share}, but {limit['text']} held it back, so the storage was not driven to it",
            measured,
        )
    why = "what held it back was not found" if limit["kind"] == "unknown" else f"held back by {limit['text']}"
    return "fail", f"{share}; {allowed}; {why}", measured


def _over_blocks(expectation: Expectation, ladder: Json) -> Json | None:
    """The best condition's summary, where it is in the unit that is expected."""
    best: Json | None = ladder.get("over_blocks")
    return best if best and best["unit"] == expectation.unit else None


def _figure(value: float, unit: str) -> str:
    return format_count(value) + " IOPS" if unit == "iops" else format_rate(value)


def _suspicions(expectation: Expectation, ladder: Json) -> list[str]:
    if not ladder["maximum"] or expectation.unit != ladder["unit"] or expectation.kind == USER_FIGURE:
        return []
    ratio = ladder["maximum"]["value"] / expectation.value
    if ratio <= SUSPICIOUS:
        return []
    if expectation.kind == OBSERVED:
        return [
            f"{ladder['workload']}: {ratio:.2f} times what was published as observed; a cache may have answered, or "
            "the service gives more than it did then"
        ]
    return [
        f"{ladder['workload']}: {ratio:.2f} times what {expectation.source} allows; "
        "a cache may have answered, or the cap is not what it is believed to be"
    ]


def _references(volumes: Mapping[str, Any], workload: Json, ladder: Json, points: Mapping[str, Json]) -> list[Json]:
    """Published observations of the very same case as one of the rungs, with what was measured here."""
    found = []
    for rung in ladder["rungs"]:
        total = points[rung["point"]]["total"] if points[rung["point"]]["counted"] else None
        for seen in published_references(volumes, workload, rung["volumes"]):
            if _capped_below(volumes, rung["volumes"], seen):
                continue
            measured = total[seen["unit"]] if total else None
            reference = {key: seen[key] for key in ("name", "value", "unit", "source", "date")}
            ratio = measured / seen["value"] if measured is not None else None
            found.append({**reference, "measured": measured, "ratio": ratio})
    return found


def _observed(
    setting: object, volumes: Mapping[str, Any], workload: Json, ladder: Json, points: Mapping[str, Json]
) -> list[Json]:
    """Published figures of other cases of the expected kind of volume, beside the maximum."""
    top = points[ladder["maximum"]["point"]] if ladder["maximum"] else None
    found = []
    for seen in observed_references(setting, volumes, workload, ladder["unit"]):
        measured = ladder["maximum"]["value"] if top else None
        ratio = measured / seen["value"] if measured is not None else None
        reference = {key: seen[key] for key in ("name", "value", "unit", "source", "date")}
        found.append({**reference, "measured": measured, "ratio": ratio})
    return found


def _once(known: list[Json], more: Sequence[Json]) -> list[Json]:
    """A figure that was published for any mix is shown once, beside the mix that came highest."""
    for reference in more:
        same = next(
            (item for item in known if (item["name"], item["source"]) == (reference["name"], reference["source"])), None
        )
        if same is None:
            known.append(reference)
        elif (reference["measured"] or 0.0) > (same["measured"] or 0.0):
            same.update(reference)
    return known


def _capped_below(volumes: Mapping[str, Sequence[Json]], count: int, seen: Json) -> bool:
    """Whether a known cap of the volumes rules the published figure out, so that comparing would say nothing."""
    caps = [(volume.get("cap") or {}).get(seen["unit"]) for each in volumes.values() for volume in each[:count]]
    known = [cap for cap in caps if cap is not None]
    return len(known) == len(caps) and sum(known) < float(seen["value"])
