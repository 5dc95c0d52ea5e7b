# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Make the reports of a run directory, or show the result and end with the verdict
version_added: 0.1.0
description:
  - With O(state=written) the samples of a run are merged, gated, explained and judged, and C(results.json),
    C(results.csv), C(junit.xml), C(summary.md) and C(report.html) are written into the run directory.
  - With O(state=shown) the summary is printed, and the task fails where O(fail_on) says so.
  - An unfinished run can be reported too; it is then marked partial.
options:
  directory:
    description: A run directory on the controller.
    type: path
    required: true
  state:
    description: Whether the files are written or the result is shown.
    type: str
    default: written
    choices: [written, shown]
  fail_on:
    description:
      - What makes O(state=shown) fail - a failed, inconclusive or invalid verdict; V(invalid) also stands for points
        that did not pass their gates and for hosts that failed. V(never) silences all.
    type: list
    elements: str
    default: [fail, invalid]
    choices: [fail, inconclusive, invalid, never]
attributes:
  action:
    description: Runs on the controller only.
    support: full
  async:
    description: The reports of a run take a second.
    support: none
  check_mode:
    description: In check mode no file is written.
    support: full
author:
  - hostmax.storage contributors (@hostmax)
"""

EXAMPLES = r"""
- name: Make the reports of the newest run again
  hostmax.storage.report:
    directory: results/latest

- name: Show the result, and fail also where there is no verdict
  hostmax.storage.report:
    directory: results/latest
    state: shown
    fail_on: [fail, inconclusive, invalid]
"""

RETURN = r"""
directory:
  description: The run directory.
  returned: success
  type: str
  sample: results/host_max-20261130T120000Z-a1b2c3
report:
  description: The HTML report.
  returned: success
  type: str
  sample: results/host_max-20261130T120000Z-a1b2c3/report.html
"""
