# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's own counters, sampled while a point runs: what the CPUs and the volumes did inside a window.

It must not know about fio, plans, points or NFS: it reads /proc and gives differences between two moments.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Mapping, NamedTuple, Sequence

# Columns of a cpu line in /proc/stat (proc(5)); guest time is already part of user.
CPU_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
IDLE_COLUMNS = ("idle", "iowait")
SECTOR_BYTES = 512


class Snapshot(NamedTuple):
    """All counters at one moment: jiffies of each CPU (the first row is their sum), and volumes by (major, minor).

    ``readings``: what the sampler's further readers gave, by their name; empty in most snapshots.
    """

    time_s: float
    cpus: tuple[tuple[int, ...], ...]
    disks: dict[tuple[int, int], tuple[int, ...]]
    readings: Mapping[str, Any] = {}


def read_cpus(text: str) -> tuple[tuple[int, ...], ...]:
    """The cpu rows of /proc/stat, the sum first."""
    width = len(CPU_COLUMNS)
    rows = (line.split() for line in text.splitlines() if line.startswith("cpu"))
    return tuple(tuple(int(value) for value in (row[1:] + ["0"] * width)[:width]) for row in rows)


def read_disks(text: str, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, ...]]:
    """Reads, read sectors, writes, written sectors and busy milliseconds of the wanted devices (/proc/diskstats)."""
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for line in text.splitlines():
        row = line.split()
        if len(row) < 14:
            continue
        device = (int(row[0]), int(row[1]))
        if device in wanted:
            found[device] = (int(row[3]), int(row[5]), int(row[7]), int(row[9]), int(row[12]))
    return found


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as handle:
        return handle.read()


class Sampler:
    """Snapshots at a steady pace; ``tick`` is called by whoever waits for fio and takes one when it is due.

    ``readers`` are asked (with the time) in fewer of them, every ``readers_s``: what they read is longer.
    """

    def __init__(
        self,
        devices: Sequence[tuple[int, int]],
        interval_s: float,
        proc: str = "/proc",
        readers: Mapping[str, Callable[[float], Any]] | None = None,
        readers_s: float = 1.0,
    ) -> None:
        self.devices = tuple(devices)
        self.interval_s = interval_s
        self.snapshots: list[Snapshot] = []
        self._proc = proc
        self._due_s = 0.0
        self._readers = readers or {}
        self._readers_s = readers_s
        self._readers_due_s = 0.0

    def tick(self) -> None:
        """Take a snapshot when the interval has passed since the last one."""
        now_s = time.time()
        if now_s < self._due_s:
            return
        self._due_s = now_s + self.interval_s
        disks = read_disks(_read(os.path.join(self._proc, "diskstats")), self.devices) if self.devices else {}
        readings = {}
        if now_s >= self._readers_due_s:
            self._readers_due_s = now_s + self._readers_s
            readings = {name: reader(now_s) for name, reader in self._readers.items()}
        self.snapshots.append(Snapshot(now_s, read_cpus(_read(os.path.join(self._proc, "stat"))), disks, readings))

    def inside(self, start_s: float, end_s: float) -> tuple[Snapshot, Snapshot] | None:
        """The first and last snapshot inside the window, or None where fewer than two fell into it."""
        within = [shot for shot in self.snapshots if start_s <= shot.time_s <= end_s]
        return (within[0], within[-1]) if len(within) > 1 else None

    def readings_inside(self, start_s: float, end_s: float, name: str) -> tuple[Any, Any] | None:
        """The first and last reading of one reader inside the window, or None where fewer than two fell into it."""
        within = [shot for shot in self.snapshots if start_s <= shot.time_s <= end_s and name in shot.readings]
        return (within[0].readings[name], within[-1].readings[name]) if len(within) > 1 else None


def _share(first: Sequence[int], last: Sequence[int]) -> dict[str, float]:
    """Each column's share of the time between two rows; 0 everywhere when no time passed."""
    passed = [max(0, after - before) for before, after in zip(first, last)]
    total = sum(passed) or 1
    return {name: value / total for name, value in zip(CPU_COLUMNS, passed)}


def _busy(share: dict[str, float]) -> float:
    """Time a CPU was not free to do more: everything but idle and iowait, so that stolen time counts as taken."""
    return sum(value for name, value in share.items() if name not in IDLE_COLUMNS)


def cpu_usage(first: Snapshot, last: Snapshot) -> dict[str, float]:
    """CPU shares (0..1) between two snapshots: all CPUs together, and the busiest single one.

    ``busiest_softirq``: of the CPU with most softirq time, that time; ``busiest_kernel``: of the CPU with most time in
    the kernel (system, interrupts), that time. Either may be full while the others idle.
    """
    total = _share(first.cpus[0], last.cpus[0])
    each = [_share(before, after) for before, after in zip(first.cpus[1:], last.cpus[1:])] or [total]
    return {
        "busy": _busy(total),
        "busiest_cpu": max(_busy(share) for share in each),
        "busiest_softirq": max(share["softirq"] for share in each),
        "busiest_kernel": max(share["system"] + share["irq"] + share["softirq"] for share in each),
        "user": total["user"] + total["nice"],
        "system": total["system"] + total["irq"] + total["softirq"],
        "iowait": total["iowait"],
        "steal": total["steal"],
    }


def disk_usage(first: Snapshot, last: Snapshot, device: tuple[int, int]) -> dict[str, Any] | None:
    """What the kernel completed on one device between two snapshots: I/Os and bytes a second each way, busy share."""
    if device not in first.disks or device not in last.disks:
        return None
    reads, read_sectors, writes, written_sectors, busy_ms = (
        after - before for before, after in zip(first.disks[device], last.disks[device])
    )
    seconds = max(last.time_s - first.time_s, 1e-9)
    return {
        "read_iops": reads / seconds,
        "write_iops": writes / seconds,
        "read_bytes_per_s": read_sectors * SECTOR_BYTES / seconds,
        "write_bytes_per_s": written_sectors * SECTOR_BYTES / seconds,
        "busy": min(1.0, busy_ms / 1000.0 / seconds),
    }
