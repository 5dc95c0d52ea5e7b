# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a run keeps its files on a host, and which processes belong to it: found, and ended, one by one.

Must not know: what a run does, what the journal holds, volumes or fio.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

Identity = Dict[str, Any]
Run = Callable[[List[str]], Tuple[int, str, str]]

MARK = "HOSTMAX_RUN"
# the run id of what `prepare` made: it stands until it is restored, over restarts too
PREPARED = "prepared"
STATE_VARIABLE = "HOSTMAX_STATE"
_ROOT_STATE = "/var/lib/hostmax"
_USER_STATE = "~/.local/state/hostmax"
_RUN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)
_RUN_ID_CHARS = 200
_MACHINE = ".machine"
_POLL_S = 0.02
_KILL_WAIT_S = 5.0


class HostError(Exception):
    """Why something cannot be done on this host; the message is one sentence for the user."""


def is_root() -> bool:
    """Whether this process may attach loop devices and make cgroups."""
    return os.geteuid() == 0


def run_command(argv: list[str]) -> tuple[int, str, str]:
    """Run a short command to its end and return (rc, stdout, stderr): what a module does with its own run_command."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


# -- files ------------------------------------------------------------------------------------------------------------


def state_root() -> str:
    """The directory that holds one work directory per run."""
    override = os.environ.get(STATE_VARIABLE)
    if override:
        return os.path.realpath(override)
    return os.path.realpath(_ROOT_STATE if is_root() else os.path.expanduser(_USER_STATE))


def work_dir(run_id: str) -> str:
    """The work directory of a run, whether it exists or not."""
    if not isinstance(run_id, str) or len(run_id) > _RUN_ID_CHARS or _RUN_ID.fullmatch(run_id) is None:
        raise HostError(
            f"The run id {run_id!r} is not one: use up to {_RUN_ID_CHARS} letters, digits, '_', '-' or '.', "
            "and no '.' at its start."
        )
    return os.path.join(state_root(), run_id)


def make_work_dir(run_id: str) -> str:
    """Make the work directory of a run, for this user only, and see to it that it survives a crash.

    One that another machine made is refused: on a file system that hosts share, they would use each other's files.
    """
    path = work_dir(run_id)
    try:
        for _attempt in range(3):
            try:
                os.makedirs(state_root(), mode=0o700, exist_ok=True)
                os.mkdir(path, 0o700)
            except FileExistsError:
                pass
            except FileNotFoundError:
                # another run's restore removed the empty state directory in between
                continue
            break
        _check_private(path)
        _check_machine(path)
        sync_directory(state_root())
    except OSError as exc:
        raise HostError(
            f"The work directory {path} cannot be made ({exc.strerror}); make {state_root()} writable for this user."
        ) from exc
    return path


def _check_private(path: str) -> None:
    facts = os.lstat(path)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise HostError(f"The work directory {path} is not a directory of this user; remove it or use another run id.")
    os.chmod(path, 0o700)


def _check_machine(path: str) -> None:
    """Leave the name of this machine in a new work directory, whole before anybody can see it; compare it later."""
    own = installation() if os.path.basename(path) == PREPARED else machine()
    name = os.path.join(path, _MACHINE)
    draft = f"{name}.{os.getpid()}.{os.urandom(4).hex()}"
    with open(draft, "w", encoding="ascii") as handle:
        handle.write(own + "\n")
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, name)
    finally:
        os.unlink(draft)
    with open(name, encoding="ascii") as handle:
        maker = handle.read().strip()
    if maker != own:
        raise HostError(
            f"The work directory {path} was made by another host, or before a restart of this one: where hosts share "
            f"the file system of {state_root()}, give each a place of its own with {STATE_VARIABLE} in its environment."
        )


def machine() -> str:
    """This boot and this process namespace (a container has its own): who may use a work directory."""
    return " ".join((boot_id(), os.readlink("/proc/self/ns/pid")))


def installation() -> str:
    """This machine over its restarts: its machine id (machine-id(5)) and its name, which clones do not share."""
    try:
        with open("/etc/machine-id", encoding="ascii", errors="replace") as handle:
            own = handle.read().strip()
    except OSError:
        own = ""
    return " ".join((own or "no-machine-id", os.uname().nodename))


def remove_work_dir(run_id: str) -> None:
    """Remove a run's work directory and all in it, and the state directory where that was the last run."""
    path = work_dir(run_id)
    try:
        _check_private(path)
        _check_no_mount(path)
        shutil.rmtree(path)
    except FileNotFoundError:
        pass  # gone already, or another restore is removing it too
    if not os.environ.get(STATE_VARIABLE):
        with contextlib.suppress(OSError):  # other runs are in it
            os.rmdir(state_root())


