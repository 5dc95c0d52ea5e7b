# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run directories of the two NFS studies as hosts would have filled them, with the shape of the published graphs.

Must not know: how results are built or rendered; only plan.json, samples, facts and stages.json.
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import pack_sample
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import RunDirectory, create_run

from .samples_example import direction, even_steps, sample, volume

Json = dict[str, Any]

RUN_ID = "nfs_practices-20261130T194000Z-a1b2c3"
RUNTIME_S = 60.0
START_S = 1796067730.0
BASE = "hard,vers=3,tcp,rsize=262144,wsize=262144"
CACHED = f"{BASE},nocto,actimeo=600"
CONNECTED = f"{CACHED},nconnect=16"
# name, title, on, mount, tuning, speed of random and of sequential I/O, GETATTR and the like for 1,000 I/Os
CONDITIONS: tuple[tuple[str, str, str | None, str, list[str], float, float, float], ...] = (
    ("baseline", "Baseline", None, BASE, [], 1.0, 1.0, 812.0),
    ("nocto-actimeo", "+ nocto, actimeo=600", "baseline", CACHED, [], 1.187, 1.04, 9.1),
    ("tuned", "+ tuned sysctl", "nocto-actimeo", CACHED, ["azure_eda_2025"], 1.38, 1.31, 9.0),
    ("nconnect16", "+ nconnect=16", "tuned", CONNECTED, ["azure_eda_2025"], 3.41, 2.30, 9.2),
    (
        *("vers4.1", "NFSv4.1 instead of NFSv3", "nconnect16", CONNECTED.replace("vers=3", "vers=4.1")),
        *(["azure_eda_2025"], 2.61, 2.02, 10.4),
    ),
    (
        *("rsize64k", "rsize=wsize=64 KiB", "nconnect16", CONNECTED.replace("262144", "65536")),
        *(["azure_eda_2025"], 3.39, 2.11, 9.2),
    ),
    (
        *("rsize1m", "rsize=wsize=1 MiB", "nconnect16", CONNECTED.replace("262144", "1048576")),
        *(["azure_eda_2025"], 3.40, 2.31, 9.1),
    ),
)
NAMES = tuple(condition[0] for condition in CONDITIONS)
# total IOPS of two clients at baseline
STUDY = (
    ({"name": "8k-randread", "rw": "randread", "block_size": "8k", "io_depth": 128, "num_jobs": 4}, 118_000.0),
    ({"name": "8k-randwrite", "rw": "randwrite", "block_size": "8k", "io_depth": 128, "num_jobs": 4}, 61_000.0),
    ({"name": "64k-read", "rw": "read", "block_size": "64k", "io_depth": 128, "num_jobs": 4}, 24_600.0),
    ({"name": "64k-write", "rw": "write", "block_size": "64k", "io_depth": 128, "num_jobs": 4}, 14_100.0),
)
STUDIED = [workload["name"] for workload, _iops in STUDY]


def practices(
    directory: Any,
    hosts: int = 2,
    blocks: int = 3,
    conditions: int = len(CONDITIONS),
    lost: tuple[tuple[str, int, str], ...] = (),
    noise: float = 0.02,
    expect: Any = "none",
    **settings: Any,
) -> RunDirectory:
    """A run of nfs_practices; `lost` names (condition, block, workload) that the second host did not measure."""
    rng = random.Random(20261130)
    names = [f"client{number:02}" for number in range(1, hosts + 1)]
    chosen = CONDITIONS[:conditions]
    points, stages = [], []
    for block in range(1, blocks + 1):
        order = list(chosen)
        rng.shuffle(order)
        for condition in order:
            stage = {"number": len(stages) + 1, "condition": condition[0], "block": block, "points": []}
            for workload, _iops in STUDY:
                point = _planned(len(points) + 1, workload, names, f"b{block}-{condition[0]}")
                points.append({**point, "condition": condition[0], "block": block, "stage": stage["number"]})
                stage["points"].append(point["id"])
            stages.append(stage)
    plan = {
        **_plan("nfs_practices", names, points, {"hostmax_expect": expect, "hostmax_blocks": blocks, **settings}),
        "conditions": [
            {"name": name, "title": title, "on": on, "baseline": NAMES[0], "mount": mount, "tuning": tuning}
            for name, title, on, mount, tuning, *_speed in chosen
        ],
        "stages": stages,
    }
    run = _made(directory, plan)
    _tell_stages(run, names, stages)
    _measure(run, plan, rng, lost, noise)
    return run


