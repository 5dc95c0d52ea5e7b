# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the network of this host did between two moments: interfaces and their link speed, TCP, packets dropped early.

It must not know about NFS, points or limits. A reading is text alone; figures are formed when two are compared.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, NamedTuple

Json = Dict[str, Any]

# interfaces that are kept, the busiest first: a host of containers has hundreds
MOST_INTERFACES = 8
# /proc/net/dev after the name: columns of received and sent bytes, and of what was dropped each way
_RX_BYTES, _RX_DROP, _TX_BYTES, _TX_DROP = 0, 3, 8, 11
# /proc/net/softnet_stat
_DROPPED, _TIME_SQUEEZE = 1, 2
_WRAP = 1 << 32
TCP = {
    "InSegs": "in_segs",
    "OutSegs": "out_segs",
    "RetransSegs": "retrans_segs",
    "TCPTimeouts": "timeouts",
    "TCPLostRetransmit": "lost_retransmits",
    "TCPFastRetrans": "fast_retransmits",
    "TCPBacklogDrop": "backlog_drops",
    "TCPRcvQDrop": "receive_queue_drops",
    "PruneCalled": "prunes",
    "RcvPruned": "receive_prunes",
    "TCPMemoryPressures": "memory_pressures",
    "TCPMemoryPressuresChrono": "memory_pressure_ms",
    "TCPZeroWindowAdv": "zero_windows",
}
_BYTES_OF_MEGABIT = 125_000


class Reading(NamedTuple):
    """The texts of /proc/net at one moment."""

    time_s: float
    dev: str
    snmp: str
    netstat: str
    softnet: str


def read(time_s: float, proc: str = "/proc") -> Reading:
    """A reading of this moment (``time_s``: what the caller's clock says), of this process's network namespace."""
    names = ("dev", "snmp", "netstat", "softnet_stat")
    return Reading(time_s, *(_text(os.path.join(proc, "self", "net", name)) for name in names))


def difference(first: Reading, last: Reading, sys: str = "/sys") -> Json:
    """Bytes a second of each interface that was used, and what of TCP and softnet changed."""
    seconds = max(last.time_s - first.time_s, 1e-9)
    return {
        "interfaces": _interfaces(read_interfaces(first.dev), read_interfaces(last.dev), seconds, sys),
        "tcp": _tcp(first, last),
        "softnet": _softnet(first.softnet, last.softnet),
    }


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""


def read_interfaces(text: str) -> dict[str, tuple[int, ...]]:
    """The columns of /proc/net/dev by interface."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.rpartition(":")
        columns = rest.split()
        if colon and len(columns) > _TX_DROP and all(column.isdigit() for column in columns):
            found[name.strip()] = tuple(int(column) for column in columns)
    return found


def _interfaces(first: Mapping[str, Any], last: Mapping[str, Any], seconds: float, sys: str) -> Json:
    used = {}
    for name, after in last.items():
        before = first.get(name)
        if before is None or name == "lo":
            continue
        passed = [later - earlier for earlier, later in zip(before, after)]
        if passed[_RX_BYTES] > 0 or passed[_TX_BYTES] > 0:
            used[name] = passed
    busiest = sorted(used, key=lambda name: -max(used[name][_RX_BYTES], used[name][_TX_BYTES]))[:MOST_INTERFACES]
    return {
        name: {
            "rx_bytes_per_s": used[name][_RX_BYTES] / seconds,
            "tx_bytes_per_s": used[name][_TX_BYTES] / seconds,
            "drops": max(0, used[name][_RX_DROP]) + max(0, used[name][_TX_DROP]),
            "speed_bytes_per_s": link_speed(name, sys),
        }
        for name in busiest
    }


def link_speed(name: str, sys: str = "/sys") -> int | None:
    """What one direction of a link carries, bytes/s; None where the driver does not know (most virtual machines)."""
    text = _text(os.path.join(sys, "class", "net", name, "speed")).strip()
    return int(text) * _BYTES_OF_MEGABIT if text.isdigit() and int(text) > 0 else None


def _pairs(text: str) -> dict[str, int]:
    """Counters of /proc/net/{snmp,netstat}: a line of names, and under it one of values, for each protocol."""
    found: dict[str, int] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        if names.split(":")[0] in ("Tcp", "TcpExt"):
            found.update((key, int(value)) for key, value in zip(names.split()[1:], values.split()[1:]))
    return found


def _tcp(first: Reading, last: Reading) -> dict[str, int]:
    before, after = _pairs(first.snmp + first.netstat), _pairs(last.snmp + last.netstat)
    passed = {name: after[key] - before.get(key, 0) for key, name in TCP.items() if key in after}
    return {name: value for name, value in passed.items() if value}


def _softnet(first: str, last: str) -> dict[str, int]:
    """Packets dropped because a CPU's backlog was full, and times its budget ran out; 32-bit counters of each CPU."""
    rows = [[[int(word, 16) for word in line.split()] for line in text.splitlines()] for text in (first, last)]
    if len(rows[0]) != len(rows[1]):
        # a CPU came or went in between: its counters can be compared with nothing
        return {}
    found = {}
    for name, column in (("dropped", _DROPPED), ("time_squeeze", _TIME_SQUEEZE)):
        found[name] = sum((after[column] - before[column]) % _WRAP for before, after in zip(*rows))
    return found
