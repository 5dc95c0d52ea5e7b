"""Running the collection's playbooks as a user does, and looking at what they leave behind on this host."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.lab import missing, processes_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAYBOOK = [str(pathlib.Path(sys.executable).parent / "ansible-playbook")]

NEEDS_DEVICES = [
    pytest.mark.root,
    pytest.mark.fio,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices and cgroups"),
]

NEEDS_LAB = [
    pytest.mark.root,
    pytest.mark.fio,
    pytest.mark.skipif(missing() is not None, reason=f"test hosts: {missing()}"),
]


# after a stall the kernel's throttle gives out what was left unused of one slice, which is 100 ms (blk-throttle)
THROTTLE_SLICE_S = 0.1


def at_cap(cap: float, runtime_s: float, share: float = 0.02):
    """A rate measured under an imposed cap: within ``share`` of it, or above it by what one slice may add."""
    low, high = (1 - share) * cap, (1 + share + THROTTLE_SLICE_S / runtime_s) * cap
    return pytest.approx((low + high) / 2, abs=(high - low) / 2)


def environment(**changes: str) -> dict[str, str]:
    """The user's environment with the checkout's collection and the venv's tools."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    path = f"{pathlib.Path(sys.executable).parent}:{base['PATH']}"
    return {
        **base,
        "PATH": path,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
        "ANSIBLE_NOCOLOR": "1",
        # each line of the output as it comes, also into a file
        "PYTHONUNBUFFERED": "1",
        **changes,
    }


def arguments(name: str, settings: dict, *options: str) -> list[str]:
    return [*PLAYBOOK, f"hostmax.storage.{name}", "-e", json.dumps(settings), *options]


def play(
    name: str, settings: dict, *options: str, cwd: pathlib.Path | None = None, limit_s: float = 300, **env: str
) -> subprocess.CompletedProcess:
    """Run a playbook by its full name to its end, from a directory that is not the checkout."""
    return subprocess.run(
        arguments(name, settings, *options),
        cwd=cwd or "/",
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit_s,
        check=False,
    )


class Started:
    """A playbook that is running, with its output so far."""

    def __init__(self, name: str, settings: dict, log: pathlib.Path, *options: str, **env: str) -> None:
        self.log = log
        with log.open("wb") as handle:
            self.process = subprocess.Popen(
                arguments(name, settings, *options),
                cwd="/",
                env=environment(**env),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, text: str, limit_s: float = 90.0) -> None:
        end_s = time.monotonic() + limit_s
        while text not in self.output():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < end_s, f"{text!r} did not come: {self.output()}"
            time.sleep(0.05)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_until(self, results: pathlib.Path, number: int, into_s: float) -> None:
        """Wait until the run is so far into its ``number``-th point (from 1) of the round that was told last."""
        self.wait_for("Follow the agent")
        told = json.loads((results / "latest" / "round.json").read_text())
        due_s = told["t0"] + told["points"][number - 1]["offset_s"] + into_s
        assert due_s > time.time(), "too late to be there in time"
        time.sleep(due_s - time.time())

    def end(self, limit_s: float = 120.0) -> int:
        return self.process.wait(timeout=limit_s)

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill_all(self) -> None:
        """SIGKILL to the whole controller: its main process and its workers, which have sessions of their own."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in [self.process.pid, *map(int, children)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def soon(condition: Callable[[], object], limit_s: float = 30.0) -> bool:
    """Whether a condition comes true within the limit."""
    end_s = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.1)
    return bool(condition())


def left_behind(state: pathlib.Path, run_id: str = "") -> list[str]:
    """What a run would leave on this host: loop devices, cgroups, files, processes."""
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line for line in loops if str(state) in line]
    found += [str(path) for path in pathlib.Path("/sys/fs/cgroup").glob("**/hostmax-host_max-*") if run_id in path.name]
    found += [str(path) for path in state.glob("*/*")] if state.exists() else []
    found += [f"process {pid}" for pid in processes_of(run_id)] if run_id else []
    return found


def results_of(directory: pathlib.Path) -> dict:
    return json.loads((directory / "latest" / "results.json").read_text())


def first_screen(output: str) -> str:
    """What the run's end shows, on one line: the summary, without Ansible's lines around it."""
    shown = output.rpartition("TASK [hostmax.storage.report : Show the result")[2].partition("\nReport: ")[0]
    return " ".join(shown.split())


def run_id_of(directory: pathlib.Path) -> str:
    return (directory / "latest").resolve().name
