# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hosts of one point side by side: what each measured, and when it began and ended; of very many, the worst.

Must not know: pages, or how a host came to its figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    Row,
    Section,
    clean,
    figure,
    latency,
    percent,
    plural,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_timing import milliseconds

# a table of more hosts is not read any more
MOST_HOSTS = 60
RANKED = 10
HEADS = ("Host", "IOPS", "Bandwidth", "Mean", "p99", "CPU busy", "Engine", "First I/O", "Last I/O")


def host_table(section: Section) -> dict[str, Any]:
    """`title`, `heads`, `rows` and a `note` about all hosts at the headline point; {} for a run on one host."""
    row = section.headline_row or next((row for row in reversed(section.rows) if row.point["per_host"]), None)
    if row is None or len(row.point["hosts_expected"]) < 2:
        return {}
    hosts = row.point["hosts_expected"]
    with_volumes = f"with {plural(row.volumes, 'volume')}"
    if len(hosts) <= MOST_HOSTS:
        return {"title": f"Every host {with_volumes}", "heads": HEADS, "rows": _rows(row, hosts), "note": ""}
    return {
        "title": f"Slowest and latest hosts {with_volumes}",
        "heads": HEADS,
        "rows": _rows(row, _worst(row)),
        "note": f"{_spread(row)} All {len(hosts):,} hosts stand in results.csv and results.json.",
    }


def _worst(row: Row) -> list[str]:
    """Hosts that did not measure, the slowest, and the last to begin; each once, some of each."""
    rates = _rates(row)
    timing = row.point["timing"]
    slowest = sorted(rates, key=lambda host: rates[host])
    latest = sorted(timing, key=lambda host: -timing[host]["skew_s"])
    return list(dict.fromkeys([*row.missing_hosts[:RANKED], *slowest[:RANKED], *latest[:RANKED]]))


def _rates(row: Row) -> dict[str, float]:
    return {host: ways["total"]["iops"] for host, ways in row.point["per_host"].items() if ways["total"]}


def _spread(row: Row) -> str:
    """How far the hosts lie apart, in their rates and in their first I/Os."""
    rates = sorted(_rates(row).values())
    skews = sorted(each["skew_s"] for each in row.point["timing"].values())
    if not rates or not skews:
        return ""
    iops = [figure(_quantile(rates, share), "iops") for share in (0.0, 0.05, 0.5, 1.0)]
    later = [milliseconds(_quantile(skews, share)) for share in (0.5, 0.95, 1.0)]
    return (
        f"A host: slowest {iops[0]}, 5 % below {iops[1]}, median {iops[2]}, fastest {iops[3]}. "
        f"First I/O after the first host's: median {later[0]}, 95 % within {later[1]}, last {later[2]}."
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]


def _rows(row: Row, hosts: Sequence[str]) -> list[list[str]]:
    point = row.point
    began_s = min((each["first_io_s"] for each in point["timing"].values()), default=0.0)
    lines = []
    for host in hosts:
        total = (point["per_host"].get(host) or {}).get("total") or {}
        lat, cpu, timing = total.get("lat_ns") or {}, point["cpu"].get(host) or {}, point["timing"].get(host)
        mark = "*" if row.latency_words else ""
        lines.append(
            [
                clean(host),
                figure(total.get("iops"), "iops") if total else "not measured",
                figure(total.get("bytes_per_s"), "bytes_per_s"),
                *(latency(lat[name]) + mark if lat else "-" for name in ("mean", "p99")),
                percent(cpu.get("busy")),
                clean(point["workload"]["engine_used"].get(host, "-")),
                f"+{milliseconds(timing['skew_s'])}" if timing else "-",
                f"+{timing['last_io_s'] - began_s:,.3f} s" if timing else "-",
            ]
        )
    return lines
