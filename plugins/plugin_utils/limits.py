# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What held a point back, with the evidence: the volumes' caps, the client, the network, or too few I/Os asked for.

It must not know about verdicts; it explains a number, it does not judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count, format_latency, format_rate
from ansible_collections.hostmax.storage.plugins.plugin_utils import limits_net, limits_nfs
from ansible_collections.hostmax.storage.plugins.plugin_utils.limit import Context, Limit
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import WHOLE_IO_BYTES, Caps

__all__ = ["RULES", "Context", "Limit", "find_limit"]

Json = dict[str, Any]

# a volume within 3 % of its cap is at it; one that is well above it has another cap than it is believed to have
AT_CAP, ABOVE_CAP = 0.97, 1.10
# share of CPU time not free, in the window; above it more volumes only wait for a CPU
CPU_FULL = 0.95
# one fio job is one thread of one process: it cannot use more than one CPU
JOB_FULL = 0.95
# within 3 % of the rate it was asked to keep to
AT_RATE = 0.97
# latency within 25 % of the lightest load's: the volumes were not yet queueing
UNLOADED = 1.25


def volume_caps(context: Context) -> dict[tuple[str, str], Caps]:
    """The caps of the volumes of this point that have any, by host and name; none where they are no truth."""
    cut_up = context.workload["block_size_bytes"] > WHOLE_IO_BYTES
    return {
        (host, name): context.caps[host, name]
        for host, measured in context.point["per_volume"].items()
        for name in measured
        if (host, name) in context.caps and not (cut_up and context.caps[host, name].each_direction)
    }


def cap_share(figures: Mapping[str, Any], caps: Caps) -> tuple[float, str]:
    """How near one volume is to its cap (1 = at it) and which cap binds, in the direction that is nearest."""
    shares = [
        (figures[way][key] / cap, name)
        for way in (("read", "write") if caps.each_direction else ("total",))
        if figures[way]
        for key, name, cap in (("iops", "IOPS", caps.iops), ("bytes_per_s", "bandwidth", caps.bytes_per_s))
        if cap
    ]
    return max(shares, default=(0.0, "IOPS"))


def service_cap(context: Context) -> Limit | None:
    """Every volume with a cap is at it: the storage gave all it promised."""
    caps = volume_caps(context)
    shares = [cap_share(context.point["per_volume"][host][name], cap) for (host, name), cap in caps.items()]
    if not shares or min(shares)[0] < AT_CAP or max(shares)[0] > ABOVE_CAP:
        return None
    kinds = [kind for _share, kind in shares]
    binding = max(sorted(set(kinds)), key=kinds.count)
    cap = next(iter(caps.values()))
    figure = f"{format_count(cap.iops or 0)} IOPS" if binding == "IOPS" else format_rate(cap.bytes_per_s or 0)
    lowest, highest = min(shares)[0], max(shares)[0]
    return Limit(
        "service_cap",
        f"the volumes' {binding} cap ({figure} a volume)",
        (
            f"all {len(shares)} volumes ran at {lowest:.1%} to {highest:.1%} of their {binding} cap of {figure}",
            f"source of the cap: {cap.source}",
        ),
    )


def client_cpu(context: Context) -> Limit | None:
    """The client had no CPU time left, or each fio job had used up the one CPU it can use."""
    found = []
    for host, cpu in context.point["cpu"].items():
        if not cpu:
            continue
        count = context.hosts[host]["cpus"]
        jobs = context.workload["num_jobs"] * len(context.point["per_volume"][host])
        per_job = (cpu["fio_usr"] + cpu["fio_sys"]) / jobs if jobs else 0.0
        if cpu["busy"] >= CPU_FULL:
            found.append(
                f"{host}: {cpu['busy']:.0%} of {count} CPUs busy in the window (user {cpu['user']:.0%}, "
                f"system {cpu['system']:.0%}, stolen {cpu['steal']:.0%})"
            )
        elif per_job >= JOB_FULL:
            found.append(f"{host}: each of {jobs} fio job(s) used {per_job:.0%} of one CPU")
    if not found or len(found) < len(context.point["cpu"]):
        return None
    counts = sorted({context.hosts[host]["cpus"] for host in context.point["cpu"]})
    return Limit("client_cpu", f"the client's CPUs ({', '.join(str(c) for c in counts)} of them)", tuple(found))


