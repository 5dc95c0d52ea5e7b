"""What the kernel tells of NFS mounts is read whole, whatever its version."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import mountstats

from .mountstats_example import block, xprt

OTHERS = (
    "device rootfs mounted on / with fstype rootfs\n"
    "device /dev/vda mounted on / with fstype ext4\n"
    "no device mounted on /sys/nowhere with fstype none\n"
)


def test_every_figure_stands_under_its_name():
    read = "100 101 1 14000 410000 30 400 450 2"
    (mount,) = mountstats.nfs_mounts(OTHERS + block(ops={"READ": read}))
    assert (mount.source, mount.path, mount.fstype, mount.vers, mount.age_s) == (
        "10.0.0.4:/vol1", "/mnt/vol1", "nfs", "3", 130,
    )  # fmt: skip
    assert "acdirmax=600" in mount.options.split(",")
    assert (mount.events["inode_revalidate"], mount.events["delay"], mount.events["pnfs_write"]) == (1, 25, 27)
    assert (mount.bytes["direct_read"], mount.bytes["direct_write"]) == (3, 4)
    assert mount.ops["READ"] == {
        "ops": 100, "transmissions": 101, "timeouts": 1, "bytes_sent": 14000, "bytes_received": 410000,
        "queue_ms": 30, "rtt_ms": 400, "execute_ms": 450, "errors": 2,
    }  # fmt: skip


def test_mounts_that_are_not_nfs_are_named_and_nothing_more():
    mounts = mountstats.parse(OTHERS)
    assert [(mount.source, mount.path, mount.fstype) for mount in mounts] == [
        ("rootfs", "/", "rootfs"), ("/dev/vda", "/", "ext4"), ("", "/sys/nowhere", "none"),
    ]  # fmt: skip
    assert mountstats.nfs_mounts(OTHERS) == []


def test_each_connection_of_nconnect_is_kept():
    (mount,) = mountstats.parse(block(xprts=[xprt(port, sends=port) for port in range(700, 716)]))
    assert [each["sends"] for each in mount.xprts] == list(range(700, 716))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("udp 800 1 50 49 1 60 2 16 3 4", {"srcport": 800, "sends": 50, "bklog_u": 2, "max_slots": 16}),
        ("rdma 0 1 1 0 0 50 49 0 60 2 11 12 13", {"connects": 1, "sends": 50, "bklog_u": 2, "read_segments": 11}),
        ("tcp 800 1 1 0 0 50 49 0 60 2", {"sends": 50, "bklog_u": 2}),
    ],
)
def test_columns_are_those_of_the_protocol_and_of_the_kernel(line, expected):
    (mount,) = mountstats.parse(block(xprts=[line]))
    assert {name: mount.xprts[0].get(name) for name in expected} == expected


def test_a_transport_of_an_unknown_kind_is_left_out():
    (mount,) = mountstats.parse(block(xprts=["quic 1 2 3", xprt()]))
    assert len(mount.xprts) == 1


def test_an_older_kernel_counts_no_errors_and_a_newer_one_may_count_more():
    old, new = "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 7 8 9 10"
    (mount,) = mountstats.parse(block(statvers="1.0", ops={"READ": old, "WRITE": new}))
    assert "errors" not in mount.ops["READ"]
    assert mount.ops["WRITE"]["errors"] == 9


def test_a_text_cut_anywhere_gives_only_figures_that_were_whole():
    whole = block(xprts=[xprt(700, sends=12345), xprt(701, sends=67890)], ops={"READ": "100 101 1 2 3 4 5 678 9"})
    (full,) = mountstats.parse(whole)
    for length in range(len(whole)):
        for mount in mountstats.parse(whole[:length]):
            assert mount.path == full.path or length < whole.index("\n")
            assert all(each in full.xprts for each in mount.xprts)
            assert all(full.ops[name] == figures for name, figures in mount.ops.items())
            assert all(full.events[name] == figure for name, figure in mount.events.items())


@pytest.mark.parametrize(
    ("options", "expected"),
    [("rw,vers=4.1,hard", "4.1"), ("rw,vers=4,minorversion=1", "4.1"), ("rw,vers=4,minorversion=0", "4"), ("rw", None)],
)
def test_the_version_is_that_of_the_effective_options(options, expected):
    assert mountstats.version_of(options) == expected


def test_names_with_blanks_are_as_on_disk():
    (mount,) = mountstats.parse(block(source="host:/a\\040b", path="/mnt/a\\040b\\134c"))
    assert (mount.source, mount.path) == ("host:/a b", "/mnt/a b\\c")


def test_a_path_is_on_the_nearest_mount_above_it_and_on_the_last_of_two_at_one_place():
    text = OTHERS + block(path="/mnt/a") + block(source="h:/late", path="/mnt/a") + block(path="/mnt/ab")
    mounts = mountstats.parse(text)
    assert mountstats.find(mounts, "/mnt/a/deep/er").source == "h:/late"
    assert mountstats.find(mounts, "/mnt/ab").path == "/mnt/ab"
    assert mountstats.find(mounts, "/mnt/abc").fstype == "ext4"


def test_mounts_on_the_same_connections_can_be_told():
    one, two, other = mountstats.parse(
        block(path="/a") + block(source="10.0.0.4:/vol2", path="/b") + block(path="/c", xprts=[xprt(900)])
    )
    assert one.connections == two.connections != other.connections


def test_this_host_is_read():
    assert any(mount.path == "/" for mount in mountstats.read())
