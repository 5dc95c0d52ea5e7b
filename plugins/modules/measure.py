# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: measure
short_description: Carry out a plan on a host and bring its samples home
version_added: 0.1.0
description:
  - Starts the agent on the host (M(hostmax.storage.agent)), agrees on the start, follows the agent while it measures,
    shows a line as each point ends, and writes each point's sample and raw fio output into the run directory.
  - Each phase is a task of its own, so that all hosts of a play meet before the next phase begins.
  - A host that is lost on the way (it cannot be reached, was restarted, its agent was killed) does not fail the task;
    it is named at once and in the results, and the other hosts go on. How the play ends is decided by
    M(hostmax.storage.report).
  - When the controller is interrupted while a phase runs, the host is put back before the play ends.
options:
  phase:
    description:
      - V(stage) switches the host to the condition of a stage - unmounts, tunes, mounts - and writes down what is in
        effect; where the plan compares nothing it does nothing.
      - V(start) starts the agent, waits until it is ready, and measures the host's clock against the controller's.
      - V(agree) sets T0 of a stage, once for all hosts, as far ahead as telling all of them takes; V(go) tells the
        agent; V(confirm), once for all hosts, moves T0 where a host was not told in time, and returns RV(again).
      - V(follow) waits for the points and brings them home.
      - V(repeat), once for all hosts, looks whether a host began a point later than the others, and has it measured
        once more.
    type: str
    required: true
    choices: [stage, start, agree, go, confirm, follow, repeat]
  directory:
    description: The run directory on the controller, as M(hostmax.storage.plan) returned it.
    type: path
    required: true
  host:
    description: Facts of the host from M(hostmax.storage.probe); used by V(start).
    type: dict
    default: {}
  thin:
    description: Result of M(hostmax.storage.thin_volumes), where thin volumes are measured; used by V(start).
    type: dict
    default: {}
  stage:
    description: Number of the stage in the plan; used by V(stage) and V(agree).
    type: int
    default: 1
attributes:
  action:
    description: Runs on the controller and calls modules on the host.
    support: full
  async:
    description: The agent is detached by itself.
    support: none
  check_mode:
    description: Nothing can be measured without doing I/O.
    support: none
author:
  - hostmax.storage contributors (@hostmax)
"""

EXAMPLES = r"""
- name: Start the agent
  hostmax.storage.measure:
    phase: start
    directory: results/latest

- name: Agree on the start
  hostmax.storage.measure:
    phase: agree
    directory: results/latest
  run_once: true

- name: Tell the agent when to start
  hostmax.storage.measure:
    phase: go
    directory: results/latest

- name: Follow the agent
  hostmax.storage.measure:
    phase: follow
    directory: results/latest
"""

RETURN = r"""
again:
  description: Whether hosts have to be told once more.
  returned: phases confirm and repeat
  type: bool
points_measured:
  description: How many points of the round were brought home from this host.
  returned: phase follow
  type: int
  sample: 7
lost:
  description: Why this host measures no more.
  returned: when it was lost
  type: str
  sample: the host was restarted during the run
"""