def offered_rate(context: Context) -> Limit | None:
    """The workload was told to ask for no more, and every volume gave that."""
    rate = context.workload.get("rate_iops")
    if not rate:
        return None
    rates = [v["total"]["iops"] for volumes in context.point["per_volume"].values() for v in volumes.values()]
    if not rates or min(rates) < AT_RATE * rate:
        return None
    text = f"the rate asked for ({format_count(rate)} IOPS a volume)"
    return Limit("offered_rate", text, (f"all {len(rates)} volumes ran at {min(rates) / rate:.1%} of it or more",))


def _grew(context: Context) -> bool | None:
    """Whether the latency is above that of the lightest point; None where there is nothing to compare."""
    total, lightest = context.point["total"], context.lightest
    if not total or not total["lat_ns"] or not lightest or not lightest["total"] or not lightest["total"]["lat_ns"]:
        return None
    return bool(total["lat_ns"]["mean"] > UNLOADED * lightest["total"]["lat_ns"]["mean"])


def queue_depth(context: Context) -> Limit | None:
    """The volumes answered as fast as when hardly loaded: only more I/Os outstanding would have brought more.

    Little's law: IOPS = I/Os outstanding / mean latency, so at an unchanged latency IOPS grow with the depth. Every
    point of a ladder has the same depth a volume, so that says so only where the volumes are known to be below their
    caps, or where one I/O at a time cannot have queued.
    """
    if context.workload.get("rate_iops") or not context.point["total"]["lat_ns"]:
        return None
    offered = context.workload["io_depth"] * context.workload["num_jobs"]
    grew = _grew(context)
    if grew or (offered > 1 and (grew is None or not _all_capped(context))):
        return None
    latency_ns = context.point["total"]["lat_ns"]["mean"]
    evidence = [
        f"{offered} I/Os outstanding a volume at a mean latency of {format_latency(latency_ns)} allow "
        f"{format_count(offered / latency_ns * 1e9)} IOPS a volume by Little's law",
    ]
    caps = [cap.iops for cap in volume_caps(context).values() if cap.iops]
    if caps:
        needed = -(-min(caps) * latency_ns // 1e9)
        evidence.append(
            f"at this latency {needed:.0f} outstanding would be needed for the cap of {format_count(min(caps))} IOPS"
        )
    return Limit("queue_depth", f"the queue depth offered ({offered} a volume)", tuple(evidence))


def _all_capped(context: Context) -> bool:
    return len(volume_caps(context)) == sum(len(volumes) for volumes in context.point["per_volume"].values())


def each_volume(context: Context) -> Limit | None:
    """Volumes of unknown caps are as fast together as one is alone: nothing they share held them back."""
    if context.workload.get("rate_iops") or not context.point["total"]["lat_ns"] or volume_caps(context):
        return None
    driven = sum(len(volumes) for volumes in context.point["per_volume"].values())
    grew = _grew(context)
    if grew or (grew is None and driven > 1):
        return None
    offered = context.workload["io_depth"] * context.workload["num_jobs"]
    latency = format_latency(context.point["total"]["lat_ns"]["mean"])
    return Limit(
        "each_volume",
        f"each volume's own limit, or the queue depth offered ({offered} a volume)",
        (
            f"a mean latency of {latency} with {driven} volume(s), no more than with the fewest",
            "a run with another queue depth tells which of the two it is: only the depth brings more IOPS with more",
        ),
    )


def unknown(context: Context) -> Limit:
    """No rule fits; the figures that were looked at are still told."""
    evidence = []
    for host, cpu in context.point["cpu"].items():
        if cpu:
            evidence.append(f"{host}: CPUs {cpu['busy']:.0%} busy, the busiest one {cpu['busiest_cpu']:.0%}")
    for (host, name), cap in list(volume_caps(context).items())[:1]:
        share, which = cap_share(context.point["per_volume"][host][name], cap)
        evidence.append(f"{host}: {name} at {share:.0%} of its {which} cap")
    if not volume_caps(context):
        evidence.append("the volumes' caps are not known (hostmax_expect may name their model)")
    return Limit("unknown", "not identified", tuple(evidence))


# the client's own limits before those of the storage: what a client could not ask for says nothing of the storage
RULES: Sequence[Callable[[Context], Limit | None]] = (
    service_cap,
    offered_rate,
    *limits_net.RULES,
    client_cpu,
    limits_net.client_softirq,
    *limits_nfs.RULES,
    queue_depth,
    each_volume,
)


def find_limit(context: Context) -> Json | None:
    """The first rule that fits names the limit; None where nothing was measured."""
    if not context.point["total"]:
        return None
    for rule in RULES:
        limit = rule(context)
        if limit:
            return limit.to_mapping()
    return unknown(context).to_mapping()
