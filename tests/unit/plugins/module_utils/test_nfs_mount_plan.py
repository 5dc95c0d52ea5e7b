"""What is asked for is checked before anything is looked at."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import host_state, nfs_mount, nfs_unmount
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Journal
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_mount import want


def mount(**more):
    return {"source": "10.0.0.4:/vol1", "path": "mounts/vol1", "options": "vers=3", **more}


def test_a_relative_path_is_below_the_work_directory_of_the_run(monkeypatch, tmp_path):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path))
    (one,) = want("run", [mount()])
    assert one.path == str(tmp_path / "run" / "mounts" / "vol1")
    assert (one.name, one.options, one.persistent, one.read_ahead_kib) == ("vol1", "vers=3", False, None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"source": "vol1"}, "give server:/export"),
        ({"path": ""}, "has the name ''"),
        ({"path": "../up"}, r"without '\.\.' in it"),
        ({"path": "/", "name": "x"}, "give a directory below it"),
        ({"name": "a b"}, "use letters, digits"),
        ({"options": "nconnect=32"}, "use 1 to 16"),
        ({"options": "vers=3, hard"}, "holds a blank"),
        ({"read_ahead_kib": -1}, "read-ahead"),
    ],
)
def test_what_cannot_be_is_one_sentence(wrong, words):
    with pytest.raises(host_state.HostError, match=words):
        want("run", [mount(**wrong)])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"name": "vol1", "path": "mounts/b"}, "have the name vol1"),
        ({"name": "b"}, "have the path"),
        ({"name": "b", "path": "mounts/vol1/b"}, "lies inside"),
    ],
)
def test_two_mounts_are_beside_each_other(other, words):
    with pytest.raises(host_state.HostError, match=words):
        want("run", [mount(), mount(**other)])


def test_unmounting_a_run_that_mounted_nothing_changes_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path))
    book = Journal(str(tmp_path / "run" / "journal.jsonl"))
    assert nfs_mount.unmount(book) == {"restored": [], "warnings": [], "changed": False}


def test_a_mount_point_that_is_free_again_goes_with_the_journal(tmp_path):
    book = Journal(str(tmp_path / "journal.jsonl"))
    nfs_mount._make_mount_point(str(tmp_path / "a" / "b"), book)
    book.record("nfs_mount", key=str(tmp_path / "a" / "b"), source="10.0.0.4:/vol1", options="", persistent=False)
    assert book.restore(nfs_unmount.HANDLERS)["left"] == []
    assert not (tmp_path / "a").exists()


def test_a_mount_point_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(host_state.HostError, match="is no directory"):
        nfs_mount._make_mount_point(str(tmp_path / "file"), Journal(str(tmp_path / "journal.jsonl")))
