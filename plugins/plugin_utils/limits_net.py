# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Limits between a client and its storage: the network's rate, and one CPU that does all of the network's work.

It must not know about NFS; it looks at the counters of interfaces, TCP and CPUs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import UnitError, format_rate, parse_size
from ansible_collections.hostmax.storage.plugins.plugin_utils.limit import Context, Limit, on_most

Json = dict[str, Any]

# share of a link's rate; headers of Ethernet and gaps between packets are not in the kernel's count of bytes
LINK_FULL = 0.95
# an interface well above its speed has another one: virtual links state any
LINK_WRONG = 1.10
# time of one CPU in the kernel; its own packets wait behind that
CPU_FULL = 0.90
# of that, softirqs: a CPU that is full of a job's own system calls is another matter
SOFTIRQ_LEAST = 0.30
SETTING = "hostmax_nic_bytes_per_s"


def network(context: Context) -> Limit | None:
    """The network interface of most clients carried, one way, what its link or its machine may carry."""
    given = nic_bytes_per_s(context.settings)
    counters = {host: found["net"] for host, found in counters_of(context, "net").items()}
    found = [f"{host}: {full}" for host, net in counters.items() if (full := _full_interface(net, given))]
    if not on_most(found, len(counters)):
        return None
    text = f"the network ({format_rate(given)} a client, {SETTING})" if given else "the network interface of the client"
    return Limit("network", text, tuple(found))


def counters_of(context: Context, kind: str) -> dict[str, Json]:
    """The counters of the hosts that have some of this kind (``nfs`` or ``net``)."""
    found = context.point.get("counters") or {}
    return {host: counters for host, counters in found.items() if counters and counters.get(kind)}


def nic_bytes_per_s(settings: Mapping[str, Any]) -> int | None:
    """What the user said a client's network carries, bytes/s; None where nothing was said."""
    value = settings.get(SETTING)
    try:
        return parse_size(value) if value not in (None, "", 0) else None
    except UnitError:
        return None


def _full_interface(net: Json, given: int | None) -> str | None:
    """The fullest interface that is full, in words.

    What the user said counts for the machine: its busiest interface has it all where two of them show one traffic, as
    the synthetic and the virtual function's interface of one adapter do.
    """
    shares = []
    for name, interface in (net.get("interfaces") or {}).items():
        speed = given or interface["speed_bytes_per_s"]
        for way, key in (("sent", "tx_bytes_per_s"), ("received", "rx_bytes_per_s")):
            if speed:
                shares.append((interface[key] / speed, name, way, interface[key], speed))
    full = [each for each in shares if LINK_FULL <= each[0] <= LINK_WRONG]
    if not full:
        return None
    share, name, way, rate, speed = max(full)
    source = SETTING if given else "its link speed"
    return f"{name} {way} {format_rate(rate)}, {share:.0%} of {format_rate(speed)} ({source})"


def client_softirq(context: Context) -> Limit | None:
    """One CPU of most clients was full of network or block softirqs while others had time to spare."""
    found = []
    cpus = {host: cpu for host, cpu in context.point["cpu"].items() if cpu and cpu.get("busiest_kernel") is not None}
    for host, cpu in cpus.items():
        full = cpu["busiest_kernel"] >= CPU_FULL and cpu["busiest_softirq"] >= SOFTIRQ_LEAST
        if full and cpu["busy"] < CPU_FULL:
            found.append(
                f"{host}: one CPU spent {cpu['busiest_kernel']:.0%} of its time in the kernel, "
                f"up to {cpu['busiest_softirq']:.0%} in softirqs, while all together were {cpu['busy']:.0%} busy"
            )
    if not on_most(found, len(context.point["cpu"])):
        return None
    advice = "more connections (nconnect) or receive queues on more CPUs would spread this work"
    return Limit("client_softirq", "one CPU of the client, which did the network's work", (*found, advice))


def segments_sent_again(net: Mapping[str, Any] | None) -> float | None:
    """Share of TCP segments that had to be sent again; None where none were sent."""
    tcp = (net or {}).get("tcp") or {}
    sent = tcp.get("out_segs", 0)
    return tcp.get("retrans_segs", 0) / sent if sent else None


RULES: Sequence[Callable[[Context], Limit | None]] = (network,)
