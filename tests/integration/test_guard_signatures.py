"""The guard against what is written on a device: nothing that carries anything may be written unasked."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from .device_bench import (
    NEEDS_ROOT,
    Bench,
    dos_table,
    gpt,
    judge,
    made_bench,
    make_ext4,
    need,
    refused,
    run,
    volume,
    write_at,
)

pytestmark = NEEDS_ROOT
bench = pytest.fixture(made_bench)


def test_a_file_system_is_refused(bench: Bench) -> None:
    device = bench.loop()
    make_ext4(device)
    assert "carries the signature ext4" in refused(device)


def test_a_dos_partition_table_is_refused(bench: Bench) -> None:
    device = bench.loop()
    write_at(device, 0, dos_table())
    assert "carries the signature dos" in refused(device)


def test_a_gpt_partition_table_is_refused(bench: Bench) -> None:
    device = bench.loop()
    gpt(device)
    assert "carries the signature gpt" in refused(device)


def test_a_physical_volume_of_lvm_is_refused(bench: Bench) -> None:
    need("pvcreate")
    device = bench.loop()
    run("pvcreate", "-q", device)
    assert "carries the signature LVM2_member" in refused(device)


def test_a_member_of_a_raid_array_is_refused(bench: Bench) -> None:
    """The superblock is written by hand: that needs no RAID in the kernel."""
    device = bench.loop()
    head = struct.pack("<IIII16s32sQiiQIII", 0xA92B4EFC, 1, 0, 0, b"u" * 16, b"host:0", 0, 1, 0, 100000, 0, 2, 0)
    write_at(device, 4096, head + bytes(28) + struct.pack("<QQQ", 2048, 100000, 8))
    assert "carries the signature linux_raid_member" in refused(device)


def test_a_member_of_a_zfs_pool_is_refused(bench: Bench) -> None:
    device = bench.loop()
    for number in range(16):
        block = struct.pack("<QQQQQ", 0x00BAB10C, 5000, 100 + number, 1, 1)
        write_at(device, 131072 + number * 1024, block)
    assert "carries the signature zfs_member" in refused(device)


def test_signatures_that_contradict_each_other_are_refused_whatever_the_user_agreed_to(bench: Bench) -> None:
    image = bench.image()
    device = bench.loop(image)
    make_ext4(device)
    squashfs = struct.pack("<4sIIIIHHHHHHQQ", b"hsqs", 1, 0, 131072, 0, 1, 17, 0, 1, 4, 0, 0, 1024)
    write_at(device, 0, squashfs)
    assert "contradict each other" in refused(device, overwrite="ext4", identity=image)
    assert "contradict each other" in refused(device, overwrite="squashfs", identity=image)


def test_a_device_that_cannot_be_read_is_not_called_empty(bench: Bench) -> None:
    """blkid ends with 2 and says nothing, exactly as for an empty device."""
    image = bench.image()
    device = bench.loop(image, "--direct-io=on")
    os.truncate(image, 0)
    Path("/proc/sys/vm/drop_caches").write_text("1")
    (verdict,) = judge(volume(device))
    assert "cannot be proved to be empty: it cannot be read" in " ".join(verdict["refusals"])


def test_overwriting_needs_the_right_signature_and_the_right_identity(bench: Bench) -> None:
    image = bench.image()
    device = bench.loop(image)
    make_ext4(device)
    assert judge(volume(device, overwrite="ext4", identity=image))[0]["refusals"] == []
    assert "overwrite names xfs" in refused(device, overwrite="xfs", identity=image)
    assert "overwrite names EXT4" in refused(device, overwrite="EXT4", identity=image)
    assert "overwrite also needs the identity" in refused(device, overwrite="ext4")
    assert "the one given is another's" in refused(device, overwrite="ext4", identity="another")


def test_overwriting_a_partition_table_takes_its_partitions_too(bench: Bench) -> None:
    need("addpart")
    image = bench.image()
    device = bench.loop(image, "-P")
    write_at(device, 0, dos_table())
    run("addpart", device, "1", "2048", "32768")
    bench.undo.callback(subprocess.run, ["delpart", device, "1"], check=False)
    assert judge(volume(device, overwrite="dos", identity=image))[0]["refusals"] == []
    assert judge(volume(device + "p1"))[0]["signatures"] == []
