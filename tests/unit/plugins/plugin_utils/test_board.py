# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The board: nothing that a host says is lost, and a point's total is told once, when it is complete."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import random
import shutil

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.board import EVENTS, TALLY, Board
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import (
    RunDirectory,
    RunDirectoryError,
    create_run,
)
from hypothesis import given, settings
from hypothesis import strategies as st


def plan_of(hosts, points, kept=()):
    return {
        **{"schema": "hostmax.plan/1", "run_id": "r", "playbook": "host_max", "created_utc": "", "command": ""},
        **{"seed": 1, "settings": {}, "planned_s": 1.0, "hosts": {host: {} for host in hosts}},
        "points": [
            {"id": point, "jobs": dict.fromkeys(hosts, ""), **({"kept": True} if point in kept else {})}
            for point in points
        ],
    }


@pytest.fixture
def make(tmp_path):
    def board(hosts=("a", "b"), points=("p1", "p2"), **more):
        return Board(create_run(str(tmp_path), f"run-{random.randrange(10**9)}", plan_of(hosts, points, **more)))

    return board


def point(name, **changes):
    figures = {"iops": 1000.0, "bytes_per_s": 4.096e6, "lat_mean_ns": 1e6, "ios": 500}
    return {"event": "point", "id": name, "status": "measured", "faults": [], "round": 1, **figures, **changes}


def failed(name, fault):
    none = {"iops": None, "bytes_per_s": None, "lat_mean_ns": None, "ios": 0}
    return point(name, status="failed", faults=[fault], **none)


LOST = {"event": "lost", "reason": "ssh: connection refused"}


def ids(headlines):
    return [each["id"] for each in headlines]


# -- complete -------------------------------------------------------------------------------------------------------


def test_the_last_host_completes_a_point_with_the_sum_and_the_mean_weighted_by_ios(make):
    board = make()
    assert board.note("a", point("p1", lat_mean_ns=1e6, ios=300)) == []
    assert board.note("b", point("p1", iops=500.0, bytes_per_s=1e6, lat_mean_ns=5e6, ios=100)) == [
        {
            **{"id": "p1", "round": 1, "hosts": 2, "hosts_failed": 0, "hosts_lost": 0, "faults": []},
            **{"iops": 1500.0, "bytes_per_s": 5.096e6, "lat_mean_ns": 2e6},
        }
    ]


def test_a_point_that_failed_on_one_host_is_complete_with_the_others_figures_and_says_why(make):
    board = make()
    board.note("a", failed("p1", "fio was killed by signal 9."))
    (headline,) = board.note("b", point("p1"))
    assert (headline["hosts"], headline["hosts_failed"], headline["iops"]) == (1, 1, 1000.0)
    assert headline["faults"] == [{"host": "a", "faults": ["fio was killed by signal 9."]}]


def test_the_host_that_completes_a_point_may_be_the_one_that_failed(make):
    board = make()
    board.note("a", point("p1"))
    (headline,) = board.note("b", failed("p1", "disk gone"))
    assert headline["faults"] == [{"host": "b", "faults": ["disk gone"]}]


def test_a_point_that_no_host_measured_has_no_figures(make):
    board = make(hosts=("a",))
    (headline,) = board.note("a", failed("p1", "no"))
    assert (headline["hosts"], headline["iops"], headline["bytes_per_s"], headline["lat_mean_ns"]) == (0, *[None] * 3)


def test_only_the_first_few_of_many_failed_hosts_are_named(make):
    hosts = [f"h{number}" for number in range(10)]
    board = make(hosts=hosts)
    headlines = [each for host in hosts for each in board.note(host, failed("p1", f"why {host}"))]
    assert [each["host"] for each in headlines[0]["faults"]] == ["h0", "h1", "h2"]
    assert headlines[0]["hosts_failed"] == 10


def test_a_lost_host_completes_the_points_that_only_it_had_not_said(make):
    board = make(hosts=("a", "b", "c"), points=("p1", "p2", "p3", "p4"))
    for host in ("a", "b"):
        for name in ("p1", "p2"):
            board.note(host, point(name))
    board.note("c", point("p1"))
    board.note("a", point("p3"))
    # p2 lacked c alone, p3 still lacks b, p4 nobody has said
    (headline,) = board.note("c", LOST)
    assert (headline["id"], headline["hosts"], headline["hosts_lost"]) == ("p2", 2, 1)
    assert ids(board.note("b", point("p3"))) == ["p3"]


def test_several_points_may_wait_for_one_lost_host_and_come_in_the_plan_s_order(make):
    board = make()
    board.note("a", point("p2"))
    board.note("a", point("p1"))
    assert ids(board.note("b", LOST)) == ["p1", "p2"]


