from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import guard
from ansible_collections.hostmax.storage.plugins.module_utils.signatures import Signatures

from .host_example import BUSY, GIB, FakeHost, mountinfo


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Signatures]:
    """What probing finds, by the last part of the path; nothing unless said."""
    signatures: dict[str, Signatures] = {}
    nothing = Signatures((), None)
    monkeypatch.setattr(guard, "probe", lambda path: signatures.get(Path(path).name, nothing))
    return signatures


def judge(host: FakeHost, *paths: str, writes: bool = True, **more: Any) -> list[dict[str, Any]]:
    options = {key: more.pop(key) for key in ("signatures", "held", "own_files") if key in more}
    volumes = [{"name": f"v{number}", "path": path, "kind": "block", **more} for number, path in enumerate(paths)]
    return guard.judge_volumes(volumes, writes, kernel=host.kernel(), **options)


def reasons(host: FakeHost, *paths: str, **more: Any) -> str:
    return " ".join(guard.refusals(judge(host, *paths, **more)))


def test_an_unused_disk_is_described_and_not_refused(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16, size_bytes=GIB, serial="S1")
    (verdict,) = judge(host, path, size="1GiB", identity="S1")
    assert verdict == {
        "name": "v0",
        "path": path,
        "real_path": path,
        "major": 8,
        "minor": 16,
        "kind": "block",
        "size_bytes": GIB,
        "sector_bytes": 512,
        "identity": "S1",
        "identities": ["S1"],
        "serial": "S1",
        "model": None,
        "backing": None,
        "signatures": [],
        "in_use": [],
        "refusals": [],
        "warnings": [],
    }


def test_members_of_lvm_raid_and_multipath_are_refused_by_their_holder(host: FakeHost) -> None:
    sdb, sdc, sdd = (host.device(name, 8, minor) for name, minor in (("sdb", 16), ("sdc", 32), ("sdd", 48)))
    host.device("dm-0", 253, 0, dm__uuid="LVM-abc", dm__name="vg-lv")
    host.device("md0", 9, 0)
    host.device("dm-1", 253, 1, dm__uuid="mpath-3600", dm__name="mpatha")
    host.build("dm-0", "sdb")
    host.build("md0", "sdc")
    host.build("dm-1", "sdd")
    assert "is held by dm-0 (LVM vg-lv)" in reasons(host, sdb)
    assert "is held by md0 (RAID)" in reasons(host, sdc)
    assert "is held by dm-1 (multipath mpatha)" in reasons(host, sdd)


def test_a_partition_of_a_disk_held_as_a_whole_is_refused(host: FakeHost) -> None:
    host.device("sdb", 8, 16)
    part = host.device("sdb1", 8, 17, on="sdb")
    host.device("dm-0", 253, 0, dm__uuid="mpath-3600", dm__name="mpatha")
    host.build("dm-0", "sdb")
    assert "its disk sdb is held by dm-0 (multipath mpatha)" in reasons(host, part)


def test_a_disk_mounted_through_its_second_path_is_refused(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16, device__wwid="naa.6001")
    host.device("sdc", 8, 32, device__wwid="naa.6001")
    host.mounts("8:32 /data xfs /dev/sdc")
    assert "sdc, which has the same WWN, is mounted on /data" in reasons(host, path)


def test_two_paths_to_one_disk_are_one_volume(host: FakeHost) -> None:
    pair = [host.device(name, 8, minor, device__wwid="naa.6001") for name, minor in (("sdb", 16), ("sdc", 32))]
    assert f"stores its data in the same place as volume v0 ({pair[0]})" in reasons(host, *pair, writes=False)


def test_a_logical_volume_and_the_disk_under_it_are_one_storage_but_two_logical_volumes_are_two(host: FakeHost) -> None:
    disk = host.device("sdb", 8, 16)
    volumes = [host.device(f"dm-{number}", 253, number) for number in (0, 1)]
    for number in (0, 1):
        host.build(f"dm-{number}", "sdb")
    assert reasons(host, *volumes) == ""
    assert "name each storage once" in reasons(host, volumes[0], disk, writes=False)
    assert "name each storage once" in reasons(host, disk, volumes[0], writes=False)


def test_two_partitions_of_one_disk_are_two_volumes(host: FakeHost) -> None:
    host.device("sdb", 8, 16)
    assert reasons(host, host.device("sdb1", 8, 17, on="sdb"), host.device("sdb2", 8, 18, on="sdb")) == ""


def test_the_disk_and_the_partition_of_the_root_path_are_refused_but_not_its_free_neighbour(host: FakeHost) -> None:
    disk = host.device("sda", 8, 0)
    root, free = host.device("sda1", 8, 1, on="sda"), host.device("sda2", 8, 2, on="sda")
    host.mounts("8:1 / ext4 /dev/sda1")
    assert "carries / of this host" in reasons(host, root)
    assert "carries / of this host" in reasons(host, disk)
    assert "its partition sda1 is mounted on /" in reasons(host, disk)
    assert reasons(host, free) == ""


def test_what_only_the_kernel_knows_of_is_refused_by_its_claim(host: FakeHost) -> None:
    """A member of a ZFS pool, a member of a btrfs, a mount in a namespace nobody can read."""
    path = host.device("sdb", 8, 16)
    host.claim_errors["sdb"] = BUSY
    assert "is claimed by the kernel or another process" in reasons(host, path)
    (verdict,) = judge(host, path, writes=False)
    assert verdict["refusals"] == []
    assert "it is only read" in verdict["warnings"][0]


def test_a_device_that_may_not_be_opened_is_refused_with_what_to_do(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16)
    host.claim_errors["sdb"] = errno.EACCES
    assert "cannot be opened" in reasons(host, path, writes=False)
    assert "run with become" in reasons(host, path)


