#!/usr/bin/python
# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation of the action plugin of the same name; nothing runs on a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preparation
short_description: Check what hosts are to be prepared with
version_added: "0.2.0"
description:
  - Checks the settings of all hosts of a play, hostmax_tuning and hostmax_nfs_mounts and every other one, before the
    first host is changed. A name that nobody reads, an unknown profile or option, and a value that does not fit end the
    play with a sentence each.
  - Shows in a line for each kind of host what it is going to have.
attributes:
  check_mode:
    description: Does the same.
    support: full
  action:
    description: Has an action plugin that runs on the controller.
    support: full
author:
  - hostmax.storage contributors (@hostmax)
seealso:
  - module: hostmax.storage.sysctl_profile
  - module: hostmax.storage.nfs_mount
"""

EXAMPLES = r"""
- name: Check the settings of all hosts
  hostmax.storage.preparation:
  run_once: true
"""

RETURN = r"""
msg:
  description: What is wrong, a sentence for each fault.
  returned: failure
  type: str
"""
