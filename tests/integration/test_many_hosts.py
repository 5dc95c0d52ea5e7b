"""Several hosts over SSH: they begin together, whatever each of them is like, and their figures add up exactly."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import signal
import statistics
import time
from collections import Counter

import pytest

from tests.lab import Lab, LabError

from .playbook import NEEDS_LAB, Started, at_cap, first_screen, play, results_of, run_id_of, soon

pytestmark = NEEDS_LAB

SETTINGS = {
    "hostmax_thin_count": 1,
    "hostmax_thin_size": "50GB",
    "hostmax_thin_cap": {"iops": 1000},
    "hostmax_volume_counts": [1],
    "hostmax_workloads": ["4k-randread"],
    "hostmax_runtime_s": 6,
    "hostmax_ramp_s": 0,
}


def spread_s(run: pathlib.Path) -> float:
    """Between the first and the last start of fio for the run's only point, on the controller's clock.

    Not the first I/Os: hosts on one machine share its CPUs, and fio gets ready one after the other.
    """
    starts = []
    for line in (run / "samples.jsonl").read_text().splitlines():
        entry = json.loads(line)
        facts = json.loads((run / "hosts" / entry["host"] / "facts.json").read_text())
        starts.append(entry["started_s"] - facts["clock"]["before"]["offset_s"])
    return max(starts) - min(starts)


def near(value: float, share: float = 0.02):
    return at_cap(value, SETTINGS["hostmax_runtime_s"], share)


@pytest.mark.parametrize("forks", [4, 1])
def test_the_caps_of_four_hosts_add_up_however_many_are_reached_at_a_time(lab, tmp_path, forks):
    for name in "abcd":
        lab.host(name)
    settings = {**SETTINGS, "hostmax_results": str(tmp_path)}
    done = play("host_max", settings, *lab.inventory(), "--forks", str(forks))
    assert done.returncode == 0, done.stdout
    found = results_of(tmp_path)
    assert found["run"]["status"] == "complete"
    (point,) = found["points"]
    assert point["counted"]
    assert point["total"]["iops"] == near(4000)
    assert {host: figures["total"]["iops"] for host, figures in point["per_host"].items()} == {
        host: near(1000) for host in "abcd"
    }
    assert sorted(point["timing"]) == list("abcd")
    assert spread_s(tmp_path / "latest") < 0.1
    assert {host["status"] for host in found["hosts"]} == {"ok"}
    assert lab.left_behind(run_id_of(tmp_path)) == {}


# -- one run of hosts that differ in everything -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """The run directory of hosts that are slow to prepare, far away, weak, and wrong about the time."""
    results = tmp_path_factory.mktemp("unlike")
    with Lab() as lab:
        lab.host("plain")
        lab.host("slow")
        lab.host("far", reach_s=0.3)
        lab.host("weak")
        try:
            lab.host("ahead", clock_s=30)
        except LabError as exc:
            pytest.skip(str(exc))
        python = lab.directory / "slow_python"
        python.write_text('#!/bin/sh\nsleep 1.5\nexec /usr/bin/python3 "$@"\n')
        python.chmod(0o755)
        inventory = lab.inventory(
            {"hostmax_thin_cap": SETTINGS["hostmax_thin_cap"]},
            slow={"ansible_python_interpreter": str(python)},
            weak={"hostmax_thin_cap": {"iops": 100}},
        )
        settings = {name: value for name, value in SETTINGS.items() if name != "hostmax_thin_cap"}
        done = play("host_max", {**settings, "hostmax_results": str(results)}, *inventory)
        assert done.returncode == 0, done.stdout
        assert lab.left_behind(run_id_of(results)) == {}
    return (results / "latest").resolve()


def results_in(run: pathlib.Path) -> dict:
    return json.loads((run / "results.json").read_text())


def test_hosts_that_get_ready_at_different_times_begin_together(unlike):
    (point,) = results_in(unlike)["points"]
    assert point["repeat"] == 0
    assert spread_s(unlike) < 0.1


def test_a_host_that_is_slow_to_reach_makes_the_start_later_for_all(unlike):
    facts = json.loads((unlike / "hosts" / "far" / "facts.json").read_text())
    assert facts["reach_s"] > 0.3
    # far enough ahead from the beginning, so that nobody had to be told twice
    assert json.loads((unlike / "round.json").read_text())["attempt"] == 1


def test_a_wrong_clock_changes_no_figure_and_is_named(unlike):
    found = results_in(unlike)
    offsets = {host["name"]: host["clock_offset_s"] for host in found["hosts"]}
    uncertain = {host["name"]: host["clock_uncertainty_s"] for host in found["hosts"]}
    assert offsets["ahead"] == pytest.approx(30, abs=0.2)
    assert all(abs(offsets[name]) <= uncertain[name] + 0.1 for name in offsets if name != "ahead")
    (point,) = found["points"]
    assert point["per_host"]["ahead"]["total"]["iops"] == near(1000)
    assert any("ahead" in warning and "clock" in warning for warning in found["warnings"])
    assert not any("plain" in warning and "clock" in warning for warning in found["warnings"])


def test_a_weak_host_is_seen_beside_the_others_and_in_the_total(unlike):
    (point,) = results_in(unlike)["points"]
    # 32 I/Os at once are 5 % of what it does in the whole point
    assert point["per_host"]["weak"]["total"]["iops"] == near(100, 0.1)
    assert point["total"]["iops"] == near(4100)
    assert point["fairness"]["slowest"]["host"] == "weak"


def test_percentiles_of_all_hosts_come_from_every_single_io(unlike):
    (point,) = results_in(unlike)["points"]
    bins: Counter[int] = Counter()
    for path in unlike.glob(f"hosts/*/{point['id']}.json.gz"):
        for job in json.loads(gzip.decompress(path.read_bytes()))["jobs"]:
            bins.update({int(ns): count for ns, count in job["read"]["lat_ns"]["bins"].items()})
    assert bins.total() == point["read"]["lat_ns"]["n"]
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999)):
        wanted, seen = share * bins.total(), 0
        for ns in sorted(bins):
            seen += bins[ns]
            if seen >= wanted:
                break
        assert point["read"]["lat_ns"][name] == ns
    mean = statistics.fmean(figures["read"]["lat_ns"]["p99"] for figures in point["per_host"].values())
    assert point["read"]["lat_ns"]["p99"] != pytest.approx(mean, rel=0.05)


# -- a host that is late ----------------------------------------------------------------------------------------------


def hold_back(run: Started, results: pathlib.Path, host, number: int, for_s: float) -> None:
    """Stop the host's agent before the round's T0, until so long after it."""
    path = results / "latest" / "round.json"
    assert soon(lambda: path.exists() and json.loads(path.read_text())["round"] == number), run.output()
    (agent,) = host.agents()
    host.kill(agent, signal.SIGSTOP)
    told = json.loads(path.read_text())
    assert told["t0"] > time.time(), "too late to make it late"
    time.sleep(told["t0"] + for_s - time.time())
    host.kill(agent, signal.SIGCONT)


def test_a_point_that_a_host_began_late_is_measured_once_more(lab, tmp_path):
    lab.host("a")
    late = lab.host("late")
    settings = {
        **SETTINGS,
        "hostmax_results": str(tmp_path / "results"),
        "hostmax_runtime_s": 2,
        "hostmax_workloads": ["4k-randread", "8k-randread"],
    }
    run = Started("host_max", settings, tmp_path / "log", *lab.inventory())
    hold_back(run, tmp_path / "results", late, 1, 1.6)
    assert run.end() == 0, run.output()
    found = results_of(tmp_path / "results")
    first, second = found["points"]
    assert [first["repeat"], second["repeat"]] == [1, 0]
    assert first["counted"]
    assert first["total"]["iops"] == near(2000, 0.05)
    assert {host["name"]: host["status"] for host in found["hosts"]} == {"a": "ok", "late": "ok"}
    said = [warning for warning in found["warnings"] if "late" in warning and first["id"] in warning]
    assert said, found["warnings"]
    assert lab.left_behind(run_id_of(tmp_path / "results")) == {}


def test_a_host_that_is_late_again_is_marked_and_its_point_is_not_whole(lab, tmp_path):
    lab.host("a")
    late = lab.host("late")
    settings = {**SETTINGS, "hostmax_results": str(tmp_path / "results"), "hostmax_runtime_s": 2}
    run = Started("host_max", settings, tmp_path / "log", *lab.inventory())
    for number in (1, 2):
        hold_back(run, tmp_path / "results", late, number, 1.6)
    assert run.end() == 2, run.output()
    found = results_of(tmp_path / "results")
    hosts = {host["name"]: host for host in found["hosts"]}
    assert hosts["late"]["status"] == "late"
    assert "again" in hosts["late"]["reason"]
    (point,) = found["points"]
    assert point["repeat"] == 1
    assert not point["counted"]
    assert point["per_host"]["a"]["total"]["iops"] == near(1000, 0.05)
    assert "Host late was late: it began p01-4k-randread-v01 " in first_screen(run.output())
    assert lab.left_behind(run_id_of(tmp_path / "results")) == {}


# -- one volume, two hosts --------------------------------------------------------------------------------------------


def test_one_volume_on_two_hosts_is_refused_before_anything_is_written(lab, tmp_path):
    hosts = [lab.host("a"), lab.host("b")]
    backing = lab.directory / "shared.img"
    backing.write_bytes(os.urandom(2**20))
    before = backing.read_bytes()
    attach = ["losetup", "--find", "--show", "--direct-io=on", str(backing)]
    devices = [host.run(attach).strip() for host in hosts]
    for host, others in zip(hosts, reversed(devices), strict=True):
        # each sees one device, as with kernels of their own; what one host writes the other one reads
        host.run(["mount", "-t", "tmpfs", "hidden", f"/sys/devices/virtual/block/{pathlib.Path(others).name}"])
    settings = {
        **{name: value for name, value in SETTINGS.items() if not name.startswith("hostmax_thin")},
        "hostmax_results": str(tmp_path),
        "hostmax_workloads": ["4k-randwrite"],
        "hostmax_expect": "none",
    }
    mine = {
        host.name: {"hostmax_volumes": [{"name": "disk", "path": device, "size": "1MiB"}]}
        for host, device in zip(hosts, devices, strict=True)
    }
    done = play("host_max", settings, *lab.inventory(**mine))
    assert done.returncode == 2, done.stdout
    assert "hostmax_shared_volumes" in done.stdout, done.stdout
    assert backing.read_bytes() == before
