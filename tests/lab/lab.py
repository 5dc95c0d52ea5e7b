"""The lab: makes test hosts, writes their inventory, and removes everything that it made, also after a crash.

Everything of a lab has the lab's name in its own: one directory, the cgroups, the files behind loop devices. Its hosts'
processes, namespaces and links die with the process that made it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
from types import TracebackType
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

from . import machine
from .host import Host
from .machine import LabError, run

PREFIX = "hostmax-lab-"
# not /tmp, of which each host has one of its own, and on a disk, for direct I/O
PLACE = pathlib.Path("/var/tmp")
COMPILERS = ("cc", "gcc", "tcc")
LARGEST_COUNT = 64


class Lab:
    """Hosts that live as long as the ``with`` block."""

    def __init__(self) -> None:
        sweep()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
        self.directory.chmod(0o755)
        self.hosts: dict[str, Host] = {}
        self._network = ""
        self._note()

    def __enter__(self) -> Lab:
        try:
            self._network = machine.free_network()
            (self.directory / "ssh").mkdir(mode=0o700)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.directory / "client_key")])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _note(self) -> None:
        """Who made this lab, for the sweep of a later one."""
        (self.directory / "lab.json").write_text(json.dumps(host_state.identity(os.getpid())))

    def host(self, name: str, *, clock_s: int = 0, disk_bytes: int | None = None, reach_s: float = 0.0) -> Host:
        """Make a host and boot it; see ``Host`` for what may be special about it."""
        if len(self.hosts) >= LARGEST_COUNT:
            raise LabError(f"A lab has room for {LARGEST_COUNT} hosts.")
        if clock_s:
            self._make_clock()
        network = (self._network, 4 * len(self.hosts))
        host = Host(name, self.directory, network, clock_s=clock_s, disk_bytes=disk_bytes, reach_s=reach_s)
        self.hosts[name] = host
        with (self.directory / "known_hosts").open("a") as known:
            known.write(host.install())
        host.up()
        return host

    def _make_clock(self) -> None:
        target = self.directory / "clock.so"
        if not target.exists():
            compiler = next((path for path in map(shutil.which, COMPILERS) if path), None)
            if compiler is None:
                raise LabError(f"A wrong clock needs a C compiler: {', '.join(COMPILERS)}")
            source = pathlib.Path(__file__).with_name("clock.c")
            run([compiler, "-shared", "-fPIC", "-nostdlib", "-o", str(target), str(source)])

    def inventory(self, everywhere: dict[str, Any] | None = None, /, **more: dict[str, Any]) -> tuple[str, str]:
        """Options for ansible-playbook that name all hosts; further variables of all, and of one by the host's name."""
        hosts = {name: {**host.inventory(), **more.get(name, {})} for name, host in self.hosts.items()}
        path = self.directory / "inventory.json"
        path.write_text(json.dumps({"all": {"hosts": hosts, "vars": everywhere or {}}}, indent=1))
        return "-i", str(path)

    def left_behind(self, run_id: str) -> dict[str, list[str]]:
        """What a run left on each host; only hosts where it left something."""
        found = {name: host.left_behind(run_id) for name, host in self.hosts.items()}
        return {name: what for name, what in found.items() if what}

    def close(self) -> None:
        """Remove all of it; LabError that names what could not be removed."""
        faults = []
        for end in (*(host.down for host in self.hosts.values()), lambda: remove(self.directory)):
            try:
                end()
            except (LabError, OSError) as exc:
                faults.append(str(exc))
        if faults:
            raise LabError("; ".join(faults))


def remove(directory: pathlib.Path) -> None:
    """Remove what a lab left on the machine, by its name; its hosts are down."""
    for master in (directory / "ssh").glob("*"):
        run(["ssh", "-F", "/dev/null", "-o", f"ControlPath={master}", "-O", "exit", "lab"], check=False)
    machine.detach(f"/{directory.name}/")
    for group in pathlib.Path("/sys/fs/cgroup").glob(f"**/{directory.name}-*"):
        machine.remove_cgroup(group)
    machine.unmount_below(directory)
    shutil.rmtree(directory)


def sweep() -> None:
    """Remove what labs left whose process is dead; those of living processes are left alone."""
    for directory in PLACE.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, LabError):
            if directory.is_symlink() or directory.stat().st_uid != os.geteuid():
                continue
            if not host_state.is_alive(json.loads((directory / "lab.json").read_text())):
                remove(directory)
