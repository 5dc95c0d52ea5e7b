# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to planning: the variables of all hosts become one plan, which is shown and kept in a new run directory.

It must not know what a setting means or how a plan is made; that is in plugin_utils.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.plugin_utils import (
    argument_specs,
    clients_needed,
    meeting,
    resume,
    run_directory,
    stages,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.command_line import repeatable_command
from ansible_collections.hostmax.storage.plugins.plugin_utils.plan import make_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_plan import describe_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import (
    Settings,
    SettingsError,
    host_settings,
    plain,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.studies import settings_of_study

MOST_SENTENCES = 10


class HostVariables(Mapping[str, Any]):
    """A host's variables, worked out as they are read; those of the play and its tasks come before the inventory's."""

    def __init__(self, host: str, own: Mapping[str, Any], play: Mapping[str, Any], templar: Any) -> None:
        self._fixed = {"inventory_hostname": host}
        self._own = own
        self._play = play
        self._templar = templar

    def __getitem__(self, name: str) -> Any:
        if name in self._fixed:
            return self._fixed[name]
        return self._templar.template(self._play[name]) if name in self._play else self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._own), **dict.fromkeys(self._play), **self._fixed})

    def __len__(self) -> int:
        return len(list(iter(self)))


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs once for all hosts of a play, on the controller; nothing is done on a host."""

    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp
        _validation, args = self.validate_argument_spec(
            argument_spec={
                "playbook": {"type": "str", "required": True},
                "hosts": {"type": "list", "elements": "str"},
                "directory": {"type": "path"},
                "found": {"type": "dict"},
                "writes": {"type": "bool", "default": False},
                "shared_volumes": {"type": "bool", "default": False},
                "conditions": {"type": "bool", "default": False},
            },
        )
        hosts = [str(host) for host in plain(args["hosts"] or self._play_hosts(task_vars))]
        try:
            if args["found"]:
                result.update(self._meet(plain(args["found"]), args, task_vars))
            else:
                result.update(self._plan(str(args["playbook"]), hosts, task_vars))
        except (ProfileError, run_directory.RunDirectoryError, SettingsError) as error:
            raise AnsibleActionFail(shortened(str(error))) from None
        return result

    def _plan(self, playbook: str, hosts: list[str], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        now = datetime.datetime.now().astimezone()
        previous = self._previous(playbook, hosts, task_vars)
        settings = self._settings(playbook, hosts, task_vars, previous)
        run_id = run_directory.new_run_id(playbook, now)
        first = next(iter(settings.values()), None)
        seed = _seed(first, previous)
        plan = make_plan(run_id, playbook, settings, seed, repeatable_command(sys.argv), now)
        kept: dict[str, str] = {}
        if previous:
            changed = resume.changed_settings(previous, {host: each.values for host, each in settings.items()})
            kept = resume.keep_points(plan, previous, changed)
        root = run_directory.check_results(first.results if first else ".")
        directory = None
        if not self._task.check_mode:
            run = run_directory.create_run(str(root), run_id, plan)
            if previous:
                resume.copy_points(previous, run, kept)
            directory = str(run.path)
            run.write_notes(clients_needed.notes(plan))
        Display().display("\n" + describe_plan(plan, directory, now, _forks(task_vars)) + "\n")
        answer = {
            "changed": False,
            "run_id": run_id,
            "directory": directory,
            "planned_s": plan["planned_s"],
            "points": len(plan["points"]),
            "kept": len(kept),
            "stages": [stage["number"] for stage in stages.to_run(plan)],
            "conditions": len(plan["conditions"]),
            "mounts": any(entry["nfs"] for entry in plan["hosts"].values()),
            "fail_on": list(first.fail_on) if first else [],
            "shared_volumes": plan["settings"]["hostmax_shared_volumes"],
            "hosts": {
                host: {**{key: plan["hosts"][host][key] for key in ("volumes", "thin")}, "writes": each.writes}
                for host, each in settings.items()
            },
        }
        return {**answer, "plan": plan} if self._task.check_mode else answer

    def _meet(self, found: Mapping[str, Any], args: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Whether the hosts that were reached may measure together; the others are written down as unreachable."""
        lost = {host: str(seen["lost"]) for host, seen in found.items() if seen.get("lost")}
        reached = {host: seen for host, seen in found.items() if host not in lost}
        run = run_directory.open_run(args["directory"]) if args["directory"] else None
        faults = meeting.refusals(reached, args["writes"], args["shared_volumes"])
        if args["conditions"]:
            faults += meeting.prepared(reached)
        if not reached:
            faults.append("No host of this run can be reached; the reasons are above.")
        if run:
            for host, reason in lost.items():
                run.write_status(host, "unreachable", reason)
        if faults:
            return {"failed": True, "msg": " ".join(faults)}
        if lost:
            who = ", ".join(lost) if len(lost) <= 5 else f"{len(lost)} hosts"
            Display().warning(f"{who} cannot be reached; the run goes on without, and its points do not count as whole")
        for sentence in meeting.doubts(reached) if args["writes"] else []:
            Display().warning(sentence)
        notes = meeting.notes(reached, args["writes"])
        notes += clients_needed.fits_clients(run.plan, reached) if run else []
        notes += self._compare(run, reached, list(run.plan["hosts"]) if run else list(found), args, task_vars)
        for sentence in notes:
            Display().warning(sentence)
        if run and notes:
            run.write_notes(notes)
        return {}

    def _compare(
        self,
        run: run_directory.RunDirectory | None,
        found: Mapping[str, Any],
        hosts: list[str],
        args: Mapping[str, Any],
        task_vars: Mapping[str, Any],
    ) -> list[str]:
        """Compare the hosts with those of the run that is resumed; where they differ, nothing of it is kept."""
        previous = self._previous(str(args["playbook"]), hosts, task_vars)
        reasons = resume.differences(previous, found) if previous else []
        if not previous or not reasons:
            return []
        if run:
            self._keep_nothing(run, previous, task_vars)
        return [f"No point of {previous.run_id} is kept, because {'; '.join(reasons[:MOST_SENTENCES])}."]

    def _keep_nothing(
        self, run: run_directory.RunDirectory, previous: run_directory.RunDirectory, task_vars: Mapping[str, Any]
    ) -> None:
        """Plan the run again with every point measured, and show that."""
        now = datetime.datetime.now().astimezone()
        plan = run.plan
        settings = self._settings(plan["playbook"], list(plan["hosts"]), task_vars, previous)
        fresh = make_plan(run.run_id, plan["playbook"], settings, plan["seed"], plan["command"], now)
        run.rewrite_plan(resume.keep_nothing(fresh, plan))
        Display().display("\n" + describe_plan(run.plan, str(run.path), now) + "\n")

    def _previous(
        self, playbook: str, hosts: list[str], task_vars: Mapping[str, Any]
    ) -> run_directory.RunDirectory | None:
        """The run to resume, if one is named; the settings are compared between hosts later."""
        of_the_play = self._variables_of_the_play(task_vars)
        for host in hosts:
            named = HostVariables(host, task_vars["hostvars"][host], of_the_play, self._templar).get("hostmax_resume")
            if named:
                return resume.open_previous(str(plain(named)), playbook, hosts)
        return None

    def _settings(
        self,
        playbook: str,
        hosts: list[str],
        task_vars: Mapping[str, Any],
        previous: run_directory.RunDirectory | None,
    ) -> dict[str, Settings]:
        """Every host's settings; the faults of all hosts are told together."""
        found: dict[str, Settings] = {}
        faults: list[str] = []
        of_the_play = self._variables_of_the_play(task_vars)
        study = settings_of_study(playbook)
        for host in hosts:
            try:
                own = task_vars["hostvars"][host]
                earlier = resume.settings_of(previous, host) if previous else None
                found[host] = host_settings(HostVariables(host, own, of_the_play, self._templar), earlier, study)
            except SettingsError as error:
                faults += error.sentences
        if faults:
            raise SettingsError(faults)
        return found

    def _play_hosts(self, task_vars: Mapping[str, Any]) -> Any:
        return task_vars.get("ansible_play_hosts") or [task_vars["inventory_hostname"]]

    def _variables_of_the_play(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """What the play, its blocks and its tasks set: hostvars does not have it, and it comes before the inventory.

        task_vars has it mixed with the defaults of roles, which are not settings of the user and must not count as set.
        """
        own = task_vars["hostvars"].get(task_vars["inventory_hostname"], {})
        play = self._task.get_play()
        said = {*(play.get_vars() if play else {}), *self._task.get_vars()}
        found: dict[str, Any] = {}
        for name in task_vars:
            if not name.startswith(argument_specs.PREFIX):
                continue
            value = task_vars[name]
            inherited = name in own and _same(own, name, self._templar, value)
            spec = argument_specs.known_settings().get(name, {})
            default = name not in own and name not in said and "default" in spec and value == spec["default"]
            if not inherited and not default:
                found[name] = value
        if str(self._task.connection) == "local":
            found["ansible_connection"] = "local"
        return found


def _seed(settings: Settings | None, previous: run_directory.RunDirectory | None) -> int:
    """The seed that is given; a resumed run has that of the earlier one."""
    given = settings.seed if settings else 0
    if previous is None:
        return given
    seed = int(previous.plan["seed"])
    if given not in (0, seed):
        raise resume.ResumeError(
            f"hostmax_seed is {given} and {previous.run_id} ran with the seed {seed}; leave hostmax_seed out to resume "
            "it, or start a new run without hostmax_resume."
        )
    return seed


def _same(own: Mapping[str, Any], name: str, templar: Any, value: Any) -> bool:
    try:
        return bool(plain(own[name]) == plain(templar.template(value)))
    except Exception:  # a template that cannot be worked out is told with its host and name when it is read
        return False


def _forks(task_vars: Mapping[str, Any]) -> int | None:
    """How many hosts Ansible reaches at a time."""
    forks = task_vars.get("ansible_forks")
    return int(forks) if forks else None


def shortened(text: str) -> str:
    """The first sentences, and how many more there are."""
    sentences = text.split("\n")
    if len(sentences) <= MOST_SENTENCES:
        return text
    return "\n".join([*sentences[:MOST_SENTENCES], f"And {len(sentences) - MOST_SENTENCES} more of this kind."])
