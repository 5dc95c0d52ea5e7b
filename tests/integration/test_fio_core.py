# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the core says about fio, asked of the fio on this machine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import fio_logs, fio_tool, workload
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import (
    JobError,
    Target,
    Workload,
    parse_job,
    render_job,
)
from ansible_collections.hostmax.storage.plugins.module_utils.fio_output import (
    ExpectedVolume,
    documents,
    pack_sample,
    reduce_output,
    unpack_sample,
)
from ansible_collections.hostmax.storage.plugins.module_utils.histogram import Histogram
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FIO = fio_tool.find_fio() or "fio"
MIB = 2**20

pytestmark = [pytest.mark.fio, pytest.mark.skipif(shutil.which(FIO) is None, reason="fio is not installed")]


def a_workload(**changes: Any) -> Workload:
    return Workload.from_mapping({"name": "w", "rw": "randread", "block_size": "4k", "engine": "psync"} | changes)


def two_volumes(folder: Path, size_bytes: int = 16 * MIB) -> list[Target]:
    targets = []
    for seed, name in enumerate(("thin01", "thin02"), 11):
        path = folder / name
        path.touch()
        os.truncate(path, size_bytes)
        targets.append(Target(name, str(path), seed, block=False, size_bytes=size_bytes))
    return targets


def run_fio(folder: Path, job: str, *options: str) -> subprocess.CompletedProcess[str]:
    """fio writes its result to stdout; what it says beside it stands around the result."""
    (folder / "job.fio").write_text(job, errors="surrogateescape")
    command = [FIO, "--eta=never", "--output-format=json+", *options, "job.fio"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60)
    decode = {"encoding": "utf-8", "errors": "surrogateescape"}
    return subprocess.CompletedProcess(
        command, done.returncode, done.stdout.decode(**decode), done.stderr.decode(**decode)
    )


def test_every_percentile_of_every_entry_equals_fios_own_and_a_volume_of_four_jobs_is_one_entry(tmp_path: Path) -> None:
    job = render_job(a_workload(rw="randrw", read_percent=70, num_jobs=4), two_volumes(tmp_path), 1, 0)
    text = run_fio(tmp_path, job).stdout
    entries = documents(text)[-1]["jobs"]
    assert [(entry["jobname"], entry["groupid"]) for entry in entries] == [("thin01", 0), ("thin02", 1)]
    for entry in entries:
        for direction in ("read", "write"):
            lat = entry[direction]["lat_ns"]
            histogram = Histogram.from_fio_bins(lat["bins"])
            assert histogram.n == lat["N"]
            assert histogram.percentiles(lat["percentile"]) == list(lat["percentile"].values())
            assert "bins" not in entry[direction]["clat_ns"]
    both = [ExpectedVolume(name, True, True) for name in ("thin01", "thin02")]
    reduced = reduce_output(text, both, 1)
    assert reduced["faults"] == []
    assert unpack_sample(pack_sample(reduced)) == reduced


def test_percentiles_on_an_exact_border_equal_fios_own(tmp_path: Path) -> None:
    job = render_job(a_workload(direct=False), two_volumes(tmp_path), 1, 0).replace(
        "time_based=1\n", "number_ios=100\n"
    )
    job = job.replace(
        "clat_percentiles=0\n", "clat_percentiles=0\npercentile_list=7:14:15:29:30:45:50:55:60:85:90:95:99:99.9\n"
    )
    for entry in documents(run_fio(tmp_path, job).stdout)[-1]["jobs"]:
        lat = entry["read"]["lat_ns"]
        assert lat["N"] == 100
        assert Histogram.from_fio_bins(lat["bins"]).percentiles(lat["percentile"]) == list(lat["percentile"].values())


def test_fio_accepts_every_job_that_can_be_rendered(tmp_path: Path) -> None:
    targets = two_volumes(tmp_path)
    built_in = fio_tool.read_engines(FIO, lambda argv: (0, subprocess.check_output(argv, text=True), ""))
    for rw in workload.PATTERNS:
        for engine in set(workload.ENGINES) & {"auto", *built_in}:
            chosen = a_workload(rw=rw, engine=engine, num_jobs=4, rate_iops=1000, working_set=MIB)
            job = render_job(chosen, targets, 2, 1, log_interval_ms=500)
            checked = run_fio(tmp_path, job, "--parse-only", *([] if chosen.writes else ["--readonly"]))
            assert (checked.returncode, checked.stdout.strip(), checked.stderr) == (0, "", ""), (rw, engine)


def test_fio_itself_refuses_to_write_under_readonly(tmp_path: Path) -> None:
    assert run_fio(
        tmp_path, render_job(a_workload(rw="randwrite"), two_volumes(tmp_path), 1, 0), "--readonly"
    ).returncode


