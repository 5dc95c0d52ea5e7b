"""The network between the guests: a bridge in a network namespace of its own, which nothing else reaches.

It must not know what a guest is; it gives the open end of a cable, which QEMU takes.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import subprocess
import threading

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

from .. import machine
from ..machine import LabError, run

Identity = host_state.Identity

BRIDGE = "storage"
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000


def make(keep: bool) -> Identity:
    """Make the namespace and its bridge; who holds it open. Unless kept, it ends with this process."""
    holder = subprocess.Popen(
        [machine.tool("unshare") or "unshare", "--net", "sleep", "infinity"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        preexec_fn=None if keep else machine.die_with_us(),
        start_new_session=True,
    )
    own = os.readlink("/proc/self/ns/net")
    machine.wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own, "the guests' network")
    who = host_state.identity(holder.pid)
    if who is None:
        raise LabError("What holds the guests' network ended at once.")
    inside(who, ["ip", "link", "add", BRIDGE, "type", "bridge", "mcast_snooping", "0"])
    inside(who, ["ip", "link", "set", BRIDGE, "up"])
    return who


def inside(holder: Identity, argv: list[str]) -> str:
    """Run a command in the network."""
    return run(["nsenter", f"--net=/proc/{holder['pid']}/ns/net", machine.tool(argv[0]) or argv[0], *argv[1:]])


def cable(holder: Identity, name: str) -> int:
    """A file descriptor that is a network interface on the bridge, for as long as somebody has it open."""
    found: list[int | OSError] = []

    def enter_and_open() -> None:
        try:
            found.append(_open(holder, name))
        except OSError as exc:
            found.append(exc)

    # only the thread that calls setns changes its network, and this one ends at once
    thread = threading.Thread(target=enter_and_open)
    thread.start()
    thread.join()
    if isinstance(found[0], OSError):
        raise LabError(f"No interface for {name} can be made in the guests' network: {found[0].strerror}.")
    inside(holder, ["ip", "link", "set", name, "master", BRIDGE, "up"])
    return found[0]


def _open(holder: Identity, name: str) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    space = os.open(f"/proc/{holder['pid']}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(space, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(space)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        # with the header large segments cross whole, as between real network cards that split them
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    except OSError:
        os.close(tap)
        raise
    return tap
