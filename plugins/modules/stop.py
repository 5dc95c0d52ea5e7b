#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: stop
short_description: End a run on a host, keep what it measured, and put the host back
version_added: 0.2.0
description:
  - Ends the run's agent and its fio, brings home the points that were measured, and puts the host back from its
    journal.
  - It does not matter who started the run, or whether that controller is still there. One that still follows the run
    reports what was measured until then.
  - A run that is not on the host is no fault; nothing is changed.
options:
  run:
    description: The run directory on the controller, or the id of the run.
    type: str
    required: true
  results:
    description: Where run directories are looked for by their id.
    type: path
    default: results
attributes:
  action:
    description: Runs on the controller and calls M(hostmax.storage.restore) on the host.
    support: full
  async:
    description: It waits for the agent by itself.
    support: none
  check_mode:
    description: Tells what would be put back and ends nothing.
    support: full
author:
  - hostmax.storage contributors (@hostmax)
seealso:
  - module: hostmax.storage.restore
"""

EXAMPLES = r"""
- name: End a run
  hostmax.storage.stop:
    run: results/latest
"""

RETURN = r"""
directory:
  description: The run directory, or null where there is none for this id.
  returned: always
  type: str
left_count:
  description: How many things could not be put back; 1 where the host cannot be reached.
  returned: always
  type: int
msg:
  description: The outcome in one sentence.
  returned: always
  type: str
"""
