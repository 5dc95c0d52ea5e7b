"""The guard against real devices in use: everything it must refuse is made here."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import guard

from .device_bench import (
    NEEDS_ROOT,
    Bench,
    dos_table,
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


def test_a_mounted_device_is_refused(bench: Bench) -> None:
    device, point = bench.mounted()
    assert f"is mounted on {point}" in refused(device)


def test_a_symlink_to_a_mounted_device_is_refused(bench: Bench, tmp_path: Path) -> None:
    device, point = bench.mounted()
    link = tmp_path / "innocent"
    link.symlink_to(device)
    assert f"is mounted on {point}" in refused(str(link))


def test_a_second_device_node_of_a_mounted_device_is_refused(bench: Bench, tmp_path: Path) -> None:
    device, point = bench.mounted()
    node = tmp_path / "second"
    os.mknod(node, stat.S_IFBLK | 0o600, os.stat(device).st_rdev)
    assert f"is mounted on {point}" in refused(str(node))


def test_a_mount_made_through_a_second_node_is_found_by_the_first(bench: Bench, tmp_path: Path) -> None:
    device = bench.loop()
    make_ext4(device)
    node = tmp_path / "second"
    os.mknod(node, stat.S_IFBLK | 0o600, os.stat(device).st_rdev)
    point = bench.mount(str(node))
    assert f"is mounted on {point}" in refused(device)


def test_a_device_with_a_mounted_partition_is_refused(bench: Bench) -> None:
    need("addpart")
    device = bench.loop(None, "-P")
    write_at(device, 0, dos_table())
    run("addpart", device, "1", "2048", "32768")
    bench.undo.callback(subprocess.run, ["delpart", device, "1"], check=False)
    part = device + "p1"
    if not os.path.exists(part):
        pytest.skip("this kernel makes no partitions on loop devices")
    make_ext4(part)
    point = bench.mount(part)
    reasons = refused(device)
    assert f"its partition {os.path.basename(part)} is mounted on {point}" in reasons
    assert "carries the signature dos" in reasons
    # agreed to overwrite the table, of the right device: the mount stays a refusal
    image = judge(volume(device))[0]["identity"]
    assert f"is mounted on {point}" in refused(device, identity=image, overwrite="dos")
    # and the other way round: the disk is in use as a whole
    assert "is the same" not in refused(part)
    assert f"is mounted on {point}" in refused(part)


def test_partitions_the_kernel_still_sees_are_refused_when_their_table_is_gone(bench: Bench) -> None:
    need("addpart")
    device = bench.loop(None, "-P")
    run("addpart", device, "1", "2048", "32768")
    bench.undo.callback(subprocess.run, ["delpart", device, "1"], check=False)
    image = judge(volume(device))[0]["identity"]
    assert "has partitions (loop" in refused(device)
    assert "has partitions (loop" in refused(device, overwrite="dos", identity=image)


def test_a_partition_of_a_disk_mounted_as_a_whole_is_refused(bench: Bench) -> None:
    need("addpart")
    device, point = bench.mounted()
    if subprocess.run(["addpart", device, "1", "2048", "32768"], check=False, capture_output=True).returncode:
        pytest.skip("this kernel adds no partition to a disk in use")
    bench.undo.callback(subprocess.run, ["delpart", device, "1"], check=False)
    assert f"its disk {os.path.basename(device)} is mounted on {point}" in refused(device + "p1")


def test_swap_is_refused(bench: Bench) -> None:
    need("mkswap", "swapon")
    device = bench.loop()
    run("mkswap", device)
    assert "carries the signature swap" in refused(device)
    if subprocess.run(["swapon", device], check=False, capture_output=True).returncode:
        pytest.skip("this kernel does not swap on loop devices")
    bench.undo.callback(subprocess.run, ["swapoff", device], check=False)
    assert "is in use as swap" in refused(device)


def test_a_second_loop_device_on_a_file_mounted_through_the_first_is_refused(bench: Bench) -> None:
    image = bench.image()
    first, second = bench.loop(image), bench.loop(image)
    make_ext4(first)
    point = bench.mount(first)
    assert f"{os.path.basename(first)}, which has the same backing file, is mounted on {point}" in refused(second)


def test_a_renamed_and_replaced_backing_file_does_not_hide_the_other_loop_device(bench: Bench) -> None:
    image = bench.image()
    first = bench.loop(image)
    os.link(image, image + ".other")
    second = bench.loop(image + ".other")
    os.unlink(image)
    make_ext4(first)
    bench.mount(first)
    assert "which has the same backing file, is mounted on" in refused(second)
    assert judge(volume(first), writes=False)[0]["identities"] == []


def test_a_loop_device_on_a_device_and_that_device_are_one_storage(bench: Bench) -> None:
    lower = bench.loop()
    upper = bench.loop(lower)
    assert f"is the backing of {os.path.basename(upper)}" in refused(lower)
    assert "stores its data in the same place as volume data0" in " ".join(
        guard.refusals(judge(volume(lower), volume(upper)))
    )
    make_ext4(lower)
    point = bench.mount(lower)
    assert f"{os.path.basename(lower)}, on which {os.path.basename(upper)} stands, is mounted on {point}" in refused(
        upper
    )


def test_a_mount_in_another_mount_namespace_is_found(bench: Bench, tmp_path: Path) -> None:
    need("unshare")
    device = bench.loop()
    make_ext4(device)
    point = tmp_path / "elsewhere"
    point.mkdir()
    script = 'mount -o ro "$0" "$1" && echo mounted && exec sleep 60'
    process = bench.process("unshare", "-m", "--propagation", "private", "sh", "-c", script, device, str(point))
    assert process.stdout is not None
    assert process.stdout.readline() == b"mounted\n"
    assert not os.path.ismount(point)
    assert f"is mounted on {point} (in the mount namespace of process {process.pid}" in refused(device)


def test_every_member_of_a_mounted_btrfs_is_found_though_its_mount_names_only_one(bench: Bench) -> None:
    need("mkfs.btrfs")
    one, other = bench.loop(bench.image(256 << 20)), bench.loop(bench.image(256 << 20))
    run("mkfs.btrfs", "-q", "-f", "-d", "raid1", "-m", "raid1", one, other)
    run("btrfs", "device", "scan", one, other)
    point = bench.mount(one)
    assert f"is mounted on {point}" in refused(one)
    assert f"is mounted on {point}" in refused(other)


def test_what_something_else_has_claimed_is_refused(bench: Bench) -> None:
    device = bench.loop()
    claim = os.open(device, os.O_RDONLY | os.O_EXCL)
    bench.undo.callback(os.close, claim)
    assert "is claimed by the kernel or another process" in refused(device)


def test_what_another_process_has_open_for_writing_is_refused(bench: Bench) -> None:
    device = bench.loop()
    process = bench.process("sh", "-c", 'exec 3<>"$0"; echo open; read -r forever <&3; sleep 60', device)
    assert process.stdout is not None
    process.stdout.readline()
    assert f"is open for writing in process {process.pid}" in refused(device)


def test_the_disk_the_root_path_is_on_is_refused() -> None:
    root = os.stat("/").st_dev
    if os.major(root) == 0 or not os.path.exists(f"/sys/dev/block/{os.major(root)}:{os.minor(root)}"):
        pytest.skip("the root path of this machine is not on a block device")
    name = os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(root)}:{os.minor(root)}"))
    sentences = " ".join(judge(volume(f"/dev/{name}"))[0]["refusals"])
    assert "carries / of this host" in sentences
    assert "is mounted on /" in sentences


def test_a_device_deep_under_the_root_path_is_refused(bench: Bench) -> None:
    """Down to the disk: seen here through a mount table in which / is on a loop device on a loop device."""
    lower = bench.loop()
    upper = bench.loop(lower)
    node = os.stat(upper).st_rdev
    proc = bench.directory / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "mountinfo").write_text(f"1 0 {os.major(node)}:{os.minor(node)} / / rw - ext4 {upper} rw\n")
    kernel = guard.Kernel(proc=str(proc))
    assert "carries / of this host" in " ".join(judge(volume(lower), kernel=kernel)[0]["refusals"])
