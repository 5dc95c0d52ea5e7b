# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What people read out of a results dict: sections, rows, sentences; the one place all outputs take them from.

Must not know: fio, Ansible, or the format (text, HTML, Markdown, XML) in which it is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count, format_latency, format_rate
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import WHOLE_IO_BYTES

LIMIT_SHORT = {
    "service_cap": "service cap",
    "client_cpu": "client CPU",
    "queue_depth": "queue depth",
    "offered_rate": "rate asked for",
    "each_volume": "each volume",
    "network": "network",
    "client_softirq": "one CPU",
    "retransmissions": "lost packets",
    "tcp_socket": "sockets",
    "nfs_slots": "NFS slots",
    "nfs_session_slots": "session slots",
    "nfs_delay": "server delays",
    "nfs_uneven": "uneven links",
    "nfs_client": "client NFS",
    "nfs_server": "server answers",
    "unknown": "not found",
}
LIMIT_LONG = {
    "service_cap": "the service cap of the volumes",
    "client_cpu": "the client's CPUs",
    "queue_depth": "the queue depth offered",
    "offered_rate": "the rate asked for",
    "each_volume": "each volume's own limit or the queue depth offered",
    "network": "the network",
    "client_softirq": "one CPU of the client, which did the network's work",
    "retransmissions": "packets lost on the network",
    "tcp_socket": "the sockets of the client's connections",
    "nfs_slots": "the slots of the client's connections",
    "nfs_session_slots": "the slots of the NFSv4.1 session",
    "nfs_delay": "the server, which put requests off",
    "nfs_uneven": "connections that are not used alike",
    "nfs_client": "the client above its NFS requests",
    "nfs_server": "the server's answers or the network's latency",
}
SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "~", "invalid": "!"}
STATUS_WORDS = {"pass": "pass", "fail": "FAIL", "inconclusive": "inconclusive", "invalid": "INVALID"}
_ILLEGAL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]+")


def clean(text: object) -> str:
    """Any name or sentence on one line, without characters that move a cursor, reorder text or break XML."""
    return _ILLEGAL.sub(" ", str(text)).strip()


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def figure(value: float | None, unit: str) -> str:
    """A headline quantity with its unit: `430,248 IOPS` or `1.76 GB/s`."""
    if value is None:
        return "-"
    return format_rate(value) if unit == "bytes_per_s" else f"{format_count(value)} IOPS"


def percent(ratio: float | None, decimals: int = 1) -> str:
    return "-" if ratio is None else f"{100 * ratio:.{decimals}f} %"


def latency(lat_ns: float | None) -> str:
    return "-" if lat_ns is None else format_latency(lat_ns)


def megabytes(bytes_per_s: float) -> str:
    """Millions of bytes per second for a column headed MB/s."""
    return f"{bytes_per_s / 1e6:,.{0 if bytes_per_s >= 1e10 else 1}f}"


def utc(stamp: str | None) -> str:
    """`2026-11-30 19:42:10 UTC` of an ISO 8601 time."""
    return clean(stamp).replace("T", " ").replace("Z", " UTC") if stamp else "-"


@dataclass(frozen=True)
class Row:
    """One point of a ladder as a line of a table."""

    point: dict[str, Any]
    rung: dict[str, Any] | None
    unit: str
    marks: tuple[str, ...]

    @property
    def volumes(self) -> int:
        return int(self.point["volumes"])

    @property
    def counted(self) -> bool:
        return bool(self.point["counted"])

    @property
    def total(self) -> dict[str, Any]:
        return self.point["total"] or {}

    @property
    def iops(self) -> float | None:
        return self.total.get("iops")

    @property
    def bytes_per_s(self) -> float | None:
        return self.total.get("bytes_per_s")

    @property
    def value(self) -> float | None:
        return self.total.get(self.unit)

    @property
    def efficiency(self) -> float | None:
        return self.rung["efficiency"] if self.rung else None

    @property
    def linear(self) -> float | None:
        return self.rung["linear"] if self.rung else None

    def lat_ns(self, name: str) -> float | None:
        return (self.total.get("lat_ns") or {}).get(name)

    def cpu(self, name: str) -> list[float]:
        """One fraction a host, of the hosts that know it."""
        return [cpu[name] for cpu in self.point["cpu"].values() if cpu and cpu.get(name) is not None]

    @property
    def cpu_busy(self) -> float | None:
        busy = self.cpu("busy")
        return sum(busy) / len(busy) if busy else None

    @property
    def failed_gates(self) -> list[dict[str, Any]]:
        return [gate for gate in self.point["gates"] if gate["passed"] is False]

    @property
    def missing_hosts(self) -> list[str]:
        measured = set(self.point["hosts_measured"])
        return [host for host in self.point["hosts_expected"] if host not in measured]

    @property
    def latency_words(self) -> str:
        """A word where the percentiles are of another time than the rates."""
        apart = self.point["latency_scope"] != "window" and len(self.point["timing"]) > 1
        return "latency of the whole run" if apart else ""

    @property
    def hosts_words(self) -> str:
        """`3 of 4 hosts`."""
        measured, expected = len(self.point["hosts_measured"]), len(self.point["hosts_expected"])
        return f"{measured:,} of {plural(expected, 'host')}"

    @property
    def limit_words(self) -> str:
        """What held it back, or why it does not count."""
        if self.point["status"] == "missing":
            return "not measured"
        if self.point["status"] == "partial":
            return f"only {self.hosts_words}, not counted"
        if not self.counted:
            names = ", ".join(gate_name(gate) for gate in self.failed_gates)
            return "not counted" + (f": {names}" if names else "")
        limit = self.point["limit"]
        return LIMIT_SHORT.get(limit["kind"], clean(limit["kind"])) if limit else "-"


