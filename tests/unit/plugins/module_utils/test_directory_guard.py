"""A directory is judged before a file is made in it: it is there, writable, large enough and where it should be."""

from __future__ import annotations

import os

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import device_uses, directory_guard, guard

MIB = 2**20


def volume(path, *sizes, **more):
    own = f"{path}/hostmax-run1-db1"
    return {
        "name": "vol01",
        "path": own,
        "given_path": str(path),
        "kind": "directory",
        "files": sizes or (MIB,),
        **more,
    }


def judge(*volumes, writes=False, **more):
    return guard.judge_volumes(list(volumes), writes, base_dir="/", **more)


def reasons(*volumes, **more):
    return " ".join(guard.refusals(judge(*volumes, **more)))


def as_if(monkeypatch, path, fstype, point=None):
    mount = device_uses.Mount(str(point or path), (0, 50), "somewhere", fstype)
    monkeypatch.setattr(device_uses, "read_mounts", lambda proc="/proc": [mount])


def test_a_directory_that_can_be_used_is_described_and_not_refused(tmp_path):
    (verdict,) = judge(volume(tmp_path, MIB, 2 * MIB))
    assert verdict["refusals"] == []
    assert verdict["kind"] == "directory"
    assert verdict["size_bytes"] == 3 * MIB
    assert verdict["real_path"] == f"{tmp_path}/hostmax-run1-db1"
    assert verdict["identities"] == []


def test_nothing_is_made_by_looking(tmp_path):
    judge(volume(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_refused_by_the_name_that_the_user_gave(tmp_path):
    assert reasons(volume(tmp_path / "gone")) == (
        f"volume vol01 ({tmp_path}/gone) needs the directory {tmp_path}/gone, which does not exist: "
        "make or mount it, or correct the path."
    )


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "is to be a directory, and" in reasons(volume(tmp_path / "file"))
    assert "files of the user are never used" in reasons(volume(tmp_path / "file"))


def test_a_device_is_no_directory_and_the_sentence_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setattr(directory_guard.stat, "S_ISDIR", lambda mode: False)
    monkeypatch.setattr(directory_guard.stat, "S_ISBLK", lambda mode: True)
    assert "is a block device: set kind: block for it" in reasons(volume(tmp_path))


def test_a_directory_of_the_kernel_is_no_storage():
    assert "which is no storage (proc)" in reasons(volume("/proc"))


def test_a_directory_in_memory_is_warned_of(tmp_path, monkeypatch):
    as_if(monkeypatch, tmp_path, "tmpfs")
    (verdict,) = judge(volume(tmp_path))
    assert verdict["refusals"] == []
    assert verdict["warnings"] == [f"volume vol01 ({tmp_path}) is in this host's memory (tmpfs), not on storage."]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_where_the_user_may_not_write_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    assert "where this user may not write" in reasons(volume(tmp_path))


def test_a_directory_of_the_same_name_is_refused_unless_the_run_made_it(tmp_path):
    own = tmp_path / "hostmax-run1-db1"
    own.mkdir()
    assert f"is there already, {own}: remove it, or make another run" in reasons(volume(tmp_path))
    assert reasons(volume(tmp_path), own_files=[str(own)]) == ""


def test_reading_needs_room_too_because_the_files_are_laid_out_first(tmp_path):
    facts = os.statvfs(tmp_path)
    text = reasons(volume(tmp_path, facts.f_bavail * facts.f_frsize))
    assert "has too little room: the files of this run need" in text
    assert "make room, or set a smaller working_set" in text


def test_volumes_of_one_file_system_need_room_together(tmp_path):
    facts = os.statvfs(tmp_path)
    half = facts.f_bavail * facts.f_frsize * 6 // 10
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = volume(tmp_path / "a", half), dict(volume(tmp_path / "b", half), name="vol02")
    assert reasons(one) == ""
    assert "has too little room" in reasons(one, two)


def test_files_that_are_laid_out_already_need_no_more_room(tmp_path):
    facts = os.statvfs(tmp_path)
    own = tmp_path / "hostmax-run1-db1"
    own.mkdir()
    assert reasons(volume(tmp_path, facts.f_bavail * facts.f_frsize), own_files=[str(own)]) == ""


def test_one_directory_by_two_names_is_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    two = dict(volume(tmp_path / "link"), name="vol02")
    assert "is in the same directory as volume vol01" in reasons(volume(tmp_path / "data"), two)


def test_a_hold_leaves_directories_alone(tmp_path):
    with guard.hold(judge(volume(tmp_path)), base_dir="/") as held:
        assert held.devs == frozenset()


def on_mount(tmp_path, **more):
    inside = f"{tmp_path}/mounts/nas/hostmax-run1/db1"
    return {
        "name": "nas",
        "path": inside,
        "kind": "directory",
        "files": [MIB],
        "mount": f"{tmp_path}/mounts/nas",
        **more,
    }


def test_where_the_test_mount_is_not_mounted_the_disk_under_it_is_not_written(tmp_path):
    point = tmp_path / "mounts/nas"
    point.mkdir(parents=True)
    assert "is not mounted on" in reasons(on_mount(tmp_path), own_mounts=[str(point)])
    assert "nothing is written to the disk under it" in reasons(on_mount(tmp_path), own_mounts=[str(point)])


def test_a_mount_that_is_not_the_runs_own_is_refused(tmp_path):
    (tmp_path / "mounts/nas").mkdir(parents=True)
    assert "which is no mount of this run" in reasons(on_mount(tmp_path))


def test_a_path_outside_of_its_mount_is_refused(tmp_path):
    outside = on_mount(tmp_path, path=f"{tmp_path}/elsewhere/db1")
    assert "is damaged in the plan" in reasons(outside, own_mounts=[f"{tmp_path}/mounts/nas"])