def _check_no_mount(path: str) -> None:
    """What is mounted below a work directory is never removed with it: it may be somebody's data."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as handle:
        points = [line.split()[4] for line in handle]
    # mountinfo writes a blank as four characters
    below = [point for point in points if point.startswith(path.replace(" ", "\\040") + "/")]
    if below:
        raise HostError(f"The work directory {path} is not removed, because {below[0]} is still mounted; unmount it.")


def list_runs() -> list[str]:
    """The ids of all runs that have a work directory on this host, for this user."""
    try:
        names = sorted(os.listdir(state_root()))
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise HostError(f"The state directory {state_root()} cannot be read ({exc.strerror}).") from exc
    return [name for name in names if _RUN_ID.fullmatch(name) and os.path.isdir(os.path.join(state_root(), name))]


def sync_directory(path: str) -> None:
    """Make the names in a directory survive a crash of the machine."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- processes --------------------------------------------------------------------------------------------------------


def boot_id() -> str:
    """The kernel's name for this boot; a new one after every restart."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
        return handle.read().strip()


def _read_stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name, from the state on; None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            return handle.read().rpartition(")")[2].split()
    except OSError:
        return None


def identity(pid: int) -> Identity | None:
    """Who a process is, so that a number used again is not taken for it; None for the dead and for zombies."""
    fields = _read_stat(pid)
    if not fields or fields[0] in "ZXx":
        return None
    return {"pid": pid, "start_ticks": int(fields[19]), "boot_id": boot_id()}


def is_alive(who: Identity | None) -> bool:
    """Whether the very process of this identity still runs; False for whatever is not an identity."""
    if not isinstance(who, dict) or not isinstance(who.get("pid"), int):
        return False
    return identity(who["pid"]) == {key: who.get(key) for key in ("pid", "start_ticks", "boot_id")}


def read_agent(run_id: str) -> Identity | None:
    """The identity that the run's agent left in its work directory; None where there is none that can be read."""
    try:
        with open(os.path.join(work_dir(run_id), "agent.json"), encoding="utf-8") as handle:
            who = json.load(handle)
    except (OSError, ValueError):
        return None
    return who if isinstance(who, dict) else None


def _own_line() -> set[int]:
    """This process and its ancestors."""
    line, pid = set(), os.getpid()
    while pid > 0 and pid not in line:
        line.add(pid)
        fields = _read_stat(pid)
        pid = int(fields[1]) if fields else 0
    return line


def processes_of_run(run_id: str) -> list[Identity]:
    """The run's agent and every process that carries its mark; never this process nor one of its ancestors."""
    mark = f"{MARK}={run_id}".encode()
    pids = set()
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark in _read_environment(name):
                pids.add(int(name))
        except OSError:
            continue  # ended, or of another user
    agent = read_agent(run_id)
    if agent is not None and is_alive(agent):
        pids.add(agent["pid"])
    found = [identity(pid) for pid in sorted(pids - _own_line())]
    return [who for who in found if who is not None]


def _read_environment(name: str) -> Sequence[bytes]:
    with open(f"/proc/{name}/environ", "rb") as handle:
        return handle.read().split(b"\0")


def _signal(who: Identity, number: int) -> None:
    """Send a signal to this very process, if it is still there."""
    if is_alive(who):
        # ended by itself; or not ours to end, which the caller sees by its being there still
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(who["pid"], number)


def end_processes(run_id: str, grace_s: float) -> list[Identity]:
    """End every process of a run: politely, after ``grace_s`` for good; the ones that are still there are returned."""
    left = processes_of_run(run_id)
    asked: list[Identity] = []
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILL_WAIT_S)):
        end_s = time.monotonic() + wait_s
        while left:
            for who in left:
                # those that were forked meanwhile are asked too, each once
                if number == signal.SIGKILL or who not in asked:
                    _signal(who, number)
                    # one that was stopped hears nothing until it goes on
                    _signal(who, signal.SIGCONT)
                    asked.append(who)
            if time.monotonic() > end_s:
                break
            time.sleep(_POLL_S)
            left = processes_of_run(run_id)
    return left
