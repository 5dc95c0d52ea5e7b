"""What held an NFS client back is named from its counters, the cause before what follows from it."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import gates, judge, limits, merge, render_model

from .nfs_example import SOURCE, mount, net, op
from .samples_example import direction, planned, sample, volume

IDLE = {"busy": 0.3, "busiest_cpu": 0.4, "user": 0.1, "system": 0.2, "iowait": 0.0, "steal": 0.0}


def merged(*hosts, lat_ms=2.0, cpu=None, **workload):
    """A point that these hosts measured, each given by its mounts and its network."""
    names = [f"h{number}" for number, _host in enumerate(hosts, 1)]
    plan = planned(1, hosts=names, **workload)
    lat_ns = round(1e6 * lat_ms)
    samples = {
        name: sample({"a": volume(read=direction(2000, lat_ns))}, nfs=mounts, net=network, cpu=cpu or IDLE)
        for name, (mounts, network) in zip(names, hosts, strict=True)
    }
    return plan, merge.merge_point(plan, samples), merge.read_heads(plan, samples)


def find(*hosts, settings=None, **more):
    plan, point, _heads = merged(
        *[host if isinstance(host, tuple) else ({SOURCE: host}, net()) for host in hosts], **more
    )
    facts = {host: {"cpus": 4} for host in point["cpu"]}
    return limits.find_limit(limits.Context(point, plan["workload"], facts, {}, None, settings or {}))


def gate(*mounts):
    plan, point, heads = merged(*[({SOURCE: each}, net()) if each else (None, net()) for each in mounts])
    return gates.transport(gates.Context(plan, point, heads, {}))


def test_requests_that_wait_for_a_slot_while_all_are_in_use_are_held_back_by_the_slots():
    limit = find(mount(op(20_000, queue_ms=15, rtt_ms=1), slot_wait=30, slots_limit=2, max_slots=2), lat_ms=16)
    assert limit["kind"] == "nfs_slots"
    assert "30.0 requests waited for a slot" in limit["evidence"][0]
    assert "all 2 slots of each connection" in limit["evidence"][0]
    assert "waited 15.0 ms in the client and 1.00 ms for its answer" in limit["evidence"][0]


def test_slots_of_all_connections_together_are_counted():
    limit = find(mount(op(20_000, queue_ms=15), connections=4, slot_wait=7.5, slots_limit=2), lat_ms=16)
    assert (
        "30.0 requests waited for a slot at any moment, with all 2 slots of each connection in use on 4"
        in (limit["evidence"][0])
    )


def test_where_the_kernel_does_not_tell_its_slots_the_wait_alone_shows_them():
    limit = find(mount(op(20_000, queue_ms=15), slot_wait=30, slots_limit=None, max_slots=16), lat_ms=16)
    assert limit["kind"] == "nfs_slots"
    assert "with 16 slots of a connection in use" in limit["evidence"][0]


def test_a_wait_for_slots_that_is_short_against_the_answers_is_no_limit():
    assert find(mount(op(20_000, queue_ms=0.1, rtt_ms=5), slot_wait=0.2, slots_limit=2))["kind"] == "nfs_server"


def test_a_41_client_whose_requests_wait_for_nothing_else_waits_for_session_slots():
    busy = mount(op(2_000, queue_ms=500, rtt_ms=150), connections=4, socket_wait=0.6, vers="4.1", session_slots=64)
    limit = find(busy, lat_ms=660)
    assert limit["kind"] == "nfs_session_slots"
    # 200 a second × 0.5 s, less 4 × 0.6 that waited for a socket; 200 × 0.15 s under way
    assert "97.6 requests waited" in limit["evidence"][0]
    assert "30.0 were under way; the client asks for 64 session slots" in limit["evidence"][0]
    assert limit["evidence"][-1] == "nconnect adds no session slots"


def test_a_v3_client_has_no_session_to_wait_for():
    assert find(mount(op(2_000, queue_ms=500, rtt_ms=150)), lat_ms=660)["kind"] != "nfs_session_slots"


def test_a_41_client_whose_requests_wait_for_the_slots_of_a_connection_is_not_held_back_by_its_session():
    limit = find(mount(op(20_000, queue_ms=15), slot_wait=30, slots_limit=2, session_slots=64), lat_ms=16)
    assert limit["kind"] == "nfs_slots"


def test_requests_that_wait_to_be_written_are_held_back_by_the_socket():
    limit = find(mount(op(20_000, queue_ms=5, rtt_ms=5), connections=2, socket_wait=5), lat_ms=10)
    assert limit["kind"] == "tcp_socket"
    assert "10.0 requests waited for the socket of 2 connections" in limit["evidence"][0]


def test_requests_sent_at_once_wait_for_the_server_and_more_depth_would_bring_more():
    limit = find(mount(op(20_000, rtt_ms=15.5)), lat_ms=16)
    assert limit["kind"] == "nfs_server"
    assert "31.0 requests were under way on 1 connection" in limit["evidence"][0]
    assert "by Little's law 64 would give up to 4,000 IOPS" in limit["evidence"][-1]


def test_time_that_passes_above_nfs_is_the_clients():
    limit = find(mount(op(20_000, rtt_ms=1)), lat_ms=16)
    assert limit["kind"] == "nfs_client"
    assert find(mount(op(20_000, rtt_ms=1)), lat_ms=16, direct=False)["kind"] == "nfs_server"


def test_a_server_that_puts_requests_off_is_named_before_what_follows_from_it():
    limit = find(mount(op(20_000, queue_ms=15), slot_wait=30, slots_limit=2, events={"delay": 100}), lat_ms=16)
    assert limit["kind"] == "nfs_delay"
    assert "100 answers were to try again later, 5.0 for 1,000 requests" in limit["evidence"][0]


def test_a_connection_that_carries_far_more_than_the_others_is_told():
    limit = find(mount(connections=4, per_connection=[17_000, 1_000, 1_000, 1_000]))
    assert limit["kind"] == "nfs_uneven"
    assert "the busiest of 4 connections sent 17,000 of 20,000 requests" in limit["evidence"][0]
    assert find(mount(connections=4, per_connection=[6_000, 5_000, 5_000, 4_000]))["kind"] == "nfs_server"


def test_few_requests_do_not_show_uneven_connections():
    few = mount(op(20), connections=4, per_connection=[17, 1, 1, 1])
    assert find(few)["kind"] == "nfs_server"


def test_packets_sent_again_are_the_limit_before_the_answers_they_delay():
    limit = find(({SOURCE: mount()}, net(retrans=300)))
    assert limit["kind"] == "retransmissions"
    assert "3.0% of TCP segments were sent again" in limit["evidence"][0]
    evidence = find(({SOURCE: mount()}, net(retrans=50)))["evidence"][0]
    assert "0.5% of TCP segments were sent again" in evidence


def test_two_mounts_on_the_same_connections_count_them_once():
    first = mount(op(10_000, queue_ms=15), slot_wait=30, slots_limit=2)
    second = mount(op(10_000, queue_ms=15), slot_wait=30, slots_limit=2, shared_with=SOURCE)
    limit = find(({SOURCE: first, "10.0.0.4:/vol2": second}, net()), lat_ms=16)
    assert "30.0 requests waited for a slot at any moment" in limit["evidence"][0]
    assert "on 1 connection" in limit["evidence"][0]


def test_a_link_at_its_speed_one_way_is_the_limit_before_what_waits_for_it():
    waiting = mount(op(20_000, queue_ms=5, rtt_ms=5), socket_wait=10)
    limit = find(({SOURCE: waiting}, net(tx=121e6, speed=125_000_000)), lat_ms=10)
    assert limit["kind"] == "network"
    assert limit["evidence"] == ["h1: eth0 sent 121.0 MB/s, 97% of 125.0 MB/s (its link speed)"]


def test_both_ways_together_do_not_fill_a_link():
    assert find(({SOURCE: mount()}, net(rx=70e6, tx=70e6, speed=125_000_000)))["kind"] == "nfs_server"


def test_what_the_machine_may_send_is_what_the_user_says():
    limit = find(({SOURCE: mount()}, net(tx=9.8e6, speed=125_000_000)), settings={"hostmax_nic_bytes_per_s": "10MB"})
    assert limit["kind"] == "network"
    assert "98% of 10.0 MB/s (hostmax_nic_bytes_per_s)" in limit["evidence"][0]


def test_one_traffic_on_two_interfaces_is_not_counted_twice():
    half = net(tx=5e6, enP1=(1e6, 5e6, None))
    assert find(({SOURCE: mount()}, half), settings={"hostmax_nic_bytes_per_s": 10_000_000})["kind"] == "nfs_server"


def test_a_virtual_link_that_is_faster_than_it_says_is_no_limit():
    assert find(({SOURCE: mount()}, net(tx=300e6, speed=125_000_000)))["kind"] == "nfs_server"


def test_one_cpu_full_of_softirqs_is_the_clients_limit():
    cpu = {**IDLE, "busiest_cpu": 0.99, "busiest_softirq": 0.7, "busiest_kernel": 0.97}
    limit = find(mount(), cpu=cpu)
    assert limit["kind"] == "client_softirq"
    assert (
        "97% of its time in the kernel, up to 70% in softirqs, while all together were 30% busy" in limit["evidence"][0]
    )


def test_a_cpu_full_of_a_jobs_own_system_calls_is_not_called_softirqs():
    cpu = {**IDLE, "busiest_cpu": 0.99, "busiest_softirq": 0.05, "busiest_kernel": 0.97}
    assert find(mount(), cpu=cpu)["kind"] == "nfs_server"


def test_what_one_of_three_hosts_met_is_not_the_limit_of_all():
    slow = mount(op(20_000, queue_ms=15), slot_wait=30, slots_limit=2)
    good = mount(op(20_000, rtt_ms=15))
    assert find(slow, good, good, lat_ms=16)["kind"] == "nfs_server"
    assert find(slow, slow, good, lat_ms=16)["kind"] == "nfs_slots"


def test_a_mount_on_which_nothing_was_read_or_written_says_nothing():
    idle = mount()
    idle["ops"] = {"GETATTR": op(5)}
    assert find(idle)["kind"] in ("unknown", "each_volume", "queue_depth")


def test_counters_of_volumes_that_are_not_on_nfs_change_nothing():
    assert find((None, net()))["kind"] == find((None, None))["kind"]


def test_a_request_that_was_sent_again_fails_the_point():
    failed = gate(mount(op(100, again=3, timeouts=1), connections=16, connects=4, reconnected=2), mount())
    assert failed.passed is False
    assert failed.text == (
        "h1: 10.0.0.4:/vol1: 3 requests were sent again, 1 were not answered in time, "
        "2 of 16 connections were made anew"
    )


def test_a_connection_that_was_closed_for_lack_of_use_and_made_anew_is_no_fault():
    passed = gate(mount(connections=16, connects=32, reconnected=16))
    assert passed.passed is True


def test_points_without_nfs_are_not_asked_about_their_transport():
    assert gate(None) is None


def test_a_failed_transport_makes_a_point_invalid():
    plan, point, heads = merged(({SOURCE: mount(op(100, again=1))}, None))
    judged = gates.judge_point(gates.Context(plan, point, heads, {"h1": {"memory_bytes": None}}))
    assert judged["status"] == "invalid"
    assert [gate["name"] for gate in judged["gates"] if gate["passed"] is False] in (
        ["transport"],
        ["littles_law", "transport"],
    )


@pytest.mark.parametrize(
    "kind", ["nfs_slots", "nfs_session_slots", "tcp_socket", "nfs_client", "network", "client_softirq"]
)
def test_a_storage_is_not_blamed_for_what_its_client_could_not_ask_for(kind):
    assert kind in judge.CLIENT_LIMITS
    assert kind in render_model.LIMIT_LONG
