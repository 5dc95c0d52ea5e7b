from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import block_device
from ansible_collections.hostmax.storage.plugins.module_utils.block_device import Backing, Kernel

from .host_example import GIB, FakeHost


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def test_size_is_counted_in_sectors_of_512_bytes_whatever_the_logical_block_size(host: FakeHost) -> None:
    host.device("sda", 8, 0, size_bytes=GIB, queue__logical_block_size="4096")
    host.device("sda1", 8, 1, on="sda", size_bytes=GIB // 2)
    kernel = host.kernel()
    assert kernel.size_bytes((8, 0)) == GIB
    assert kernel.size_bytes((8, 1)) == GIB // 2
    assert kernel.sector_bytes((8, 0)) == kernel.sector_bytes((8, 1)) == 4096


def test_a_device_the_kernel_does_not_have_has_no_directory_and_no_size(host: FakeHost) -> None:
    kernel = host.kernel()
    assert kernel.directory((8, 99)) is None
    assert kernel.size_bytes((8, 99)) == 0
    assert kernel.name((8, 99)) == "8:99"
    assert kernel.partitions((8, 99)) == kernel.holders((8, 99)) == []


def test_the_kernel_writes_a_slash_in_a_name_as_an_exclamation_mark(host: FakeHost) -> None:
    path = host.device("cciss!c0d0", 104, 0)
    kernel = host.kernel()
    assert kernel.name((104, 0)) == "cciss/c0d0"
    assert kernel.path((104, 0)) == path
    assert kernel.find("cciss/c0d0") == (104, 0)


def test_a_partition_knows_its_disk_and_a_disk_its_partitions(host: FakeHost) -> None:
    host.device("nvme0n1", 259, 0)
    host.device("nvme0n1p1", 259, 1, on="nvme0n1")
    host.device("nvme0n1p2", 259, 2, on="nvme0n1")
    kernel = host.kernel()
    assert kernel.partitions((259, 0)) == [(259, 1), (259, 2)]
    assert kernel.whole_disk((259, 2)) == (259, 0)
    assert kernel.whole_disk((259, 0)) is None


def test_a_partition_of_a_read_only_disk_is_read_only(host: FakeHost) -> None:
    host.device("sda", 8, 0, ro="1")
    host.device("sda1", 8, 1, on="sda")
    assert host.kernel().read_only((8, 1))


def test_below_a_logical_volume_are_its_partition_and_its_disk(host: FakeHost) -> None:
    host.device("sda", 8, 0)
    host.device("sda2", 8, 2, on="sda")
    host.device("dm-0", 253, 0)
    host.build("dm-0", "sda2")
    kernel = host.kernel()
    assert kernel.below((253, 0)) == {(8, 2), (8, 0)}
    assert kernel.below((8, 0)) == set()
    assert kernel.holders((8, 2)) == [(253, 0)]
    assert kernel.slaves((253, 0)) == [(8, 2)]


def test_asking_twice_gives_the_same_answer(host: FakeHost) -> None:
    host.device("sda", 8, 0)
    host.device("sda2", 8, 2, on="sda")
    host.device("dm-0", 253, 0)
    host.build("dm-0", "sda2")
    kernel = host.kernel()
    assert kernel.below((253, 0)) == kernel.below((253, 0))
    assert kernel.slaves((253, 0)) == [(8, 2)]


def test_two_loop_devices_on_one_file_are_aliases(host: FakeHost, tmp_path: Path) -> None:
    image = tmp_path / "v.img"
    image.write_bytes(b"")
    os.link(image, tmp_path / "other.img")
    host.device("loop0", 7, 0, loop__backing_file=str(image))
    host.device("loop1", 7, 1, loop__backing_file=str(tmp_path / "other.img"))
    host.device("loop2", 7, 2)
    kernel = host.kernel()
    assert kernel.aliases((7, 0)) == {(7, 1): "which has the same backing file"}
    assert set(kernel.backings()) == {(7, 0), (7, 1)}
    node = os.stat(image)
    assert kernel.backings()[7, 0] == Backing(str(image), None, (node.st_dev, node.st_ino))


def test_the_name_of_a_deleted_backing_file_is_no_identity(host: FakeHost, tmp_path: Path) -> None:
    host.device("loop0", 7, 0, loop__backing_file=f"{tmp_path}/v.img (deleted)")
    assert host.kernel().identities((7, 0)) == []


def test_two_paths_to_one_disk_are_aliases_and_so_are_their_partitions(host: FakeHost) -> None:
    for number, name in enumerate(("sda", "sdb")):
        host.device(name, 8, 16 * number, device__wwid="naa.6001405aa")
        host.device(f"{name}1", 8, 16 * number + 1, on=name, start="2048")
        host.device(f"{name}2", 8, 16 * number + 2, on=name, start="4096")
    host.device("sdc", 8, 32, device__wwid="naa.6001405bb")
    kernel = host.kernel()
    assert kernel.aliases((8, 0)) == {(8, 16): "which has the same WWN"}
    assert set(kernel.aliases((8, 1))) == {(8, 17)}


def test_a_scsi_disk_goes_by_wwn_serial_target_and_links_but_not_by_its_model(host: FakeHost) -> None:
    host.device("sda", 8, 0, device__wwid="naa.6001405aa", device__model="DISK", device__vendor="LIO-ORG")
    page = host.sys / "class/block/sda/device/vpd_pg80"
    page.write_bytes(b"\x00\x80\x00\x06 ab12 ")
    host.link("by-path", "ip-10.0.0.1:3260-iscsi-iqn.2026-01.example:v1-lun-1", "sda")
    host.link("by-id", "wwn-0x6001405aa", "sda")
    kernel = host.kernel()
    identities = kernel.identities((8, 0))
    assert identities[:4] == ["naa.6001405aa", "6001405aa", "0x6001405aa", "ab12"]
    assert "wwn-0x6001405aa" in identities
    assert "ip-10.0.0.1:3260-iscsi-iqn.2026-01.example:v1-lun-1" in identities
    assert f"{host.dev}/disk/by-id/wwn-0x6001405aa" in identities
    assert kernel.model((8, 0)) == "LIO-ORG DISK"
    assert not {"sda", "8:0", "DISK", "LIO-ORG DISK"} & set(identities)


def test_an_iscsi_disk_goes_by_the_name_of_its_target_and_its_lun(host: FakeHost) -> None:
    inside = host.sys / "devices/platform/host2/session7/target2:0:0/2:0:0:1/block/sda"
    inside.mkdir(parents=True)
    (inside / "dev").write_text("8:0\n")
    (host.sys / "dev/block/8:0").symlink_to(inside)
    session = host.sys / "class/iscsi_session/session7"
    session.mkdir(parents=True)
    (session / "targetname").write_text("iqn.2026-01.example:v1\n")
    assert host.kernel().identities((8, 0)) == ["iqn.2026-01.example:v1", "iqn.2026-01.example:v1-lun-1"]


def test_a_partition_goes_by_the_names_of_its_disk_and_its_own_links(host: FakeHost) -> None:
    host.device("sda", 8, 0, serial="S1")
    host.device("sda1", 8, 1, on="sda")
    host.link("by-id", "ata-S1", "sda")
    host.link("by-partuuid", "0f3a", "sda1")
    assert host.kernel().identities((8, 1)) == ["S1", "0f3a", f"{host.dev}/disk/by-partuuid/0f3a"]


def test_a_multipath_map_goes_by_the_wwn_of_its_paths(host: FakeHost) -> None:
    host.device("sda", 8, 0, device__wwid="naa.6001405aa")
    host.device("dm-0", 253, 0, dm__uuid="mpath-36001405aa", dm__name="mpatha")
    host.build("dm-0", "sda")
    identities = host.kernel().identities((253, 0))
    assert identities[0] == "mpath-36001405aa"
    assert {"36001405aa", "mpatha", "naa.6001405aa"} <= set(identities)


def test_a_claim_is_tried_again_because_device_managers_claim_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [errno.EBUSY, errno.EBUSY, 0]

    def open_once(path: str, flags: int) -> int:
        assert flags & os.O_EXCL
        assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        code = answers.pop(0)
        if code:
            raise OSError(code, "busy")
        return 42

    monkeypatch.setattr(block_device.os, "open", open_once)
    monkeypatch.setattr(block_device.time, "sleep", lambda _: None)
    assert Kernel().claim("/dev/sda") == 42
    answers[:] = [errno.EBUSY] * 3
    with pytest.raises(OSError, match="busy"):
        Kernel().claim("/dev/sda")
    assert answers == []