def test_a_host_lost_before_the_first_point_is_not_waited_for(make):
    board = make()
    assert board.note("b", LOST) == []
    assert ids(board.note("a", point("p1"))) == ["p1"]


def test_the_last_host_that_is_lost_completes_nothing_that_nobody_said(make):
    board = make()
    assert board.note("a", LOST) == board.note("b", LOST) == []


def test_what_is_said_twice_counts_once(make):
    board = make()
    assert [*board.note("a", point("p1")), *board.note("a", point("p1"))] == []
    (headline,) = board.note("b", point("p1"))
    assert headline["iops"] == 2000.0
    assert board.note("b", point("p1")) == []
    assert [*board.note("b", LOST), *board.note("b", LOST)] == []


def test_a_repeated_point_counts_anew(make):
    board = make(hosts=("a", "b", "c"))
    for host in ("a", "b", "c"):
        board.note(host, point("p1"))
    board.note("c", LOST)
    assert board.note("a", point("p1", round=2, iops=7.0)) == []
    (headline,) = board.note("b", point("p1", round=2, iops=8.0))
    assert (headline["round"], headline["iops"], headline["hosts"], headline["hosts_lost"]) == (2, 15.0, 2, 1)


def test_a_host_lost_while_a_point_is_repeated_completes_it(make):
    board = make()
    for host in ("a", "b"):
        board.note(host, point("p1"))
    board.note("a", point("p1", round=2))
    (headline,) = board.note("b", LOST)
    assert (headline["id"], headline["round"]) == ("p1", 2)


def test_a_point_kept_from_an_earlier_run_is_not_counted(make):
    board = make(hosts=("a",), kept=("p1",))
    assert board.note("a", point("p1")) == []
    assert ids(board.note("a", point("p2"))) == ["p2"]


def test_words_that_are_not_of_this_plan_are_kept_and_counted_nowhere(make):
    board = make(hosts=("a",))
    for host, event in [("z", point("p1")), ("a", point("p9")), ("a", point("p1", round=10**9)), ("a", {"event": "x"})]:
        assert board.note(host, event) == []
    assert len(board.read(0)[0]) == 4
    assert (board._path.parent / TALLY).stat().st_size < 1000


# -- many at once ---------------------------------------------------------------------------------------------------


def _measure(path, host, points, queue):
    board = Board(RunDirectory(path))
    for name in points:
        for headline in board.note(host, point(name)):
            queue.put((headline["id"], headline["hosts"], headline["iops"]))
    queue.put(None)


def test_every_point_is_complete_once_however_many_processes_note_at_once(make):
    hosts, points = [f"h{number}" for number in range(8)], [f"p{number:02}" for number in range(25)]
    board = make(hosts=hosts, points=points)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [
        context.Process(target=_measure, args=(board._path.parent, host, random.sample(points, len(points)), queue))
        for host in hosts
    ]
    for worker in workers:
        worker.start()
    found, ended = [], 0
    while ended < len(hosts):
        said = queue.get(timeout=60)
        ended += said is None
        found += [] if said is None else [said]
    for worker in workers:
        worker.join()
    assert sorted(found) == [(name, 8, 8000.0) for name in points]
    events, end = board.read(0)
    assert sorted((e["host"], e["id"]) for e in events if e["event"] == "point") == sorted(
        (host, name) for host in hosts for name in points
    )
    assert sorted(e["id"] for e in events if e["event"] == "complete") == points
    assert end == board._path.stat().st_size


def test_a_thousand_hosts_cost_each_event_the_same_few_bytes(make, monkeypatch):
    hosts = [f"client{number:04}" for number in range(1000)]
    board = make(hosts=hosts, points=[f"p{number:02}" for number in range(20)])
    moved = []
    for name in ("pread", "pwrite"):
        real = getattr(os, name)

        def counted(descriptor, what, place, real=real):
            moved.append(what if isinstance(what, int) else len(what))
            return real(descriptor, what, place)

        monkeypatch.setattr(os, name, counted)
    costs = []
    for host in hosts:
        moved.clear()
        done = board.note(host, point("p01"))
        costs.append(sum(moved))
    assert done[0]["hosts"] == 1000
    assert max(costs) < 2000


# -- following ------------------------------------------------------------------------------------------------------


def test_events_are_read_on_from_where_the_last_reading_ended(make):
    board = make()
    board.note("a", {"event": "ready", "time_s": 1.0, "host": "somebody"})
    events, offset = board.read(0)
    assert [(each["host"], each["event"]) for each in events] == [("a", "ready")]
    assert events[0]["time_s"] > 1.0
    assert board.read(offset) == ([], offset)
    board.note("a", point("p1"))
    board.note("b", point("p1"))
    events, _end = board.read(offset)
    assert [(each["event"], each.get("iops")) for each in events] == [
        ("point", 1000.0),
        ("point", 1000.0),
        ("complete", 2000.0),
    ]


