"""T0 is far enough ahead for all hosts, and what a host began late is measured once more."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import rounds


def plan(*names, kept=(), runtime_s=4):
    points = [
        {"id": name, "offset_s": None if name in kept else 5.0 * k, "ramp_s": 1, "runtime_s": runtime_s}
        for k, name in enumerate(names)
    ]
    for point in points:
        if point["id"] in kept:
            point["kept"] = True
    return {"points": points, "settle_s": 1.0}


def test_fewer_forks_and_slower_hosts_put_t0_further_ahead():
    at_once = rounds.lead_s(hosts=20, forks=20, reach_s=0.1)
    in_waves = rounds.lead_s(hosts=20, forks=1, reach_s=0.1)
    # one after the other: each host takes its reach, and they all have to be told before T0
    assert in_waves - at_once >= 19 * 0.1
    assert rounds.lead_s(4, 4, 1.5) - rounds.lead_s(4, 4, 0.1) >= 1.4


def test_every_further_attempt_leaves_more_time():
    leads = [rounds.lead_s(4, 2, 0.3, attempt) for attempt in (1, 2, 3)]
    assert leads == sorted(set(leads))


def test_the_first_round_has_the_points_of_the_plan_but_no_kept_ones():
    told = rounds.first_round(plan("a", "b", "c", kept=("b",)), 1, 100.0)
    assert (told["round"], told["attempt"], told["t0"]) == (1, 1, 100.0)
    assert told["points"] == [{"id": "a", "offset_s": 0.0}, {"id": "c", "offset_s": 10.0}]


def test_moving_t0_changes_nothing_else():
    told = rounds.first_round(plan("a"), 1, 100.0)
    assert rounds.moved(told, 107.0) == {**told, "attempt": 2, "t0": 107.0}


def test_repeated_points_stand_one_after_the_other():
    made = plan("a", "b", "c")
    told = rounds.repeat_round(made, rounds.first_round(made, 1, 0.0), ["c", "a"], 50.0)
    assert told["round"] == 2
    assert told["points"] == [{"id": "a", "offset_s": 0.0}, {"id": "c", "offset_s": 6.0}]


@pytest.mark.parametrize(
    ("told", "in_time"),
    [
        ({"round": 1, "attempt": 1, "at_s": 99.0}, True),
        ({"round": 1, "attempt": 1, "at_s": 100.1}, False),
        ({"round": 1, "attempt": 1, "at_s": 99.999}, False),
        ({"round": 2, "attempt": 1, "at_s": 99.0}, False),
        (None, False),
    ],
)
def test_a_host_that_was_told_too_late_or_not_at_all_moves_t0(told, in_time):
    current = rounds.first_round(plan("a"), 1, 100.0)
    good = {"round": 1, "attempt": 1, "at_s": 98.0}
    assert rounds.told_in_time(current, {"h1": good, "h2": told}) is in_time


def test_a_host_is_late_by_what_it_began_after_the_earliest():
    current = rounds.first_round(plan("a", "b"), 1, 0.0)
    late = rounds.late_hosts(
        plan("a", "b"), current, {"h1": {"a": 0.3, "b": 0.3}, "h2": {"a": 0.4, "b": 3.3}, "h3": {"a": 0.2, "b": 0.2}}
    )
    assert late == {"b": {"h2": 3.1}}


def test_all_late_together_is_not_late():
    assert rounds.late_hosts(plan("a"), rounds.first_round(plan("a"), 1, 0.0), {"h1": {"a": 9.0}, "h2": {"a": 9.1}}) == {}


def test_what_is_allowed_grows_with_the_runtime():
    late = {"h1": {"a": 0.0}, "h2": {"a": 2.0}}
    assert rounds.late_hosts(plan("a", runtime_s=4), rounds.first_round(plan("a"), 1, 0.0), late)
    assert not rounds.late_hosts(plan("a", runtime_s=60), rounds.first_round(plan("a"), 1, 0.0), late)


def test_one_host_alone_is_never_late():
    assert rounds.late_hosts(plan("a"), rounds.first_round(plan("a"), 1, 0.0), {"h1": {"a": 9.0}}) == {}


def test_points_are_due_one_after_the_other_and_the_last_one_ends_the_round():
    made = plan("a", "b")
    told = rounds.first_round(made, 1, 100.0)
    assert [rounds.due_s(made, told, number) for number in (0, 1, 2)] == [105.0, 110.0, 110.0]


def test_an_agent_gets_the_time_it_gives_fio_and_some_more():
    made = plan("a", runtime_s=600)
    assert rounds.overdue_s(made, rounds.first_round(made, 1, 0.0), 0) > 601
    made = plan("a", runtime_s=2)
    assert rounds.overdue_s(made, rounds.first_round(made, 1, 0.0), 0) > 30
