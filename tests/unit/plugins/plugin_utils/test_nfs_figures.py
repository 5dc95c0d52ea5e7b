# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kernel counters become a few figures and sentences: summed over hosts and mounts, shared connections once."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.nfs_figures import nfs_figures
from ansible_collections.hostmax.storage.plugins.plugin_utils.nfs_words import explain


def an_op(ops, **more):
    return {"ops": ops, "transmissions": ops, "timeouts": 0, "queue_ms": 0, "rtt_ms": 0, "execute_ms": 0, **more}


def a_mount(ops=None, shared_with=None, **xprt):
    known = {"connections": 1, "sends": 1000, "req_u": 4000, "bklog_u": 2000, "sending_u": 500, "max_slots": 64}
    return {
        "seconds": 10.0,
        "ops": ops or {"READ": an_op(1000, queue_ms=500, rtt_ms=2000, execute_ms=2600)},
        "events": {},
        "xprt": {**known, "shared_with": shared_with, **xprt},
        "slots_limit": 64,
    }


def a_point(*mounts, iops=100.0):
    nfs = {f"server:/vol{number}": mount for number, mount in enumerate(mounts)}
    return {"per_host": {"h": {"total": {"iops": iops}}}, "counters": {"h": {"nfs": nfs, "net": None}}}


def test_times_are_of_a_read_or_write_and_queues_of_a_send():
    found = nfs_figures([a_point(a_mount())])
    assert (found["queue_ms"], found["rtt_ms"], found["execute_ms"]) == (0.5, 2.0, 2.6)
    assert (found["in_flight"], found["slot_wait"], found["socket_wait"]) == (4.0, 2.0, 0.5)
    assert (found["max_slots"], found["slots_limit"], found["connections"]) == (64, 64, 1)


def test_metadata_is_counted_for_a_thousand_ios_of_fio():
    ops = {"READ": an_op(1000), "GETATTR": an_op(500), "ACCESS": an_op(20)}
    found = nfs_figures([a_point(a_mount(ops))])
    assert found["per_1000_ios"] == {"GETATTR": 500.0, "ACCESS": 20.0, "LOOKUP": 0.0}
    assert found["calls_per_io"] == pytest.approx(1.52)


def test_connections_that_two_mounts_share_are_counted_once():
    alone = nfs_figures([a_point(a_mount(connects=2))])
    shared = nfs_figures([a_point(a_mount(connects=2), a_mount(shared_with="server:/vol0", connects=2))])
    assert shared["reconnects"] == alone["reconnects"] == 2
    assert shared["in_flight"] == alone["in_flight"]


def test_several_points_and_hosts_add_up():
    found = nfs_figures([a_point(a_mount()), a_point(a_mount({"READ": an_op(3000, rtt_ms=18000)}))])
    assert found["rtt_ms"] == 5.0


def test_requests_sent_again_and_delays_are_told():
    mount = a_mount({"WRITE": an_op(100, transmissions=103, timeouts=1)})
    mount["events"] = {"delay": 7}
    found = nfs_figures([a_point(mount)])
    assert (found["retransmissions"], found["timeouts"], found["delays"]) == (3, 1, 7)
    assert explain(found, None, None)[-3:] == [
        "3 requests were sent again.",
        "1 requests were not answered in time.",
        "The server asked 7 times to try again later.",
    ]


@pytest.mark.parametrize(
    "counters", [{}, {"h": None}, {"h": {"nfs": None, "net": {}}}, {"h": {"nfs": {}, "net": None}}]
)
def test_where_no_nfs_was_counted_there_are_no_figures(counters):
    assert nfs_figures([{"per_host": {}, "counters": counters}]) is None


def test_a_mount_that_did_nothing_has_no_times():
    found = nfs_figures([a_point({"seconds": 10.0, "ops": {}, "xprt": {}}, iops=0.0)])
    assert (found["rtt_ms"], found["in_flight"], found["per_1000_ios"]["GETATTR"]) == (None, None, None)
    assert explain(found, found, "other") == []


def figures(**more):
    return {**nfs_figures([a_point(a_mount())]), **more}


def test_a_wait_for_slots_is_explained_with_the_limit():
    told = explain(figures(), figures(queue_ms=0.0), "b")
    assert "A request waited 0.50 ms in the client before it was sent, 0.00 ms with b; " in " ".join(told)
    assert "2.0 of them waited for a slot (64 a connection)" in " ".join(told)


def test_what_did_not_change_is_not_explained():
    assert explain(figures(), figures(rtt_ms=2.1), "b") == []