def test_a_run_that_has_said_nothing_yet_has_no_events(make):
    assert make().read(0) == ([], 0)


def test_a_line_still_being_written_waits_and_a_damaged_one_is_left_out(make):
    board = make()
    board.note("a", point("p1"))
    with board._path.open("ab") as handle:
        handle.write(b'\xff\n[1]\n{"event": "poi')
    events, offset = board.read(0)
    assert len(events) == 1
    assert board.read(offset) == ([], offset)


# -- faults ---------------------------------------------------------------------------------------------------------


def test_a_cut_off_line_costs_nothing_else(make):
    board = make()
    board.note("a", point("p1"))
    with board._path.open("ab") as handle:
        handle.write(b'{"event": "poi')
    assert ids(board.note("b", point("p1"))) == ["p1"]
    assert [each["event"] for each in board.read(0)[0]] == ["point", "point", "complete"]


@pytest.mark.parametrize("harm", ["gone", "empty", "older", "noise"])
def test_a_tally_that_was_lost_is_made_anew_from_the_events(make, harm):
    board = make(hosts=("a", "b", "c"))
    tally = board._path.parent / TALLY
    board.note("a", failed("p1", "why a"))
    older = tally.read_bytes()
    board.note("b", point("p1"))
    if harm == "gone":
        tally.unlink()
    else:
        tally.write_bytes({"empty": b"", "older": older, "noise": b"x" * 500}[harm])
    (headline,) = board.note("c", point("p1"))
    assert (headline["hosts"], headline["iops"]) == (2, 2000.0)
    assert headline["faults"] == [{"host": "a", "faults": ["why a"]}]


def test_a_full_disk_is_one_sentence_and_leaves_no_half_line(make, monkeypatch):
    board = make()
    board.note("a", point("p1"))
    before = board._path.read_bytes()
    real = os.pwrite

    def half(descriptor, data, place):
        return real(descriptor, data[: len(data) // 2], place)

    def none(descriptor, data, place):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for pwrite, why in [(half, "cannot be written whole; is its file system full?"), (none, "No space left on device")]:
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", pwrite)
            with pytest.raises(RunDirectoryError, match=f"{EVENTS} .*{why}"):
                board.note("b", point("p1"))
        assert board._path.read_bytes() == before
    assert ids(board.note("b", point("p1"))) == ["p1"]


def test_a_run_directory_that_is_gone_is_one_sentence(make):
    board = make()
    assert board._run.plan
    shutil.rmtree(board._path.parent)
    with pytest.raises(RunDirectoryError, match=r"cannot be written: No such file or directory\.$"):
        board.note("a", point("p1"))
    assert board.read(0) == ([], 0)


# -- any order ------------------------------------------------------------------------------------------------------

HOSTS, POINTS = ("a", "b", "c"), ("p1", "p2")
WORDS = st.tuples(st.sampled_from(HOSTS), st.sampled_from([*POINTS, "lost"]), st.sampled_from([1, 2]), st.booleans())


def expected_headlines(words):
    """The rule, told the slow way: look at everything that was said so far after every word."""
    said, lost, told = {}, {}, []
    for host, what, number, good in words:
        if host in lost:
            continue
        before = dict(said)
        if what == "lost":
            lost[host] = True
        elif (number, what, host) not in said:
            said[number, what, host] = good
        for n in (1, 2):
            for name in POINTS:
                missing = [h for h in HOSTS if (n, name, h) not in said]
                there = [said[n, name, h] for h in HOSTS if (n, name, h) in said]
                news = (what == "lost" and host in missing) or (said != before and (n, name) == (number, what))
                if there and news and all(h in lost for h in missing):
                    told.append((name, n, sum(there), len(there) - sum(there), len(missing)))
    return told


@settings(max_examples=150, deadline=None)
@given(words=st.lists(WORDS, max_size=25), harmed=st.sets(st.integers(0, 24)))
def test_whatever_the_order_of_words_and_crashes_the_headlines_are_right(tmp_path_factory, words, harmed):
    run = RunDirectory(tmp_path_factory.mktemp("run"))
    (run.path / "plan.json").write_text(json.dumps(plan_of(HOSTS, POINTS)))
    told = []
    for number, (host, what, round_number, good) in enumerate(words):
        board = Board(run)
        if number in harmed:
            (run.path / TALLY).unlink(missing_ok=True)
        event = LOST if what == "lost" else point(what) if good else failed(what, "why")
        told += board.note(host, {**event, "round": round_number})
    assert [
        (each["id"], each["round"], each["hosts"], each["hosts_failed"], each["hosts_lost"]) for each in told
    ] == expected_headlines(words)
