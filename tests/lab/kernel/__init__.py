"""Test hosts with a kernel of their own: a server of NFS and its clients, in QEMU, on a network that only they share.

    with KernelLab() as lab:
        lab.clients[0].run(["mount", "-t", "nfs", f"{lab.server.address}:/export/vol1", "/mnt"])

By hand: ``python -m tests.lab.kernel up`` (or ``make lab-up``). It must not know about runs, profiles or Ansible's
playbooks; it gives hosts, breaks them on demand and removes them.
"""

from .guest import Guest
from .image import missing
from .lab import KernelLab

__all__ = ["Guest", "KernelLab", "missing"]
