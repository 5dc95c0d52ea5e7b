"""Who else uses a server is found in what the kernel lists, in whatever namespace and notation."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import nfs_live, nfs_options, nfs_server

# read from a guest with Linux 6.1
MOUNTINFO = (
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "95 22 0:40 / /mnt/vol1 rw,noatime shared:96 - nfs 10.99.0.1:/export/vol1 rw,vers=3,rsize=262144,wsize=262144,"
    "namlen=255,hard,nocto,proto=tcp,nconnect=4,timeo=600,retrans=2,sec=sys,mountaddr=10.99.0.1,mountvers=3,"
    "mountport=54283,mountproto=tcp,local_lock=none,addr=10.99.0.1\n"
    "99 22 0:43 / /mnt/a\\040b rw,relatime - nfs4 nas:/vol\\0402 rw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,"
    "hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.99.0.11,local_lock=none,addr=10.99.0.1\n"
)
SERVERS = (
    "NV SERVER   PORT USE HOSTNAME\n"
    "v3 0a630001  801   2 10.99.0.1\n"
    "v4 fd000000000000000000000000000004  801   1 [fd00::4]\n"
)


@pytest.fixture
def proc(tmp_path):
    """A /proc with this process, and one more process in a mount namespace of its own."""

    def add(pid, mountinfo, mnt="mnt:[1]", net="net:[1]"):
        base = tmp_path / str(pid)
        (base / "ns").mkdir(parents=True)
        (base / "mountinfo").write_text(mountinfo)
        os.symlink(mnt, base / "ns" / "mnt")
        os.symlink(net, base / "ns" / "net")

    add("self", MOUNTINFO.splitlines(keepends=True)[0])
    add(100, MOUNTINFO.splitlines(keepends=True)[0])
    add(200, MOUNTINFO, mnt="mnt:[2]")
    add(201, MOUNTINFO, mnt="mnt:[2]")
    add(300, MOUNTINFO, mnt="mnt:[3]", net="net:[3]")
    return str(tmp_path)


def test_a_mount_is_read_with_its_address_and_both_kinds_of_options(proc):
    first, second = nfs_server.all_nfs(proc)
    assert (first.path, first.source, first.device, first.address) == (
        "/mnt/vol1", "10.99.0.1:/export/vol1", "0:40", "10.99.0.1",
    )  # fmt: skip
    assert (first.options["atime"], first.options["nconnect"], first.options["cto"]) == ("noatime", "4", "no")
    assert (second.path, second.source) == ("/mnt/a b", "nas:/vol 2")


def test_a_mount_in_another_namespace_with_the_same_network_is_found_once_with_a_process(proc):
    assert [(mount.path, mount.pid) for mount in nfs_server.all_nfs(proc)] == [("/mnt/vol1", 200), ("/mnt/a b", 200)]


@pytest.mark.parametrize(
    ("address", "options", "found"),
    [
        ("10.99.0.1", "vers=3", ["/mnt/vol1"]),
        ("10.99.0.1", "vers=4.1", ["/mnt/a b"]),
        ("10.99.0.1", "vers=4", ["/mnt/a b"]),
        ("10.99.0.1", "", ["/mnt/vol1", "/mnt/a b"]),
        ("10.99.0.1", "vers=4.2", []),
        ("10.99.0.1", "vers=3,proto=rdma", []),
        ("10.99.0.2", "vers=3", []),
    ],
)
def test_connections_are_shared_by_address_version_and_protocol(proc, address, options, found):
    asked = nfs_options.canonical(options)
    assert [mount.path for mount in nfs_server.sharing([address], asked, proc)] == found


def test_the_kernels_list_of_servers_is_hexadecimal(tmp_path):
    (tmp_path / "servers").write_text(SERVERS)
    assert nfs_server.rows(str(tmp_path / "servers")) == [
        nfs_server.Row("3", "10.99.0.1", 2049, 2),
        nfs_server.Row("4", "fd00::4", 2049, 1),
    ]
    assert nfs_server.rows(str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("text", "server", "export"),
    [
        ("10.0.0.4:/vol1", "10.0.0.4", "/vol1"),
        ("nas.example.com:/", "nas.example.com", "/"),
        ("[fd00::4]:/vol1/a", "fd00::4", "/vol1/a"),
        ("[fe80::4%eth1]:/v", "fe80::4%eth1", "/v"),
    ],
)
def test_a_source_is_server_and_export(text, server, export):
    assert nfs_server.parse_source(text) == nfs_server.Source(server, export)


@pytest.mark.parametrize(
    "text", ["", "/vol1", "nas:vol1", "fd00::4:/vol1", "a b:/c", "nas:/a,b", "nas:/a b", "-", "a,b:/c"]
)
def test_what_is_no_source_is_told(text):
    with pytest.raises(nfs_server.ServerError, match=r"give server:/export"):
        nfs_server.parse_source(text)


def test_a_name_without_an_address_is_told():
    with pytest.raises(nfs_server.ServerError, match=r"nowhere.invalid cannot be resolved"):
        nfs_server.resolve("nowhere.invalid")


def test_a_port_that_nobody_listens_on_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        asked = {"vers": "4.1", "port": str(taken.getsockname()[1])}
        with pytest.raises(nfs_server.ServerError, match=r"refuses connections on port \d+; no NFS server runs there"):
            nfs_server.check_answers("nas", ["127.0.0.1"], asked)


def test_a_port_that_takes_connections_is_enough():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        nfs_server.check_answers("nas", ["127.0.0.1"], {"vers": "4.1", "port": str(taken.getsockname()[1])})


def test_who_keeps_a_directory_busy_is_named(tmp_path):
    (tmp_path / "inside").mkdir()
    with subprocess.Popen(["sleep", "600"], cwd=tmp_path / "inside") as sleeper:
        try:
            found = nfs_server.holders(str(tmp_path))
        finally:
            sleeper.kill()
    assert found == [f"sleep (pid {sleeper.pid})"]
    assert nfs_server.holders(str(tmp_path)) == []


def test_a_host_without_nfs_has_no_mount_to_look_at(tmp_path):
    assert nfs_live.look(str(tmp_path)) is None
