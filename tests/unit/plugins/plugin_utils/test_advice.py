# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How many clients a figure takes, and where a memory may have answered instead of the storage."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import advice, results

from . import conditions_example as example

MIB, LARGE = 2**20, {"profile": "azure_netapp_files", "volume": "large"}


def test_the_documented_case_of_little_needs_800_ios_under_way():
    # 400,000 IOPS at 2 ms need 800 outstanding: one client of 800, two of 799
    assert advice.clients_needed(400_000, "iops", 8192, outstanding=800)[0] == 1
    assert advice.clients_needed(400_000, "iops", 8192, outstanding=799)[0] == 2


def test_the_network_of_the_clients_has_to_carry_the_figure():
    # the study's: a volume of 12,761 MiB/s and clients of 2,000 MiB/s
    needed, why = advice.clients_needed(12_761 * MIB, "bytes_per_s", 2**18, nic_bytes_per_s=2000 * MIB)
    assert (needed, why) == (7, "2.10 GB/s of network each")
    assert advice.clients_needed(700_000, "iops", 8192, nic_bytes_per_s=8192 * 100_000)[0] == 7


def test_the_larger_of_network_and_slots_counts():
    needed, why = advice.clients_needed(400_000, "iops", 8192, nic_bytes_per_s=1e12, outstanding=128)
    assert (needed, why) == (7, "128 I/Os under way each at 2.00 ms")


def test_nothing_is_said_where_nothing_is_known_of_a_client():
    assert advice.clients_needed(1e6, "iops", 8192) is None


def a_run(tmp_path, hosts=2, **settings):
    return results.build(example.limits(tmp_path, hosts=hosts, expect=LARGE, **settings))


def test_a_figure_that_the_clients_cannot_carry_is_no_fault_of_the_volume(tmp_path, monkeypatch):
    monkeypatch.setattr(example, "_mix_iops", lambda workload: 8000.0)
    found = a_run(tmp_path, hostmax_nic_bytes_per_s="1GB")
    verdict = found["verdicts"][0]
    assert verdict["status"] == "inconclusive"
    assert verdict["reason"].endswith("but 2 client(s) of 1.00 GB/s of network carry no more")
    assert any(
        "at least 14 clients are needed for it (1.00 GB/s of network each), 2 measured" in w for w in found["warnings"]
    )


def test_without_a_known_network_the_same_figure_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(example, "_mix_iops", lambda workload: 8000.0)
    assert a_run(tmp_path)["verdicts"][0]["status"] == "fail"


@pytest.mark.parametrize(("memory", "told"), [("2TiB", True), ("512GiB", False), (None, False)])
def test_a_working_set_that_fits_the_servers_memory_is_told(tmp_path, memory, told):
    found = a_run(tmp_path, hostmax_server_memory=memory)
    words = [word for word in found["warnings"] if "fits into the server's memory" in word]
    assert bool(words) is told
    assert not [word for word in words if word.startswith("8k-rand-r0")], "writes are not answered from a cache"


def test_the_slots_of_a_client_are_those_of_each_server_once():
    mount = {"source": "10.0.0.4:/vol1", "slots": 62, "connections": 16}
    other = {**mount, "source": "10.0.0.4:/vol2"}
    assert advice._slots([mount, other]) == 62 * 16
    assert advice._slots([mount, {**other, "source": "10.0.0.5:/vol2"}]) == 2 * 62 * 16
    assert advice._slots([{**mount, "slots": None}]) is None
