"""What the lab does on the machine itself: commands, loop devices, cgroups, mounts, a free network.

It must not know what a host is made of; everything here is found and removed by names that the lab made.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import cgroup

TOOLS = ("ip", "losetup", "mount", "nsenter", "ssh", "ssh-keygen", "sshd", "unshare")
# one lab is one 10.231.x.0/24, one host a /30 of it
NETWORK = "10.231"
PR_SET_PDEATHSIG = 1


class LabError(Exception):
    """Why a test host cannot be made, reached or removed; one sentence."""


def tool(name: str) -> str | None:
    """Where a program is, also where a user's PATH leaves the system directories out."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin")))


def missing() -> str | None:
    """Why this machine cannot have test hosts; None where it can."""
    if os.geteuid() != 0:
        return "needs root for namespaces, loop devices and cgroups"
    absent = [name for name in TOOLS if tool(name) is None]
    if absent:
        return "needs " + ", ".join(absent)
    if not os.access("/usr/bin/python3", os.X_OK):
        return "needs the system's Python, /usr/bin/python3"
    try:
        cgroup.detect()
    except cgroup.CgroupError as exc:
        return str(exc)
    return None


def run(argv: Sequence[str], limit_s: float = 30.0, check: bool = True) -> str:
    """Run a short command on the machine and return what it printed; LabError with its words where it fails."""
    done = subprocess.run(
        [tool(argv[0]) or argv[0], *argv[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
    )
    if check and done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: rc {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def die_with_us() -> Callable[[], None]:
    """For a child before exec: it is killed when this process ends, however it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for(condition: Callable[[], object], what: str, limit_s: float = 20.0) -> None:
    """Wait until a condition is true; LabError where it does not come."""
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            raise LabError(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.01)


# -- loop devices -----------------------------------------------------------------------------------------------------


def loops(part: str) -> list[str]:
    """The loop devices whose backing file has this part in its path, as the kernel names it from any namespace."""
    found = []
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # detached just now
            if part in path.read_text():
                found.append("/dev/" + path.parents[1].name)
    return sorted(found)


def detach(part: str) -> None:
    """Detach these loop devices and wait until they are."""
    for device in loops(part):
        run(["losetup", "-d", device], check=False)
    wait_for(lambda: not loops(part), f"loop devices on {part} are still attached")


# -- cgroups ----------------------------------------------------------------------------------------------------------


def make_cgroup(name: str) -> tuple[pathlib.Path, pathlib.Path]:
    """(mount point, new group in it) of the hierarchy that caps block devices, with I/O given to the group."""
    hierarchy = cgroup.detect()
    mount = pathlib.Path(hierarchy.mount)
    control = mount / "cgroup.subtree_control"
    # enabled for good: it caps nothing by itself, and somebody else may have come to need it when the lab ends
    if hierarchy.version == cgroup.V2 and "io" not in control.read_text().split():
        control.write_text("+io")
    group = mount / name
    group.mkdir()
    return mount, group


def remove_cgroup(group: pathlib.Path) -> None:
    """Remove a group and those in it; processes that were killed leave it a moment later."""

    def gone() -> bool:
        for path in sorted(group.glob("**/"), key=lambda one: len(one.parts), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        return not group.exists()

    wait_for(gone, f"the cgroup {group} is still in use")


# -- mounts and network -----------------------------------------------------------------------------------------------


def unmount_below(directory: pathlib.Path) -> None:
    """Unmount everything in a directory of the lab's."""
    lines = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    inside = [line.split()[1] for line in lines if line.split()[1].startswith(f"{directory}/")]
    for target in reversed(inside):
        run(["umount", target])


def free_network() -> str:
    """The first three numbers of a network that this machine has no address in and no route to."""
    for third in random.sample(range(256), 32):
        prefix = f"{NETWORK}.{third}"
        routes = run(["ip", "-4", "route", "show", "table", "all", "root", f"{prefix}.0/24"])
        covering = run(["ip", "-4", "route", "show", "table", "all", "match", f"{prefix}.0/24"]).splitlines()
        if not routes.strip() and all(line.startswith("default") for line in covering):
            return prefix
    raise LabError(f"This machine has routes to all of {NETWORK}.0.0/16, which test hosts need a part of.")
