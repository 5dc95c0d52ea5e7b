#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to NFS mounts: arguments in, verified mounts out.

Must not know: how they are made, verified or put back; module_utils/nfs_mount.py does.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: nfs_mount
short_description: Mount NFS for a run, verify it with the kernel, unmount it
version_added: "0.2.0"
description:
  - Mounts exactly what is asked and reads back what the kernel made of it, in one form of the options, so that an
    option that is ignored, clamped or lowered by the server is told in a sentence.
  - The number of connections (C(nconnect)), their protocol version and their request slots are decided by the first
    mount of a server and version. So other mounts of the same server, also those in other mount namespaces, are looked
    for first; mounts of the run itself are unmounted and mounted again in the right order, and with mounts of somebody
    else that would decide otherwise the task is refused before anything is changed.
  - Test mounts stay out of C(/etc/fstab) unless O(mounts[].persistent) asks for it.
  - A dead server hangs neither mounting nor unmounting; every step has a time-out.
  - Every change is written to the run's journal before it is made. M(hostmax.storage.restore) puts it back, also after
    a crash or a reboot. Mounts of one call that fails half-way are taken away at once.
options:
  run_id:
    description: The run that owns the mounts; V(prepared) is the standing preparation of the host.
    type: str
    default: prepared
  state:
    description:
      - V(mounted) makes exactly these mounts; other mounts of the run stay. One that is mounted with other options is
        unmounted and mounted again, never remounted.
      - V(unmounted) unmounts these mounts of the run, or all of them where O(mounts) is not given, and removes the
        mount points the run made. Mounts of others are never touched.
    type: str
    choices: [mounted, unmounted]
    default: mounted
  mounts:
    description: The mounts. For O(state=unmounted) only their O(mounts[].path) counts.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the mount in results; the last part of its path where it is not given.
        type: str
      source:
        description: Server and export, such as V(10.0.0.4:/vol1) or V([fd00::4]:/vol1). Needed for O(state=mounted).
        type: str
      path:
        description: The mount point; a relative one is below the run's work directory. It is made where it is missing.
        type: str
        required: true
      options:
        description:
          - Mount options as mount takes them; of words that contradict each other the last counts. The action resolves
            O(mounts[].profile) into them.
          - C(bg), C(intr), C(retry) and what only concerns C(/etc/fstab) are not given to the kernel, the mount is made
            in the foreground.
        type: str
        default: ""
      profile:
        description: Name of a mount profile of this collection, whose options O(mounts[].options) are merged over.
        type: str
      servers:
        description:
          - Addresses of one volume, for services that give it several endpoints. Host number k of the play, counted
            from 0 in inventory order, takes the one at k modulo their number, in place of the server in
            O(mounts[].source).
        type: list
        elements: str
      persistent:
        description: Whether a line in C(/etc/fstab), with C(nofail) and C(_netdev), mounts it after a reboot as well.
        type: bool
        default: false
      read_ahead_kib:
        description: Read-ahead of the mount in KiB, set after each mount and read back; not given it is left as it is.
        type: int
  timeout_s:
    description: Seconds that one mount may take.
    type: float
    default: 60
attributes:
  action:
    description: The controller resolves profiles and endpoints; the work is done on the host.
    support: full
  check_mode:
    support: full
    description: Checks everything and says what would be mounted, unmounted and mounted again.
  diff_mode:
    support: full
    description: Shows the options in effect before and the options asked or in effect after.
author:
  - hostmax.storage contributors (@hostmax)
seealso:
  - module: hostmax.storage.restore
"""

EXAMPLES = r"""
- name: Mount a volume for a run with the options of a profile and sixteen connections
  hostmax.storage.nfs_mount:
    run_id: example-1
    mounts:
      - name: vol1
        source: 10.0.0.4:/vol1
        path: mounts/vol1
        profile: azure_eda_2025
        options: nconnect=16

- name: A mount that stays over reboots, until the preparation is put back
  hostmax.storage.nfs_mount:
    mounts:
      - source: 10.0.0.4:/vol1
        servers: [10.0.0.4, 10.0.0.5, 10.0.0.6]
        path: /mnt/vol1
        options: vers=4.1,hard,rsize=262144,wsize=262144
        persistent: true
        read_ahead_kib: 15360

- name: Unmount all that the run mounted
  hostmax.storage.nfs_mount:
    run_id: example-1
    state: unmounted
