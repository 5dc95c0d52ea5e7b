"""Whatever is tuned, and wherever it dies: after a restore the host is as it was, and a second restore does nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import restore, sysctl_profile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .crash import dies_at_line
from .fake_kernel import FakeKernel

FILES = ("sysctl_profile.py", "sysctl_live.py", "system_file.py", "journal.py", "fake_kernel.py")
PARTS = {
    "net.core.rmem_max": ["212992", "16777216", "100"],
    "net.core.optmem_max": ["131072", str(2**30), str(2**31)],
    "net.ipv4.tcp_rmem": ["4096 131072 33554432", "1048576 8388608 16777216", "1 x 3"],
    "net.ipv4.tcp_sack": ["0", "1"],
    "net.ipv4.route.flush": ["1"],
    "vm.dirty_bytes": ["31457280", "100"],
    "vm.dirty_ratio": ["5", "20"],
    "vm.dirty_background_ratio": ["1"],
    "no.such.key": ["1"],
    "sunrpc.tcp_max_slot_table_entries": ["2", "128", "100000"],
}
TUNINGS = st.dictionaries(st.sampled_from(sorted(PARTS)), st.integers(0, 2), max_size=6).map(
    lambda chosen: {key: PARTS[key][place % len(PARTS[key])] for key, place in chosen.items()}
)
STEPS = st.lists(st.tuples(TUNINGS, st.booleans(), st.one_of(st.none(), st.integers(1, 600))), min_size=1, max_size=3)


def tune(kernel, keys, persistent):
    if "vm.dirty_bytes" in keys and "vm.dirty_ratio" in keys:
        keys = {key: value for key, value in keys.items() if key != "vm.dirty_ratio"}
    entries = [{"key": key, "value": value} for key, value in keys.items()]
    wanted = sysctl_profile.want("prepared", entries, persistent=persistent, root=kernel.root)
    return sysctl_profile.apply(wanted, restore.open_journal("prepared"))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, dies_while_restoring=st.one_of(st.none(), st.integers(1, 300)))
def test_tuned_and_restored_a_host_is_as_before_wherever_either_dies(steps, dies_while_restoring):
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTMAX_STATE", directory + "/state")
        kernel = FakeKernel(Path(directory) / "root")
        kernel.file("etc/sysctl.d/10-mine.conf", "vm.swappiness = 1\n")
        kernel.patch(patch)
        before = kernel.snapshot()
        for keys, persistent, line in steps:
            if line is None:
                tune(kernel, keys, persistent)
                assert not tune(kernel, keys, persistent)["changed"]
            else:
                dies_at_line(line, FILES, lambda keys=keys, persistent=persistent: tune(kernel, keys, persistent))
        if dies_while_restoring:
            dies_at_line(dies_while_restoring, FILES, lambda: restore.restore_run("prepared"))
        assert restore.restore_run("prepared")["left"] == []
        assert kernel.snapshot() == before
        assert not restore.restore_run("prepared")["changed"]
        assert not restore.is_prepared()


REAL = """
import os, sys
from ansible_collections.hostmax.storage.plugins.module_utils import restore, sysctl_profile, sysctl_keys

def snapshot():
    found = {}
    for base, _directories, files in os.walk("/proc/sys/net/ipv4"):
        for name in files:
            path = os.path.join(base, name)
            try:
                with open(path) as handle:
                    found[path] = handle.read()
            except OSError:
                pass
    return {path: value for path, value in found.items() if "tcp_fastopen_key" not in path}

wanted = {
    "net.ipv4.tcp_rmem": "1048576 8388608 16777216", "net.ipv4.tcp_wmem": "1048576 8388608 16777216",
    "net.ipv4.tcp_sack": 0, "net.ipv4.tcp_dsack": 0, "net.ipv4.tcp_timestamps": 0, "net.ipv4.tcp_no_metrics_save": 1,
    "net.ipv4.ip_local_port_range": "1024 65000", "net.ipv4.tcp_slow_start_after_idle": 0,
    "net.ipv4.tcp_mem": "4096 89600 8388608", "net.core.netdev_max_backlog": 300000, "net.core.rmem_max": 8192,
    "net.ipv4.route.flush": 1, "net.ipv4.tcp_moderate_rcvbuf": 1,
}
before = snapshot()
entries = [{"key": key, "value": value} for key, value in wanted.items()]
wanted = sysctl_profile.want("run1", entries, persistent=False)
book = restore.open_journal("run1")
first = sysctl_profile.apply(wanted, book)
told = {each["key"]: each["status"] for each in first["keys"]}
for key in ("tcp_rmem", "tcp_wmem", "tcp_sack", "tcp_timestamps", "ip_local_port_range", "tcp_slow_start_after_idle"):
    assert told["net.ipv4." + key] == "set", told
for key in ("net.ipv4.tcp_mem", "net.core.netdev_max_backlog", "net.core.rmem_max"):
    assert told[key] == "other_namespace", told
assert told["net.ipv4.route.flush"] == "write_only"
assert not sysctl_profile.apply(wanted, book)["changed"]
assert snapshot() != before
run = restore.restore_run("run1")
assert run["left"] == [], run
assert snapshot() == before
assert not restore.restore_run("run1")["changed"]
print("as before")
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_in_a_real_network_namespace_its_own_keys_are_set_the_others_told_and_all_put_back(tmp_path):
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", REAL],
        env={**os.environ, "HOSTMAX_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "as before\n", done.stderr
