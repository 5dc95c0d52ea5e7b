"""What the network did between two moments."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import net_counters
from ansible_collections.hostmax.storage.plugins.module_utils.net_counters import Reading

CAPTURED = Path(__file__).parent / "captured"
HEAD = "Inter-|   Receive                  |  Transmit\n face |bytes    packets errs drop ...\n"


def dev(**interfaces):
    """Received and sent bytes, and drops of both ways, by interface."""
    rows = [f"  {n}: {rx} 1 0 {d} 0 0 0 0 {tx} 1 0 {d} 0 0 0 0\n" for n, (rx, tx, d) in interfaces.items()]
    return HEAD + "".join(rows)


def reading(time_s, dev=HEAD, snmp="", netstat="", softnet=""):
    return Reading(time_s, dev, snmp, netstat, softnet)


def link(sys, name, speed):
    (sys / "class/net" / name).mkdir(parents=True)
    (sys / "class/net" / name / "speed").write_text(f"{speed}\n")


def test_of_a_real_client_traffic_and_tcp_are_told():
    texts = [
        [(CAPTURED / f"net_{n}.{k}").read_text() for n in ("dev", "snmp", "netstat", "softnet_stat")] for k in "01"
    ]
    found = net_counters.difference(Reading(0.0, *texts[0]), Reading(3.5, *texts[1]), "/nowhere")
    assert found["interfaces"]["eth1"]["rx_bytes_per_s"] > 1e6
    assert "lo" not in found["interfaces"]
    assert found["tcp"]["out_segs"] > 1000
    assert found["tcp"]["retrans_segs"] > 0
    assert found["softnet"]["dropped"] == 0
    assert found["softnet"]["time_squeeze"] > 0


def test_traffic_is_bytes_a_second_beside_the_speed_of_the_link(tmp_path):
    link(tmp_path, "eth0", 10000)
    first, last = reading(10.0, dev(eth0=(1000, 500, 1))), reading(12.0, dev(eth0=(5000, 900, 3)))
    assert net_counters.difference(first, last, str(tmp_path))["interfaces"] == {
        "eth0": {"rx_bytes_per_s": 2000.0, "tx_bytes_per_s": 200.0, "drops": 4, "speed_bytes_per_s": 1_250_000_000}
    }


@pytest.mark.parametrize("speed", ["-1", "0", "4294967295x", ""])
def test_a_link_whose_driver_does_not_know_its_speed_has_none(tmp_path, speed):
    link(tmp_path, "eth0", speed)
    assert net_counters.link_speed("eth0", str(tmp_path)) is None
    assert net_counters.link_speed("gone", str(tmp_path)) is None


def test_interfaces_without_traffic_new_ones_and_the_host_itself_are_left_out():
    first = reading(0.0, dev(lo=(0, 0, 0), eth0=(5, 5, 0), eth1=(0, 0, 0)))
    last = reading(1.0, dev(lo=(9, 9, 0), eth0=(5, 5, 0), eth1=(7, 0, 0), veth9=(3, 3, 0)))
    assert set(net_counters.difference(first, last)["interfaces"]) == {"eth1"}


def test_of_hundreds_of_interfaces_the_busiest_are_kept():
    names = [f"veth{n}" for n in range(100)]
    first, last = dev(**dict.fromkeys(names, (0, 0, 0))), dev(**{name: (n + 1, 0, 0) for n, name in enumerate(names)})
    found = net_counters.difference(reading(0.0, first), reading(1.0, last))["interfaces"]
    assert list(found) == [f"veth{n}" for n in range(99, 91, -1)]


def test_a_name_with_a_colon_is_one_name():
    assert list(net_counters.read_interfaces(HEAD + "eth0:1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")) == ["eth0:1"]


def test_only_tcp_counters_that_changed_are_told():
    snmp = "Ip: Forwarding\nIp: 1\nTcp: InSegs OutSegs RetransSegs\nTcp: {} {} {}\n"
    extension = "TcpExt: TCPTimeouts TCPBacklogDrop NewOne\nTcpExt: {} 0 5\nIpExt: InOctets\nIpExt: 9\n"
    first = reading(0.0, snmp=snmp.format(10, 10, 1), netstat=extension.format(0))
    last = reading(1.0, snmp=snmp.format(30, 50, 3), netstat=extension.format(2))
    tcp = net_counters.difference(first, last)["tcp"]
    assert tcp == {"in_segs": 20, "out_segs": 40, "retrans_segs": 2, "timeouts": 2}


def test_softnet_counters_are_hexadecimal_of_each_cpu_and_wrap():
    first = reading(0.0, softnet="0000000a fffffffe 00000001\n0000000a 00000010 00000000\n")
    last = reading(1.0, softnet="0000000a 00000001 00000002\n0000000a 00000010 00000000\n")
    assert net_counters.difference(first, last)["softnet"] == {"dropped": 3, "time_squeeze": 1}


def test_a_cpu_that_came_in_between_leaves_nothing_to_compare():
    first, last = reading(0.0, softnet="0a 0 0\n"), reading(1.0, softnet="0a 0 0\n0a 5 0\n")
    assert net_counters.difference(first, last)["softnet"] == {}


def test_a_host_without_these_files_tells_nothing():
    assert net_counters.difference(net_counters.read(0.0, "/nowhere"), net_counters.read(1.0, "/nowhere")) == {
        "interfaces": {},
        "tcp": {},
        "softnet": {"dropped": 0, "time_squeeze": 0},
    }


def test_this_host_is_read():
    found = net_counters.read(0.0)
    assert "lo" in net_counters.read_interfaces(found.dev)
