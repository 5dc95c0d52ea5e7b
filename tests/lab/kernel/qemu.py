"""Starts a machine in QEMU, with hardware virtualization where a boot with it has been seen to succeed.

It must not know what runs in a guest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import platform
import subprocess
import tempfile
import time

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

from .. import machine
from ..machine import LabError, run, tool

Identity = host_state.Identity

QEMU = "qemu-system-x86_64"
# the translated code may take no more memory than this; QEMU's own default is a gigabyte for each guest
TCG = "tcg,thread=multi,tb-size=256"
KVM = "kvm"
# printed when the kernel has set up the machine and starts its first process
USER_SPACE = b"Run /init as init process"
PROBE_LIMIT_S = 20.0
COMMON = ("-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-vga", "none")
KERNEL = "console=ttyS0 net.ifnames=0 mitigations=off random.trust_cpu=on"


def accelerator(image: pathlib.Path) -> str:
    """The QEMU accelerator of this machine, found once and remembered beside the images."""
    note = _note(image)
    with contextlib.suppress(OSError):
        return note.read_text().strip()
    found = KVM if os.access("/dev/kvm", os.R_OK | os.W_OK) and _boots(image) else TCG
    note.write_text(found + "\n")
    return found


def forget_kvm(image: pathlib.Path) -> None:
    """Note that guests do not come up with KVM here, although the probe's kernel did."""
    _note(image).write_text(TCG + "\n")


def _note(image: pathlib.Path) -> pathlib.Path:
    facts = [platform.release(), platform.version(), host_state.boot_id(), run([QEMU, "--version"])]
    return image.parent / f"accelerator-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"


def _boots(image: pathlib.Path) -> bool:
    """Whether the guests' kernel gets as far as its first process with KVM."""
    with tempfile.TemporaryDirectory(prefix="hostmax-lab-") as directory:
        log = pathlib.Path(directory) / "serial"
        log.touch()
        argv = [*COMMON, "-accel", KVM, "-m", "512", "-no-reboot", "-serial", f"file:{log}"]
        kernel = ["-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd.img"), "-append", KERNEL]
        process = subprocess.Popen(
            [tool(QEMU) or QEMU, *argv, *kernel],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=machine.die_with_us(),
        )
        try:
            end_s = time.monotonic() + PROBE_LIMIT_S
            while process.poll() is None and time.monotonic() < end_s:
                if USER_SPACE in log.read_bytes():
                    return True
                time.sleep(0.1)
            return False
        finally:
            process.kill()
            process.wait()


def start(
    directory: pathlib.Path,
    name: str,
    image: pathlib.Path,
    *,
    memory_mib: int,
    port: int,
    tap: int,
    mac: str,
    words: str,
    keep: bool,
) -> Identity:
    """Start a guest on its own disk ``NAME.qcow2`` in the directory and return who it is.

    ``port`` of 127.0.0.1 leads to its SSH server, ``tap`` is its end of the storage network, ``words`` go to its
    kernel's command line. Unless kept, it ends with this process, whose main thread has to call this.
    """
    argv = [
        *(tool(QEMU) or QEMU, *COMMON, "-accel", accelerator(image), "-smp", "2", "-m", str(memory_mib)),
        *("-name", f"hostmax-lab-{name}", "-serial", f"file:{directory / name}.serial"),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd.img")),
        *("-append", f"root=/dev/vda rootfstype=ext4 rw quiet {KERNEL} {words}"),
        *("-drive", f"file={directory / name}.qcow2,if=virtio,format=qcow2,cache=unsafe"),
        # the way in, and none out
        *("-netdev", f"user,id=way_in,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=way_in,romfile="),
        *("-netdev", f"tap,id=storage,fd={tap}"),
        *("-device", f"virtio-net-pci,netdev=storage,mac={mac},romfile="),
        *("-object", "rng-random,filename=/dev/urandom,id=rng", "-device", "virtio-rng-pci,rng=rng"),
    ]
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            pass_fds=(tap,),
            preexec_fn=None if keep else machine.die_with_us(),
            start_new_session=True,
        )
    who = host_state.identity(process.pid)
    time.sleep(0.2)
    if who is None or process.poll() is not None:
        raise LabError(f"QEMU does not start {name}: {(directory / f'{name}.log').read_text().strip()}")
    return who
