"""The lab of guests: up, down, its inventory. Its state is in one directory of the checkout, so that it can stay up.

It ends only processes that it started, known by their number and their start.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

from .. import machine
from ..machine import LabError, run
from . import image, network, qemu
from .guest import ALIAS, BOOT_LIMIT_S, Guest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXPORTS = {
    "vol1": "/export/vol1",
    "vol2": "/export/vol2",
    "small": "/export/small",
    "readonly": "/export/readonly",
    "secret": "/export/secret",
}
# the server has two addresses: one volume, two endpoints
GUESTS = {
    "server": (["10.99.0.1", "10.99.0.2"], 1536),
    "client1": (["10.99.0.11"], 1024),
    "client2": (["10.99.0.12"], 1024),
}


class KernelLab:
    """A server of NFS and two clients; up as long as the ``with`` block, or until ``down`` where they are kept.

    ``directory``: where its disks and state are, else what HOSTMAX_LAB_DIRECTORY names, else .lab of the checkout. Two
    labs in one directory are one lab. ``names``: only these guests.
    """

    def __init__(self, directory: pathlib.Path | None = None, names: Sequence[str] = tuple(GUESTS)) -> None:
        self.directory = directory or pathlib.Path(os.environ.get("HOSTMAX_LAB_DIRECTORY") or ROOT / ".lab")
        self._state: dict[str, Any] = {}
        self._names = names
        self.exports = EXPORTS
        self._load()

    def _load(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._state = json.loads((self.directory / "lab.json").read_text())
        self.guests = {name: Guest(name, self.directory, *GUESTS[name], self._state, self.save) for name in self._names}

    def save(self) -> None:
        """Write down which processes are ours."""
        draft = self.directory / "lab.json.new"
        draft.write_text(json.dumps(self._state, indent=1))
        draft.replace(self.directory / "lab.json")

    @property
    def server(self) -> Guest:
        """The guest that exports."""
        return self.guests["server"]

    @property
    def clients(self) -> list[Guest]:
        """The guests that mount."""
        return [guest for name, guest in self.guests.items() if name != "server"]

    def __enter__(self) -> KernelLab:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    # -- life ---------------------------------------------------------------------------------------------------------

    def is_up(self) -> bool:
        """Whether every guest is on."""
        return bool(self._state) and all(guest.is_on() for guest in self.guests.values())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.directory / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def up(self, keep: bool = False) -> bool:
        """Make the image where it is missing, start the guests and wait for them; False where they were up already.

        ``keep``: they stay up after this process; otherwise they end with it, and the main thread has to call this.
        """
        reason = image.missing()
        if reason:
            raise LabError(f"This machine cannot have guests: it {reason}.")
        with self._locked():
            self._load()
            if self.is_up():
                self._wait()
                return False
            self._down()
            made = image.ensure()
            try:
                try:
                    self._boot(made, keep)
                except LabError:
                    if qemu.accelerator(made) != qemu.KVM:
                        raise
                    qemu.forget_kvm(made)
                    self._down()
                    self._boot(made, keep)
            except BaseException:
                self._down()
                raise
            return True

    def _boot(self, made: pathlib.Path, keep: bool) -> None:
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "hostmax-lab", "-f", str(self.directory / "key")])
        kind, key, *_comment = (made / "host_key.pub").read_text().split()
        (self.directory / "known_hosts").write_text(f"{ALIAS} {kind} {key}\n")
        self._state.update(
            image=str(made),
            keep=keep,
            # a socket's path may have 107 characters, a checkout's may have more
            sockets=tempfile.mkdtemp(prefix="hostmax-lab-"),
            network=None,
            guests={},
        )
        self.save()
        self._state["network"] = network.make(keep)
        self.save()
        for guest in self.guests.values():
            guest.install(made)
            guest.start()
        self._wait()
        self.inventory()

    def _wait(self) -> None:
        for guest in self.guests.values():
            guest.wait(BOOT_LIMIT_S)

    def down(self) -> None:
        """End the guests and remove everything of the lab except the image."""
        with self._locked():
            self._load()
            self._down()

    def _down(self) -> None:
        if self._state:
            for guest in self.guests.values():
                guest.power_off()
            holder = self._state["network"]
            if host_state.is_alive(holder):
                os.kill(holder["pid"], signal.SIGKILL)
                machine.wait_for(lambda: not host_state.is_alive(holder), "the guests' network is still there")
            shutil.rmtree(self._state["sockets"], ignore_errors=True)
            self._state.clear()
        for path in self.directory.iterdir():
            if path.name != "lock":
                path.unlink()

    # -- what a test uses ---------------------------------------------------------------------------------------------

    def inventory(self, everywhere: dict[str, Any] | None = None, /, **more: dict[str, Any]) -> str:
        """The path of an inventory of the clients; with further variables of all, and of one by its name."""
        hosts = {guest.name: {**guest.inventory(), **more.get(guest.name, {})} for guest in self.clients}
        common = {
            "lab_server": GUESTS["server"][0][0],
            "lab_servers": GUESTS["server"][0],
            "lab_exports": self.exports,
            **(everywhere or {}),
        }
        text = json.dumps({"all": {"hosts": hosts, "vars": common}}, indent=1)
        path = self.directory / ("inventory-test.json" if everywhere or more else "inventory.json")
        path.write_text(text + "\n")
        return str(path)

    def source(self, export: str, endpoint: int = 0) -> str:
        """What a client mounts: SERVER:PATH."""
        return f"{self.server.addresses[endpoint]}:{self.exports[export]}"

    def left_behind(self, run_id: str) -> dict[str, list[str]]:
        """What a run left in each guest; only guests where it left something."""
        found = {name: guest.left_behind(run_id) for name, guest in self.guests.items()}
        return {name: what for name, what in found.items() if what}
