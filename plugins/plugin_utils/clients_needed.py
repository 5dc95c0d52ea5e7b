# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Before a run: whether it has hosts enough for the figure it is judged by, and whether a cache can answer it.

It must not know what was measured; it reads a plan and what was found on the hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    format_bytes,
    format_count,
    format_rate,
    parse_size,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils import advice
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import (
    ExpectationError,
    resolve_expectations,
)

Json = dict[str, Any]

# a server answers so many requests at once on one connection of NFSv3 (Azure NetApp Files, Linux concurrency best
# practices, 2021); an NFSv4.1 session of the Linux client has so many by default, however many connections it has
SLOTS_PER_CONNECTION, SESSION_SLOTS = 128, 64
MOST_SENTENCES = 4


def sentences(plan: Mapping[str, Any]) -> list[str]:
    """How many hosts each expected figure takes at least, and whether this run has them."""
    volumes = {host: entry["volumes"] for host, entry in plan["hosts"].items()}
    if not any(volume["kind"] == "directory" for each in volumes.values() for volume in each):
        return []
    nic = advice.nic_bytes_per_s(plan["settings"])
    most = {point["workload"]["name"]: point for point in plan["points"]}
    found = []
    for name, point in most.items():
        try:
            expected = resolve_expectations(
                plan["settings"]["hostmax_expect"], volumes, point["workload"], point["volumes"]
            )
        except ExpectationError:
            continue
        for each in expected:
            needed = advice.clients_needed(
                each.value,
                each.unit,
                point["workload"]["block_size_bytes"],
                nic_bytes_per_s=nic,
                outstanding=_outstanding(plan, point),
            )
            if needed:
                figure = f"{format_count(each.value)} IOPS" if each.unit == "iops" else format_rate(each.value)
                hosts = _hosts(needed[0])
                found.append(f"{name}: {figure} needs {hosts} at least ({needed[1]}){_have(plan, needed[0])}")
    return found


def _hosts(number: int) -> str:
    return "1 host" if number == 1 else f"{number:,} hosts"


def _have(plan: Mapping[str, Any], needed: int) -> str:
    have = len(plan["hosts"])
    return f", and this run has {have:,}: it cannot be reached" if have < needed else ""


def _outstanding(plan: Mapping[str, Any], point: Mapping[str, Any]) -> float:
    """I/Os that one host can have under way: what fio offers, or what its connections take in the best condition."""
    workload = point["workload"]
    offered = float(workload["io_depth"] * workload["num_jobs"] * point["volumes"])
    slots = [_slots(each["mount"]) for each in plan.get("conditions") or () if each["mount"]]
    return min(offered, max(slots)) if slots else offered


def _slots(mount: str) -> float:
    options = nfs_options.canonical(mount)
    if options.get("vers", "").startswith("4."):
        return float(SESSION_SLOTS)
    return float(SLOTS_PER_CONNECTION * int(options.get("nconnect", "1")))


def fits_server(plan: Mapping[str, Any]) -> list[str]:
    """That what is read may come from the server's memory, where its size is known."""
    setting = plan["settings"].get("hostmax_server_memory")
    if not setting:
        return []
    memory = parse_size(setting)
    hosts = plan["hosts"].values()
    names = [
        workload["name"]
        for workload in {point["workload"]["name"]: point["workload"] for point in plan["points"]}.values()
        if workload["read_percent"]
        and workload["working_set_bytes"]
        and workload["working_set_bytes"] * sum(len(entry["volumes"]) for entry in hosts) <= memory
    ]
    if not names:
        return []
    return [
        f"the working set of {_some(names)} fits into the server's memory of {format_bytes(memory)}: what is read may "
        "come from its cache and not from the storage; make hostmax_total_working_set larger"
    ]


def fits_clients(plan: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """That buffered reads may come from a host's own memory; `found` is what the probe saw, by host."""
    smallest = min((int((seen.get("host") or {}).get("memory_bytes") or 0) for seen in found.values()), default=0)
    workloads = {point["workload"]["name"]: point for point in plan["points"] if not point["workload"]["direct"]}
    names = [
        name
        for name, point in workloads.items()
        if point["workload"]["working_set_bytes"]
        and point["workload"]["working_set_bytes"] * point["volumes"] <= smallest
        and point["workload"]["read_percent"]
    ]
    if not names:
        return []
    return [
        f"{_some(names)} is buffered and its working set fits into the memory of the hosts ({format_bytes(smallest)}): "
        "what is read may come from their page cache and not from the storage."
    ]


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def notes(plan: Mapping[str, Any]) -> list[str]:
    """The sentences on hosts for the results, whatever comes out."""
    return [f"{sentence}." for sentence in sentences(plan)[:MOST_SENTENCES]]
