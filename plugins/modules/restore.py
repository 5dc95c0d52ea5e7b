#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to restore: which run, and what was put back.

Must not know: how anything is put back; module_utils/restore.py does.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: restore
short_description: Put a host back as it was before a run
version_added: "0.1.0"
description:
  - Puts back from the journal, the last change first, what a run changed on this host, and removes the run's work
    directory when nothing was left. Works after a crash at any moment and after a reboot; a second restore changes
    nothing.
  - Each change is put back only where it is still the one the run made; what is not is left and named in RV(runs).
  - Only processes of the run are ended, by their id and after checking that the id still means the same process.
options:
  run_id:
    description:
      - The run to restore. Its processes on this host are ended first.
      - Without it every run on this host that is over is restored. A run is over when its agent has ended, when it
        began before the last boot, or when it has no agent and is older than O(min_age_s).
    type: str
  min_age_s:
    description: Age in seconds from which a run that has no agent yet is taken to be over; only without O(run_id).
    type: int
    default: 600
  prepared:
    description:
      - Whether to put back, after that, what the playbook C(prepare) set up on this host to stay. It is never restored
        otherwise, not by its age and not after a reboot.
    type: bool
    default: false
  directory:
    description:
      - The run directory on the controller. Where the run's agent still waits on the host for its results to be
        claimed, it is asked to put the host back itself, which is quicker; what it leaves is put back as without this.
    type: path
  keep_results:
    description: Keep the run's work directory with what was measured, also when everything else was put back.
    type: bool
    default: false
attributes:
  action:
    description: The controller asks the run's agent first; the work is done on the host.
    support: full
  check_mode:
    support: full
    description: Returns what would be put back and left.
  diff_mode:
    support: full
    description: Shows what was put back.
author:
  - hostmax.storage contributors (@hostmax)
seealso:
  - module: hostmax.storage.thin_volumes
"""

EXAMPLES = r"""
- name: Put back what one run changed
  hostmax.storage.restore:
    run_id: example-1

- name: Put back what runs that are over have left on this host
  hostmax.storage.restore:

- name: Put back everything, the preparation of the host too
  hostmax.storage.restore:
    prepared: true
"""

RETURN = r"""
runs:
  description: The runs that were looked after.
  returned: success
  type: list
  elements: dict
  contains:
    run_id:
      description: The run.
      type: str
    ended:
      description: Numbers of the processes that were ended.
      type: list
      elements: int
    restored:
      description: What was put back, in order.
      type: list
      elements: str
      sample: ["cgroup /sys/fs/cgroup/hostmax-example-1", "loop device /var/lib/hostmax/example-1/backing/thin01.img"]
    left:
      description: What was left as it is, and why.
      type: list
      elements: dict
      contains:
        what:
          description: The thing.
          type: str
        why:
          description: The reason, with what to do.
          type: str
    removed:
      description: Whether the run's work directory was removed.
      type: bool
    changed:
      description: Whether anything of this run was changed.
      type: bool
left_count:
  description: How many things were left, over all runs; a playbook may fail on it.
  returned: success
  type: int
msg:
  description: The outcome in one sentence.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.hostmax.storage.plugins.module_utils import host_state, restore


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str"},
            "min_age_s": {"type": "int", "default": 600},
            "prepared": {"type": "bool", "default": False},
            "directory": {"type": "path"},
            "keep_results": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        runs = restore.restore_host(
            options["run_id"],
            options["min_age_s"],
            keep_results=options["keep_results"],
            check=module.check_mode,
            prepared=options["prepared"],
        )
    except host_state.HostError as exc:
        module.fail_json(msg=str(exc))
    left = [item["what"] for run in runs for item in run["left"]]
    before = left + [what for run in runs for what in run["restored"]]
    module.exit_json(
        changed=any(run["changed"] for run in runs),
        runs=runs,
        left_count=len(left),
        msg=restore.summary(runs),
        diff={"before": {"changes": before}, "after": {"changes": left}},
    )


if __name__ == "__main__":
    main()