HOSTILE = [
    "a:b",
    "a\\b",
    "a\\:b",
    "a\\\\:b\\",
    ":",
    "a b  c",
    'a"b',
    "a'b",
    "[a]",
    "=a",
    "$jobname",
    "a,b",
    "ä",
    "a`id`",
    "%d",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_fio_opens_exactly_the_file_with_a_hostile_name(tmp_path: Path, name: str) -> None:
    target = Target("thin01", name, 7, block=False)
    job = render_job(a_workload(rw="write", direct=False, working_set=4096), [target], 1, 0)
    assert run_fio(tmp_path, job.replace("time_based=1\nruntime=1\n", "")).returncode == 0
    assert sorted(os.listdir(tmp_path)) == sorted(["job.fio", name])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text("\\:[]=,$a{}\"' é", min_size=1, max_size=9))
def test_fio_shows_the_same_file_name_that_was_rendered(tmp_path: Path, name: str) -> None:
    try:
        job = render_job(a_workload(), [Target("thin01", name, 7, block=True)], 1, 0)
    except JobError:
        return
    shown = re.search(r"--filename=(.*?) (?=--|$)", run_fio(tmp_path, job, "--showcmd").stdout, re.MULTILINE)
    assert shown is not None
    as_section = f"[x]\nfilename={shown.group(1)}\n"
    assert dict(parse_job(as_section)[0][1])["filename"] == name


def offsets_of(folder: Path, seeds: tuple[int, int]) -> list[list[str]]:
    """Which blocks each of two volumes read, in order, as fio's own trace has it."""
    targets = two_volumes(folder)
    job = render_job(a_workload(), targets, 1, 0).replace("time_based=1\n", "number_ios=50\n")
    for target, seed in zip(targets, seeds, strict=True):
        (folder / f"{target.name}.trace").unlink(missing_ok=True)
        job = job.replace(f"randseed={target.seed}\n", f"randseed={seed}\n")
        job = job.replace(f"[{target.name}]\n", f"[{target.name}]\nwrite_iolog={target.name}.trace\n")
    run_fio(folder, job)
    traces = [(folder / f"{target.name}.trace").read_text().splitlines() for target in targets]
    return [[line.split()[-2] for line in trace if " read " in line] for trace in traces]


def test_each_volume_has_its_own_order_of_blocks_and_the_same_in_the_next_run(tmp_path: Path) -> None:
    first, second = offsets_of(tmp_path, (11, 12))
    assert len(first) == len(second) == 50
    assert first != second
    assert offsets_of(tmp_path, (11, 12)) == [first, second]
    assert offsets_of(tmp_path, (13, 12))[0] != first


def test_fio_multiplies_seeds_by_the_number_of_the_process(tmp_path: Path) -> None:
    first, second = offsets_of(tmp_path, (14, 7))
    assert first == second, "if this fails, the check of seeds in fio_job needs another rule for this fio"


def test_sequential_jobs_work_on_parts_of_their_own(tmp_path: Path) -> None:
    target = two_volumes(tmp_path)[0]
    run_fio(tmp_path, render_job(a_workload(rw="write", num_jobs=4, rate_iops=80), [target], 1, 0))
    starts, position = [], 0
    with open(target.filename, "rb") as volume:
        while True:
            try:
                starts.append(os.lseek(volume.fileno(), position, os.SEEK_DATA))
                position = os.lseek(volume.fileno(), starts[-1], os.SEEK_HOLE)
            except OSError:
                break
    assert starts == [0, 4 * MIB, 8 * MIB, 12 * MIB]


def test_interval_logs_give_the_window_after_the_ramp_and_the_rate_asked_for(tmp_path: Path) -> None:
    targets = two_volumes(tmp_path)
    job = render_job(a_workload(rw="randrw", num_jobs=2, rate_iops=400), targets, 3, 1, log_interval_ms=500)
    started_s = time.time()
    done = run_fio(tmp_path, job)
    ended_s = time.time()
    reduced = reduce_output(done.stdout, [ExpectedVolume(target.name, True, True) for target in targets], 3)
    assert reduced["faults"] == []
    point = fio_logs.read_point(str(tmp_path / "point"), ["thin01", "thin02"], 2, 500, reduced["volumes"], ended_s)
    assert point is not None
    assert point["steps"]["unlogged"] == []
    window = point["window"]
    assert started_s + 1 <= window["start_s"] < window["end_s"] <= window["last_s"] <= ended_s + 0.1
    for name, ways in point["steps"]["volumes"].items():
        for way, counts in ways.items():
            assert sum(counts) == reduced["volumes"][name][way]["ios"]
            # 200 IOPS in steps of half a second; the last two are a part of one
            assert counts[1:-2] == [pytest.approx(100, rel=0.15)] * (len(counts) - 3)


