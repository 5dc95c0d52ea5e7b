# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import datetime

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.plan import make_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_plan import WIDTH, describe_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import host_settings

NOW = datetime.datetime(2026, 11, 30, 19, 40, 0, tzinfo=datetime.timezone.utc)


def described(hosts, directory="/srv/results/host_max-1", forks=None, **variables):
    settings = {host: host_settings({"inventory_hostname": host, **variables, **own}) for host, own in hosts.items()}
    return describe_plan(make_plan("host_max-1", "host_max", settings, 7, "", NOW), directory, NOW, forks)


def disks(number):
    return [
        {"path": f"/dev/disk/by-path/ip-10.0.0.2:3260-iscsi-iqn.2015-12.com.example-lun-{n}"} for n in range(number)
    ]


def test_the_embedded_default_is_described_in_a_screen():
    text = described({"localhost": {}}, hostmax_runtime_s=10, hostmax_ramp_s=1)
    assert text == (
        "host_max: 7 points on 1 host, about 1 min 19 s, finished about 19:41:19\n"
        "  volumes   localhost: 20 thin volumes of 1 TB, each capped at 25,000 IOPS and 480.0 MB/s\n"
        "  points    1-7  4k-randread: 4 KiB random read, queue depth 32; 1, 2, 4, 8, 12, 16, 20 volumes\n"
        "            each 1 s ramp, 10 s measured, 0.3 s pause; seed 7\n"
        "  engine    engine auto is io_uring, or libaio on a host where io_uring cannot run; the sample says\n"
        "            which\n"
        "  expects   4k-randread: 500,000 IOPS within 2 % (cap of the thin volumes, hostmax_thin_cap)\n"
        "  writes    nothing: every workload reads only, and fio runs with --readonly\n"
        "  results   /srv/results/host_max-1"
    )


def test_every_volume_that_is_overwritten_is_named_by_path():
    text = described({"db1": {"hostmax_volumes": disks(3)}}, hostmax_workloads=["4k-randread", "4k-randwrite"])
    writes = text[text.index("  writes") : text.index("  results")]
    assert "DATA IS OVERWRITTEN by 4k-randwrite on" in writes
    for disk in disks(3):
        assert f" {disk['path']}\n" in writes


def test_volumes_that_a_write_point_does_not_drive_are_not_named():
    text = described(
        {"db1": {"hostmax_volumes": disks(3)}}, hostmax_workloads=["4k-randwrite"], hostmax_volume_counts=[1]
    )
    assert disks(3)[0]["path"] in text[text.index("  writes") :]
    assert disks(3)[1]["path"] not in text[text.index("  writes") :]


def flat(text):
    return " ".join(text.split())


def clients(number, volumes=lambda _number: 4):
    """Hosts whose volumes are their own, as in real inventories."""
    return {
        f"client{n:04}.example.com": {
            "hostmax_volumes": [
                {"path": f"/dev/disk/by-path/ip-192.0.2.7:3260-iscsi-iqn.2015-12.com.example:{n:04}-lun-{lun}"}
                | {"size": "1TB"}
                for lun in range(1, volumes(n) + 1)
            ]
        }
        for n in range(1, number + 1)
    }


@pytest.mark.parametrize("number", [2, 10, 1000])
def test_many_hosts_and_volumes_stay_a_screen_of_a_hundred_columns(number):
    text = described(
        clients(number, lambda n: 20 - n % 18), forks=5, hostmax_workloads=["oci_block_volume", "4k-randwrite"]
    )
    lines = text.split("\n")
    assert len(lines) <= 40
    # a path longer than the line is not broken
    assert all(len(line) <= WIDTH or len(line.split()) <= 4 for line in lines)


def test_of_many_hosts_the_plan_says_how_many_volumes_of_what_size_they_have():
    text = described(clients(10, lambda n: 2 if n == 3 else 4))
    assert "client0001.example.com, client0002.example.com and 7 more hosts: 4 volumes of 1 TB\n" in text
    assert "client0003.example.com: 2 volumes of 1 TB\n" in text
    assert "38 volumes together (all in plan.json); the first of client0001.example.com is /dev/disk/by-path/" in flat(
        text
    )
    assert "1, 2, 4 volumes a host" in text


def test_few_hosts_are_shown_with_the_paths_of_their_volumes():
    assert "client0002.example.com: 1 volume: vol01 /dev/disk" in flat(described(clients(2, lambda _n: 1)))


def test_every_host_that_is_written_to_counts_and_the_first_are_named_by_path():
    writes = described(clients(10), hostmax_workloads=["4k-randwrite"])
    writes = flat(writes[writes.index("  writes") : writes.index("  results")])
    assert "DATA IS OVERWRITTEN by 4k-randwrite on 40 volumes of 10 hosts (all in plan.json)" in writes
    assert "client0002.example.com: vol01 /dev/disk/by-path/" in writes
    assert writes.endswith("and 5 more (all in plan.json)")


def test_fewer_forks_than_hosts_are_said_with_what_they_mean():
    text = flat(described(clients(10), forks=5))
    assert "10 hosts are reached 5 at a time (forks): getting ready takes longer, but all start together" in text
    assert "ANSIBLE_FORKS=10 is quicker" in text
    assert "forks" not in described(clients(10), forks=10).lower()
    assert "ANSIBLE_FORKS" not in described(clients(60), forks=50)


def test_check_mode_keeps_no_plan_to_look_at_and_names_none():
    text = described(clients(10), directory=None, hostmax_workloads=["4k-randwrite"])
    assert "plan.json" not in text
    assert "and 5 more (all with -v)" in text


def test_check_mode_says_that_it_stops():
    assert described({"localhost": {}}, directory=None).endswith(
        "  results   none: check mode stops here and changes nothing"
    )


def test_what_is_expected_is_said_with_its_source():
    expect = [{"profile": "oci_block_volume", "shape": "BM.Standard.E4.128"}, {"bytes_per_s": "1GB", "source": "offer"}]
    sized = [{**disk, "size": "1TB"} for disk in disks(2)]
    text = described({"db1": {"hostmax_volumes": sized}}, hostmax_expect=expect)
    assert "4k-randread: 50,000 IOPS within 5 % (Block Volume Performance, 2024-07-19)" in text
    assert "4k-randread: 1.00 GB/s within 5 % (offer)" in text


def test_an_expectation_that_needs_the_volumes_sizes_waits_for_them():
    text = described({"db1": {"hostmax_volumes": disks(1)}}, hostmax_expect="oci_block_volume")
    assert "  expects   known when the volumes have been seen\n" in text


def test_a_run_without_an_expectation_says_so():
    assert "  expects   nothing;" in described({"db1": {"hostmax_volumes": disks(1)}})
