#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation of the action of this name, which does all the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: plan
short_description: Expand the settings of all hosts into the plan of a run
version_added: 0.1.0
description:
  - Checks every C(hostmax_) variable of every host of the play, expands them into a plan, shows the plan with its
    length and what it writes to, and keeps it as C(plan.json) in a new run directory on the controller.
  - An unknown C(hostmax_) name, a wrong unit, a volume named twice and the like are refused in one sentence each.
  - Runs on the controller only and changes nothing on a host. Use it with C(run_once).
author:
  - hostmax.storage contributors (@hostmax)
options:
  playbook:
    description: What the run is called; the first part of its id.
    type: str
    required: true
  hosts:
    description: The hosts to plan for; all hosts of the play that have not failed where it is not given.
    type: list
    elements: str
  found:
    description:
      - What M(hostmax.storage.probe) found on each host of the plan, by the host's name.
      - With it no plan is made; the hosts are compared, and two that are the same machine, or that would write the
        same volume, are refused. A host that cannot be reached is not; the run goes on without it.
      - Where a run is resumed, its points are kept only if the hosts are as they were.
    type: dict
  writes:
    description: Whether the run writes; only with O(found).
    type: bool
    default: false
  shared_volumes:
    description: Whether hosts may write the same volume; only with O(found).
    type: bool
    default: false
  conditions:
    description: Whether the run compares conditions, which a prepared host cannot; only with O(found).
    type: bool
    default: false
  directory:
    description:
      - The run directory that was made for the plan; only with O(found), and not in check mode.
      - Hosts that cannot be reached are written down in it.
    type: path
attributes:
  check_mode:
    description: Shows the plan, returns it, and makes no run directory.
    support: full
  action:
    description: Has an action plugin that runs on the controller.
    support: full
"""

EXAMPLES = r"""
- name: Plan the run
  hostmax.storage.plan:
    playbook: host_max
  register: __hostmax_plan
  run_once: true

- name: Refuse hosts that must not measure together
  hostmax.storage.plan:
    playbook: host_max
    found: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, '__hostmax_host'))) }}"
    writes: true
  run_once: true
"""

RETURN = r"""
run_id:
  description: The id of the run.
  returned: success
  type: str
  sample: host_max-20261130T194000Z-a1b2c3
directory:
  description: The run directory on the controller; null in check mode.
  returned: success
  type: str
  sample: /srv/results/host_max-20261130T194000Z-a1b2c3
planned_s:
  description: How long the points take, in seconds.
  returned: success
  type: float
  sample: 527.1
points:
  description: How many points there are.
  returned: success
  type: int
  sample: 7
kept:
  description: How many of them were measured in the run that is resumed, and are taken over.
  returned: success
  type: int
  sample: 0
stages:
  description: The numbers of the stages (a condition in a block) that have a point to measure, in order.
  returned: success
  type: list
  elements: int
  sample: [1, 2, 3]
conditions:
  description: How many conditions are compared; 0 where the volumes are measured as they are.
  returned: success
  type: int
  sample: 0
mounts:
  description: Whether the run mounts NFS.
  returned: success
  type: bool
fail_on:
  description: Which outcomes end the play with a failure, from C(hostmax_fail_on).
  returned: success
  type: list
  elements: str
shared_volumes:
  description: Whether hosts may write the same volume, from C(hostmax_shared_volumes).
  returned: success
  type: bool
hosts:
  description: What the plan says of each host, by its name.
  returned: success
  type: dict
  contains:
    volumes:
      description: The volumes, each with C(name), C(path), C(size_bytes), C(identity), C(overwrite), C(kind), C(cap).
      type: list
      elements: dict
    thin:
      description: How many thin volumes to make (C(count), C(size_bytes), C(cap)); null where volumes are named.
      type: dict
    writes:
      description: Whether any point writes.
      type: bool
plan:
  description: The whole plan.
  returned: in check mode
  type: dict
"""