def test_what_is_held_is_not_claimed_a_second_time(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16)
    host.claim_errors["sdb"] = BUSY
    assert reasons(host, path, held=guard.Held(frozenset({(8, 16)}))) == ""
    assert host.claimed == []
    assert reasons(host, path, held=guard.Held(frozenset({(8, 32)}))) != ""


def test_without_signatures_nothing_is_probed(host: FakeHost, found: dict[str, Signatures]) -> None:
    path = host.device("sdb", 8, 16)
    found["sdb"] = Signatures(("ext4",), None)
    assert "carries the signature ext4" in reasons(host, path)
    assert reasons(host, path, signatures=False) == ""


def test_mounts_are_found_without_probing_too(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16)
    host.process("11", "mnt:[2]", mountinfo("8:16 /hidden xfs /dev/sdb"))
    assert "is mounted on /hidden" in reasons(host, path, signatures=False)


def test_what_cannot_be_proved_empty_is_refused_even_if_overwriting_was_agreed(
    host: FakeHost, found: dict[str, Signatures]
) -> None:
    path = host.device("sdb", 8, 16, serial="S1")
    found["sdb"] = Signatures((), "blkid is not installed (package util-linux)")
    assert "cannot be proved to be empty: blkid is not installed" in reasons(host, path, overwrite="x", identity="S1")


def test_each_of_two_signatures_must_be_agreed_to_so_two_are_refused(
    host: FakeHost, found: dict[str, Signatures]
) -> None:
    path = host.device("sdb", 8, 16, serial="S1")
    found["sdb"] = Signatures(("ext4", "gpt"), None)
    assert "carries the signature gpt: overwrite names ext4" in reasons(host, path, overwrite="ext4", identity="S1")


def test_the_refusal_of_a_signature_says_how_to_agree(host: FakeHost, found: dict[str, Signatures]) -> None:
    path = host.device("sdb", 8, 16, serial="S1")
    found["sdb"] = Signatures(("xfs",), None)
    assert "overwrite: xfs and its identity (S1)" in reasons(host, path)


def test_the_name_of_a_target_is_not_enough_to_overwrite(host: FakeHost, found: dict[str, Signatures]) -> None:
    path = host.device("sdb", 8, 16, serial="iqn.2026-01.example:v1")
    found["sdb"] = Signatures(("xfs",), None)
    assert "a target may have many" in reasons(host, path, overwrite="xfs", identity="iqn.2026-01.example:v1")


def test_agreement_to_overwrite_a_signature_excuses_nothing_else(host: FakeHost, found: dict[str, Signatures]) -> None:
    path = host.device("sdb", 8, 16, serial="S1")
    found["sdb"] = Signatures(("xfs",), None)
    host.mounts("8:16 /data xfs /dev/sdb")
    assert reasons(host, path, overwrite="xfs", identity="S1").count("volume v0") == 1
    assert "is mounted on /data" in reasons(host, path, overwrite="xfs", identity="S1")


def test_an_identity_that_yaml_read_as_a_number_still_matches(host: FakeHost) -> None:
    assert reasons(host, host.device("sdb", 8, 16, serial="360014"), identity=360014) == ""


def test_a_node_of_a_device_that_has_gone_is_refused(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16)
    (host.sys / "dev/block/8:16").unlink()
    assert "leads to 8:16, a device the kernel does not have" in reasons(host, path)


def test_a_file_in_use_as_swap_is_refused_even_if_the_run_made_it(host: FakeHost, tmp_path: Path) -> None:
    file = tmp_path / "v"
    file.write_bytes(b"")
    host.swaps(str(file))
    assert "is in use as swap" in reasons(host, str(file), kind="file", own_files={str(file)})


def test_sentences_are_one_line_whatever_a_mount_point_is_called(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16)
    (host.proc / "self/mountinfo").write_bytes(b"36 35 8:16 / /a\\012b\xff rw - ext4 /dev/sdb rw\n")
    sentence = reasons(host, path)
    assert "is mounted on /a b\\udcff" in sentence
    sentence.encode("utf-8")


def test_a_device_of_no_size_is_refused(host: FakeHost) -> None:
    """A loop device with nothing attached, a card reader without a card."""
    assert "has no size" in reasons(host, host.device("loop0", 7, 0, size_bytes=0), writes=False)


def test_one_file_named_twice_is_refused(host: FakeHost, tmp_path: Path) -> None:
    file, link = tmp_path / "v", tmp_path / "again"
    file.write_bytes(b"1")
    link.symlink_to(file)
    assert "is the same file as volume v0" in reasons(host, str(file), str(link), kind="file", own_files={str(file)})


def test_a_loop_device_on_a_swap_file_is_refused(host: FakeHost, tmp_path: Path) -> None:
    file = tmp_path / "swap"
    file.write_bytes(b"")
    host.swaps(str(file))
    path = host.device("loop0", 7, 0, loop__backing_file=str(file))
    assert "has a backing file that is in use as swap" in reasons(host, path)


def test_a_claim_on_another_path_to_the_same_disk_is_a_use(host: FakeHost) -> None:
    path = host.device("sdb", 8, 16, device__wwid="naa.6001")
    host.device("sdc", 8, 32, device__wwid="naa.6001")
    host.claim_errors["sdc"] = BUSY
    assert f"is claimed by the kernel or another process, {host.dev}/sdc" in reasons(host, path)


def test_a_name_that_leads_elsewhere_between_the_look_and_the_claim_is_not_held(host: FakeHost) -> None:
    """The claim of this host opens another device than the name led to."""
    path = host.device("sdb", 8, 16)
    with pytest.raises(guard.GuardError, match="leads to another device"), guard.hold(
        [{"name": "v0", "path": path}], kernel=host.kernel()
    ):
        pass
