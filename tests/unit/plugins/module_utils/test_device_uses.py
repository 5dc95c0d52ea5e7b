from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import device_uses
from ansible_collections.hostmax.storage.plugins.module_utils.device_uses import Uses, footprint, writers

from .host_example import FakeHost, mountinfo


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def test_a_mount_point_is_shown_as_it_is_called(host: FakeHost) -> None:
    host.mounts("8:1 /mnt/my\\040data ext4 /dev/sda1")
    assert Uses(host.kernel()).of((8, 1)) == ["is mounted on /mnt/my data"]


def test_many_mounts_of_one_device_are_counted(host: FakeHost) -> None:
    host.mounts(*(f"8:1 /m{number} ext4 /dev/sda1" for number in range(5)))
    assert Uses(host.kernel()).of((8, 1)) == ["is mounted on /m0, /m1, /m2 and 2 more"]


def test_each_mount_namespace_is_read_once_and_its_process_named(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.mounts("8:0 / ext4 /dev/sda")
    host.process("10", "mnt:[1]", mountinfo("8:0 / ext4 /dev/sda"))
    host.process("11", "mnt:[2]", mountinfo("8:0 / ext4 /dev/sda", "8:16 /hidden xfs /dev/sdb"))
    host.process("12", "mnt:[2]", mountinfo("8:16 /hidden xfs /dev/sdb"))
    read: list[str] = []
    original = device_uses._mounts
    monkeypatch.setattr(device_uses, "_mounts", lambda path: (read.append(path), original(path))[1])
    uses = Uses(host.kernel())
    assert [Path(path).parent.name for path in read] == ["self", "11"]
    assert uses.of((8, 16)) == ["is mounted on /hidden (in the mount namespace of process 11, sleep)"]
    assert uses.of((8, 0)) == ["is mounted on /"]


def test_a_process_that_ends_meanwhile_does_not_hide_its_namespace(host: FakeHost) -> None:
    host.process("11", "mnt:[2]", "")
    (host.proc / "11/mountinfo").unlink()
    host.process("12", "mnt:[2]", mountinfo("8:16 /hidden xfs /dev/sdb"))
    (host.proc / "13").mkdir()
    assert "process 12" in Uses(host.kernel()).of((8, 16))[0]


def test_btrfs_states_a_made_up_number_and_is_found_by_its_source_and_members(host: FakeHost) -> None:
    source = host.device("sdb", 8, 16)
    host.device("sdc", 8, 32)
    for name in ("sdb", "sdc"):
        (host.sys / "fs/btrfs/0f3a/devices" / name).mkdir(parents=True)
    host.mounts(f"0:45 /data btrfs {source}")
    uses = Uses(host.kernel())
    assert uses.of((8, 16)) == uses.of((8, 32)) == ["is mounted on /data"]


def test_a_source_served_by_somebody_else_is_never_looked_at(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = host.kernel()
    looked: list[str] = []
    monkeypatch.setattr(kernel, "node", lambda path: (looked.append(path), os.stat(path))[1])
    host.mounts("0:50 /a fuse.sshfs /a", "0:51 /b nfs4 /b", "0:52 /c overlay overlay", "0:53 /d autofs /etc/auto")
    Uses(kernel)
    assert looked == []


def test_swap_is_found_by_number_and_a_swap_file_by_inode(host: FakeHost, tmp_path: Path) -> None:
    path = host.device("sdb", 8, 16)
    file = tmp_path / "swap file"
    file.write_bytes(b"")
    host.swaps(path, str(file).replace(" ", "\\040"), "/gone")
    uses = Uses(host.kernel())
    assert uses.of((8, 16)) == ["is in use as swap"]
    node = os.stat(file)
    assert uses.swap_file((node.st_dev, node.st_ino))
    assert not uses.swap_file(None)


def test_the_boot_and_root_paths_lie_on_all_devices_under_them(host: FakeHost) -> None:
    for name, minor in (("sda", 0), ("sdb", 16)):
        host.device(name, 8, minor)
        host.device(f"{name}1", 8, minor + 1, on=name)
        host.device(f"{name}2", 8, minor + 2, on=name)
    host.device("dm-0", 253, 0)
    host.build("dm-0", "sda2")
    host.mounts("253:0 / xfs /dev/mapper/root", "8:1 /boot ext4 /dev/sda1", "8:18 /home ext4 /dev/sdb2")
    uses = Uses(host.kernel())
    assert {uses.boot_path(dev) for dev in ((253, 0), (8, 2), (8, 0))} == {"/"}
    assert uses.boot_path((8, 1)) == "/boot"
    assert [uses.boot_path(dev) for dev in ((8, 16), (8, 18))] == [None, None]


def test_a_write_to_a_disk_hits_its_partitions_and_what_is_built_on_them(host: FakeHost) -> None:
    host.device("sda", 8, 0)
    host.device("sda1", 8, 1, on="sda")
    host.device("dm-0", 253, 0, dm__uuid="LVM-abc", dm__name="vg-lv")
    host.device("dm-1", 253, 1, dm__uuid="CRYPT-LUKS2-x", dm__name="safe")
    host.build("dm-0", "sda1")
    host.build("dm-1", "dm-0")
    reached = footprint(host.kernel(), (8, 0))
    assert set(reached) == {(8, 0), (8, 1), (253, 0), (253, 1)}
    assert reached[253, 0].use == "its partition sda1 is held by dm-0 (LVM vg-lv)"
    assert "dm-1 (dm-crypt safe)" in (reached[253, 1].use or "")


def test_a_write_to_a_logical_volume_does_not_hit_its_neighbours(host: FakeHost) -> None:
    host.device("sda", 8, 0)
    for number in (0, 1):
        host.device(f"dm-{number}", 253, number)
        host.build(f"dm-{number}", "sda")
    assert set(footprint(host.kernel(), (253, 0))) == {(253, 0)}


def test_a_multipath_map_is_not_in_use_by_its_own_paths(host: FakeHost) -> None:
    for number, name in enumerate(("sda", "sdb")):
        host.device(name, 8, 16 * number, device__wwid="naa.6001405aa")
    host.device("dm-0", 253, 0, dm__uuid="mpath-36001405aa")
    host.build("dm-0", "sda", "sdb")
    assert set(footprint(host.kernel(), (253, 0))) == {(253, 0)}


def test_a_path_outside_the_multipath_map_is_reached_through_it(host: FakeHost) -> None:
    for number, name in enumerate(("sda", "sdb")):
        host.device(name, 8, 16 * number, device__wwid="naa.6001405aa")
    host.device("dm-0", 253, 0, dm__uuid="mpath-36001405aa")
    host.build("dm-0", "sda")
    assert footprint(host.kernel(), (253, 0))[8, 16].label == "sdb, which has the same WWN, "


@pytest.mark.parametrize(("flags", "found"), [("0100002", True), ("0100001", True), ("0100000", False)])
def test_only_a_descriptor_open_for_writing_counts(host: FakeHost, flags: str, found: bool) -> None:
    host.process("10", "mnt:[1]", "", name="qemu")
    for directory in ("fd", "fdinfo"):
        (host.proc / "10" / directory).mkdir()
    (host.proc / "10/fd/3").symlink_to("/dev/sdb")
    (host.proc / "10/fdinfo/3").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t24\n")
    assert writers(host.kernel(), ["/dev/sdb"]) == ({"/dev/sdb": "process 10 (qemu)"} if found else {})


def test_a_path_is_on_the_deepest_mount_on_its_way_and_of_two_on_one_point_on_the_later(host: FakeHost) -> None:
    host.mounts("8:1 / ext4 /dev/sda1", "0:40 /mnt nfs a:/one", "0:41 /mnt nfs a:/two", "0:42 /mnt2 nfs a:/three")
    found = {
        path: device_uses.mount_of(path, str(host.proc)).source for path in ("/", "/mnt", "/mnt/x", "/mnt2/x", "/mn")
    }
    assert found == {"/": "/dev/sda1", "/mnt": "a:/two", "/mnt/x": "a:/two", "/mnt2/x": "a:/three", "/mn": "/dev/sda1"}


def test_a_mount_tells_its_options_and_those_of_its_file_system(host: FakeHost) -> None:
    host.mounts("0:40 /mnt nfs a:/one")
    mount = device_uses.mount_of("/mnt", str(host.proc))
    assert (mount.root, mount.options) == ("/", "rw,noatime,rw")
