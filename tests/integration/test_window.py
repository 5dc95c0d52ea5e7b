"""The total over the common window of two real fio runs that began apart, against what the kernel counted in it."""

from __future__ import annotations

import os
import subprocess
import threading
import time

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import cgroup, counters, fio_job, fio_run, fio_tool
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import pack_sample, unpack_figures
from ansible_collections.hostmax.storage.plugins.plugin_utils import merge
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, Reading

from .device_bench import NEEDS_ROOT, made_bench

pytestmark = [*NEEDS_ROOT, pytest.mark.fio]
bench = pytest.fixture(made_bench)

CAP_IOPS = 2000
RUNTIME_S, LATER_S = 10, 3.0
# how far the second host's clock is from the first one's, which is ours
WRONG_S = 30.0


class Service:
    """One capped device that all hosts of a test share, and how many reads the kernel completed on it over time."""

    def __init__(self, bench):
        self.path = bench.loop(bench.image(2**30), "--direct-io=on")
        found = os.stat(self.path)
        self.device = (os.major(found.st_rdev), os.minor(found.st_rdev))
        hierarchy = cgroup.detect()
        self.cgroup = os.path.join(hierarchy.mount, f"hostmax-test-window-{os.getpid()}")
        os.mkdir(self.cgroup)
        bench.undo.callback(self._remove)
        cgroup.limit(self.cgroup, hierarchy.version, "{}:{}".format(*self.device), {"iops": CAP_IOPS})
        self.seen = []

    def _remove(self):
        end_s = time.monotonic() + 5
        while cgroup.members(self.cgroup) and time.monotonic() < end_s:
            time.sleep(0.02)
        os.rmdir(self.cgroup)

    def watch(self):
        """Note the kernel's count of reads now."""
        disks = counters.read_disks(open("/proc/diskstats", encoding="ascii").read(), [self.device])  # noqa: SIM115
        self.seen.append((time.time(), disks[self.device][0]))

    def iops_between(self, start_s, end_s):
        """What the kernel completed a second between two moments, straight between the notes around them."""
        reads = [self._reads_at(at_s) for at_s in (start_s, end_s)]
        return (reads[1] - reads[0]) / (end_s - start_s)

    def _reads_at(self, at_s):
        for (before_s, before), (after_s, after) in zip(self.seen, self.seen[1:], strict=False):
            if before_s <= at_s <= after_s:
                return before + (after - before) * (at_s - before_s) / (after_s - before_s)
        raise AssertionError("the kernel was not watched at that time")


def a_point(service, hosts):
    workload = fio_job.Workload.from_mapping({"name": "w", "rw": "randread", "block_size": "4k", "io_depth": 8})
    target = fio_job.Target("v1", service.path, 7, True)
    job = fio_job.render_job(workload, [target], RUNTIME_S, 0, 500, "points/p01.logs/fio")
    engine, _note = fio_tool.choose_engine("auto", fio_tool.read_engines("fio", run_command), 8)
    job = job.replace("\nioengine=io_uring\n", f"\nioengine={engine}\n")
    common = {"id": "p01", "hash": "0" * 16, "ramp_s": 0, "runtime_s": RUNTIME_S, "log_interval_ms": 500}
    for_agent = {**common, "reads": True, "writes": False, "num_jobs": 1, "volumes": ["v1"], "job": job}
    planned = {**common, "volumes": 1, "workload": workload.to_mapping(), "jobs": dict.fromkeys(hosts, job)}
    return for_agent, planned


def run_command(argv):
    done = subprocess.run(list(argv), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def measure_apart(service, point, tmp_path, hosts):
    """Each host's sample; the second one begins later, and its clock is wrong."""
    samples = {}

    def run(host, wait_s, wrong_s):
        directory = tmp_path / host
        (directory / "points").mkdir(parents=True)
        time.sleep(wait_s)
        here = fio_run.Host(f"test-{os.getpid()}", str(directory), "fio", service.cgroup, {})
        samples[host] = moved(fio_run.measure(here, point, lambda: False), wrong_s)

    threads = [
        threading.Thread(target=run, args=(host, number * LATER_S, number * WRONG_S))
        for number, host in enumerate(hosts)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        service.watch()
        time.sleep(0.02)
    return {host: pack_sample(samples[host]) for host in hosts}


def moved(sample, by_s):
    """The sample as a host would have brought it whose clock is wrong."""
    window = {key: at_s + by_s for key, at_s in sample["window"].items()}
    return {**sample, "window": window, "steps": {**sample["steps"], "start_s": window["start_s"]}}


def test_the_total_is_what_the_service_gave_while_both_hosts_asked_it(bench, tmp_path):
    service, hosts = Service(bench), ("a", "b")
    point, planned = a_point(service, hosts)
    samples = measure_apart(service, point, tmp_path, hosts)
    clocks = {"a": Clock(Reading(0.0, 0.001, 0.0)), "b": Clock(Reading(WRONG_S, 0.001, 0.0))}
    heads = merge.read_heads(planned, samples, clocks)
    assert [head.faults for head in heads.values()] == [(), ()]
    merged = merge.merge_point(planned, samples, heads)
    window = merged["window"]
    truth = service.iops_between(window["start_s"], window["end_s"])
    assert truth == pytest.approx(CAP_IOPS, rel=0.03)
    # the kernel lets capped I/Os go in bursts of a tenth of a second: one more or less in 7 s at each edge
    assert merged["total"]["iops"] == pytest.approx(truth, rel=0.03)
    # alone each host had all of it for a while: what the hosts say of themselves adds up to more than there is
    averages = [unpack_figures(sample)["volumes"]["v1"]["read"]["iops"] for sample in samples.values()]
    assert sum(averages) > 1.2 * truth
    assert window["skew_s"] == pytest.approx(LATER_S, abs=0.5)
    assert merged["latency_scope"] == "whole run"
