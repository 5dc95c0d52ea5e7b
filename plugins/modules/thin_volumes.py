#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to thin volumes: arguments in, volumes out.

Must not know: how they are made or put back; module_utils/thin_volumes.py does.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: thin_volumes
short_description: Make thin volumes with a known cap for a run
version_added: "0.1.0"
description:
  - Makes sparse files and attaches them to loop devices with direct I/O, so that a host without any storage service
    has volumes to measure. They take no space until something is written to them.
  - With O(cap) a cgroup of the run (v1 or v2, whichever can cap on this host) limits IOPS and bytes per second of each
    volume, so that a measurement has a known truth. The cap holds for reads and for writes by themselves, and only for
    the processes that join the cgroup.
  - Without root the volumes are plain sparse files and have no cap; a warning says what that measures.
  - Every change is written to the run's journal before it is made. M(hostmax.storage.restore) puts it back, also after
    a crash or a reboot. What fails half-way is put back at once.
options:
  run_id:
    description: The run that owns the volumes; names its work directory and its cgroup.
    type: str
    required: true
  count:
    description: How many volumes, from 1 to 200.
    type: int
    required: true
  size_bytes:
    description: Size of each volume in bytes, 1 MiB or more; rounded down to a multiple of 4096.
    type: int
    required: true
  cap:
    description: The cap of each volume, for each direction by itself. What it does not name is not capped.
    type: dict
    suboptions:
      iops:
        description: I/O operations per second.
        type: int
      bytes_per_s:
        description: Bytes per second.
        type: int
  written_bytes:
    description:
      - How many bytes all the volumes together may come to hold while they are used; refused where the host's disk has
        no room for it.
    type: int
    default: 0
attributes:
  check_mode:
    support: full
    description: Checks everything and returns the volumes as they would be made, without their devices.
  diff_mode:
    support: full
    description: Shows the volumes that are made.
author:
  - hostmax.storage contributors (@hostmax)
seealso:
  - module: hostmax.storage.restore
"""

EXAMPLES = r"""
- name: Four volumes of 50 GB, capped like a small balanced cloud volume
  hostmax.storage.thin_volumes:
    run_id: example-1
    count: 4
    size_bytes: 50000000000
    cap:
      iops: 3000
      bytes_per_s: 24576000
  register: thin

- name: Put everything back
  hostmax.storage.restore:
    run_id: example-1
"""

RETURN = r"""
thin:
  description: The thin volumes and what caps them.
  returned: success
  type: dict
  contains:
    volumes:
      description: The volumes, in order.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the volume.
          type: str
          sample: thin01
        path:
          description: Path relative to RV(work_dir).
          type: str
          sample: volumes/thin01
        kind:
          description: V(block) for a loop device, V(file) without root.
          type: str
        size_bytes:
          description: Size in bytes.
          type: int
        size:
          description: The same as text, as the settings of a volume have it.
          type: str
        identity:
          description: Always null, thin volumes have no serial number.
          type: str
        overwrite:
          description: Always null, thin volumes carry no signature.
          type: str
        cap:
          description: The cap in force, null where there is none.
          type: dict
        device:
          description: The loop device, null for a file and in check mode.
          type: str
          sample: /dev/loop4
        backing:
          description: The sparse file that holds what is written.
          type: str
    cgroup:
      description: The cgroup that a process has to join to be capped, null where nothing is capped.
      type: str
      sample: /sys/fs/cgroup/hostmax-example-1
    cap_by:
      description: What caps, V(cgroup v1) or V(cgroup v2), null where nothing does.
      type: str
    warnings:
      description: Sentences that belong beside every figure measured on these volumes.
      type: list
      elements: str
work_dir:
  description: The run's work directory on the host.
  returned: success
  type: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.hostmax.storage.plugins.module_utils import host_state, restore, thin_volumes


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str", "required": True},
            "count": {"type": "int", "required": True},
            "size_bytes": {"type": "int", "required": True},
            "written_bytes": {"type": "int", "default": 0},
            "cap": {
                "type": "dict",
                "options": {
                    "iops": {"type": "int"},
                    "bytes_per_s": {"type": "int"},
                },
            },
        },
        supports_check_mode=True,
    )
    wanted = [module.params[name] for name in ("run_id", "count", "size_bytes", "cap")]
    try:
        book = restore.open_journal(module.params["run_id"])
        room = module.params["written_bytes"]
        thin = thin_volumes.planned(*wanted, book=book, written_bytes=room)
        if not module.check_mode:
            host_state.make_work_dir(module.params["run_id"])
            thin = thin_volumes.create(*wanted, book=book, run=module.run_command, written_bytes=room)
    except host_state.HostError as exc:
        module.fail_json(msg=str(exc))
    for warning in thin["warnings"]:
        module.warn(warning)
    changed = thin.pop("changed")
    names = [volume["name"] for volume in thin["volumes"]]
    module.exit_json(
        changed=changed,
        thin=thin,
        work_dir=os.path.dirname(book.path),
        diff={"before": {"volumes": [] if changed else names}, "after": {"volumes": names}},
    )


if __name__ == "__main__":
    main()
