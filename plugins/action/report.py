# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to reporting: a run directory becomes results and reports, or is shown and decides how the play ends.

It must not know what the figures mean; results are built, rendered and judged in plugin_utils.
"""

from __future__ import annotations

import sys
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import (
    exit_policy,
    intervals,
    render,
    render_text,
    results,
    run_directory,
)


class ActionModule(ActionBase):  # type: ignore[misc]
    """``written`` makes the files; ``shown`` prints the summary and fails where ``fail_on`` says so."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp
        _validation, args = self.validate_argument_spec(
            argument_spec={
                "directory": {"type": "path", "required": True},
                "state": {"type": "str", "default": "written", "choices": ["written", "shown"]},
                "fail_on": {
                    "type": "list",
                    "elements": "str",
                    "default": list(exit_policy.DEFAULT),
                    "choices": list(exit_policy.CHOICES),
                },
            },
        )
        try:
            run = run_directory.open_run(args["directory"])
            if args["state"] == "shown":
                return {**result, **self._show(run, args["fail_on"])}
            if not self._task.check_mode:
                render.render_all(results.build(run), run.path)
        except (run_directory.RunDirectoryError, render.RenderError, intervals.MissingScipyError, OSError) as exc:
            raise AnsibleActionFail(str(exc)) from None
        except (LookupError, TypeError, AttributeError) as exc:
            raise AnsibleActionFail(
                f"{run.path} cannot be reported, a part of it is missing or another's ({type(exc).__name__}: {exc}); "
                "its plan.json and samples.jsonl must be those that one run wrote."
            ) from exc
        return {**result, "changed": False, "directory": str(run.path), "report": str(run.path / "report.html")}

    def _show(self, run: run_directory.RunDirectory, fail_on: list[str]) -> dict[str, Any]:
        document = run.read_results()
        ascii_only = not (sys.__stdout__ and (sys.__stdout__.encoding or "").lower().startswith("utf"))
        Display().display("\n" + render_text.summary(document, ascii_only=ascii_only))
        Display().display(f"\nReport: {run.path / 'report.html'}")
        reason = exit_policy.reason_to_fail(document, fail_on)
        outcome = {"changed": False, "directory": str(run.path), "report": str(run.path / "report.html")}
        return {**outcome, "failed": True, "msg": reason} if reason else outcome
