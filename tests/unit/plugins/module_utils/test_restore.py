"""Which runs are over, and that a restored run leaves nothing but what is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import host_state, restore, thin_volumes

TB = 10**12


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(host_state, "is_root", lambda: False)
    return tmp_path / "state"


def make_run(run_id, agent=None):
    path = host_state.make_work_dir(run_id)
    thin_volumes.create(run_id, 1, TB, None, restore.open_journal(run_id))
    if agent is not None:
        with open(os.path.join(path, "agent.json"), "w") as handle:
            json.dump(agent, handle)
    return path


def me(**other):
    return dict(host_state.identity(os.getpid()), **other)


def test_a_run_whose_agent_lives_is_never_over():
    make_run("run1", agent=me())
    assert restore.due_runs(min_age_s=0) == []


def test_a_run_whose_agent_has_ended_is_over_at_once():
    make_run("run1", agent=me(start_ticks=1))
    assert restore.due_runs(min_age_s=600) == ["run1"]


def test_a_run_without_an_agent_is_over_when_it_is_old_enough(monkeypatch):
    make_run("run1")
    assert restore.due_runs(min_age_s=600) == []
    monkeypatch.setattr(restore.time, "time", lambda now=time.time: now() + 601)
    assert restore.due_runs(min_age_s=600) == ["run1"]


def test_a_run_from_before_the_reboot_is_over(monkeypatch):
    make_run("run1")
    make_run("run2", agent=me())
    monkeypatch.setattr(host_state, "boot_id", lambda: "another boot")
    assert restore.due_runs(min_age_s=600) == ["run1", "run2"]


def test_a_work_directory_without_a_journal_is_judged_by_its_age(state):
    path = host_state.make_work_dir("run1")
    assert restore.due_runs(min_age_s=600) == []
    os.utime(path, (1, 1))
    assert restore.due_runs(min_age_s=600) == ["run1"]
    assert restore.restore_host(None, 600)[0]["removed"]
    assert not os.path.exists(path)


def test_a_run_that_is_over_is_removed_whole_and_a_second_restore_finds_nothing(state):
    make_run("run1", agent=me(start_ticks=1))
    (state / "run1/points").mkdir()
    (state / "run1/points/p01.json.gz").write_text("measured")
    (run,) = restore.restore_host(None, 600)
    assert (len(run["restored"]), run["left"], run["removed"], run["changed"]) == (2, [], True, True)
    assert os.listdir(state) == []
    assert restore.restore_host(None, 600) == []


def test_restoring_a_run_that_never_was_on_this_host_changes_nothing(state):
    (run,) = restore.restore_host("run9", 600)
    assert (run["restored"], run["left"], run["changed"]) == ([], [], False)
    assert not state.exists()


def test_results_can_be_kept(state):
    make_run("run1")
    (state / "run1/points").mkdir()
    (run,) = restore.restore_host("run1", 600, keep_results=True)
    assert sorted(os.listdir(state / "run1")) == [".machine", "journal.jsonl", "points"]
    assert not run["removed"]
    assert not restore.restore_host("run1", 600, keep_results=True)[0]["changed"]


def test_check_mode_tells_what_would_be_done_and_does_nothing(state):
    make_run("run1")
    (planned,) = restore.restore_host("run1", 600, check=True)
    assert (state / "run1/volumes/thin01").exists()
    assert restore.restore_host("run1", 600) == [planned]


def test_what_is_left_keeps_the_work_directory(state):
    make_run("run1")
    (state / "run1/volumes/mine").write_text("of somebody else")
    (run,) = restore.restore_host("run1", 600)
    assert [item["what"] for item in run["left"]] == [f"directory {state}/run1/volumes"]
    assert (state / "run1/volumes/mine").exists()
    assert "1 left: directory" in restore.summary([run])


def test_a_damaged_journal_is_said_and_does_not_stop_the_other_runs(state):
    make_run("run1", agent=me(start_ticks=1))
    make_run("run2", agent=me(start_ticks=1))
    lines = (state / "run1/journal.jsonl").read_text().splitlines()
    (state / "run1/journal.jsonl").write_text("\n".join([lines[0], "oops", *lines[2:], ""]))
    first, second = restore.restore_host(None, 600)
    assert "damaged in line 2" in first["left"][0]["why"]
    assert second["removed"]
    assert (state / "run1/volumes/thin01").exists()


def test_the_processes_of_the_run_are_ended_first():
    make_run("run1")
    argv = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    process = subprocess.Popen(argv, env=dict(os.environ, HOSTMAX_RUN="run1"), stdout=subprocess.PIPE)
    process.stdout.readline()
    (run,) = restore.restore_host("run1", 600)
    process.stdout.close()
    assert process.wait() == -15
    assert (run["ended"], run["left"]) == ([process.pid], [])


def test_a_process_that_cannot_be_ended_is_named_and_keeps_the_work_directory(state, monkeypatch):
    make_run("run1")
    who = me(pid=4711)
    monkeypatch.setattr(host_state, "processes_of_run", lambda run_id: [who])
    monkeypatch.setattr(host_state, "end_processes", lambda run_id, grace_s: [who])
    (run,) = restore.restore_host("run1", 600)
    assert (run["ended"], run["left"][0]["what"], run["removed"]) == ([], "process 4711", False)


def test_the_summary_is_one_sentence():
    assert restore.summary([]) == "No run on this host is waiting to be restored."
    run = {"run_id": "run1", "restored": ["file /a"], "left": []}
    assert restore.summary([run]) == "1 change of run1 put back, nothing left."
    ended = {**run, "restored": [], "ended": [7, 8]}
    assert restore.summary([ended]) == "2 processes ended, 0 changes of run1 put back, nothing left."


# -- what `prepare` set up --------------------------------------------------------------------------------------------


def test_a_preparation_stands_until_it_is_asked_for_also_over_a_reboot(monkeypatch, state):
    make_run(host_state.PREPARED)
    monkeypatch.setattr(host_state, "boot_id", lambda: "another boot")
    assert restore.is_prepared()
    assert restore.due_runs(min_age_s=0) == []
    assert restore.restore_host(None, 0) == []
    (run,) = restore.restore_host(None, 0, prepared=True)
    assert (run["run_id"], run["left"], run["removed"]) == (host_state.PREPARED, [], True)
    assert not restore.is_prepared()
    assert restore.restore_host(None, 0, prepared=True) == []


def test_what_is_prepared_after_a_reboot_joins_what_was_prepared_before(monkeypatch):
    make_run(host_state.PREPARED)
    book = restore.open_journal(host_state.PREPARED)
    first = book.entries()[0]
    assert first.of_this_boot
    monkeypatch.setattr(host_state, "boot_id", lambda: "another boot")
    host_state.make_work_dir(host_state.PREPARED)
    assert book.record(first.kind, first.key) == first.id, "the first original counts"
    book.record("file", "/a/new/one")
    assert [entry.of_this_boot for entry in book.entries()] == [False, False, False, True]


def test_the_preparation_of_another_machine_is_refused(monkeypatch):
    host_state.make_work_dir(host_state.PREPARED)
    monkeypatch.setattr(host_state, "installation", lambda: "another machine")
    with pytest.raises(host_state.HostError, match="made by another host"):
        host_state.make_work_dir(host_state.PREPARED)
