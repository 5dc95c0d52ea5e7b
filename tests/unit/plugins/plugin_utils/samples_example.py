"""The smallest samples that merge, gates and limits can be shown with."""

from __future__ import annotations

import itertools
import math

from ansible_collections.hostmax.storage.plugins.module_utils.histogram import Histogram, index


def direction(iops, lat_ns, runtime_s=10.0, block=4096, ios=None):
    """One direction of a volume whose every I/O took ``lat_ns``."""
    count = ios if ios is not None else round(iops * runtime_s)
    return {
        "ios": count,
        "io_bytes": count * block,
        "iops": iops,
        "bytes_per_s": iops * block,
        "runtime_s": runtime_s,
        "lat_ns": {"n": count, "mean": float(lat_ns), "stddev": 0.0, "min": lat_ns, "max": lat_ns},
        "histogram": Histogram({index(lat_ns): count}).to_dense(),
    }


def volume(read=None, write=None, usr=0.05, sys=0.10):
    return {"read": read, "write": write, "error": 0, "usr": usr, "sys": sys}


def steps_of(volumes, start_s, counts, interval_s=1.0):
    """Steps of a sample: `counts` by volume and direction."""
    lists = {name: {"read": [], "write": [], **counts.get(name, {})} for name in volumes}
    return {"start_s": start_s, "interval_s": interval_s, "unlogged": [], "volumes": lists}


def even_steps(volumes, window, interval_s=1.0):
    """Steps of volumes that did their I/Os evenly from the first to the last."""
    length_s = window["last_s"] - window["start_s"]
    edges = [min(1.0, k * interval_s / length_s) for k in range(math.ceil(round(length_s / interval_s, 9)) + 1)]
    counts = {
        name: {
            way: [round(b * data["ios"]) - round(a * data["ios"]) for a, b in itertools.pairwise(edges)]
            for way in ("read", "write")
            if (data := volume[way])
        }
        for name, volume in volumes.items()
    }
    return steps_of(volumes, window["start_s"], counts, interval_s)


def sample(volumes, **changes):
    return {
        "point": "p01",
        "status": "measured",
        "faults": [],
        "started_s": 100.0,
        "ended_s": 110.5,
        "window": {"start_s": 100.3, "end_s": 110.3, "last_s": 110.3},
        "steps": None,
        "volumes": volumes,
        "cpu": {"busy": 0.5, "busiest_cpu": 0.6, "user": 0.2, "system": 0.3, "iowait": 0.0, "steal": 0.0},
        "engine": {"used": "io_uring", "note": None},
        **changes,
    }


def planned(volumes=1, hosts=("h1",), **workload):
    return {
        "id": "p01",
        "volumes": volumes,
        "runtime_s": 10,
        "ramp_s": 1,
        "jobs": {host: "[global]\n" for host in hosts},
        "workload": {
            "name": "4k-randread",
            "rw": "randread",
            "read_percent": 100,
            "block_size_bytes": 4096,
            "io_depth": 32,
            "num_jobs": 1,
            "engine": "auto",
            "direct": True,
            "working_set_bytes": None,
            "rate_iops": None,
            **workload,
        },
    }
