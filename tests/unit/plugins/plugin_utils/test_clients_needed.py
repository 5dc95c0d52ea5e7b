# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import datetime

from ansible_collections.hostmax.storage.plugins.plugin_utils import clients_needed, meeting
from ansible_collections.hostmax.storage.plugins.plugin_utils.plan import make_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_plan import WIDTH, describe_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import host_settings
from ansible_collections.hostmax.storage.plugins.plugin_utils.studies import settings_of_study

NOW = datetime.datetime(2026, 11, 30, 19, 40, 0, tzinfo=datetime.timezone.utc)
NFS = [{"source": "10.0.0.4:/vol1"}]


def limits(hosts, **variables):
    study = settings_of_study("nfs_limits")
    mine = {"hostmax_nfs_volumes": NFS, "hostmax_expect": {"bytes_per_s": "10GB"}, **variables}
    names = [f"c{number}" for number in range(hosts)]
    found = {host: host_settings({"inventory_hostname": host, **mine}, None, study) for host in names}
    return make_plan("nfs_limits-1", "nfs_limits", found, 7, "ansible-playbook", NOW)


READ = {"hostmax_workloads": ["256k-seq-r100"]}


def test_a_figure_needs_as_many_hosts_as_their_networks_carry_it():
    made = limits(2, hostmax_nic_bytes_per_s="1.25GB", **READ)
    (said,) = clients_needed.sentences(made)
    assert "needs 8 hosts at least (1.25 GB/s of network each), and this run has 2: it cannot be reached" in said
    (enough,) = clients_needed.sentences(limits(8, hostmax_nic_bytes_per_s="1.25GB", **READ))
    assert enough.endswith("network each)")


def test_connections_that_take_fewer_requests_than_fio_offers_decide_by_littles_law():
    """400,000 IOPS at 2 ms are 800 requests under way: 7 connections of 128, or one host with 8 of them."""
    want = {"hostmax_expect": {"iops": 400_000}, "hostmax_workloads": ["8k-rand-r100"]}
    one = clients_needed.sentences(limits(1, **want))[0]
    assert "needs 7 hosts at least (128 I/Os under way each at 2.00 ms)" in one
    eight = clients_needed.sentences(limits(1, hostmax_conditions=["nconnect8"], **want))[0]
    # 4 jobs x depth 64 are all that is offered
    assert "needs 4 hosts at least (256 I/Os under way each" in eight


def test_connections_do_not_raise_what_an_nfs41_session_takes():
    own = {"name": "v41", "mount": "vers=4.1,nconnect=16"}
    want = {"hostmax_expect": {"iops": 400_000}, "hostmax_workloads": ["8k-rand-r100"], "hostmax_conditions": [own]}
    assert "needs 13 hosts at least (64 I/Os under way each" in clients_needed.sentences(limits(1, **want))[0]


def test_a_working_set_that_fits_the_servers_memory_is_told():
    fits = limits(2, hostmax_server_memory="2TiB")
    assert "fits into the server's memory of 2 TiB" in clients_needed.fits_server(fits)[0]
    assert clients_needed.fits_server(limits(2, hostmax_server_memory="1023GiB")) == []
    writes = limits(2, hostmax_server_memory="2TiB", hostmax_workloads=["8k-rand-r0"])
    assert clients_needed.fits_server(writes) == []


def test_only_buffered_reads_come_from_a_hosts_own_memory():
    found = {"c0": {"host": {"memory_bytes": 2**34}}}
    buffered = {"name": "b", "rw": "read", "block_size": "64k", "direct": False, "working_set": "1GiB"}
    assert (
        "its working set fits into the memory of the hosts (16 GiB)"
        in (clients_needed.fits_clients(limits(1, hostmax_workloads=[buffered]), found)[0])
    )
    assert clients_needed.fits_clients(limits(1, hostmax_workloads=[{**buffered, "direct": True}]), found) == []
    assert clients_needed.fits_clients(limits(1, hostmax_workloads=[{**buffered, "working_set": "32GiB"}]), found) == []


def test_the_plan_tells_what_is_needed_and_what_to_beware_of():
    made = limits(2, hostmax_nic_bytes_per_s="1.25GB", hostmax_server_memory="2TiB")
    text = describe_plan(made, None, NOW)
    assert "compares  scale-out: hard,rsize=262144,wsize=262144,vers=3" in text
    assert "needs     256k-seq-r100, 256k-seq-r75, 256k-seq-r50 and 2 more: 10.00 GB/s needs 8 hosts" in text
    assert "beware" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_host_that_stands_prepared_cannot_be_compared_on():
    assert meeting.prepared({"a": {"prepared": False}, "b": {}}) == []
    (said,) = meeting.prepared({"a": {"prepared": True}, "b": {"prepared": False}})
    assert said.startswith("a was prepared and is not put back since")
    assert said.endswith("with ansible-playbook hostmax.storage.restore.")
