"""What a test does on a guest: one request as JSON on stdin, one answer as JSON on stdout; with the guest's Python.

Run as ``python3 nfs_host.py`` beside a directory that holds the collection's host-side code.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from ansible_collections.hostmax.storage.plugins.module_utils import (
    fstab,
    host_state,
    nfs_mount,
    nfs_server,
    restore,
)

# every change, and every line of the journal, goes through one of these
STEPS = {
    ("journal.py", "_append"),
    ("bounded.py", "call"),
    ("bounded.py", "command"),
    ("nfs_live.py", "set_read_ahead"),
    ("fstab.py", "_write"),
}
DIED = 42


def mounted(run_id, mounts, timeout_s=60.0):
    wanted, book = nfs_mount.want(run_id, mounts), restore.open_journal(run_id)
    found = nfs_mount.planned(wanted, book)
    if found["changed"]:
        host_state.make_work_dir(run_id)
        found = nfs_mount.apply(wanted, book, timeout_s)
    return found


def planned(run_id, mounts):
    return nfs_mount.planned(nfs_mount.want(run_id, mounts), restore.open_journal(run_id))


def unmounted(run_id, paths=None):
    return nfs_mount.unmount(restore.open_journal(run_id), paths)


def put_back(run_id):
    return restore.restore_run(run_id)


def remove_work_dir(run_id):
    host_state.remove_work_dir(run_id)
    return {}


def temporary(source, options, name):
    """Write and remove a file through a private mount."""
    with nfs_mount.temporary(source, options) as path:
        with open(os.path.join(path, name), "w") as handle:
            handle.write("x")
        os.unlink(os.path.join(path, name))
        seen = [mount.source for mount in nfs_server.at(path)]
    return {"path": path, "sources": seen, "there": os.path.lexists(path)}


def crashed(run_id, mounts, undo=False):
    """Die at every step of mounting (or of putting back), restore, and tell after which deaths something was left."""
    before = snapshot()
    bad, number = [], 0
    died = True
    while died:
        number += 1
        if undo:
            mounted(run_id, mounts)
            died = dies_at_step(number, lambda: put_back(run_id))
        else:
            died = dies_at_step(number, lambda: mounted(run_id, mounts))
        outcome = put_back(run_id)
        if outcome["left"] or snapshot() != before:
            bad.append({"step": number, "left": outcome["left"], "now": snapshot()})
    return {"steps": number - 1, "bad": bad}


def dies_at_step(number, work):
    """Run the work in a child that ends, as if killed, when it has done its n-th step."""
    pid = os.fork()
    if pid == 0:
        left = [number]

        def trace(frame, event, _arg):
            if (os.path.basename(frame.f_code.co_filename), frame.f_code.co_name) not in STEPS:
                return None
            if event == "return":
                left[0] -= 1
                if left[0] == 0:
                    os._exit(DIED)
            return trace

        sys.settrace(trace)
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, DIED), f"the work failed by itself before its step {number}"
    return status == DIED


def snapshot():
    """All that mounting may change: mounts, fstab, directories, the kernel's NFS clients."""
    mounts = sorted((mount.path, mount.source, mount.fstype) for mount in nfs_server.mounts())
    end_s = time.monotonic() + 5
    while nfs_server.rows() and time.monotonic() < end_s and not nfs_server.all_nfs():
        time.sleep(0.1)
    with open(fstab.PATH) as handle:
        lines = handle.read()
    facts = os.stat(fstab.PATH)
    return {
        "mounts": mounts,
        "fstab": [lines, facts.st_mode, facts.st_uid, facts.st_gid],
        "directories": [sorted(os.listdir("/mnt")), os.path.lexists("/var/lib/hostmax"), sorted(os.listdir("/"))],
        "clients": [list(row) for row in nfs_server.rows()],
    }


def main():
    """Answer {"ok": result, "took_s": seconds} or {"error": the sentence}."""
    request = json.load(sys.stdin)
    begun_s = time.monotonic()
    try:
        answer = {"ok": globals()[request.pop("do")](**request)}
    except host_state.HostError as exc:
        answer = {"error": str(exc)}
    answer["took_s"] = time.monotonic() - begun_s
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