def limits(directory: Any, hosts: int = 12, expect: Any = None, blocks: int = 1, **settings: Any) -> RunDirectory:
    """A run of nfs_limits: 256 KiB sequential and 8 KiB random, from reads alone to writes alone, one condition."""
    rng = random.Random(4)
    names = [f"client{number:02}" for number in range(1, hosts + 1)]
    points, stages = [], []
    for block in range(1, blocks + 1):
        stage = {"number": block, "condition": "nconnect16", "block": block, "points": []}
        for workload in _mixes(hosts):
            point = _planned(len(points) + 1, workload, names, f"b{block}-nconnect16")
            points.append({**point, "condition": "nconnect16", "block": block, "stage": block})
            stage["points"].append(point["id"])
        stages.append(stage)
    expect = expect or {"profile": "azure_netapp_files", "volume": "large"}
    plan = {
        **_plan("nfs_limits", names, points, {"hostmax_expect": expect, **settings}),
        "conditions": [{"name": "nconnect16", "title": "16 connections", "on": None, "mount": CONNECTED, "tuning": []}],
        "stages": stages,
    }
    run = _made(directory, plan)
    _tell_stages(run, names, stages)
    _measure(run, plan, rng, (), 0.005)
    return run


def _mixes(hosts: int) -> list[Json]:
    found = []
    for block, rw, size in (("256k-seq", "rw", 262144), ("8k-rand", "randrw", 8192)):
        for percent in range(100, -1, -10):
            kind = {100: rw.replace("rw", "") + "read", 0: rw.replace("rw", "") + "write"}.get(percent, rw)
            workload = {"name": f"{block}-r{percent}", "rw": kind, "block_size_bytes": size, "io_depth": 32}
            found.append({**workload, "num_jobs": 4, "read_percent": percent, "working_set": 2**40 // hosts})
    return found


def _tell_stages(run: RunDirectory, hosts: list[str], stages: list[Json]) -> None:
    for host in hosts:
        run.host_path(host).mkdir(parents=True, exist_ok=True)
        made = {str(stage["number"]): _switch(stage["condition"]) for stage in stages}
        (run.host_path(host) / "stages.json").write_text(json.dumps(made))


def _planned(number: int, workload: Json, hosts: list[str], tail: str) -> Json:
    full = Workload.from_mapping(workload).to_mapping()
    return {
        "id": f"p{number:02}-{tail}-{full['name']}",
        "volumes": 1,
        "runtime_s": RUNTIME_S,
        "ramp_s": 15,
        "jobs": {host: f"[global]\nrw={full['rw']}\nbs={full['block_size_bytes']}\n" for host in hosts},
        "workload": full,
    }


def _plan(playbook: str, hosts: list[str], points: list[Json], settings: Json) -> Json:
    shared = {"name": "vol1", "path": "mounts/vol1", "kind": "directory", "size_bytes": None, "cap": None}
    return {
        "schema": "hostmax.plan/1",
        "run_id": RUN_ID.replace("nfs_practices", playbook),
        "playbook": playbook,
        "created_utc": "2026-11-30T19:40:00Z",
        "command": f"ansible-playbook hostmax.storage.{playbook} -e hostmax_seed=20261130",
        "seed": 20261130,
        "planned_s": 75.0 * len(points),
        "settings": settings,
        "hosts": {host: {"volumes": [{**shared, "files": [2**32] * 4}]} for host in hosts},
        "points": points,
    }


def _made(directory: Any, plan: Json) -> RunDirectory:
    run = create_run(str(directory / "results"), plan["run_id"], plan)
    facts = {"kernel": "5.14.0-362.el9", "cpus": 16, "cpu_model": "Intel Xeon Platinum 8370C", "memory_bytes": 2**36}
    for host in plan["hosts"]:
        clock = {"before": {"offset_s": 0.0, "uncertainty_s": 0.0005, "at_s": START_S - 50}, "after": None}
        run.write_facts(host, {**facts, "fio_version": "fio-3.35", "clock": clock})
        run.write_status(host, "ok", None)
    return run


def _measure(run: RunDirectory, plan: Json, rng: random.Random, lost: Any, noise: float) -> None:
    for number, point in enumerate(plan["points"]):
        start_s, missing = START_S + 75.0 * number, (point.get("condition"), point.get("block"))
        # what a block shares: the hour and the neighbours
        level = math.exp(0.08 * math.sin(point.get("block", 0)))
        for place, host in enumerate(plan["hosts"]):
            if place == 1 and (*missing, point["workload"]["name"]) in lost:
                continue
            share = level * math.exp(rng.gauss(0, noise)) / len(plan["hosts"])
            window = {"start_s": start_s + 0.002 * place, "end_s": start_s + RUNTIME_S, "last_s": start_s + RUNTIME_S}
            volumes = {"vol1": _volume(point, share)}
            made = sample(volumes, point=point["id"], window=window, steps=even_steps(volumes, window), kernel={})
            made["ended_s"] = start_s + RUNTIME_S
            made["nfs"] = {"10.0.0.4:/vol1": _nfs(point, volumes["vol1"])}
            made["net"] = {"interfaces": {}, "tcp": {}, "softnet": {"dropped": 0, "time_squeeze": 0}}
            run.add_sample(host, pack_sample(made))


def _volume(point: Json, share: float) -> Json:
    workload = point["workload"]
    iops = share * (_mix_iops(workload) if workload["name"] not in STUDIED else _study_iops(point))
    outstanding = workload["io_depth"] * workload["num_jobs"]
    ways = {}
    for way, percent in (("read", workload["read_percent"]), ("write", 100 - workload["read_percent"])):
        own = iops * percent / 100
        lat_ns = round(outstanding / iops * 1e9)
        ways[way] = direction(own, lat_ns, RUNTIME_S, workload["block_size_bytes"]) if own else None
    return volume(**ways)


def _study_iops(point: Json) -> float:
    condition = CONDITIONS[NAMES.index(point["condition"])]
    base = next(iops for workload, iops in STUDY if workload["name"] == point["workload"]["name"])
    speed = condition[5] if point["workload"]["rw"].startswith("rand") else condition[6]
    # writes of one client meet its egress limit
    return base * (min(speed, 1.45) if point["workload"]["name"] == "64k-write" else speed)


def _mix_iops(workload: Json) -> float:
    """Between what was published for writes alone and for reads alone, a little below their line."""
    reads = workload["read_percent"] / 100
    write, read = (474e3, 709e3) if workload["block_size_bytes"] == 8192 else (8518 * 4.0, 12_400 * 4.0)
    return (write + (read - write) * reads**1.4) * (1 - 0.12 * reads * (1 - reads))


def _nfs(point: Json, measured: Json) -> Json:
    """Counters as the kernel's client would have had them."""
    place = NAMES.index(point["condition"])
    ios = sum(way["ios"] for way in (measured["read"], measured["write"]) if way)
    mean_ms = max(way["lat_ns"]["mean"] for way in (measured["read"], measured["write"]) if way) / 1e6
    connections = 16 if place >= 3 else 1
    # one connection of 128 slots lets the rest of 512 wait
    rtt_ms = mean_ms * (0.92 if connections == 16 else 0.25)
    queue_ms = 0.97 * mean_ms - rtt_ms
    ops = {}
    for name, way in (("READ", measured["read"]), ("WRITE", measured["write"])):
        if way:
            count = way["ios"]
            times = {"queue_ms": count * queue_ms, "rtt_ms": count * rtt_ms, "execute_ms": count * 0.97 * mean_ms}
            ops[name] = {"ops": count, "transmissions": count, "timeouts": 0, "bytes_sent": 0, "bytes_received": 0}
            ops[name].update({key: round(value) for key, value in times.items()}, errors=0)
    metadata = CONDITIONS[place][7] * ios / 1000
    for name, part in (("GETATTR", 0.7), ("ACCESS", 0.2), ("LOOKUP", 0.1)):
        count = round(metadata * part)
        ops[name] = {"ops": count, "transmissions": count, "timeouts": 0, "errors": 0, "execute_ms": count}
    slots = 62 if connections == 16 else 128
    return {
        "seconds": RUNTIME_S,
        "vers": "4.1" if place == 4 else "3",
        "ops": ops,
        "events": {},
        "bytes": {},
        "xprt": {
            "protocol": "tcp",
            "connections": connections,
            "connects": 0,
            "sends": ios,
            "recvs": ios,
            "req_u": round(ios * (128 if connections == 1 else 30)),
            "bklog_u": round(ios * (380 if connections == 1 else 0)),
            "sending_u": 0,
            "pending_u": 0,
            "max_slots": slots,
            "per_connection_sends": [ios // connections] * connections,
            "shared_with": None,
        },
        "slots_limit": slots,
        "session_slots": 64 if place == 4 else None,
    }


def _switch(name: str) -> Json:
    """What a host told after it had switched to a condition."""
    _name, _title, _on, mount, tuning, *_speed = CONDITIONS[NAMES.index(name)]
    effective = {key: value or "true" for key, _mark, value in (part.partition("=") for part in mount.split(","))}
    connections = int(effective.get("nconnect", "1"))
    differences = []
    if name == "rsize1m":
        effective.update(rsize="524288", wsize="524288")
        differences = ["rsize is 524288 and not 1048576: the server allows no more."]
    if "actimeo" in effective:
        seconds = effective.pop("actimeo")
        effective.update(dict.fromkeys(("acregmin", "acregmax", "acdirmin", "acdirmax"), seconds))
    keys = [
        ("net.core.rmem_max", "212992", "16777216", "16777216", "set", None),
        ("net.ipv4.tcp_sack", "1", "0", "0", "set", None),
        ("net.core.somaxconn", "65535", "65535", "65535", "already", None),
        ("net.ipv4.tcp_fack", None, "0", "0", "legacy", "the kernel ignores it"),
    ]
    names = ("key", "before", "wanted", "after", "status", "note")
    return {
        "mounts": [
            {
                "name": "vol1",
                "path": "/run/hostmax/mounts/vol1",
                "source": "10.0.0.4:/vol1",
                "asked": mount,
                "effective": effective,
                "vers": effective["vers"],
                "nconnect": connections,
                "connections": connections,
                "slots": 62 if connections == 16 else 128,
                "rsize": int(effective["rsize"]),
                "wsize": int(effective["wsize"]),
                "read_ahead_kib": 128,
                "differences": differences,
                "changed": True,
            }
        ],
        "tuning": {"keys": [dict(zip(names, key, strict=True)) for key in keys] if tuning else [], "warnings": []},
    }
