"""A tree of plain files that behaves like /proc/sys and /sys/module where the kernel does more than keep a value."""

from __future__ import annotations

import errno
import os

from ansible_collections.hostmax.storage.plugins.module_utils import sysctl_keys
from ansible_collections.hostmax.storage.plugins.module_utils.sysctl_keys import PARTNERS, SYSCTL, Name, parameter_name

DEFAULTS = {
    "net.core.netdev_max_backlog": "1000",
    "net.core.rmem_max": "212992",
    "net.core.optmem_max": "131072",
    "net.ipv4.tcp_rmem": "4096\t131072\t33554432",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_fack": "0",
    "net.ipv4.tcp_low_latency": "0",
    "vm.dirty_bytes": "0",
    "vm.dirty_ratio": "20",
    "vm.dirty_background_bytes": "0",
    "vm.dirty_background_ratio": "10",
    "vm.dirty_expire_centisecs": "3000",
    "vm.swappiness": "60",
}
PARAMETERS = {("sunrpc", "tcp_max_slot_table_entries"): "65536", ("nfs", "max_session_slots"): "64"}
# the most the kernel makes of these, and the least it takes
LARGEST = {"net.core.optmem_max": 2**22, "sunrpc/tcp_max_slot_table_entries": 65536}
SMALLEST = {"net.core.rmem_max": 2304, "vm.dirty_bytes": 8192}
FLUSH = Name(SYSCTL, "net.ipv4.route.flush")


class FakeKernel:
    """The tree below ``root``; `patch` makes writes through sysctl_keys behave like the kernel's."""

    def __init__(self, root):
        self.root = str(root)
        for key, value in DEFAULTS.items():
            self.add(Name(SYSCTL, key), value)
        for (module, parameter), value in PARAMETERS.items():
            self.add(parameter_name(module, parameter), value)
        self.add(FLUSH, "", mode=0o200)
        for directory in ("etc/sysctl.d", "etc/modprobe.d"):
            os.makedirs(os.path.join(self.root, directory))

    def add(self, name, value, mode=0o644):
        path = name.path(self.root)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as handle:
            handle.write(value + "\n")
        os.chmod(path, mode)

    def remove(self, key):
        os.unlink(Name(SYSCTL, key).path(self.root))

    def file(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as handle:
            handle.write(text)
        return full

    def read(self, key):
        name = parameter_name(*key.split("/")) if "/" in key else Name(SYSCTL, key)
        with open(name.path(self.root)) as handle:
            return handle.read().rstrip("\n")

    def snapshot(self):
        """Everything below the root: contents and modes."""
        found = {}
        for base, _directories, files in os.walk(self.root):
            for file in files:
                path = os.path.join(base, file)
                with open(path) as handle:
                    found[path] = (handle.read(), oct(os.stat(path).st_mode))
        return found

    def patch(self, monkeypatch):
        keep = sysctl_keys.write

        def write(name, value, root="/"):
            if not os.stat(name.path(root)).st_mode & 0o222:
                raise OSError(errno.EACCES, os.strerror(errno.EACCES), name.path(root))
            if int(value.split()[0]) < SMALLEST.get(name.key, 0):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name.path(root))
            if len(value.split()) > 1 and not all(word.isdigit() for word in value.split()):
                # the numbers before the bad one have been taken
                taken = value.split()[0]
                keep(name, "\t".join([taken, *self.read(name.key).split()[1:]]), root)
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name.path(root))
            partner = PARTNERS.get(name.key)
            old = sysctl_keys.read(name, root)
            if len(value.split()) == 1:
                value = str(min(int(value), LARGEST.get(name.key, int(value))))
            keep(name, "\t".join(value.split()), root)
            if partner and value != old:
                keep(Name(SYSCTL, partner), "0", root)

        monkeypatch.setattr(sysctl_keys, "write", write)
