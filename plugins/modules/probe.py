#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: probe
short_description: Look at a host before anything on it is changed
version_added: 0.1.0
description:
  - Reports what a run needs to know of a host - kernel, CPUs, memory, fio, io_uring, unfinished runs - in one call.
  - Asks the guard about the named volumes and fails with its refusals, so that a run ends before its first change.
  - Changes nothing and writes nothing.
attributes:
  check_mode:
    description: The module only looks.
    support: full
  diff_mode:
    description: There is nothing to show as a difference.
    support: none
options:
  volumes:
    description:
      - The volumes a run would use, as M(hostmax.storage.plan) returns them.
    type: list
    elements: dict
    default: []
  writes:
    description: Whether the run would write to them.
    type: bool
    default: false
author:
  - hostmax.storage contributors (@hostmax)
"""

EXAMPLES = r"""
- name: Ask the guard about a volume, for reading and for writing
  hostmax.storage.probe:
    volumes:
      - name: vol01
        path: /dev/disk/by-id/wwn-0x600a0b80001111110000000000000001
        size: 1TB
    writes: true
"""

RETURN = r"""
host:
  description: Facts about the host.
  returned: success
  type: dict
  contains:
    kernel:
      description: Kernel release.
      type: str
    cpus:
      description: CPUs this process may use.
      type: int
    cpu_model:
      description: The CPU's name, where the kernel tells one.
      type: str
    memory_bytes:
      description: Memory of the host.
      type: int
    root:
      description: Whether the module ran as root.
      type: bool
    fio_version:
      description: The installed fio's version, or null.
      type: str
    package_manager:
      description: V(apt) where apt-get is there, V(other) elsewhere.
      type: str
    clock_s:
      description: The host's clock when it was asked, in seconds since the epoch.
      type: float
machine:
  description: The same for two hosts only where they are one machine with one state directory.
  returned: success
  type: str
prepared:
  description: Whether the playbook C(prepare) set up this host and it was not put back since.
  returned: success
  type: bool
leftovers:
  description: Runs on this host that are over and were not put back; M(hostmax.storage.restore) does that.
  returned: success
  type: list
  elements: str
volumes:
  description: The guard's findings for each volume.
  returned: success
  type: list
  elements: dict
"""

import os
import platform
import shutil
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.hostmax.storage.plugins.module_utils import (
    fio_tool,
    guard,
    host_state,
    progress,
    restore,
    test_file_places,
)

LEFTOVER_AGE_S = 600


def host_facts():
    """What a report says about a client, from /proc and platform."""
    with open("/proc/meminfo", encoding="ascii") as handle:
        memory_kib = next(int(line.split()[1]) for line in handle if line.startswith("MemTotal:"))
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as handle:
        models = [line.split(":", 1)[1].strip() for line in handle if line.lower().startswith("model name")]
    return {
        "kernel": platform.release(),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_model": models[0] if models else None,
        "memory_bytes": memory_kib * 1024,
        "root": os.geteuid() == 0,
        "package_manager": "apt" if shutil.which("apt-get", path="/usr/bin:/bin") else "other",
        "clock_s": time.time(),
    }


def machine_name():
    """Boot, process namespace (a container has its own) and state directory: what two runs would have to share."""
    return " ".join((host_state.machine(), host_state.state_root()))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "volumes": {"type": "list", "elements": "dict", "default": []},
            "writes": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    # what is on a test mount of the run is not there before the run; its agent asks the guard about it
    volumes = [volume for volume in module.params["volumes"] if not volume.get("mount")]
    host = host_facts()
    if not all(map(test_file_places.is_directory, volumes)) and not host["root"]:
        module.fail_json(msg="Raw volumes can only be judged and used by root; set become: true for this host.")
    refusal = progress.refusal_while_measuring()
    if refusal:
        module.fail_json(msg=refusal)
    verdicts = guard.judge_volumes(volumes, writes=module.params["writes"]) if volumes else []
    refusals = guard.refusals(verdicts)
    if refusals:
        module.fail_json(msg=" ".join(refusals))
    fio = fio_tool.find_fio()
    host["fio_version"] = fio_tool.read_version(fio, host_state.run_command) if fio else None
    if fio and fio_tool.version_fault(host["fio_version"]):
        module.fail_json(msg=fio_tool.version_fault(host["fio_version"]))
    for verdict in verdicts:
        for warning in verdict["warnings"]:
            module.warn(warning)
    module.exit_json(
        changed=False,
        host=host,
        machine=machine_name(),
        volumes=verdicts,
        leftovers=restore.due_runs(LEFTOVER_AGE_S),
        prepared=restore.is_prepared(),
    )


if __name__ == "__main__":
    main()
