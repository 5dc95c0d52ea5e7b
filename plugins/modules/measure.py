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
  - When the controller is interrupted while a phase runs, the host is put back before the play ends.
options:
  phase:
    description:
      - V(start) starts the agent and waits until it is ready; V(agree) sets the common start, once for all hosts;
        V(go) tells the agent; V(follow) waits for the points and collects them.
    type: str
    required: true
    choices: [start, agree, go, follow]
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
  t0:
    description: The agreed start in seconds since the epoch on the controller's clock; used by V(go) and V(follow).
    type: float
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
  register: start
  run_once: true

- name: Tell the agent when to start
  hostmax.storage.measure:
    phase: go
    directory: results/latest
    t0: "{{ start.t0 }}"

- name: Measure
  hostmax.storage.measure:
    phase: follow
    directory: results/latest
    t0: "{{ start.t0 }}"
"""

RETURN = r"""
t0:
  description: The agreed start, in seconds since the epoch.
  returned: phase agree
  type: float
  sample: 1796067143.2
points_measured:
  description: How many points of the plan were brought home from this host.
  returned: phase follow
  type: int
  sample: 7
"""
