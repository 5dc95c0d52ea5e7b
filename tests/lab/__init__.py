"""Test hosts on this machine: each with an address, an SSH server, processes, files and a boot of its own.

    with Lab() as lab:
        a, b = lab.host("a"), lab.host("b", clock_s=30)
        ...  # ansible-playbook -i lab.inventory()

It must not know about runs, fio or Ansible's playbooks; it gives hosts, breaks them on demand and removes them.
"""

from .host import Host
from .lab import Lab
from .machine import LabError, missing
from .traces import processes_of

__all__ = ["Host", "Lab", "LabError", "missing", "processes_of"]
