"""Directory volumes on real fio and real file systems: laid out once, measured as the kernel sees it, and removed."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import fio_tool, handlers, host_state, test_files
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import Target, Workload, file_name, render_job
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Journal
from ansible_collections.hostmax.storage.plugins.module_utils.random_files import LayoutError

from .playbook import NEEDS_LAB, Started, left_behind, play, processes_of, results_of, run_id_of, soon

FIO = fio_tool.find_fio() or "fio"
MIB = 2**20

READS = {
    "name": "8k-randread",
    "rw": "randread",
    "block_size": "8k",
    "io_depth": 8,
    "num_jobs": 4,
    "working_set": "64M",
}
WRITES = {"name": "64k-write", "rw": "write", "block_size": "64k", "io_depth": 4, "num_jobs": 2, "working_set": "32M"}

pytestmark = [pytest.mark.fio, pytest.mark.skipif(shutil.which(FIO) is None, reason="fio is not installed")]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for mounts and loop devices")


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def place():
    """A directory of a user, with a file in it, on a disk of this machine."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="hostmax-test-", dir="/var/tmp"))
    (path / "user.txt").write_text("mine")
    yield path
    shutil.rmtree(path)


class Disk:
    """A small ext4 of its own on a loop device, mounted."""

    def __init__(self, directory: pathlib.Path, size_bytes: int, *options: str) -> None:
        image = directory / "disk.img"
        with image.open("wb") as handle:
            handle.truncate(size_bytes)
        subprocess.run(
            ["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image], check=True
        )
        self.path = directory / "disk"
        self.path.mkdir()
        subprocess.run(["mount", "-o", "loop", image, self.path], check=True)
        found = subprocess.run(["findmnt", "-no", "SOURCE", self.path], capture_output=True, text=True, check=True)
        self.device = os.path.basename(found.stdout.strip())

    def moved_bytes(self) -> tuple[int, int]:
        """(read, written) since the device was made, as the kernel counts them."""
        fields = pathlib.Path(f"/sys/block/{self.device}/stat").read_text().split()
        return int(fields[2]) * 512, int(fields[6]) * 512

    def close(self) -> None:
        subprocess.run(["umount", self.path], check=True)


@pytest.fixture
def disk(place):
    made = Disk(place, 512 * MIB)
    yield made
    made.close()


def settings(results, *paths, workloads=(READS,), **more):
    return {
        "hostmax_results": str(results),
        "hostmax_volumes": [{"path": str(path)} for path in paths],
        "hostmax_workloads": list(workloads),
        "hostmax_runtime_s": 2,
        "hostmax_ramp_s": 0,
        **more,
    }


def own_directories(path: pathlib.Path) -> list[str]:
    return sorted(each.name for each in path.glob("hostmax-*"))


def raw(results: pathlib.Path) -> list[dict]:
    paths = sorted((results / "latest" / "hosts" / "localhost").glob("p*.json.gz"))
    return [json.loads(gzip.decompress(path.read_bytes())) for path in paths]


# -- one run ----------------------------------------------------------------------------------------------------------


@pytest.mark.root
@needs_root
def test_the_kernel_saw_what_fio_reports_and_the_files_were_laid_out_once_for_all_points(disk, results, state):
    before = disk.moved_bytes()
    workloads = [READS, {**READS, "name": "64k-read", "rw": "read", "block_size": "64k", "working_set": "32M"}]
    done = play("host_max", settings(results, disk.path, workloads=workloads), HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    read, written = (after - earlier for after, earlier in zip(disk.moved_bytes(), before))
    jobs = [job for point in raw(results) for job in point["jobs"]]
    assert read == pytest.approx(sum(job["read"]["io_bytes"] for job in jobs), rel=0.05)
    # what the workloads need, and the file system's own books
    assert 64 * MIB <= written < 1.5 * 64 * MIB
    found = results_of(results)
    assert found["run"]["status"] == "complete"
    assert [point["counted"] for point in found["points"]] == [True, True]
    (volume,) = found["hosts"][0]["volumes"]
    assert (volume["kind"], volume["path"], volume["size_bytes"]) == ("directory", str(disk.path), 64 * MIB)
    assert own_directories(disk.path) == []
    assert left_behind(state, run_id_of(results)) == []


def test_reading_and_writing_leave_the_users_directory_as_it_was(place, results, state):
    done = play("host_max", settings(results, place, workloads=[READS, WRITES]), HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert "lays out  4 test files of 64 MiB together before the first point" in done.stdout
    assert "writes    only its own test files, by 64k-write" in done.stdout
    assert [point["counted"] for point in results_of(results)["points"]] == [True, True]
    assert [path.name for path in place.iterdir()] == ["user.txt"]
    assert left_behind(state, run_id_of(results)) == []


def test_a_resumed_run_keeps_the_points_of_a_directory(place, results, state):
    first = play("host_max", settings(results, place), HOSTMAX_STATE=str(state))
    assert first.returncode == 0, first.stdout
    more = {"hostmax_resume": str(results / "latest")}
    done = play("host_max", settings(results, place, workloads=[READS, WRITES], **more), HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert "1 point kept from" in done.stdout
    assert "[1/1]" in done.stdout
    assert [path.name for path in place.iterdir()] == ["user.txt"]


# -- refused ----------------------------------------------------------------------------------------------------------


def refusal(results, state, *paths, **more) -> str:
    done = play("host_max", settings(results, *paths, **more), HOSTMAX_STATE=str(state))
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    return " ".join(done.stdout.split())


def test_a_missing_directory_ends_the_run_before_anything_is_made(place, results, state):
    text = refusal(results, state, place / "gone")
    assert f"volume vol01 ({place}/gone) needs the directory {place}/gone, which does not exist" in text
    assert not (place / "gone").exists()


def test_a_link_to_a_directory_is_followed_and_two_names_of_one_directory_are_refused(place, results, state):
    data = place / "data"
    data.mkdir()
    (place / "link").symlink_to(data)
    done = play("host_max", settings(results, place / "link"), HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert list(data.iterdir()) == []
    assert "is in the same directory as volume vol01" in refusal(results, state, place / "link", data)


@pytest.mark.root
@needs_root
def test_a_read_only_file_system_is_refused(disk, results, state):
    subprocess.run(["mount", "-o", "remount,ro", disk.path], check=True)
    text = refusal(results, state, disk.path)
    assert f"needs files in {disk.path}, which is read-only" in text
    assert "too little room" not in text


@pytest.mark.root
@needs_root
def test_files_that_do_not_fit_are_refused_before_the_first_is_made(disk, results, state):
    text = refusal(results, state, disk.path, workloads=[{**READS, "working_set": "1G"}])
    assert "has too little room: the files of this run need 1 GiB" in text
    assert own_directories(disk.path) == []


@pytest.mark.root
@needs_root
def test_a_file_system_without_direct_io_is_told_before_the_first_point(place, results, state, request):
    memory = place / "ramfs"
    memory.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "hostmax-test", memory], check=True)
    request.addfinalizer(lambda: subprocess.run(["umount", memory], check=True))
    text = refusal(results, state, memory)
    assert "is on a file system (ramfs) that refuses direct I/O in blocks of 8 KiB" in text
    assert list(memory.iterdir()) == []
    buffered = settings(results, memory, workloads=[{**READS, "direct": False}])
    done = play("host_max", buffered, HOSTMAX_STATE=str(state))
    assert "in this host's memory (ramfs)" in " ".join(done.stdout.split())
    assert results_of(results)["points"][0]["total"]["iops"] > 0
    assert list(memory.iterdir()) == []


# -- ended by force ---------------------------------------------------------------------------------------------------


@pytest.fixture
def measuring(place, results, state, tmp_path):
    """A run that is in its second point."""
    asked = settings(results, place, workloads=[READS, WRITES], hostmax_runtime_s=8, hostmax_patience_s=5)
    run = Started("host_max", asked, tmp_path / "log", HOSTMAX_STATE=str(state))
    run.wait_for("[1/2]")
    assert soon(lambda: processes_of(run_id_of(results)))
    assert own_directories(place) == [f"hostmax-{run_id_of(results)}-localhost"]
    yield run
    if run.process.poll() is None:
        run.kill_all()
    play("restore", {"hostmax_run": run_id_of(results)}, HOSTMAX_STATE=str(state))


def agent_of(state: pathlib.Path, run_id: str) -> int:
    return int(json.loads((state / run_id / "agent.json").read_text())["pid"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_controller_leaves_no_file(measuring, place, state, results, number):
    measuring.send(number)
    assert measuring.end() != 0
    assert soon(lambda: left_behind(state, run_id_of(results)) == []), left_behind(state, run_id_of(results))
    assert [path.name for path in place.iterdir()] == ["user.txt"]


def test_after_a_killed_controller_and_agent_restore_removes_the_files(measuring, place, state, results):
    measuring.kill_all()
    os.kill(agent_of(state, run_id_of(results)), signal.SIGKILL)
    assert own_directories(place) != []
    done = play("restore", {"hostmax_run": str(results / "latest")}, HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert [path.name for path in place.iterdir()] == ["user.txt"]
    again = play("restore", {"hostmax_run": str(results / "latest")}, HOSTMAX_STATE=str(state))
    assert "changed=0" in again.stdout


def test_after_a_killed_controller_the_agent_removes_the_files_by_itself(measuring, place, state, results):
    measuring.kill_all()
    assert soon(lambda: own_directories(place) == [], limit_s=60.0)
    assert [path.name for path in place.iterdir()] == ["user.txt"]


def test_a_run_that_is_interrupted_while_it_lays_out_leaves_no_file(place, results, state, tmp_path):
    large = settings(results, place, workloads=[{**READS, "working_set": "8G"}])
    run = Started("host_max", large, tmp_path / "log", HOSTMAX_STATE=str(state))
    run.wait_for("test files laid out")
    run.send(signal.SIGINT)
    assert run.end() != 0
    assert soon(lambda: left_behind(state, run_id_of(results)) == []), left_behind(state, run_id_of(results))
    assert [path.name for path in place.iterdir()] == ["user.txt"]


def test_a_file_of_somebody_else_among_ours_stays_and_is_told(measuring, place, state, results):
    own = place / f"hostmax-{run_id_of(results)}-localhost"
    (own / "notes.txt").write_text("keep")
    measuring.send(signal.SIGINT)
    measuring.end()
    assert soon(lambda: [path.name for path in own.iterdir()] == ["notes.txt"])
    done = play("restore", {"hostmax_run": str(results / "latest")}, HOSTMAX_STATE=str(state))
    assert "it holds notes.txt, which this run did not make" in " ".join(done.stdout.split())
    assert (own / "notes.txt").read_text() == "keep"
    shutil.rmtree(own)


def test_a_file_that_is_removed_under_a_run_is_found_and_not_made_again(place, results, state, tmp_path):
    asked = settings(results, place, workloads=[READS, WRITES], hostmax_runtime_s=4)
    run = Started("host_max", asked, tmp_path / "log", HOSTMAX_STATE=str(state))
    run.wait_for("TASK [hostmax.storage.measure : Follow the agent]")
    (place / f"hostmax-{run_id_of(results)}-localhost" / "hostmax.1.0").unlink()
    assert run.end() == 2
    assert "are not there as they were laid out" in " ".join(run.output().split())
    assert [path.name for path in place.iterdir()] == ["user.txt"]


# -- the layout by itself ---------------------------------------------------------------------------------------------


@pytest.fixture
def book(state, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(state))
    return Journal(os.path.join(host_state.make_work_dir("run1"), "journal.jsonl"))


@pytest.mark.root
@needs_root
def test_a_file_system_that_becomes_full_midway_is_told_in_one_sentence_and_left_as_it_was(disk, book):
    volume = {"name": "vol01", "path": f"{disk.path}/own", "kind": "directory", "files": [128 * MIB, 128 * MIB]}

    def fill_the_rest(_event, **_facts):
        if not (disk.path / "filler").exists():
            free = os.statvfs(disk.path)
            with (disk.path / "filler").open("wb") as handle:
                os.posix_fallocate(handle.fileno(), 0, free.f_bavail * free.f_frsize - 64 * MIB)

    with pytest.raises(LayoutError, match=r"became full \(No space left on device\) after .* of 256 MiB") as told:
        test_files.lay_out(book, [volume], "/", fill_the_rest)
    assert str(told.value).endswith("make room, or set a smaller working_set.")
    assert book.restore(handlers.HANDLERS)["left"] == []
    assert sorted(path.name for path in disk.path.iterdir()) == ["filler", "lost+found"]


# -- fio's part -------------------------------------------------------------------------------------------------------


def fio(folder: pathlib.Path, workload: Workload, directory: str = "own") -> subprocess.CompletedProcess[str]:
    (folder / "job.fio").write_text(render_job(workload, [Target("vol01", directory, 7, True, directory=True)], 1, 0))
    command = [FIO, "--eta=never", "--output-format=json+", "job.fio"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("rw", ["randread", "read", "randwrite", "write", "randrw"])
def test_fio_uses_the_part_of_each_jobs_file_that_is_asked_for_and_changes_no_size(place, rw):
    (place / "own").mkdir()
    before = {}
    for number in range(3):
        path = place / "own" / file_name(number)
        path.write_bytes(os.urandom(2 * MIB))
        before[path.name] = path.read_bytes()
    asked = {"name": "w", "rw": rw, "block_size": "64k", "num_jobs": 3, "working_set": 3 * MIB, "engine": "psync"}
    done = fio(place, Workload.from_mapping(asked))
    assert done.returncode == 0, done.stderr
    after = {path.name: path.read_bytes() for path in (place / "own").iterdir()}
    assert after.keys() == before.keys()
    for name, content in after.items():
        assert content[MIB:] == before[name][MIB:]
        assert (content[:MIB] == before[name][:MIB]) == (rw in ("randread", "read"))
    assert len(set(after.values())) == 3


def test_fio_makes_no_file_that_is_missing(place):
    (place / "own").mkdir()
    asked = {"name": "w", "rw": "randwrite", "block_size": "64k", "working_set": MIB, "engine": "psync"}
    assert fio(place, Workload.from_mapping(asked)).returncode != 0
    assert list((place / "own").iterdir()) == []


def test_a_directory_with_a_colon_in_its_name_is_one_directory(place):
    own = place / "a:b" / "own"
    own.mkdir(parents=True)
    (own / file_name(0)).write_bytes(os.urandom(MIB))
    asked = {"name": "w", "rw": "read", "block_size": "64k", "working_set": MIB, "engine": "psync"}
    assert fio(place, Workload.from_mapping(asked), str(own)).returncode == 0


# -- several hosts ----------------------------------------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.skipif(
    any(mark.args and mark.args[0] for mark in NEEDS_LAB if mark.name == "skipif"), reason="no test hosts"
)
def test_two_hosts_in_one_directory_have_directories_of_their_own_and_leave_none(lab, place, results):
    for name in ("a", "b"):
        lab.host(name)
    asked = settings(results, place, workloads=[WRITES])
    run = Started("host_max", asked, results.with_name("log"), *lab.inventory())
    run.wait_for("TASK [hostmax.storage.measure : Agree on the start]")
    run_id = run_id_of(results)
    assert own_directories(place) == [f"hostmax-{run_id}-a", f"hostmax-{run_id}-b"]
    assert run.end() == 0, run.output()
    found = results_of(results)
    assert found["run"]["status"] == "complete"
    assert sorted(found["points"][0]["per_host"]) == ["a", "b"]
    assert [path.name for path in place.iterdir()] == ["user.txt"]
    assert lab.left_behind(run_id) == {}
