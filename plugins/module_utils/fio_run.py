# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One fio process, one point: started, watched, bounded, and turned into a sample.

It must not know about clocks shared with other hosts, Ansible or the journal; the agent decides when a point runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import os
import shutil
import signal
import subprocess
import time
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import cgroup as cgroups
from ansible_collections.hostmax.storage.plugins.module_utils import (
    counters,
    fio_logs,
    fio_output,
    host_state,
    net_counters,
    nfs_counters,
)

# fio's own start and end take about 0.3 s; a stalled volume may hold the end of a run much longer.
GRACE_S = 30.0
WATCH_S = 0.02
DIAGNOSTICS_CHARS = 2000
# counters of network and NFS are longer texts than the others: at most about this many of them in one point
MOST_READINGS = 100
PR_SET_PDEATHSIG = 1


class Host(NamedTuple):
    """What every point on this host shares."""

    run_id: str
    work_dir: str
    fio: str
    cgroup: str | None
    devices: dict[str, tuple[int, int]]
    # absolute path of each volume that is a file or a directory, without symbolic links
    paths: Mapping[str, str] = {}


class Ended(NamedTuple):
    """How fio ended: its return code (negative: the signal), when, and the reason where we ended it."""

    returncode: int | None
    started_s: float
    ended_s: float
    reason: str | None


def _child_setup(cgroup: str | None) -> Callable[[], None]:
    """What the child does before it becomes fio: die with the agent, and enter the cap's cgroup."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def setup() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(125)
        if cgroup:
            cgroups.join(cgroup, os.getpid())

    return setup


def _stop(process: subprocess.Popen[bytes], run_id: str) -> int | None:
    """End fio and its workers: politely, then for good; None where even SIGKILL did not end it (I/O that hangs)."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    host_state.end_processes(run_id, grace_s=1.0)
    try:
        return process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return None


def run_fio(
    host: Host, argv: Sequence[str], log_path: str, limit_s: float, tick: Callable[[], None], stop: Callable[[], bool]
) -> Ended:
    """Run fio until it ends, ``limit_s`` passes or ``stop()`` says so; ``tick`` is called about 50 times a second."""
    environment = dict(os.environ, HOSTMAX_RUN=host.run_id, LC_ALL="C")
    started_s = time.time()
    with open(log_path, "wb") as log:
        process = subprocess.Popen(
            list(argv),
            cwd=host.work_dir,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_child_setup(host.cgroup),
        )
        reason = None
        while process.poll() is None:
            tick()
            if stop():
                reason = "the run was stopped"
            elif time.time() - started_s > limit_s:
                reason = f"fio did not end within {limit_s:.0f} s and was ended"
            if reason:
                if _stop(process, host.run_id) is None:
                    reason += "; it hangs in I/O and could not be killed"
                break
            time.sleep(WATCH_S)
    if process.returncode is None or process.returncode < 0:
        # workers of a killed fio go on doing I/O until their runtime ends (measured with 3.33 and 3.42)
        host_state.end_processes(host.run_id, grace_s=1.0)
    return Ended(process.returncode, started_s, time.time(), reason)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as handle:
            return handle.read().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def _faults(ended: Ended, reduced: dict[str, Any]) -> list[str]:
    """Every reason why this point does not count, the cause before its consequences."""
    faults = []
    if ended.reason:
        faults.append(ended.reason)
    elif ended.returncode is not None and ended.returncode < 0:
        faults.append(f"fio was killed by signal {-ended.returncode}")
    return faults + list(reduced["faults"])


def _timing(prefix: str, point: dict[str, Any], reduced: dict[str, Any], ended: Ended) -> dict[str, Any]:
    """`window` and `steps` from fio's interval logs; the window alone, from fio's end, where there are none."""
    measured = {name: volume for name, volume in reduced["volumes"].items() if volume["read"] or volume["write"]}
    jobs, interval_ms = point["num_jobs"], point["log_interval_ms"]
    timing = fio_logs.read_point(prefix, point["volumes"], jobs, interval_ms, reduced["volumes"], ended.ended_s)
    if timing is not None and measured:
        return timing
    runtimes = [way["runtime_s"] for each in measured.values() for way in (each["read"], each["write"]) if way]
    if not runtimes:
        return {"window": None, "steps": None}
    start_s = ended.ended_s - max(runtimes)
    window = {"start_s": start_s, "end_s": start_s + min(runtimes), "last_s": ended.ended_s}
    return {"window": window, "steps": None}