@dataclass(frozen=True)
class Section:
    """One workload: its ladder, its points, its headline."""

    name: str
    title: str
    unit: str
    rows: list[Row]
    knee_volumes: int | None
    maximum: dict[str, Any] | None
    limit: dict[str, Any] | None
    caps: dict[str, dict[str, float]]

    @property
    def quantity(self) -> str:
        """What the headline speaks of: `iops`, `bytes_per_s`, or `latency` where one I/O is outstanding at a time."""
        workload = self.rows[0].point["workload"] if self.rows else {}
        depth_one = workload.get("io_depth") == 1 and workload.get("num_jobs") == 1
        return "latency" if depth_one else self.unit

    @property
    def short_title(self) -> str:
        return self.title.split(",")[0]

    @property
    def maximum_row(self) -> Row | None:
        wanted = self.maximum["point"] if self.maximum else None
        return next((row for row in self.rows if row.point["id"] == wanted), None)

    @property
    def counted_rows(self) -> list[Row]:
        return [row for row in self.rows if row.counted and row.total]

    @property
    def drawn_rows(self) -> list[Row]:
        """What the charts show: the points that count, or where none does, all that measured something."""
        return self.counted_rows or [row for row in self.rows if row.total]

    @property
    def headline_row(self) -> Row | None:
        """The point the headline is about: the maximum, or for latency the least load."""
        if self.quantity == "latency":
            return self.counted_rows[0] if self.counted_rows else None
        return self.maximum_row

    @property
    def still_linear(self) -> bool:
        """The ladder ended before it bent: the maximum is a lower bound."""
        row, rungs = self.maximum_row, self.counted_rows
        return row is not None and len(rungs) > 1 and row is rungs[-1] and self.knee_volumes is None

    @property
    def label(self) -> str:
        if self.quantity == "latency":
            return "Latency"
        row = self.maximum_row
        return "Maximum of all hosts" if row and len(row.point["hosts_expected"]) > 1 else "Host maximum"

    @property
    def key_figure(self) -> str:
        """`430,248 IOPS`, `at least 12,000 IOPS`, `412 us mean`."""
        row = self.headline_row
        if row is None:
            return "none"
        if self.quantity == "latency":
            return f"{latency(row.lat_ns('mean'))} mean"
        return ("at least " if self.still_linear else "") + figure(row.value, self.unit)

    @property
    def circumstances(self) -> str:
        """The rest of the headline: `at 4 KiB random read with 20 volumes on 1 host; held back by …`."""
        row = self.headline_row
        if row is None:
            count = plural(len(self.rows), "point")
            return f"at {clean(self.short_title)}: none of its {count} could be counted"
        if self.quantity == "latency":
            return self._latency_circumstances(row)
        text = f"at {clean(self.short_title)} with {plural(row.volumes, 'volume')} {on_hosts(row)}"
        if self.still_linear:
            text += " (still linear)"
        return text + self._held_back(row)

    def _latency_circumstances(self, row: Row) -> str:
        text = (
            f"and {latency(row.lat_ns('p99'))} p99 at {clean(self.short_title)}, one I/O at a time, "
            f"with {plural(row.volumes, 'volume')} {on_hosts(row)}"
        )
        last = self.counted_rows[-1]
        if last is not row:
            text += f"; {latency(last.lat_ns('mean'))} mean with {plural(last.volumes, 'volume')}"
        return text

    def _held_back(self, row: Row) -> str:
        limit = self.limit or row.point["limit"]
        if not limit:
            return ""
        if limit["kind"] not in LIMIT_LONG:
            return "; what held it back was not found"
        words = LIMIT_LONG[limit["kind"]]
        if len(row.point["hosts_measured"]) > 1:
            words = words.replace("client's", "clients'")
        return f"; held back by {words}"

    @property
    def headline(self) -> str:
        if self.headline_row is None:
            return f"No {self.label[0].lower()}{self.label[1:]} {self.circumstances}"
        return f"{self.label}: {self.key_figure} {self.circumstances}"


