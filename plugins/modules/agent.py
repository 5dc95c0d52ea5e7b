#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: agent
short_description: Start the agent that measures one host's part of a run
version_added: 0.1.0
description:
  - Writes one host's plan into the run's work directory and starts a detached process that carries it out.
  - The agent survives a lost connection, is bounded by its own deadline, ends only processes it started, and puts the
    host back from the journal as its last act.
  - The role P(hostmax.storage.measure#role) uses this module through M(hostmax.storage.measure); there is rarely a
    reason to call it directly.
attributes:
  check_mode:
    description: In check mode no agent is started.
    support: full
  diff_mode:
    description: There is nothing to show as a difference.
    support: none
options:
  run_id:
    description: The run this plan belongs to.
    type: str
    required: true
  plan:
    description:
      - The host's part of the plan - C(volumes), C(points) with their fio jobs, C(cgroup), C(own_files) and
        C(deadline_s) in seconds.
    type: dict
    required: true
author:
  - hostmax.storage contributors (@hostmax)
"""

EXAMPLES = r"""
- name: Start the agent for a plan made by hostmax.storage.plan
  hostmax.storage.agent:
    run_id: host_max-20261130T120000Z-a1b2c3
    plan: "{{ my_host_plan }}"
"""

RETURN = r"""
work_dir:
  description: The run's work directory on the host, where the agent writes its progress and results.
  returned: success
  type: str
  sample: /var/lib/hostmax/host_max-20261130T120000Z-a1b2c3
pid:
  description: Process id of the agent.
  returned: when started
  type: int
  sample: 4711
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.hostmax.storage.plugins.module_utils import agent, host_state, progress

START_WAIT_S = 10.0


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str", "required": True},
            "plan": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    run_id = module.params["run_id"]
    try:
        work_dir = host_state.work_dir(run_id)
        refusal = progress.refusal_while_measuring(run_id)
        if refusal:
            module.fail_json(msg=refusal)
        if module.check_mode:
            module.exit_json(changed=False, work_dir=work_dir)
        host_state.make_work_dir(run_id)
        agent.start(work_dir, dict(module.params["plan"], run_id=run_id))
    except (OSError, host_state.HostError) as exc:
        module.fail_json(msg=f"The agent could not be started in the work directory of run {run_id}: {exc}")
    identity = _wait_for_identity(run_id)
    if identity is None:
        module.fail_json(
            msg="The agent did not start; its words are in {}.".format(os.path.join(work_dir, "agent.log"))
        )
    module.exit_json(changed=False, work_dir=work_dir, pid=identity["pid"])


def _wait_for_identity(run_id):
    end_s = time.monotonic() + START_WAIT_S
    while time.monotonic() < end_s:
        identity = host_state.read_agent(run_id)
        if identity:
            return identity
        time.sleep(0.01)
    return None


if __name__ == "__main__":
    main()
