"""A host is followed to the end of its round, and one that says no more is given up with the reason."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import follow, run_directory
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import Progress


def example_plan():
    points = [
        {
            "id": name,
            "offset_s": 3.0 * k,
            "ramp_s": 0,
            "runtime_s": 2,
            "volumes": 1,
            "workload": {"name": "w"},
            "jobs": {"h": ""},
        }
        for k, name in enumerate(("p01", "p02"))
    ]
    facts = {key: None for key in run_directory.PLAN_KEYS}
    return {
        **facts,
        "schema": run_directory.PLAN_SCHEMA,
        "run_id": "r",
        "settings": {"hostmax_patience_s": 10},
        "hosts": {"h": {}},
        "points": points,
    }


class Link:
    """A host whose agent says what it is told to say, one look after the other."""

    def __init__(self, *looks, samples=True):
        self.looks = list(looks)
        self.samples = samples
        self.asked = []

    def progress(self, skip, give_up_s=0.0):
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return look if isinstance(look, Progress) else Progress(list(look), "S", "boot-1")

    def sample(self, point_id, give_up_s=0.0):
        self.asked.append(point_id)
        return ({"point": point_id, "volumes": {}}, None) if self.samples else None

    def why_gone(self, boot_id, now_boot_id):
        return "restarted" if boot_id != now_boot_id else "killed"


def point(name, number=1, late_s=0.1):
    return {
        "event": "point",
        "id": name,
        "round": number,
        "status": "measured",
        "faults": [],
        "late_s": late_s,
        "iops": 1.0,
        "bytes_per_s": 1.0,
        "lat_mean_ns": 1.0,
        "ios": 1,
    }


ENDED = {"event": "ended", "round": 1}


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "RETRY_S", 0.001)
    monkeypatch.setattr(follow, "LONGEST_SLEEP_S", 0.001)
    plan = example_plan()
    run = run_directory.create_run(str(tmp_path), plan["run_id"], plan)
    host = next(iter(plan["hosts"]))

    def make(*looks, t0=None, number=1, **link):
        told = {
            "round": number,
            "attempt": 1,
            "t0": time.time() if t0 is None else t0,
            "points": [{"id": p["id"], "offset_s": p["offset_s"]} for p in plan["points"]],
        }
        return follow.Follower(run, host, Link(*looks, **link), {"boot_id": "boot-1"}, told)

    make.names = [p["id"] for p in plan["points"]]
    make.path = run.path
    return make


def test_every_sample_comes_home_until_the_round_has_ended(made):
    first, second = made.names[:2]
    follower = made([point(first)], [point(second, late_s=3.0)], [ENDED])
    assert follower.follow() is None
    assert follower.measured == 2
    assert follower.late == {first: 0.1, second: 3.0}
    lines = (made.path / "samples.jsonl").read_text().splitlines()
    assert [json.loads(line)["point"] for line in lines] == [first, second]


def test_a_point_whose_fio_failed_before_its_first_io_is_not_late(made):
    follower = made([point(made.names[0], late_s=None), ENDED])
    assert follower.follow() is None
    assert (follower.measured, follower.late) == (1, {})


def test_points_of_an_earlier_round_are_not_taken_again(made):
    first = made.names[0]
    follower = made([point(first), ENDED, point(first, number=2), {"event": "ended", "round": 2}], number=2)
    assert follower.follow() is None
    assert follower.measured == 1


def test_a_moved_start_counts_points_anew(made):
    first = made.names[0]
    follower = made([point(first, late_s=9.0), {"event": "moved"}, point(first), ENDED])
    assert follower.follow() is None
    assert (follower.measured, follower.late) == (1, {first: 0.1})


def test_a_second_round_told_to_an_agent_that_has_gone_home_is_no_loss(made):
    follower = made([point(made.names[0]), ENDED, {"event": "restored", "left": []}], number=2)
    assert follower.follow() is None
    assert follower.measured == 0


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        ([{"event": "failed", "reason": "the disk is full"}], "the disk is full"),
        (Progress([], None, "boot-1"), "killed"),
        (Progress([], None, "boot-2"), "restarted"),
        (Progress([], "Z", "boot-1"), "killed"),
    ],
)
def test_an_agent_that_fails_or_is_gone_ends_it_with_the_reason(made, look, reason):
    first = made.names[0]
    follower = made([point(first)], look)
    assert follower.follow() == reason
    assert follower.measured == 1


def test_what_an_agent_said_before_it_went_is_taken_first(made):
    first = made.names[0]
    follower = made(Progress([point(first)], None, "boot-1"), Progress([], None, "boot-1"))
    assert follower.follow() == "killed"
    assert follower.measured == 1


def test_a_stopped_agent_is_given_up_long_before_a_silent_one(made):
    plan = example_plan()
    ends_s = plan["points"][0]["ramp_s"] + plan["points"][0]["runtime_s"]
    stopped = Progress([], "T", "boot-1")
    assert "stopped by a signal" in made(stopped, t0=time.time() - ends_s - follow.STOPPED_S - 1).follow()
    silent = Progress([], "D", "boot-1")
    assert "says nothing (state D)" in made(silent, t0=time.time() - 10_000).follow()


def test_a_sample_that_cannot_be_read_is_a_reason_and_no_traceback(made):
    follower = made([point(made.names[0])], samples=False)
    assert follower.follow() == f"the sample of {made.names[0]} could not be read on the host"


def test_collecting_waits_for_nothing(made):
    first = made.names[0]
    follower = made([point(first)])
    follower.collect()
    assert (made.path / "samples.jsonl").read_text().count("\n") == 1