def _kernel_view(host: Host, volumes: Sequence[str], edges: Any) -> dict[str, Any]:
    seen = {}
    for name in volumes:
        usage = counters.disk_usage(edges[0], edges[1], host.devices[name]) if name in host.devices else None
        if usage:
            seen[name] = usage
    return seen


def _sampler(host: Host, point: Mapping[str, Any], watch: nfs_counters.Watch) -> counters.Sampler:
    interval_s = min(1.0, max(0.2, point["runtime_s"] / 10.0))
    return counters.Sampler(
        [host.devices[name] for name in point["volumes"] if name in host.devices],
        interval_s,
        readers={"net": net_counters.read, **({"nfs": watch.read} if watch.names else {})},
        readers_s=max(interval_s, (point["ramp_s"] + point["runtime_s"]) / MOST_READINGS),
    )


def _readings(sampler: counters.Sampler, window: Any, watch: nfs_counters.Watch) -> dict[str, Any]:
    """What NFS mounts and the network did inside the window; None each where that cannot be told."""
    found = {}
    for name, difference in (("nfs", watch.difference), ("net", net_counters.difference)):
        edges = sampler.readings_inside(window["start_s"], window["end_s"], name) if window else None
        found[name] = difference(*edges) if edges else None
    return found


def measure(host: Host, point: dict[str, Any], stop: Callable[[], bool]) -> dict[str, Any]:
    """Run one point of the host's plan and return its sample; raw output stays as ``points/<id>.json.gz``.

    Raises OSError where the work directory cannot be written (the agent turns that into a sentence).
    """
    base = os.path.join(host.work_dir, "points", point["id"])
    # the job file names this directory for its interval logs; fio appends to older logs in some versions
    logs = base + ".logs"
    os.makedirs(logs, mode=0o700)
    with open(base + ".fio", "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(point["job"])
    argv = [host.fio, "--output=" + base + ".json", "--output-format=json+", "--eta=never"]
    if not point["writes"]:
        argv.append("--readonly")
    length_s = point["ramp_s"] + point["runtime_s"]
    watch = nfs_counters.Watch(host.paths[name] for name in point["volumes"] if name in host.paths)
    sampler = _sampler(host, point, watch)
    ended = run_fio(host, [*argv, base + ".fio"], base + ".log", length_s + max(GRACE_S, length_s), sampler.tick, stop)
    text = _text(base + ".json")
    # some versions tell of killed workers only beside the file
    beside = _text(base + ".log")
    expected = [fio_output.ExpectedVolume(name, point["reads"], point["writes"]) for name in point["volumes"]]
    reduced = fio_output.reduce_output(text + "\n" + beside, expected, point["runtime_s"])
    timing = _timing(os.path.join(logs, "fio"), point, reduced, ended)
    window = timing["window"]
    edges = sampler.inside(window["start_s"], window["end_s"]) if window else None
    faults = _faults(ended, reduced)
    sample = {
        "point": point["id"],
        "hash": point["hash"],
        "status": "failed" if faults else "measured",
        "faults": faults,
        "started_s": ended.started_s,
        "ended_s": ended.ended_s,
        "returncode": ended.returncode,
        "fio_version": reduced["fio_version"],
        "volumes": reduced["volumes"],
        "diagnostics": reduced["diagnostics"][:DIAGNOSTICS_CHARS],
        **timing,
        "cpu": counters.cpu_usage(*edges) if edges else None,
        "kernel": _kernel_view(host, point["volumes"], edges) if edges else {},
        **_readings(sampler, window, watch),
    }
    _keep_raw(base, text)
    return sample


def not_started(point: dict[str, Any], fault: str) -> dict[str, Any]:
    """The sample of a point that was not run, and why; it has no figures and no raw output."""
    nothing = dict.fromkeys(
        ("started_s", "ended_s", "returncode", "fio_version", "window", "steps", "cpu", "nfs", "net")
    )
    return {
        **nothing,
        "point": point["id"],
        "hash": point["hash"],
        "status": "failed",
        "faults": [fault],
        "volumes": {},
        "diagnostics": "",
        "kernel": {},
        "engine": {"used": None, "note": None},
    }


def _keep_raw(base: str, text: str) -> None:
    """The untouched fio output, compressed; everything else of the point is in the sample."""
    with gzip.open(base + ".json.gz", "wb", compresslevel=6) as handle:
        handle.write(text.encode("utf-8", "surrogateescape"))
    for ending in (".json", ".log"):
        if os.path.exists(base + ending):
            os.unlink(base + ending)
    shutil.rmtree(base + ".logs")
