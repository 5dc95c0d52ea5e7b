# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Work that may hang for ever, as anything does that touches a dead NFS server, done in a child with a time-out.

Must not know: what the work is for; a child that cannot even be killed is left behind, and holds nothing of ours open.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from typing import Any, Callable, Mapping, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

_KILL_WAIT_S = 2.0
_POLL_S = 0.02
_READ_BYTES = 65536


class TimedOut(host_state.HostError):
    """The work did not end in its time."""


def call(work: Callable[[], Any], timeout_s: float, what: str) -> Any:
    """The JSON-like result of a function, run in a child; its OSError and HostError are raised here.

    Raises TimedOut with ``what`` ("stat of /mnt/vol1") where it does not end within ``timeout_s`` seconds.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _work_and_exit(work, writing)
    os.close(writing)
    try:
        answer = _read_all(reading, time.monotonic() + timeout_s)
    finally:
        os.close(reading)
        _end(pid)
    if answer is None:
        raise TimedOut(f"The {what} did not end within {timeout_s:g} s.")
    return _result(answer, what)


def _work_and_exit(work: Callable[[], Any], writing: int) -> None:
    """In the child: nothing of the parent stays open, or a child that hangs would keep Ansible's connection open."""
    try:
        # the parent's result goes to the same place: a child must never write there
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        highest = os.sysconf("SC_OPEN_MAX")
        os.closerange(3, writing)
        os.closerange(writing + 1, min(highest if highest > 0 else 4096, 65536))
        try:
            answer = {"value": work()}
        except OSError as exc:
            answer = {"errno": exc.errno, "strerror": exc.strerror, "filename": _name(exc.filename)}
        except host_state.HostError as exc:
            answer = {"sentence": str(exc)}
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _name(filename: Any) -> str | None:
    return os.fsdecode(filename) if isinstance(filename, (str, bytes)) else None


def _read_all(reading: int, end_s: float) -> bytes | None:
    parts: list[bytes] = []
    while True:
        if not select.select([reading], [], [], max(0.0, end_s - time.monotonic()))[0]:
            return None
        part = os.read(reading, _READ_BYTES)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _end(pid: int) -> None:
    """Kill the child and wait a moment for it; one that hangs in the kernel is not waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    end_s = time.monotonic() + _KILL_WAIT_S
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < end_s:
            time.sleep(_POLL_S)


def _result(answer: bytes, what: str) -> Any:
    if not answer:
        raise host_state.HostError(f"The {what} ended without a result.")
    known = json.loads(answer.decode())
    if "sentence" in known:
        raise host_state.HostError(known["sentence"])
    if "errno" in known:
        raise OSError(known["errno"], known["strerror"], known["filename"])
    return known["value"]


def command(argv: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command and return (rc, stdout, stderr); killed with all its children and TimedOut when the time is over.

    Its output goes through files: a daemon it leaves behind (rpc.statd) would keep a pipe open.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(os.environ, LC_ALL="C", **(env or {})),
            start_new_session=True,
        )
        try:
            rc = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_KILL_WAIT_S)
            raise TimedOut(f"{' '.join(argv[:1])} did not end within {timeout_s:g} s.") from None
        texts = []
        for handle in (out, err):
            handle.seek(0)
            texts.append(handle.read().decode("utf-8", "replace"))
    return rc, texts[0], texts[1]
