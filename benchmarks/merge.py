"""What results and reports of very many hosts cost the controller, from samples of a real fio.

    python benchmarks/merge.py [--hosts 1000] [--volumes 20] [--points 1]

Runs fio once on sparse files of its own, reduces its output as a host does, and gives that sample, with other names
and times, to every host. Prints CPU seconds and memory beside the budgets of the design. Needs no root.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import resource
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / ".collections"))

from ansible_collections.hostmax.storage.plugins.module_utils import fio_job, fio_output, fio_run
from ansible_collections.hostmax.storage.plugins.plugin_utils import merge, render, results, run_directory
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, Reading

WORKLOAD = {"name": "8k-randrw", "rw": "randrw", "read_percent": 70, "block_size": "8k", "io_depth": 1}
# as long as it takes for a json+ of about 480 KB, the middle of what hosts with 20 volumes write
RUNTIME_S = 2


def real_sample(directory: pathlib.Path, volumes: int) -> tuple[dict, dict, float]:
    """(the plan's point, one host's sample, CPU seconds of reducing and packing it) of a real fio."""
    names = [f"vol{number:02}" for number in range(1, volumes + 1)]
    for name in names:
        with (directory / name).open("wb") as handle:
            handle.truncate(64 * 2**20)
    workload = fio_job.Workload.from_mapping({**WORKLOAD, "engine": "psync"})
    targets = [fio_job.Target(name, name, 1009 + number, True) for number, name in enumerate(names)]
    point = {
        "id": "p01",
        "hash": "0" * 16,
        "ramp_s": 0,
        "runtime_s": RUNTIME_S,
        "reads": True,
        "writes": True,
        "num_jobs": 1,
        "io_depth": workload.io_depth,
        "log_interval_ms": 250,
        "volumes": names,
        "job": fio_job.render_job(workload, targets, RUNTIME_S, 0, 250, "points/p01.logs/fio"),
    }
    (directory / "points").mkdir()
    host = fio_run.Host("benchmark", str(directory), "fio", None, {})
    sample = fio_run.measure(host, point, lambda: False)
    if sample["faults"]:
        sys.exit(f"fio failed: {sample['faults']}")
    begun_s = time.process_time()
    packed = fio_output.pack_sample({**sample, "late_s": 0.3, "round": 1, "clock_shift_s": 0.0})
    return {**point, "workload": workload.to_mapping()}, packed, time.process_time() - begun_s


def make_run(directory: pathlib.Path, point: dict, packed: dict, hosts: int, points: int) -> run_directory.RunDirectory:
    """A run directory in which every host has that sample of every point, by a clock of its own."""
    names = [f"client{number:04}" for number in range(1, hosts + 1)]
    volumes = [{"name": name, "path": f"/dev/{name}", "kind": "block", "cap": None} for name in point["volumes"]]
    steps = [
        {
            **point,
            "id": f"p{number:02}",
            "volumes": len(volumes),
            "offset_s": 0.0,
            "jobs": dict.fromkeys(names, point["job"]),
        }
        for number in range(1, points + 1)
    ]
    plan = {
        **dict.fromkeys(run_directory.PLAN_KEYS),
        "schema": run_directory.PLAN_SCHEMA,
        "run_id": "benchmark",
        "playbook": "host_max",
        "created_utc": "2026-11-30T12:00:00Z",
        "command": "benchmarks/merge.py",
        "seed": 1,
        "planned_s": 1.0,
        "settings": {"hostmax_expect": "none"},
        "hosts": {name: {"volumes": volumes} for name in names},
        "points": steps,
    }
    run = run_directory.create_run(str(directory / "results"), "benchmark", plan)
    with (run.path / "samples.jsonl").open("w", encoding="utf-8") as handle:
        for step in steps:
            for number, name in enumerate(names):
                window = {key: at_s + 0.01 * (number % 7) for key, at_s in packed["window"].items()}
                sample = {**packed, "point": step["id"], "window": window}
                handle.write(json.dumps({"host": name, **sample}, separators=(",", ":")) + "\n")
    for name in names:
        run.write_status(name, "ok", None)
    return run


def cpu_s() -> float:
    """User and system CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mib() -> float:
    """The most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--volumes", type=int, default=20)
    parser.add_argument("--points", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hostmax-merge-") as name:
        directory = pathlib.Path(name)
        point, packed, pack_s = real_sample(directory, asked.volumes)
        size = len(json.dumps(packed, separators=(",", ":")))
        figures = f"{1e3 * pack_s:7.1f} ms of CPU, {size / 1000:.1f} KB"
        with gzip.open(directory / "points/p01.json.gz") as raw:
            json_kb = len(raw.read()) / 1000
        print(f"pack a json+ of {json_kb:.0f} KB of {asked.volumes} volumes  {figures} (budget 25 ms, 25 KB)")
        run = make_run(directory, point, packed, asked.hosts, asked.points)
        planned = run.plan["points"][0]
        before_mib, before_s = peak_mib(), cpu_s()
        index = run.sample_index()
        clocks = {host: Clock(Reading(0.0, 0.001, 0.0)) for host in run.plan["hosts"]}
        heads = merge.read_heads(planned, index.of("p01"), clocks)
        merged = merge.merge_point(planned, index.of("p01"), heads)
        used_s, used_mib = cpu_s() - before_s, peak_mib() - before_mib
        figures = f"{used_s:7.2f} s of CPU, {used_mib:.0f} MiB above start"
        print(f"merge {asked.hosts:,} hosts, one point      {figures} (budget 6 s, 64 MiB)")
        assert merged["total"]["iops"] > 0
        before_s = cpu_s()
        document = results.build(run)
        print(f"results of {asked.points} point(s)         {cpu_s() - before_s:7.2f} s of CPU")
        before_s = cpu_s()
        render.render_all(document, run.path)
        print(f"all reports of them          {cpu_s() - before_s:7.2f} s of CPU (budget 6 s)")


if __name__ == "__main__":
    main()
