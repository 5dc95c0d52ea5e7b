#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to tuning a host: values in, what became of each of them out.

Must not know: how values are set or put back; module_utils/sysctl_profile.py does. Nor profiles: the controller does.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: sysctl_profile
short_description: Tune a host by sysctl keys and kernel module parameters, and put it back
version_added: "0.2.0"
description:
  - Sets sysctl keys and parameters of kernel modules, live and for the next boot, and says of each what it was, what it
    was asked to be, what it is now by reading it back, and why where the two differ.
  - The tuning of a run is made exactly what is given, what the run has set before and is not named now is put back.
    The same call again changes nothing.
  - One value that cannot be set (missing key, read-only in a container, refused by the kernel) is told and does not
    keep the others from being set. Keys without an effect on today's kernels and keys that cannot be read are told and
    never written.
  - For the next boot there are files of our own, C(/etc/sysctl.d/zz-hostmax*.conf) and
    C(/etc/modprobe.d/zz-hostmax*.conf), named to be applied last. No other file is touched; those that set the same
    keys to something else are named in a warning, and so is a running tuned daemon.
  - C(sunrpc.*) keys that are parameters of the module C(sunrpc) are set as such, because at boot the keys are not there
    yet. C(sunrpc) and C(nfs) are loaded where they are needed and can be.
  - Every change is written to the run's journal before it is made. O(state=absent) or M(hostmax.storage.restore) puts
    it back, only where the value is still the one that was set; after a reboot too.
options:
  run_id:
    description: The run that owns the tuning. V(prepared) is what stands until it is restored, over reboots too.
    type: str
    default: prepared
  state:
    description: V(present) makes the tuning of the run what is given, V(absent) puts back all of it.
    type: str
    choices: [present, absent]
    default: present
  profiles:
    description:
      - Names of tuning profiles, or mappings of sysctl keys to values, as in C(hostmax_tuning); they are worked out on
        the controller. Of what is said twice the last counts, with a warning.
    type: list
    elements: raw
    default: []
  keys:
    description: Sysctl keys, each a mapping with C(key) and C(value); they come after O(profiles).
    type: list
    elements: dict
    default: []
  module_parameters:
    description: Parameters of kernel modules, each a mapping with C(module), C(parameter) and C(value).
    type: list
    elements: dict
    default: []
  sunrpc_slots:
    description:
      - Requests in flight per connection to an NFS server (C(sunrpc/tcp_max_slot_table_entries)); V(auto) shares
        10,000 among all O(clients) and their connections, at most 128 each; V(none) leaves it to the profiles.
    type: str
    default: none
  nfs41_session_slots:
    description:
      - Requests in flight per NFSv4.1 session (C(nfs/max_session_slots)), from 1 to 1024; V(none) leaves it to the
        profiles.
    type: str
    default: none
  clients:
    description: How many hosts use the same NFS server, where slots are worked out; else all hosts of the play.
    type: int
  nconnect:
    description: How many connections each of them has, for the same; else the most that O(mounts) ask for, or 1.
    type: int
  mounts:
    description: Mounts as in C(hostmax_nfs_mounts), of which only C(nconnect) is read.
    type: list
    elements: dict
    default: []
  persistent:
    description: Whether the tuning is to hold after a reboot too.
    type: bool
    default: true
  name:
    description: What the files say the tuning is; the names of the profiles where it is not given.
    type: str
attributes:
  action:
    description: Profiles are read and worked out on the controller; the work is done on the host.
    support: full
  check_mode:
    support: full
    description: Returns what would be set, as far as it can be known without writing.
  diff_mode:
    support: full
    description: Shows each value that is changed.
author:
  - hostmax.storage contributors (@hostmax)
seealso:
  - module: hostmax.storage.restore
"""

EXAMPLES = r"""
- name: The practices for chip design on Azure NetApp Files, until they are restored
  hostmax.storage.sysctl_profile:
    profiles: [azure_eda_2025]
    sunrpc_slots: auto
    nconnect: 8

- name: Two values for one run, not for the next boot
  hostmax.storage.sysctl_profile:
    run_id: example-1
    persistent: false
    keys:
      - {key: net.core.rmem_max, value: 16777216}
      - {key: net.ipv4.tcp_rmem, value: 4096 131072 16777216}

- name: Put them back
  hostmax.storage.sysctl_profile:
    run_id: example-1
    state: absent
"""

RETURN = r"""
tuning:
  description: What became of the tuning.
  returned: success
  type: dict
  contains:
    keys:
      description: Every value that was asked for, in order.
      type: list
      elements: dict
      contains:
        kind:
          description: V(sysctl) or V(module_parameter).
          type: str
        key:
          description: The key, or C(module/parameter).
          type: str
          sample: net.core.rmem_max
        before:
          description: The value this call found; null where it cannot be read.
          type: str
        wanted:
          description: The value that was asked for.
          type: str
        after:
          description: The value that reads back (in check mode the expected one).
          type: str
        status:
          description: >-
            V(set), V(already); V(clamped) where the kernel made something else of it, V(refused) where it did not take
            it; V(missing), V(module_not_loaded), V(other_namespace), V(read_only); V(write_only) and V(legacy), which
            are never written.
          type: str
        note:
          description: A sentence where the status is neither V(set) nor V(already).
          type: str
        changed:
          description: Whether this call changed the live value.
          type: bool
    files:
      description: Our files that hold for the next boot.
      type: list
      elements: str
    files_changed:
      description: Those that this call wrote or removed.
      type: list
      elements: str
    restored:
      description: What the run had changed before and was put back, because it is not wanted any more.
      type: list
      elements: str
    left:
      description: What could not be put back, and why.
      type: list
      elements: dict
    warnings:
      description: Sentences on what else sets these keys, or keeps them from having an effect.
      type: list
      elements: str
    changed:
      description: Whether anything was changed.
      type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.hostmax.storage.plugins.module_utils import host_state, restore, sysctl_profile


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str", "default": "prepared"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "profiles": {"type": "list", "elements": "raw", "default": []},
            "keys": {"type": "list", "elements": "dict", "default": [], "no_log": False},
            "module_parameters": {"type": "list", "elements": "dict", "default": []},
            "sunrpc_slots": {"type": "str", "default": "none"},
            "nfs41_session_slots": {"type": "str", "default": "none"},
            "clients": {"type": "int"},
            "nconnect": {"type": "int"},
            "mounts": {"type": "list", "elements": "dict", "default": []},
            "persistent": {"type": "bool", "default": True},
            "name": {"type": "str"},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        book = restore.open_journal(options["run_id"])
        if options["state"] == "absent":
            tuning = sysctl_profile.absent(book, module.check_mode)
        else:
            given = [options[name] for name in ("run_id", "keys", "module_parameters", "persistent")]
            wanted = sysctl_profile.want(*given, title=options["name"] or "")
            work = sysctl_profile.planned if module.check_mode else sysctl_profile.apply
            tuning = work(wanted, book, module.run_command)
    except host_state.HostError as exc:
        module.fail_json(msg=str(exc))
    for warning in tuning["warnings"]:
        module.warn(warning)
    module.exit_json(changed=tuning["changed"], tuning=tuning, diff=sysctl_profile.difference(tuning))


if __name__ == "__main__":
    main()
