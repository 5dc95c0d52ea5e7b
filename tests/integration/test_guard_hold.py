"""Reading what is in use, and holding what is written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import guard

from .device_bench import (
    NEEDS_ROOT,
    Bench,
    judge,
    made_bench,
    make_ext4,
    need,
    run,
    volume,
)

pytestmark = NEEDS_ROOT
bench = pytest.fixture(made_bench)


def test_a_device_in_use_may_be_read_and_that_is_said(bench: Bench) -> None:
    device, point = bench.mounted()
    (verdict,) = judge(volume(device), writes=False)
    assert verdict["refusals"] == []
    assert f"volume data ({device}) is mounted on {point}; it is only read." in verdict["warnings"]
    assert any("carries the signature ext4; it is only read" in sentence for sentence in verdict["warnings"])
    assert judge(volume(device), writes=True)[0]["refusals"] != []


def test_nobody_can_mount_a_held_volume_and_it_can_be_judged_again(bench: Bench, tmp_path: Path) -> None:
    image = bench.image()
    device = bench.loop(image)
    make_ext4(device)
    verdicts = judge(volume(device, overwrite="ext4", identity=image))
    bench.undo.callback(subprocess.run, ["umount", str(tmp_path)], check=False, capture_output=True)
    with guard.hold(verdicts) as held:
        busy = subprocess.run(["mount", device, str(tmp_path)], capture_output=True, text=True, check=False)
        assert busy.returncode != 0
        assert "busy" in busy.stderr or "already mounted" in busy.stderr
        again = judge(volume(device), signatures=False, held=held)
        assert guard.refusals(again) == []
        assert again[0]["signatures"] == []
    run("mount", device, str(tmp_path))


def test_holding_one_of_two_loop_devices_on_a_file_holds_both(bench: Bench, tmp_path: Path) -> None:
    image = bench.image()
    first, second = bench.loop(image), bench.loop(image)
    make_ext4(first)
    bench.undo.callback(subprocess.run, ["umount", str(tmp_path)], check=False, capture_output=True)
    with guard.hold([volume(first)]):
        assert subprocess.run(["mount", second, str(tmp_path)], capture_output=True, check=False).returncode != 0


def test_what_is_mounted_cannot_be_held_and_nothing_stays_held(bench: Bench) -> None:
    free = bench.loop()
    device, _unused = bench.mounted()
    with pytest.raises(guard.GuardError, match="is in use by somebody else"), guard.hold(
        [volume(free), volume(device)]
    ):
        pass
    os.close(os.open(free, os.O_RDONLY | os.O_EXCL))


def test_a_name_that_leads_elsewhere_since_the_verdict_cannot_be_held(bench: Bench, tmp_path: Path) -> None:
    one, other = bench.loop(), bench.loop()
    link = tmp_path / "volume"
    link.symlink_to(one)
    verdicts = judge(volume(str(link)))
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(guard.GuardError, match="leads to another device"), guard.hold(verdicts):
        pass


@pytest.mark.fio
def test_fio_may_write_what_is_held(bench: Bench) -> None:
    need("fio")
    device = bench.loop()
    options = ["--rw=write", "--bs=4096", "--size=65536", "--direct=1", "--allow_file_create=0"]
    with guard.hold([volume(device)]):
        run("fio", "--name=data", f"--filename={device}", *options)
    assert Path(device).read_bytes()[:65536] != bytes(65536)


def test_mounts_are_read_once_for_all_volumes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [bench.loop() for _unused in range(3)]
    made: list[guard.Kernel] = []
    original: Callable[..., Any] = guard.Uses
    monkeypatch.setattr(guard, "Uses", lambda kernel: (made.append(kernel), original(kernel))[1])
    judge(*map(volume, devices))
    assert len(made) == 1