def test_a_device_that_is_not_there_is_not_created_and_the_result_is_a_fault(tmp_path: Path) -> None:
    missing = tmp_path / "nvme9n9"
    job = render_job(a_workload(working_set=MIB), [Target("thin01", str(missing), 7, block=True)], 1, 0)
    done = run_fio(tmp_path, job)
    faults = reduce_output(done.stdout + done.stderr, [ExpectedVolume("thin01", True, False)], 1)["faults"]
    assert "did no read at all" in faults[0]
    assert "file creation disallowed" in faults[0]
    assert not missing.exists()


def test_a_full_device_gives_text_around_the_result_and_a_fault_with_the_error(tmp_path: Path) -> None:
    chosen = a_workload(rw="write", direct=False, working_set=MIB)
    done = run_fio(tmp_path, render_job(chosen, [Target("thin01", "/dev/full", 7, block=True)], 1, 0))
    assert not done.stdout.startswith("{")
    faults = reduce_output(done.stdout, [ExpectedVolume("thin01", False, True)], 1)["faults"]
    assert "error 28 (No space left on device)" in faults[0]


def workers_of(fio: subprocess.Popen[bytes]) -> list[int]:
    """The processes fio has started, once the first has run for long enough to have done I/O."""
    while fio.poll() is None:
        children = Path(f"/proc/{fio.pid}/task/{fio.pid}/children").read_text().split()
        if len(children) == 2:
            time.sleep(0.7)
            return [int(child) for child in children]
        time.sleep(0.02)
    return []


@pytest.mark.parametrize(("whom", "words"), [("worker", "signal 9"), ("fio", "signal 15")])
def test_a_result_of_a_run_that_was_killed_is_a_fault(tmp_path: Path, whom: str, words: str) -> None:
    targets = two_volumes(tmp_path)
    (tmp_path / "job.fio").write_text(render_job(a_workload(), targets, 4, 0))
    command = [FIO, "--eta=never", "--output-format=json+", "job.fio"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as fio:
        workers = workers_of(fio)
        time.sleep(1)
        os.kill(*((workers[0], signal.SIGKILL) if whom == "worker" else (fio.pid, signal.SIGTERM)))
        text = fio.communicate(timeout=30)[0].decode()
    assert len(documents(text)) == 1
    faults = reduce_output(text, [ExpectedVolume(target.name, True, False) for target in targets], 4)["faults"]
    assert words in faults[0]
    assert fio.returncode == (0 if whom == "worker" else 128)


@pytest.fixture
def mounted_device(tmp_path: Path) -> Iterator[str]:
    image, mount = tmp_path / "volume.img", tmp_path / "mount"
    image.touch()
    os.truncate(image, 64 * MIB)
    mount.mkdir()
    device = subprocess.check_output(["losetup", "--find", "--show", str(image)], text=True).strip()
    try:
        subprocess.check_call(["mkfs.ext4", "-q", device])
        subprocess.check_call(["mount", device, str(mount)])
        try:
            yield device
        finally:
            subprocess.check_call(["umount", str(mount)])
    finally:
        subprocess.check_call(["losetup", "--detach", device])


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_mounted_device_fio_passes_over_with_exit_code_0_is_a_fault(tmp_path: Path, mounted_device: str) -> None:
    chosen = a_workload(rw="randwrite", working_set=MIB)
    done = run_fio(tmp_path, render_job(chosen, [Target("thin01", mounted_device, 7, block=True)], 1, 0))
    assert done.returncode == 0
    reduced = reduce_output(done.stdout + done.stderr, [ExpectedVolume("thin01", False, True)], 1)
    assert reduced["volumes"]["thin01"]["error"] == 0
    assert "did no write at all" in reduced["faults"][0]
    assert "appears mounted" in reduced["faults"][0]


def test_this_fio_is_found_is_new_enough_and_has_an_engine(tmp_path: Path) -> None:
    def run(argv: Any) -> tuple[int, str, str]:
        done = subprocess.run(list(argv), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    version = fio_tool.read_version(FIO, run)
    assert fio_tool.version_fault(version) is None
    engine, _unused = fio_tool.choose_engine("auto", fio_tool.read_engines(FIO, run), 32)
    done = run_fio(tmp_path, render_job(a_workload(engine=engine, io_depth=32), two_volumes(tmp_path), 1, 0))
    assert json.loads(done.stdout)["fio version"] == f"fio-{version}"
    assert shlex.split(done.args[0]) == [FIO]