"""

RETURN = r"""
mounts:
  description: The mounts, in the order asked; empty for O(state=unmounted).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the mount.
      type: str
    path:
      description: The mount point.
      type: str
      sample: /var/lib/hostmax/example-1/mounts/vol1
    source:
      description: Server and export.
      type: str
    asked:
      description: The options asked for, each once.
      type: str
      sample: hard,rsize=262144,wsize=262144,vers=3,tcp,nocto,actimeo=600,noatime,nconnect=16
    effective:
      description:
        - Every option in effect in canonical names; a switch is V(yes) or V(no). Null in check mode for what is not
          mounted yet, as are the figures below.
      type: dict
      sample: {"acregmin": "600", "cto": "no", "nconnect": "16", "proto": "tcp", "recovery": "hard", "vers": "3"}
    vers:
      description: Version of NFS.
      type: str
      sample: "4.1"
    nconnect:
      description: Number of connections in effect.
      type: int
    connections:
      description: Connections counted.
      type: int
    slots:
      description: Most requests one connection may have under way; null where the kernel does not show it.
      type: int
    rsize:
      description: Largest read in bytes.
      type: int
    wsize:
      description: Largest write in bytes.
      type: int
    read_ahead_kib:
      description: Read-ahead in KiB.
      type: int
    differences:
      description: A sentence for every option asked for that is not in effect as asked.
      type: list
      elements: str
      sample: ["rsize=1048576 was asked, the server allows no more than rsize=65536."]
    unverified:
      description: Options asked for of which the kernel shows nothing.
      type: list
      elements: str
      sample: ["intr"]
    persistent:
      description: Whether C(/etc/fstab) has a line of the run for it.
      type: bool
    changed:
      description: Whether this mount was changed.
      type: bool
restored:
  description: What was put back, for O(state=unmounted).
  returned: success
  type: list
  elements: str
warnings:
  description: Also what the differences say.
  returned: where there are any
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.hostmax.storage.plugins.module_utils import host_state, nfs_mount, restore


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str", "default": host_state.PREPARED},
            "state": {"type": "str", "choices": ["mounted", "unmounted"], "default": "mounted"},
            "mounts": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "name": {"type": "str"},
                    "source": {"type": "str"},
                    "path": {"type": "str", "required": True},
                    "options": {"type": "str", "default": ""},
                    "profile": {"type": "str"},
                    "servers": {"type": "list", "elements": "str"},
                    "persistent": {"type": "bool", "default": False},
                    "read_ahead_kib": {"type": "int"},
                },
            },
            "timeout_s": {"type": "float", "default": nfs_mount.MOUNT_S},
        },
        supports_check_mode=True,
    )
    try:
        result = _unmounted(module) if module.params["state"] == "unmounted" else _mounted(module)
    except host_state.HostError as exc:
        module.fail_json(msg=str(exc))
    for warning in result.pop("warnings"):
        module.warn(warning)
    module.exit_json(**result)


def _mounted(module: AnsibleModule) -> dict:
    book = restore.open_journal(module.params["run_id"])
    wanted = nfs_mount.want(module.params["run_id"], module.params["mounts"] or [])
    before = nfs_mount.as_seen(wanted)
    # refused before a work directory is made
    result = nfs_mount.planned(wanted, book, module.run_command)
    if result["changed"] and not module.check_mode:
        host_state.make_work_dir(module.params["run_id"])
        result = nfs_mount.apply(wanted, book, module.params["timeout_s"], module.run_command)
    after = nfs_mount.as_expected(wanted) if module.check_mode else nfs_mount.as_seen(wanted)
    for mount in result["mounts"]:
        result["warnings"] += [f"{mount['path']}: {sentence}" for sentence in mount["differences"]]
    return dict(result, restored=[], diff={"before": before, "after": after})


def _unmounted(module: AnsibleModule) -> dict:
    book = restore.open_journal(module.params["run_id"])
    mounts = module.params["mounts"]
    work_dir = host_state.work_dir(module.params["run_id"])
    paths = None if mounts is None else [os.path.normpath(os.path.join(work_dir, mount["path"])) for mount in mounts]
    result = nfs_mount.unmount(book, paths, module.check_mode)
    gone = {"mounted": result["restored"]}
    return dict(result, mounts=[], diff={"before": gone, "after": {"mounted": []}})


if __name__ == "__main__":
    main()
