"""Processes that carry a run's mark, on this machine or, by its /proc, on a test host."""

from __future__ import annotations

import contextlib
import pathlib


def processes_of(run_id: str, proc: pathlib.Path = pathlib.Path("/proc")) -> list[int]:
    """Every process that carries the run's mark, by its number there."""
    mark = f"HOSTMAX_RUN={run_id}".encode()
    found = []
    for path in proc.glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