def on_hosts(row: Row) -> str:
    measured, expected = len(row.point["hosts_measured"]), len(row.point["hosts_expected"])
    each = "on each of " if measured > 1 else "on "
    return each + (plural(expected, "host") if measured == expected else row.hosts_words)


def read_sections(results: dict[str, Any]) -> list[Section]:
    """One section a workload, in the order of the ladders; a workload without a ladder still gets one."""
    points: dict[str, list[dict[str, Any]]] = {}
    for point in results["points"]:
        points.setdefault(point["workload"]["name"], []).append(point)
    ladders = list(results["ladders"])
    known = {ladder["workload"] for ladder in ladders}
    empty: dict[str, Any] = {"unit": "iops", "rungs": [], "knee_volumes": None, "maximum": None, "limit": None}
    for name, some in points.items():
        if name not in known:
            ladders.append({"workload": name, "title": some[0]["workload"]["title"], **empty})
    return [_section(ladder, points.get(ladder["workload"], []), results["hosts"]) for ladder in ladders]


def _section(ladder: dict[str, Any], points: list[dict[str, Any]], hosts: list[dict[str, Any]]) -> Section:
    rungs = {rung["point"]: rung for rung in ladder["rungs"]}
    knee, maximum = ladder["knee_volumes"], ladder["maximum"]
    rows = []
    for point in sorted(points, key=lambda point: (point["volumes"], point["block"], point["repeat"])):
        marks = []
        if point["counted"] and point["id"] in rungs and knee == point["volumes"]:
            marks.append("knee")
        if maximum and maximum["point"] == point["id"]:
            marks.append("maximum")
        rows.append(Row(point, rungs.get(point["id"]), ladder["unit"], tuple(marks)))
    caps = _caps(points[0]["workload"], ladder["unit"], hosts) if points else {}
    return Section(ladder["workload"], ladder["title"], ladder["unit"], rows, knee, maximum, ladder["limit"], caps)


def _caps(workload: dict[str, Any], unit: str, hosts: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """What each capped volume may deliver in the ladder's unit, by host and volume; empty for a mixed workload.

    Caps hold for each direction by itself, so a mix has no single figure to draw; nor have I/Os the kernel cuts up.
    """
    if workload["read_percent"] not in (0, 100) or workload["block_size_bytes"] > WHOLE_IO_BYTES:
        return {}
    block_bytes = workload["block_size_bytes"]
    factor = block_bytes if unit == "bytes_per_s" else 1
    found: dict[str, dict[str, float]] = {}
    for host in hosts:
        for volume in host["volumes"]:
            cap = volume["cap"] or {}
            rates = [cap["iops"]] if cap.get("iops") else []
            rates += [cap["bytes_per_s"] / block_bytes] if cap.get("bytes_per_s") else []
            if rates:
                found.setdefault(host["name"], {})[volume["name"]] = min(rates) * factor
    return found


def gate_name(gate: dict[str, Any]) -> str:
    return clean(gate["name"]).replace("_", " ")


def verdict_line(results: dict[str, Any]) -> tuple[str, str]:
    """(status, sentence) of the whole run against its expectations: invalid and fail come before everything else."""
    verdicts = results["verdicts"]
    statuses = [verdict["status"] for verdict in verdicts]
    total = plural(len(verdicts), "expected figure")
    if results["run"]["status"] == "invalid":
        return "invalid", "The run is invalid: its figures may not be quoted"
    if not verdicts:
        return "none", "No expectation was set for this run"
    for status, words in (
        ("fail", "missed"),
        ("invalid", "could not be judged"),
        ("inconclusive", "without a clear answer"),
    ):
        count = statuses.count(status)
        if count:
            return status, f"{count} of {total} {words}"
    return "pass", f"{total} reached" if len(verdicts) == 1 else f"All {total} reached"


def against(verdict: dict[str, Any]) -> str:
    """`107.6 % (limit 98 %)`, or nothing where there is nothing to compare."""
    if verdict["measured"] is None or not verdict["expected"]:
        return ""
    ratio = percent(verdict["measured"] / verdict["expected"])
    return f"{ratio} (limit {100 * (1 - verdict['tolerance']):g} %)"


def source_of(item: dict[str, Any]) -> str:
    return f"{clean(item['source'])}, {clean(item['date'])}" if item["date"] else clean(item["source"])
