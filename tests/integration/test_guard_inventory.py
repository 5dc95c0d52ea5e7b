"""The guard against what the inventory says: fine, missing, of another size or identity, or named twice."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import guard

from .device_bench import (
    NEEDS_ROOT,
    SIZE_BYTES,
    Bench,
    judge,
    made_bench,
    need,
    refused,
    run,
    volume,
)

pytestmark = NEEDS_ROOT
bench = pytest.fixture(made_bench)


def test_an_empty_device_may_be_written(bench: Bench) -> None:
    image = bench.image()
    device = bench.loop(image)
    (verdict,) = judge(volume(device, size="64MiB", identity=image))
    assert verdict["refusals"] == verdict["warnings"] == verdict["in_use"] == []
    assert verdict["size_bytes"] == SIZE_BYTES
    assert verdict["backing"] == verdict["identity"] == image
    node = os.stat(device).st_rdev
    assert (verdict["major"], verdict["minor"]) == (os.major(node), os.minor(node))


def test_a_relative_path_begins_in_the_work_directory(bench: Bench, tmp_path: Path) -> None:
    device = bench.loop()
    (tmp_path / "thin01").symlink_to(device)
    (verdict,) = judge(volume("thin01"), base_dir=str(tmp_path))
    assert verdict["refusals"] == []
    assert verdict["real_path"] == device


def test_volumes_side_by_side_do_not_hinder_each_other(bench: Bench) -> None:
    devices = [bench.loop() for _unused in range(4)]
    assert guard.refusals(judge(*map(volume, devices))) == []


def test_a_missing_path_is_refused_and_not_created(tmp_path: Path) -> None:
    path = tmp_path / "not" / "here"
    assert "does not exist" in refused(str(path))
    assert not path.parent.exists()


def test_a_directory_a_file_and_a_character_device_are_refused(bench: Bench, tmp_path: Path) -> None:
    (sentence,) = judge(volume(str(tmp_path)))[0]["refusals"]
    assert "is not a block device but a directory: host_max measures block devices" in sentence
    image = bench.image()
    assert "is a file that this run did not make" in refused(image)
    assert "is a file that this run did not make" in refused(image, kind="file")
    assert "neither a disk nor a file" in " ".join(judge(volume("/dev/zero"))[0]["refusals"])


def test_a_file_of_the_run_may_be_written_unless_it_has_another_name_too(bench: Bench) -> None:
    image = bench.image()
    assert judge(volume(image, kind="file"), own_files={image})[0]["refusals"] == []
    assert judge(volume(image, kind="block"), own_files={image})[0]["refusals"] != []
    os.link(image, image + ".users")
    assert judge(volume(image, kind="file"), own_files={image})[0]["refusals"] != []


def test_a_wrong_size_is_refused(bench: Bench) -> None:
    device = bench.loop()
    assert "has 64 MiB (67108864 bytes), but the inventory says 1TB" in refused(device, size="1TB")
    assert "the inventory says 1 MiB" in refused(device, size_bytes=1 << 20)
    assert "but 1 GiB are needed" in refused(device, needed_bytes=1 << 30)
    assert "has a size that cannot be read" in refused(device, size="large")
    assert judge(volume(device, size="64MiB", size_bytes=SIZE_BYTES))[0]["refusals"] == []


def test_a_wrong_identity_is_refused_also_for_reading(bench: Bench) -> None:
    image = bench.image()
    device = bench.loop(image)
    assert f"should be 36001405, but is known as {image}" in refused(device, identity="36001405")
    assert judge(volume(device, identity="36001405"), writes=False)[0]["refusals"] != []


def test_a_volume_named_twice_is_refused_also_for_reading(bench: Bench, tmp_path: Path) -> None:
    device = bench.loop()
    link = tmp_path / "again"
    link.symlink_to(device)
    sentences = guard.refusals(judge(volume(device), volume(str(link)), writes=False))
    assert len(sentences) == 1
    assert f"volume data1 ({link}) is the same device" in sentences[0]
    assert f"as volume data0 ({device})" in sentences[0]


def test_a_partition_and_its_disk_are_one_storage(bench: Bench) -> None:
    need("addpart")
    device = bench.loop(None, "-P")
    run("addpart", device, "1", "2048", "32768")
    bench.undo.callback(subprocess.run, ["delpart", device, "1"], check=False)
    for pair in ([device, device + "p1"], [device + "p1", device]):
        assert "name each storage once" in " ".join(guard.refusals(judge(*map(volume, pair), writes=False)))


def test_two_loop_devices_on_one_file_and_that_file_are_one_storage(bench: Bench) -> None:
    image = bench.image()
    first, second = bench.loop(image), bench.loop(image)
    assert "stores its data in the same place" in " ".join(
        guard.refusals(judge(volume(first), volume(second), writes=False))
    )
    pair = (volume(first), volume(image, kind="file"))
    assert "is the file under the loop device of" in " ".join(guard.refusals(judge(*pair, own_files={image})))


def test_a_read_only_device_is_refused_only_for_writing(bench: Bench) -> None:
    device = bench.loop(None, "-r")
    assert "is read-only" in refused(device)
    assert judge(volume(device), writes=False)[0]["refusals"] == []
