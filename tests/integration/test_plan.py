# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan action in a real play: variables from everywhere, check mode, and faults told before anything is made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

COLLECTIONS = Path(__file__).parents[2] / ".collections"
PLAYBOOK = """
- name: Plan
  hosts: "{{ groups['all'] or ['localhost'] }}"
  gather_facts: false
  %s
  tasks:
    - name: Plan
      hostmax.storage.plan:
        playbook: trial
      register: planned
      run_once: true
    - name: Keep
      ansible.builtin.copy:
        content: "{{ planned | to_json }}"
        dest: "%s"
        mode: "0600"
      delegate_to: localhost
      run_once: true
      check_mode: false
"""
DISK = "hostmax_volumes: [{path: /dev/disk/by-id/wwn-%s, size: 1TB}]"


@pytest.fixture
def play(tmp_path):
    """Run the trial playbook; answers (return code, output, what the action returned)."""

    def run(*arguments, inventory=None, play_lines=""):
        book, kept = tmp_path / "trial.yml", tmp_path / "planned.json"
        book.write_text(PLAYBOOK % (play_lines, kept))
        command = [str(Path(sys.executable).parent / "ansible-playbook"), str(book), *arguments]
        if inventory:
            (tmp_path / "hosts.yml").write_text(inventory)
            command += ["-i", str(tmp_path / "hosts.yml")]
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        }
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        returned = json.loads(kept.read_text()) if kept.exists() else None
        return done.returncode, done.stdout + done.stderr, returned

    return run


def plan_of(returned):
    return json.loads((Path(returned["directory"]) / "plan.json").read_text())


def told(output):
    """The message of a failure, as the user reads it."""
    return re.sub(r"\s+", " ", output)


def test_without_an_inventory_this_machine_gets_thin_volumes_and_a_run_directory(play, tmp_path):
    code, output, returned = play("-e", "hostmax_runtime_s=5", "-e", "password=s3cret")
    assert code == 0, output
    assert Path(returned["directory"]).parent == tmp_path / "results"
    # a run that may still be refused is not the latest one
    assert not (tmp_path / "results" / "latest").exists()
    assert returned["changed"] is False
    assert "plan" not in returned
    assert (returned["points"], returned["hosts"]["localhost"]["thin"]["count"]) == (7, 20)
    assert "trial: 7 points on 1 host, about 44 s" in output
    made = plan_of(returned)
    assert made["run_id"] == returned["run_id"]
    assert "hostmax_runtime_s=5" in made["command"]
    assert "s3cret" not in json.dumps(made)


def test_check_mode_shows_and_returns_the_plan_and_makes_nothing(play, tmp_path):
    code, output, returned = play("--check")
    assert code == 0, output
    assert "check mode stops here" in output
    assert returned["directory"] is None
    assert returned["plan"]["schema"] == "hostmax.plan/1"
    assert not (tmp_path / "results").exists()


def test_volumes_come_from_each_host_and_shared_settings_from_group_play_and_command_line(play):
    inventory = f"""
all:
  vars: {{hostmax_settle_s: 0.5, hostmax_runtime_s: 90}}
  hosts:
    db1: {{{DISK % 1}}}
    db2: {{{DISK % 2}}}
"""
    code, output, returned = play(
        "-e",
        "hostmax_seed=9",
        inventory=inventory,
        play_lines="vars: {hostmax_runtime_s: 20, hostmax_workloads: [8k-randread]}",
    )
    assert code == 0, output
    made = plan_of(returned)
    assert {host: entry["volumes"][0]["path"] for host, entry in made["hosts"].items()} == {
        "db1": "/dev/disk/by-id/wwn-1",
        "db2": "/dev/disk/by-id/wwn-2",
    }
    assert (made["runtime_s"], made["settle_s"], made["seed"]) == (20, 0.5, 9)
    assert made["points"][0]["workload"]["name"] == "8k-randread"


def test_a_template_is_worked_out_for_the_host_it_belongs_to(play):
    inventory = """
all:
  vars:
    hostmax_volumes: [{path: "/dev/disk/by-id/{{ disk }}"}]
  hosts: {db1: {disk: one}, db2: {disk: two}}
"""
    code, output, returned = play(inventory=inventory)
    assert code == 0, output
    paths = [entry["volumes"][0]["path"] for entry in plan_of(returned)["hosts"].values()]
    assert paths == ["/dev/disk/by-id/one", "/dev/disk/by-id/two"]


def test_the_defaults_of_an_imported_role_do_not_count_as_set(play, tmp_path):
    book = tmp_path / "roles.yml"
    book.write_text(
        """
- name: Plan with roles
  hosts: all
  gather_facts: false
  tasks:
    - name: Plan
      hostmax.storage.plan:
        playbook: trial
      run_once: true
    - name: Never reached
      ansible.builtin.import_role:
        name: hostmax.storage.thin_volumes
"""
    )
    (tmp_path / "one.yml").write_text("all: {hosts: {db1: }}")
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), str(book), "-i", str(tmp_path / "one.yml")],
        cwd=tmp_path,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "host db1: hostmax_volumes names no volume" in told(done.stdout + done.stderr)


def test_thin_volumes_asked_for_in_the_play_are_made_on_a_remote_host(play):
    code, output, returned = play(inventory="all: {hosts: {db1: }}", play_lines="vars: {hostmax_thin_count: 20}")
    assert code == 0, output
    assert returned["hosts"]["db1"]["thin"]["count"] == 20


REFUSED = {
    "a misspelled setting": (
        ["-e", "hostmax_runtime=5"],
        "host localhost: no setting is named hostmax_runtime, did you mean hostmax_runtime_s?",
    ),
    "a wrong unit": (
        ["-e", "hostmax_runtime_s=1m"],
        "host localhost: hostmax_runtime_s is '1m'; it must be a whole number of seconds.",
    ),
    "a variable that is not there": (
        ["-e", "hostmax_seed={{ nothing }}"],
        "host localhost: hostmax_seed cannot be worked out: 'nothing' is undefined",
    ),
    "results that are a file": (["-e", "hostmax_results=trial.yml"], "trial.yml is not a directory; name another one."),
}


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_fault_is_told_in_a_sentence_before_anything_is_made(play, tmp_path, arguments, sentence):
    code, output, _unused = play(*arguments)
    assert code == 2
    assert sentence in told(output)
    assert "Traceback" not in output
    assert not (tmp_path / "results").exists()


def test_the_faults_of_all_hosts_are_told_together(play):
    inventory = "all: {hosts: {db1: {hostmax_seed: x}, db2: }, vars: {hostmax_workloads: [nothing]}}"
    code, output, _unused = play(inventory=inventory)
    assert code == 2
    assert "host db1: hostmax_seed is 'x'" in told(output)
    assert "host db2: hostmax_workloads[0]: no workload is named 'nothing'" in told(output)
