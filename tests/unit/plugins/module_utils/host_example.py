"""A host that exists only as files: the parts of /sys, /proc and /dev that the guard reads."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ansible_collections.hostmax.storage.plugins.module_utils.block_device import Dev, Kernel

GIB = 1 << 30


class FakeKernel(Kernel):
    """Device nodes without root: paths under dev/ are devices, and a claim succeeds unless it is told to fail."""

    def __init__(self, host: FakeHost) -> None:
        super().__init__(sys=str(host.sys), proc=str(host.proc), dev=str(host.dev))
        self.host = host

    def node(self, path: str) -> os.stat_result:
        real = os.path.realpath(path)
        dev = self.host.nodes.get(real)
        if dev is None:
            return os.stat(path)
        return os.stat_result((stat.S_IFBLK | 0o600, 1, 5, 1, 0, 0, 0, 0, 0, 0), {"st_rdev": os.makedev(*dev)})

    def claim(self, path: str, tries: int = 3) -> int:
        self.host.claimed.append(path)
        error = self.host.claim_errors.get(os.path.basename(path))
        if error:
            raise OSError(error, os.strerror(error))
        return os.open(os.devnull, os.O_RDONLY)


class FakeHost:
    def __init__(self, root: Path) -> None:
        self.sys, self.proc, self.dev = root / "sys", root / "proc", root / "dev"
        self.nodes: dict[str, Dev] = {}
        self.claim_errors: dict[str, int] = {}
        self.claimed: list[str] = []
        for directory in (self.sys / "dev/block", self.sys / "class/block", self.proc, self.dev):
            directory.mkdir(parents=True)
        self.process("self", "mnt:[1]", "")
        self.swaps()

    def kernel(self) -> FakeKernel:
        return FakeKernel(self)

    def device(self, name: str, major: int, minor: int, on: str = "", size_bytes: int = GIB, **files: str) -> str:
        """A device, or a partition when `on` names its disk; `files` are facts in its directory (`__` for /)."""
        inside = self.sys / "devices" / on / name
        (inside / "holders").mkdir(parents=True)
        (inside / "slaves").mkdir()
        facts = {"dev": f"{major}:{minor}", "size": str(size_bytes // 512), "ro": "0", **files}
        if on:
            facts.setdefault("partition", name[-1])
        for key, text in facts.items():
            path = inside / key.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        (self.sys / "dev/block" / f"{major}:{minor}").symlink_to(inside)
        (self.sys / "class/block" / name).symlink_to(inside)
        node = self.dev / name.replace("!", "/")
        node.parent.mkdir(parents=True, exist_ok=True)
        node.write_bytes(b"")
        self.nodes[os.path.realpath(node)] = (major, minor)
        return str(node)

    def build(self, upper: str, *lower: str) -> None:
        """`upper` (dm, md) is made of `lower`."""
        for name in lower:
            (self.sys / "class/block" / name / "holders" / upper).mkdir()
            (self.sys / "class/block" / upper / "slaves" / name).mkdir()

    def link(self, kind: str, name: str, target: str) -> None:
        directory = self.dev / "disk" / kind
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).symlink_to(f"../../{target}")

    def process(self, pid: str, namespace: str, mountinfo: str, name: str = "sleep") -> None:
        base = self.proc / pid
        (base / "ns").mkdir(parents=True, exist_ok=True)
        link = base / "ns" / "mnt"
        if link.is_symlink():
            link.unlink()
        link.symlink_to(namespace)
        (base / "mountinfo").write_text(mountinfo)
        (base / "comm").write_text(name + "\n")

    def mounts(self, *lines: str) -> None:
        """The mount table of this process: `8:1 /data ext4 /dev/sda1` a line."""
        self.process("self", "mnt:[1]", mountinfo(*lines))

    def swaps(self, *paths: str) -> None:
        lines = ["Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"]
        lines += [f"{path}                partition\t1024\t\t0\t\t-2" for path in paths]
        (self.proc / "swaps").write_text("\n".join(lines) + "\n")


def mountinfo(*lines: str) -> str:
    rows = []
    for line in lines:
        dev, point, fstype, source = line.split(" ")
        rows.append(f"36 35 {dev} / {point} rw,noatime shared:1 master:2 - {fstype} {source} rw\n")
    return "".join(rows)


BUSY = errno.EBUSY
