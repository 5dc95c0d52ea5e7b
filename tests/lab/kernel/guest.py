"""One guest: its machine in QEMU, its SSH server, its storage network, and what can happen to them.

It must not know what runs on it; it starts, breaks and shows the guest, and tells what is left on it.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

from .. import machine
from ..machine import LabError, run
from . import network, qemu

BOOT_LIMIT_S = 300.0
MAX_BLOCK_BYTES = 1048576
INTERFACE = "eth1"
ALIAS = "hostmax-lab-guest"
LOOK = pathlib.Path(__file__).with_name("look.py")


class Guest:
    """A guest of a lab; ``KernelLab`` makes it. ``addresses`` are those in the storage network."""

    def __init__(
        self,
        name: str,
        directory: pathlib.Path,
        addresses: Sequence[str],
        memory_mib: int,
        state: dict[str, Any],
        save: Callable[[], None],
    ) -> None:
        self.name, self.addresses, self.memory_mib = name, list(addresses), memory_mib
        self._directory, self._state, self._save = directory, state, save

    @property
    def address(self) -> str:
        """The (first) address in the storage network."""
        return self.addresses[0]

    @property
    def _own(self) -> dict[str, Any]:
        return self._state["guests"].setdefault(self.name, {})

    # -- life ---------------------------------------------------------------------------------------------------------

    def install(self, image: pathlib.Path) -> None:
        """Give it a new disk, which is the image's until it is written, and an id and a port."""
        disk = self._directory / f"{self.name}.qcow2"
        run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(image / "root.img"), "-F", "raw", str(disk)])
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._own.update(port=probe.getsockname()[1], machine_id=uuid.uuid4().hex, process=None)

    def start(self) -> None:
        """Switch it on, where it is off, and return at once."""
        if self.is_on():
            return
        number = self.addresses[0].rsplit(".", 1)[1]
        key = (self._directory / "key.pub").read_text().split()[1]
        words = f"systemd.machine_id={self._own['machine_id']} lab.name={self.name} lab.key={key}"
        tap = network.cable(self._state["network"], self.name)
        try:
            self._own["process"] = qemu.start(
                self._directory,
                self.name,
                pathlib.Path(self._state["image"]),
                memory_mib=self.memory_mib,
                port=self._own["port"],
                tap=tap,
                mac=f"52:54:00:68:6d:{int(number):02x}",
                words=f"{words} lab.addresses={','.join(self.addresses)}",
                keep=self._state["keep"],
            )
        finally:
            os.close(tap)
        self._save()

    def is_on(self) -> bool:
        """Whether its QEMU process runs."""
        return host_state.is_alive(self._own.get("process"))

    def wait(self, limit_s: float = BOOT_LIMIT_S) -> None:
        """Wait until it answers and, on the server, until it serves."""
        machine.wait_for(
            self._answers, f"{self.name} does not answer, see {self._directory}/{self.name}.serial", limit_s
        )
        self.run("systemctl start lab.service" + (" nfs-server.service" if self.name == "server" else ""), limit_s)

    def _answers(self) -> bool:
        if not self.is_on():
            words = (self._directory / f"{self.name}.log").read_text().strip()
            raise LabError(f"The machine {self.name} has ended. {words}")
        try:
            with socket.create_connection(("127.0.0.1", self._own["port"]), timeout=10) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def power_off(self) -> None:
        """Pull the plug: what its kernel has not written is lost."""
        self._hang_up()
        who = self._own.get("process")
        if self.is_on():
            self.thaw()
            # on this signal QEMU writes out the disk's own tables, which a kill would tear
            os.kill(who["pid"], signal.SIGTERM)
            with contextlib.suppress(LabError):
                machine.wait_for(lambda: not host_state.is_alive(who), f"{self.name} is still on", 10.0)
            if host_state.is_alive(who):
                os.kill(who["pid"], signal.SIGKILL)
            machine.wait_for(lambda: not host_state.is_alive(who), f"{self.name} is still on")
        self._own["process"] = None
        self._save()

    def reboot(self, clean: bool = True, limit_s: float = BOOT_LIMIT_S) -> None:
        """Off and on again, and wait until it answers; not ``clean`` is a power cut."""
        before = self.boot_id()
        # a file system whose server is gone could hold up an orderly end for minutes
        command = "systemctl reboot" if clean else "echo b >/proc/sysrq-trigger"
        self.run(f"(sleep 0.5; {command}) >/dev/null 2>&1 &")
        self._hang_up()
        end_s = time.monotonic() + limit_s
        while True:
            with contextlib.suppress(LabError):
                if self._answers() and self.boot_id() != before:
                    break
            if time.monotonic() > end_s:
                raise LabError(f"{self.name} did not come back from its reboot within {limit_s:.0f} s.")
            self._hang_up()
            time.sleep(0.5)
        self.wait(limit_s)

    def boot_id(self) -> str:
        """The id of the guest's current boot."""
        return self.run("cat /proc/sys/kernel/random/boot_id", 20).strip()

    # -- what can happen to it ----------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Stop its processors: it answers nobody, as a machine that hangs."""
        if not self.is_on():
            raise LabError(f"{self.name} is off.")
        os.kill(self._own["process"]["pid"], signal.SIGSTOP)

    def thaw(self) -> None:
        """Let its processors go on."""
        if self.is_on():
            os.kill(self._own["process"]["pid"], signal.SIGCONT)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """A block during which it hangs."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def cut(self) -> None:
        """Pull the cable of the storage network: packets vanish."""
        network.inside(self._state["network"], ["ip", "link", "set", self.name, "nomaster"])

    def heal(self) -> None:
        """Put the cable back."""
        network.inside(self._state["network"], ["ip", "link", "set", self.name, "master", network.BRIDGE])

    def stop_service(self) -> None:
        """On the server: end the NFS service; clients are refused."""
        self.run("systemctl stop nfs-server.service", 120)

    def start_service(self, max_block_bytes: int | None = None) -> None:
        """On the server: start the NFS service, where it does not run, with the largest block that it offers."""
        self.run(f"echo {max_block_bytes or MAX_BLOCK_BYTES} >/etc/lab-max-block-size; systemctl start nfs-server", 120)

    @contextlib.contextmanager
    def serving_blocks_of(self, max_block_bytes: int) -> Iterator[None]:
        """On the server: a block during which it offers no rsize and wsize above this."""
        self.stop_service()
        self.start_service(max_block_bytes)
        try:
            yield
        finally:
            self.stop_service()
            self.start_service()

    @contextlib.contextmanager
    def shaped(self, delay_ms: float = 0.0, rate: str | None = None, loss_percent: float = 0.0) -> Iterator[None]:
        """A block during which what it sends into the storage network is late, slow (``rate`` as tc's) or lost."""
        words = ["limit", "100000"]
        words += ["delay", f"{delay_ms}ms"] if delay_ms else []
        words += ["loss", f"{loss_percent}%"] if loss_percent else []
        words += ["rate", rate] if rate else []
        self.run(["tc", "qdisc", "replace", "dev", INTERFACE, "root", "netem", *words])
        try:
            yield
        finally:
            self.run(["tc", "qdisc", "del", "dev", INTERFACE, "root"])

    # -- looking at it ------------------------------------------------------------------------------------------------

    def ssh_options(self) -> dict[str, str]:
        """How ssh reaches it, as options of ssh_config."""
        return {
            "HostKeyAlias": ALIAS,
            "UserKnownHostsFile": str(self._directory / "known_hosts"),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "LogLevel": "ERROR",
        }

    def _ssh_words(self) -> list[str]:
        return ["-F", "/dev/null", *(f"-o{name}={value}" for name, value in self.ssh_options().items())]

    def ssh_command(self, shared: bool = True) -> list[str]:
        """The ssh command that reaches it; ``shared`` through one connection that stays."""
        options = [*self._ssh_words(), "-oConnectTimeout=30", "-p", str(self._own["port"])]
        if shared:
            # not the main process's to keep: it would stay behind
            options += ["-oControlMaster=auto", "-oControlPersist=600", f"-oControlPath={self._control()}"]
        return ["ssh", *options, "-i", str(self._directory / "key"), "root@127.0.0.1"]

    def _control(self) -> str:
        return f"{self._state['sockets']}/{self.name}"

    def _hang_up(self) -> None:
        run(["ssh", "-F", "/dev/null", "-o", f"ControlPath={self._control()}", "-O", "exit", "lab"], check=False)

    def ssh(
        self, command: Sequence[str] | str, timeout_s: float = 60.0, input_text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command (words, or a line of shell) to its end; LabError where it takes too long or ssh fails."""
        line = command if isinstance(command, str) else shlex.join(command)
        try:
            done = subprocess.run(
                [*self.ssh_command(), line],
                input=input_text or "",
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as exc:
            raise LabError(f"{self.name}: no end of {line!r} within {timeout_s:g} s") from exc
        if done.returncode == 255:
            raise LabError(f"{self.name} cannot be reached: {done.stderr.strip()}")
        return done

    def run(self, command: Sequence[str] | str, timeout_s: float = 60.0, check: bool = True) -> str:
        """Run a command and return what it printed; LabError with its words where it fails."""
        done = self.ssh(command, timeout_s)
        if check and done.returncode != 0:
            words = done.stderr.strip() or done.stdout.strip()
            raise LabError(f"{self.name}: {command!r}: rc {done.returncode}: {words}")
        return done.stdout

    def put(self, text: str, path: str) -> None:
        """Write a text file on the guest."""
        done = self.ssh(f"cat >{shlex.quote(path)}", input_text=text)
        if done.returncode != 0:
            raise LabError(f"{self.name}: {path} cannot be written: {done.stderr.strip()}")

    def get(self, path: str) -> str:
        """The text of a file on the guest."""
        return self.run(["cat", path])

    def left_behind(self, run_id: str) -> list[str]:
        """What a run left: processes, mounts, loop devices, files of ours, also in /etc and in the exports."""
        done = self.ssh(["/usr/bin/python3", "-", run_id], input_text=LOOK.read_text())
        if done.returncode != 0:
            raise LabError(f"{self.name} cannot be looked at: {done.stderr.strip()}")
        return done.stdout.splitlines()

    def inventory(self) -> dict[str, Any]:
        """The guest's variables for Ansible: reached by SSH only, its key known, nothing of the user's used."""
        return {
            "ansible_host": "127.0.0.1",
            "ansible_port": self._own["port"],
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self._directory / "key"),
            "ansible_ssh_common_args": shlex.join(self._ssh_words()),
            "ansible_control_path_dir": self._state["sockets"],
            "ansible_pipelining": True,
            "ansible_python_interpreter": "/usr/bin/python3",
            "lab_address": self.address,
        }
