# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import datetime

from ansible_collections.hostmax.storage.plugins.plugin_utils.plan import make_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_plan import WIDTH, describe_plan
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import host_settings

NOW = datetime.datetime(2026, 11, 30, 19, 40, 0, tzinfo=datetime.timezone.utc)


def described(hosts, directory="/srv/results/host_max-1", **variables):
    settings = {host: host_settings({"inventory_hostname": host, **variables, **own}) for host, own in hosts.items()}
    return describe_plan(make_plan("host_max-1", "host_max", settings, 7, "", NOW), directory, NOW)


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


def test_many_hosts_and_volumes_stay_a_screen_of_a_hundred_columns():
    hosts = {f"client{number:04}": {"hostmax_volumes": disks(20)} for number in range(1000)}
    lines = described(hosts, hostmax_workloads=["oci_block_volume", "4k-randwrite"]).split("\n")
    assert len(lines) <= 40
    # a path longer than the line is not broken
    assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in lines)
    assert "client0000, client0001, client0002 and 997 more hosts: 20 volumes: vol01" in " ".join(
        " ".join(lines).split()
    )


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
