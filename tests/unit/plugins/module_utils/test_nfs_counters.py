"""What NFS mounts did between two moments, from texts of the kernel: some captured, some as small as the trap."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import mountstats, nfs_counters

from .mountstats_example import OPTIONS, block, xprt

CAPTURED = Path(__file__).parent / "captured"
V41 = "rw,vers=4.1,rsize=262144,wsize=262144,hard,proto=tcp,nconnect=2"


class FakeKernel:
    """A /proc and a /sys in a directory, with the texts that a test puts there."""

    def __init__(self, root):
        self.proc, self.sys = root / "proc", root / "sys"
        (self.proc / "self").mkdir(parents=True)
        self.sys.mkdir()
        self.mountinfo("")

    def mountinfo(self, *rows):
        lines = [f"1 0 {device} / {path} rw - nfs x rw,addr=10.0.0.4" for path, device in (row for row in rows if row)]
        (self.proc / "self" / "mountinfo").write_text("\n".join(lines))

    def mountstats(self, text):
        (self.proc / "self" / "mountstats").write_text(text)

    def connection(self, switch, number, port, slots, address="10.0.0.4"):
        directory = self.sys / "kernel/sunrpc/xprt-switches" / switch / f"xprt-{number}-tcp"
        directory.mkdir(parents=True)
        (directory / "dstaddr").write_text(address + "\n")
        (directory / "xprt_info").write_text(f"max_num_slots={slots}\nsrc_port={port}\ndst_port=2049\n")

    def watch(self, *paths):
        return nfs_counters.Watch(paths, str(self.proc), str(self.sys))

    def difference(self, before, after, *paths):
        self.mountstats(before)
        watch = self.watch(*paths)
        first = watch.read(10.0)
        self.mountstats(after)
        return watch.difference(first, watch.read(12.0))


@pytest.fixture
def kernel(tmp_path):
    return FakeKernel(tmp_path)


@pytest.fixture
def captured(kernel):
    shutil.copy(CAPTURED / "mountinfo", kernel.proc / "self" / "mountinfo")
    texts = [(CAPTURED / f"mountstats.{number}").read_text() for number in (0, 1)]
    return kernel.difference(*texts, "/tmp/cn/a/counters", "/tmp/cn/b/counters", "/tmp/cn/c")


def read(ops, transmissions=None, timeouts=0):
    return {"READ": f"{ops} {ops if transmissions is None else transmissions} {timeouts} 0 0 0 0 0 0"}


def test_of_a_real_client_each_mount_is_told_and_a_superblock_under_two_paths_only_once(captured):
    assert list(captured) == ["10.99.0.1:/export/vol1", "10.99.0.1:/export/vol2"]
    one, two = captured.values()
    assert (one["vers"], one["xprt"]["connections"], two["vers"], two["xprt"]["connections"]) == ("3", 16, "4.1", 4)
    assert (set(one["ops"]), set(two["ops"])) == ({"READ", "WRITE"}, {"READ"})


def test_of_a_real_client_bytes_and_operations_agree(captured):
    for mount in captured.values():
        reads, volume = mount["ops"]["READ"], mount["bytes"]
        # 8 KiB each, and what RPC and TCP put around them
        assert volume["server_read"] == pytest.approx(reads["ops"] * 8192, rel=0.05)
        assert 0 < reads["bytes_received"] - reads["ops"] * 8192 < 200 * reads["ops"]
        assert reads["queue_ms"] + reads["rtt_ms"] <= reads["execute_ms"]
        assert sum(mount["xprt"]["per_connection_sends"]) == mount["xprt"]["sends"]


def test_of_a_real_client_nothing_was_sent_twice_and_no_connection_was_made_anew(captured):
    for mount in captured.values():
        assert mount["xprt"]["connects"] == mount["xprt"]["reconnected"] == 0
        assert all(op["ops"] == op["transmissions"] and op["timeouts"] == 0 for op in mount["ops"].values())


def test_only_what_happened_in_between_is_told(kernel):
    before = block(ops={**read(100), "GETATTR": "7 7 0 0 0 0 0 0 0"}, volume="0 0 5 0 0 0 0 0")
    after = block(ops={**read(150, 151, 1), "GETATTR": "7 7 0 0 0 0 0 0 0"}, volume="0 0 9 0 0 0 0 0")
    (mount,) = kernel.difference(before, after, "/mnt/vol1/deep").values()
    assert mount["seconds"] == 2.0
    assert set(mount["ops"]) == {"READ"}
    assert (mount["ops"]["READ"]["ops"], mount["ops"]["READ"]["transmissions"]) == (50, 51)
    assert mount["ops"]["READ"]["timeouts"] == 1
    assert mount["bytes"] == {"direct_read": 4}
    assert mount["events"] == {}


def test_connections_of_nconnect_are_summed_and_the_most_slots_are_those_of_one(kernel):
    before = block(xprts=[xprt(700, sends=10, req_u=20), xprt(701, sends=5)])
    after = block(xprts=[xprt(700, sends=30, req_u=80, bklog_u=40, max_slots=16), xprt(701, sends=8, max_slots=4)])
    (mount,) = kernel.difference(before, after, "/mnt/vol1").values()
    assert mount["xprt"]["connections"] == 2
    assert (mount["xprt"]["sends"], mount["xprt"]["req_u"], mount["xprt"]["bklog_u"]) == (23, 60, 40)
    assert mount["xprt"]["max_slots"] == 16
    assert mount["xprt"]["per_connection_sends"] == [20, 3]


def test_a_kernel_that_counts_a_connect_twice_shows_one_connection_made_anew(kernel):
    before, after = block(xprts=[xprt(700), xprt(701)]), block(xprts=[xprt(700, connects=3), xprt(701)])
    (mount,) = kernel.difference(before, after, "/mnt/vol1").values()
    assert (mount["xprt"]["connects"], mount["xprt"]["reconnected"]) == (2, 1)


def test_two_exports_of_one_superblock_are_one(kernel):
    kernel.mountinfo(("/a", "0:40"), ("/b", "0:40"))
    both = [block(path="/a", ops=read(n)) + block(source="10.0.0.4:/vol1/sub", path="/b", ops=read(n)) for n in (1, 9)]
    assert list(kernel.difference(*both, "/a", "/b")) == ["10.0.0.4:/vol1"]
    assert list(kernel.difference(*both, "/b")) == ["10.0.0.4:/vol1/sub"]


def test_two_superblocks_of_one_server_share_their_connections(kernel):
    kernel.mountinfo(("/a", "0:40"), ("/b", "0:41"))
    both = [block(path="/a", ops=read(n)) + block(source="10.0.0.4:/vol2", path="/b", ops=read(n)) for n in (1, 9)]
    found = kernel.difference(*both, "/a", "/b")
    assert [mount["xprt"]["shared_with"] for mount in found.values()] == [None, "10.0.0.4:/vol1"]


def test_one_export_mounted_twice_apart_is_two_names(kernel):
    kernel.mountinfo(("/a", "0:40"), ("/b", "0:41"))
    both = [block(path="/a", ops=read(n)) + block(path="/b", ops=read(n)) for n in (1, 9)]
    assert list(kernel.difference(*both, "/a", "/b")) == ["10.0.0.4:/vol1", "10.0.0.4:/vol1 on /b"]


def test_versions_on_one_server_have_connections_of_their_own_although_41_shows_no_ports(kernel):
    kernel.mountinfo(("/a", "0:40"), ("/b", "0:41"))
    one = block(path="/a", fstype="nfs4", options=V41, xprts=[xprt(0)])
    other = block(source="10.0.0.4:/b", path="/b", fstype="nfs4", options=V41.replace("4.1", "4.2"), xprts=[xprt(0)])
    found = kernel.difference(one + other, one + other, "/a", "/b")
    assert [mount["xprt"]["shared_with"] for mount in found.values()] == [None, None]


def test_a_mount_made_anew_in_between_tells_nothing(kernel):
    old, new = block(ops=read(100)), block(ops=read(5))
    assert kernel.difference(old, new, "/mnt/vol1") == {}
    younger = block(ops=read(200)).replace("age:\t130", "age:\t2")
    assert kernel.difference(old, younger, "/mnt/vol1") == {}


def test_a_mount_that_is_gone_tells_nothing(kernel):
    assert kernel.difference(block(), "device /dev/vda mounted on / with fstype ext4\n", "/mnt/vol1") == {}


def test_where_nothing_is_on_nfs_there_is_nothing_to_read(kernel):
    kernel.mountstats("device /dev/vda mounted on / with fstype ext4\n" + block())
    watch = kernel.watch("/data")
    assert watch.names == {}
    assert watch.difference(watch.read(1.0), watch.read(2.0)) is None


def test_a_kernel_without_mountstats_has_no_nfs(kernel):
    assert kernel.watch("/data").names == {}


def test_a_reading_keeps_the_watched_mounts_alone(kernel):
    kernel.mountstats(
        block() + block(source="h:/other", path="/mnt/other") + "device x mounted on / with fstype ext4\n"
    )
    assert kernel.watch("/mnt/vol1").read(1.0).text == block()


def test_the_slots_of_a_mount_are_those_of_its_connections(kernel):
    kernel.connection("switch-1", 1, port=700, slots=16)
    kernel.connection("switch-2", 2, port=900, slots=65536)
    (mount,) = kernel.difference(block(), block(), "/mnt/vol1").values()
    assert mount["slots_limit"] == 16
    assert mount["session_slots"] is None


def test_the_slots_of_a_41_mount_are_those_of_the_connections_that_are_nobody_elses(kernel):
    kernel.mountinfo(("/b", "0:41"))
    kernel.connection("switch-1", 1, port=700, slots=16)
    kernel.connection("switch-2", 2, port=991, slots=128)
    kernel.connection("switch-3", 3, port=992, slots=2, address="10.0.0.9")
    parameters = kernel.sys / "module/nfs/parameters"
    parameters.mkdir(parents=True)
    (parameters / "max_session_slots").write_text("64\n")
    text = block(path="/b", fstype="nfs4", options=V41, xprts=[xprt(0)])
    mounts = mountstats.parse(text + block())
    connections = nfs_counters.read_connections(str(kernel.sys))
    assert nfs_counters.slots_of(mounts[0], connections, "10.0.0.4", mounts) == 128
    (found,) = kernel.difference(text, text, "/b").values()
    # the mount of version 3 was not watched, so that two limits come into question
    assert (found["slots_limit"], found["session_slots"]) == (None, 64)


def test_a_closed_connection_has_no_slots_to_tell(kernel):
    kernel.connection("switch-1", 1, port=700, slots=16)
    (kernel.sys / "kernel/sunrpc/xprt-switches/switch-1/xprt-1-tcp/xprt_info").write_text("<closed>\n")
    (mount,) = kernel.difference(block(), block(), "/mnt/vol1").values()
    assert mount["slots_limit"] is None


@pytest.mark.parametrize(
    ("vers", "expected"), [("3", False), ("4.0", False), ("4.1", True), ("4.2", True), (None, False)]
)
def test_sessions_came_with_41(vers, expected):
    assert nfs_counters.is_session(vers) is expected


def test_the_options_in_use_are_not_needed_to_tell_mounts_apart(kernel):
    text = block(options=OPTIONS.replace("vers=3,", ""))
    (mount,) = kernel.difference(text, text, "/mnt/vol1").values()
    assert mount["vers"] is None
