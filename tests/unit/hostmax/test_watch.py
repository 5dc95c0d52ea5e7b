"""What ansible-runner's events mean for a run: its plan, its failures in sentences, whether anything was changed."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.board import Board
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import create_run

from hostmax.events import HostLost, Planned, PointEnded, TaskStarted
from hostmax.watch import Watch

PLAN = {
    "run_id": "host_max-1",
    "directory": "/r/host_max-1",
    "points": 2,
    "planned_s": 9.0,
    "hosts": {"a": {}, "b": {}},
}


def event(kind, action="hostmax.storage.measure", host="a", res=None, stdout="", **data):
    return {"event": kind, "stdout": stdout, "event_data": {"task_action": action, "host": host, "res": res, **data}}


@pytest.fixture
def told():
    return []


@pytest.fixture
def watch(told):
    return Watch(told.append, None)


def plan_of(watch, **changes):
    watch.see([event("runner_on_ok", "hostmax.storage.plan", res={**PLAN, **changes})])


def test_the_plan_is_told_with_its_run_directory(watch, told):
    plan_of(watch)
    assert told == [Planned("host_max-1", pathlib.Path("/r/host_max-1"), 2, 9.0, ("a", "b"))]
    assert watch.directory == pathlib.Path("/r/host_max-1")


def test_in_check_mode_the_plan_itself_is_kept(watch):
    plan_of(watch, directory=None, plan={"points": []})
    assert watch.directory is None
    assert watch.plan == {"points": []}


def test_the_board_is_read_as_it_grows_and_each_word_told_once(tmp_path, watch, told):
    plan = {
        "schema": "hostmax.plan/1",
        "run_id": "r",
        "playbook": "host_max",
        "created_utc": "",
        "command": "",
        "seed": 1,
    }
    plan = {**plan, "settings": {}, "planned_s": 1.0, "hosts": {"a": {}}, "points": [{"id": "p1", "jobs": {"a": ""}}]}
    board = Board(create_run(str(tmp_path), "r", plan))
    plan_of(watch, directory=str(tmp_path / "r"))
    said = {"event": "point", "id": "p1", "status": "measured", "faults": [], "iops": 1.0, "bytes_per_s": 1.0}
    board.note("a", {**said, "lat_mean_ns": 1.0, "ios": 1})
    watch.see([])
    watch.see([])
    assert [(type(each), getattr(each, "host", "")) for each in told[1:]] == [(PointEnded, "a"), (PointEnded, None)]


def test_tasks_are_told(watch, told):
    watch.see([event("playbook_on_task_start", name="hostmax.storage.fio : Install fio")])
    assert told == [TaskStarted("hostmax.storage.fio : Install fio")]


def test_a_failed_host_is_named_and_a_refused_plan_needs_no_host(watch):
    watch.see(
        [
            event("runner_on_failed", res={"msg": "a: the agent\n  ended"}),
            event("runner_on_failed", host="b", res={"msg": "no space"}),
            event("runner_on_failed", "hostmax.storage.plan", res={"msg": "host a: bad."}),
            event("runner_on_failed", host="c", res={"msg": "of no interest"}, ignore_errors=True),
        ]
    )
    assert watch.sentences() == ("a: the agent ended", "b: no space", "host a: bad.")


def test_a_host_that_cannot_be_reached_is_lost_once(watch, told):
    watch.see([event("runner_on_unreachable", res={"msg": "refused"})] * 2)
    watch.see([event("runner_on_ok", "hostmax.storage.probe", host="b", res={"lost": "no route"})])
    assert told == [HostLost("a", "unreachable: refused"), HostLost("b", "no route")]
    assert watch.sentences() == ("a: unreachable: refused", "b: no route")


def test_without_a_failed_task_the_reason_is_ansibles_own_error_put_together(watch):
    watch.lines.extend(["[WARNING]: x", "[ERROR]: the inventory cannot", "be parsed", "", "PLAY RECAP"])
    assert watch.sentences() == ("the inventory cannot be parsed",)


def test_with_many_hosts_the_sentences_are_bounded(watch):
    watch.see([event("runner_on_failed", host=f"h{number}", res={"msg": "no"}) for number in range(1000)])
    assert len(watch.sentences()) == 21
    assert watch.sentences()[-1] == "And 980 more."


def test_looking_changes_nothing_and_every_other_task_may(watch):
    watch.see([event("runner_on_start", "hostmax.storage.plan"), event("runner_on_start", "hostmax.storage.probe")])
    assert watch.nothing_changed()
    watch.see([event("runner_on_start", "hostmax.storage.thin_volumes")])
    assert not watch.nothing_changed()


def test_an_unreachable_host_is_not_bad_input(watch):
    watch.see([event("runner_on_start", "hostmax.storage.probe"), event("runner_on_unreachable", res={"msg": "no"})])
    assert not watch.nothing_changed()


@pytest.mark.parametrize("broken", ["on_event", "output"])
def test_a_callback_that_raises_is_kept_as_the_fault_and_not_called_again(broken):
    calls = []

    def fail(what):
        calls.append(what)
        raise RuntimeError("display broken")

    watch = Watch(fail if broken == "on_event" else None, fail if broken == "output" else None)
    watch.see([event("playbook_on_task_start", name="one", stdout="line")] * 2)
    assert len(calls) == 1
    assert str(watch.fault) == "display broken"
    assert watch.output_only() is None


def test_lines_are_handed_on_one_by_one():
    lines = []
    Watch(None, lines.append).see([event("verbose", stdout="one\r\ntwo")])
    assert lines == ["one", "two"]
