"""One test host: its namespaces, files, SSH server and link, and everything that can happen to it.

It must not know what runs on it; it starts, breaks and shows the host, and tells what is left on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import uuid
from typing import Any

from . import machine
from .machine import LabError, run
from .traces import processes_of

PORT = 2222
HERE = pathlib.Path(__file__).resolve().parent

SSHD_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {own}/host_key
PidFile {own}/sshd.pid
AuthorizedKeysFile {client_key}.pub
StrictModes no
PermitRootLogin prohibit-password
AllowUsers root
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
MaxStartups 100
{more}"""

# a host that is far away: half of the time on the way there, half on the way back
FAR = """\
#!/bin/sh
sleep {half_s}
sh -c "$SSH_ORIGINAL_COMMAND"
code=$?
sleep {half_s}
exit $code
"""


class Host:
    """A host of a lab; ``Lab.host`` makes it, in the /30 network of the given prefix and first number.

    ``clock_s``: how wrong its wall clock is. ``disk_bytes``: size of the file system that holds its state directory
    (the machine's own where it is not given). ``reach_s``: what one command over SSH takes longer.
    """

    def __init__(
        self,
        name: str,
        lab: pathlib.Path,
        network: tuple[str, int],
        *,
        clock_s: int = 0,
        disk_bytes: int | None = None,
        reach_s: float = 0.0,
    ) -> None:
        self.name = name
        prefix, first = network
        self.address, self._gateway = f"{prefix}.{first + 2}", f"{prefix}.{first + 1}"
        self.own = lab / name
        # the kernel names a loop device's file by its path without the host, so it has to be another on every host
        self.mark = f"/{lab.name}/{name}/"
        self.state = self.own / "disk" / lab.name / name / "hostmax"
        self._link = f"hml{uuid.uuid4().hex[:8]}"
        self._client_key = lab / "client_key"
        self._clock_s, self._disk_bytes, self._reach_s = clock_s, disk_bytes, reach_s
        self._cgroup_mount, self._cgroup = machine.make_cgroup(f"{lab.name}-{name}")
        self._process: subprocess.Popen[bytes] | None = None
        self._init_pid = 0
        self.boot_id = ""

    @property
    def cgroup(self) -> pathlib.Path:
        """The group on the machine that the host sees as the whole hierarchy."""
        return self._cgroup

    # -- life -------------------------------------------------------------------------------------------------------

    def install(self) -> str:
        """Lay out the host's files and keys; the line of it for known_hosts."""
        for directory in ("lib", "root", "tmp", "disk"):
            (self.own / directory).mkdir(parents=True)
        self.own.chmod(0o755)
        (self.own / "tmp").chmod(0o1777)
        if self._disk_bytes:
            run(["mount", "-t", "tmpfs", "-o", f"size={self._disk_bytes}", "hostmax-lab", str(self.own / "disk")])
        self.state.parent.mkdir(parents=True)
        (self.own / "lib" / "hostmax").symlink_to(self.state)
        (self.own / "shadow").write_text("root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n")
        (self.own / "shadow").chmod(0o600)
        (self.own / "machine_id").write_text(uuid.uuid4().hex + "\n")
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", str(self.own / "host_key")])
        more = ""
        if self._reach_s:
            (self.own / "far").write_text(FAR.format(half_s=self._reach_s / 2))
            (self.own / "far").chmod(0o755)
            more += f"ForceCommand {self.own}/far\n"
        if self._clock_s:
            more += "SetEnv " + " ".join(f"{name}={value}" for name, value in self._environment().items()) + "\n"
        config = SSHD_CONFIG.format(
            port=PORT, address=self.address, own=self.own, client_key=self._client_key, more=more
        )
        (self.own / "sshd_config").write_text(config)
        kind, key, _comment = (self.own / "host_key.pub").read_text().split()
        return f"[{self.address}]:{PORT} {kind} {key}\n"

    def _environment(self) -> dict[str, str]:
        if not self._clock_s:
            return {}
        return {"LD_PRELOAD": str(self.own.parent / "clock.so"), "LAB_CLOCK_S": str(self._clock_s)}

    def up(self) -> None:
        """Boot: process 1, then the link, then the SSH server."""
        self.boot_id = str(uuid.uuid4())
        (self.own / "boot_id").write_text(self.boot_id + "\n")
        binds = [
            (self.own / "boot_id", "/proc/sys/kernel/random/boot_id"),
            (self.own / "machine_id", "/etc/machine-id"),
            (self.own / "shadow", "/etc/shadow"),
            (self.own / "lib", "/var/lib"),
            (self.own / "root", "/root"),
            (self.own / "tmp", "/tmp"),
            (self._cgroup, str(self._cgroup_mount)),
        ]
        spec = {
            "name": self.name,
            "binds": [(str(source), target) for source, target in binds if pathlib.Path(target).exists()],
            "empty": ["/run", "/dev/shm"],
        }
        flags = ["--fork", "--pid", "--mount", "--uts", "--ipc", "--net", "--mount-proc", "--kill-child=SIGKILL"]
        init = ["/usr/bin/python3", str(HERE / "init.py"), json.dumps(spec)]
        with (self.own / "init.log").open("wb") as log:
            self._process = subprocess.Popen(
                [machine.tool("unshare") or "unshare", *flags, *init],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                preexec_fn=machine.die_with_us(),
                start_new_session=True,
            )
        assert self._process.stdout is not None
        with self._process.stdout as words:
            if words.readline() != b"up\n":
                raise LabError(
                    f"{self.name}: the host's process 1 did not come up: {(self.own / 'init.log').read_text()}"
                )
        parent = self._process.pid
        self._init_pid = int(pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])
        self._connect()
        self.accept()

    def _connect(self) -> None:
        # fixed neighbours: a cut link loses packets in silence, as behind a router, instead of "no route to host"
        ours, theirs = (f"02:{mac}" for mac in ("00:00:00:00:01", "00:00:00:00:02"))
        peer = ["peer", "name", "eth0", "address", theirs, "netns", str(self._init_pid)]
        run(["ip", "link", "add", self._link, "address", ours, "type", "veth", *peer])
        run(["ip", "address", "add", f"{self._gateway}/30", "dev", self._link])
        run(["ip", "link", "set", self._link, "up"])
        run(["ip", "neighbour", "replace", self.address, "lladdr", theirs, "dev", self._link, "nud", "permanent"])
        inside = ["nsenter", "--target", str(self._init_pid), "--net", machine.tool("ip") or "ip"]
        run([*inside, "link", "set", "lo", "up"])
        run([*inside, "address", "add", f"{self.address}/30", "dev", "eth0"])
        run([*inside, "link", "set", "eth0", "up"])

    def down(self) -> None:
        """Power off: every process ends, the link goes, and the kernel lets go of its loop devices and groups."""
        # left to the end of its namespace, the link would stay for seconds
        run(["ip", "link", "delete", self._link], check=False)
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._init_pid or self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=30)
            self._process, self._init_pid = None, 0
        machine.detach(self.mark)
        for group in self._cgroup.glob("*/"):
            machine.remove_cgroup(group)

    def reboot(self) -> None:
        """Off and on again, at once: what is on its disk stays, the boot id is another."""
        self.down()
        shutil.rmtree(self.own / "tmp")
        (self.own / "tmp").mkdir()
        (self.own / "tmp").chmod(0o1777)
        self.up()

    # -- what can happen to it ----------------------------------------------------------------------------------------

    def refuse(self) -> None:
        """End the SSH server and its sessions: what runs goes on, every new connection is refused."""
        for pid, command in self.processes().items():
            if command.startswith(("sshd", "/usr/sbin/sshd")):
                self.kill(pid)
        machine.wait_for(lambda: not self._answers(), f"{self.name} still accepts connections")

    def accept(self) -> None:
        """Start the SSH server, where it does not run."""
        if any(" [listener] " in command for command in self.processes().values()):
            return
        self.run([machine.tool("sshd") or "sshd", "-f", str(self.own / "sshd_config")], clock=False)
        machine.wait_for(self._answers, f"{self.name} does not accept connections")

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.address, PORT), timeout=5).close()
        except OSError:
            return False
        return True

    def cut(self) -> None:
        """Pull the cable: packets vanish in both directions, connections hang."""
        self.run(["ip", "link", "set", "eth0", "down"])

    def heal(self) -> None:
        """Put the cable back."""
        self.run(["ip", "link", "set", "eth0", "up"])

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a process of the host, by its number there; one that has ended is no error."""
        self.run(["kill", f"-{int(number)}", str(pid)], check=False)

    # -- looking at it ------------------------------------------------------------------------------------------------

    def run(self, command: list[str] | str, check: bool = True, clock: bool = True) -> str:
        """Run a command on the host, beside SSH, and return what it printed."""
        words = ["sh", "-c", command] if isinstance(command, str) else command
        environment = [f"{name}={value}" for name, value in self._environment().items()] if clock else []
        spaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--wd"]
        return run(
            ["nsenter", "--target", str(self._init_pid), *spaces, "env", *environment, *words], limit_s=60, check=check
        )

    @property
    def proc(self) -> pathlib.Path:
        """The host's /proc, seen from the machine."""
        return pathlib.Path(f"/proc/{self._init_pid}/root/proc")

    def processes(self) -> dict[int, str]:
        """The host's processes: number there → command line (the name where it has none), without process 1."""
        found = {}
        for path in self.proc.glob("[0-9]*"):
            if path.name != "1":
                with contextlib.suppress(OSError):
                    words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    found[int(path.name)] = words or (path / "comm").read_text().strip()
        return found

    def agents(self) -> list[int]:
        """The agents that run on the host, by the name that they give themselves."""
        found = []
        for path in self.proc.glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                if path.read_text().strip() == "hostmax-agent":
                    found.append(int(path.parent.name))
        return sorted(found)

    def processes_of(self, run_id: str) -> list[int]:
        """The processes on the host that carry a run's mark."""
        return processes_of(run_id, self.proc)

    def left_behind(self, run_id: str) -> list[str]:
        """What a run left on the host: processes, loop devices, cgroups, files."""
        found = [f"process {pid}" for pid in sorted({*self.processes_of(run_id), *self.agents()})]
        found += machine.loops(self.mark)
        found += [str(path) for path in self._cgroup.glob("**/hostmax-*")]
        found += [str(path) for path in (self.state, *self.state.rglob("*")) if path.exists()]
        for place in ("root/.ansible/tmp", "root/.ansible_async", "tmp"):
            found += [str(path) for path in (self.own / place).glob("*")]
        found += [f"/dev/shm/{name}" for name in self.run(["ls", "-A", "/dev/shm"]).split()]
        return found

    def inventory(self) -> dict[str, Any]:
        """The host's variables for Ansible: reached by SSH only, its key known, nothing of the user's used."""
        return {
            "ansible_host": self.address,
            "ansible_port": PORT,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self._client_key),
            "ansible_ssh_common_args": " ".join(self._ssh_options()),
            "ansible_control_path_dir": f"{self.own.parent}/ssh",
            "ansible_ssh_timeout": 5,
            "ansible_pipelining": True,
            "ansible_python_interpreter": "/usr/bin/python3",
        }

    def _ssh_options(self) -> list[str]:
        options = {
            "UserKnownHostsFile": f"{self.own.parent}/known_hosts",
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
        }
        return ["-F", "/dev/null", *(word for name in options for word in ("-o", f"{name}={options[name]}"))]

    def ssh_words(self, command: str) -> list[str]:
        """What stands after ``ssh`` to run a command in a connection of its own."""
        options = ["-p", str(PORT), "-i", str(self._client_key), "-o", "ConnectTimeout=2", *self._ssh_options()]
        return [*options, f"root@{self.address}", command]

    def ssh(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command over SSH to its end."""
        return subprocess.run(
            ["ssh", *self.ssh_words(command)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
