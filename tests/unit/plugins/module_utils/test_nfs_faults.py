"""What mount prints becomes one sentence that says what is wrong and what to do."""

from __future__ import annotations

import os

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import nfs_faults


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("mount.nfs: access denied by server while mounting nas:/v", "denies this host nas:/v"),
        ("mount.nfs: Operation not permitted", "denies this host"),
        ("mount.nfs: mounting nas:/v failed, reason given by server: No such file or directory", "no such export"),
        ("mount.nfs: an incorrect mount option was specified", "does not know one of the mount options vers=4.1,x=1"),
        ("mount.nfs: requested NFS version or transport protocol is not supported", "does not support NFS 4.1"),
        ("mount.nfs: Protocol not supported", "does not support NFS 4.1"),
        (
            "mount.nfs: rpc.statd is not running but is required for remote locking.\nEither use",
            "add nolock",
        ),
        ("mount.nfs: No such device", "kernel has no NFS"),
        ("mount: /m: unknown filesystem type 'nfs'.", "kernel has no NFS"),
        ("mount.nfs: Connection refused", "refuses the connection"),
        ("mount.nfs: Connection timed out", "does not answer"),
        ("mount.nfs: No route to host", "does not answer"),
        ("mount.nfs: Stale file handle", "export it again"),
        ("mount.nfs: /m is busy or already mounted or sharecache fail", "use another path"),
        ("mount.nfs: Failed to resolve server nas: Name or service not known", "cannot be resolved"),
        ("mount.nfs: something new\nof tomorrow", "cannot be mounted on /m: mount.nfs: something new of tomorrow."),
        ("", "mount gave no reason"),
    ],
)
def test_a_fault_is_one_sentence(printed, words):
    said = nfs_faults.explain(printed, "nas:/v", "/m", "vers=4.1,x=1")
    assert words in said
    assert "\n" not in said
    assert said.endswith(".")


@pytest.mark.skipif(os.geteuid() != 0, reason="says that root is needed")
def test_a_host_whose_kernel_has_no_nfs_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(nfs_faults, "FILESYSTEMS", str(tmp_path / "filesystems"))
    (tmp_path / "filesystems").write_text("nodev\ttmpfs\n\text4\n")
    with pytest.raises(nfs_faults.MountError, match="has no NFS: neither built in nor as a module"):
        nfs_faults.check_host(run=lambda argv: (1, "", ""))


@pytest.mark.skipif(os.geteuid() != 0, reason="says that root is needed")
def test_a_host_without_the_helper_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(nfs_faults, "FILESYSTEMS", str(tmp_path / "filesystems"))
    monkeypatch.setattr(nfs_faults, "_SYSTEM_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "filesystems").write_text("nodev\tnfs\n")
    with pytest.raises(nfs_faults.MountError, match=r"mount\.nfs is not installed on this host; install nfs-common"):
        nfs_faults.check_host()
