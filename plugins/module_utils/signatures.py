# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is written on a block device: partition tables, file systems and members of arrays, as blkid probes them.

It must not know volumes or what is allowed; it reads and never writes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import NamedTuple

PARTITION_TABLES = ("gpt", "dos", "PMBR", "sun", "bsd", "mac", "sgi", "atari")
_TIMEOUT_S = 60
_NOTHING = 2
_AMBIVALENT = 8
_TYPES = ("TYPE", "PTTYPE")
_EDGE_BYTES = 65536
_SYSTEM_PATHS = "/usr/sbin:/sbin:/usr/bin:/bin"


class Signatures(NamedTuple):
    """What low-level probing found: signature types, or the reason why nothing can be proved."""

    types: tuple[str, ...]
    fault: str | None


def probe(path: str) -> Signatures:
    """What blkid finds on the device itself. That it finds nothing counts only if the device can be read."""
    blkid = shutil.which("blkid", path=os.environ.get("PATH", "") + ":" + _SYSTEM_PATHS)
    if blkid is None:
        return Signatures((), "blkid is not installed (package util-linux)")
    try:
        code, out, err = _run([blkid, "-p", "-o", "export", path])
    except (OSError, subprocess.SubprocessError) as error:
        return Signatures((), f"blkid failed ({type(error).__name__})")
    if code == _AMBIVALENT:
        return Signatures((), "blkid finds several signatures that contradict each other (see wipefs)")
    if code not in (0, _NOTHING) or err.strip():
        return Signatures((), f"blkid ended with {code} ({err.strip() or 'no message'})")
    pairs = [line.partition("=") for line in out.splitlines()]
    types = tuple(dict.fromkeys(value for key, _unused, value in pairs if key in _TYPES))
    return Signatures(types, None if types else _unreadable(path))


def _run(command: list[str]) -> tuple[int, str, str]:
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_TIMEOUT_S, check=False
    )
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def _unreadable(path: str) -> str | None:
    """Why the two ends of a device cannot be read: blkid calls such a device empty."""
    try:
        with open(path, "rb", buffering=0) as device:
            end = device.seek(0, os.SEEK_END)
            for offset in (0, max(0, end - _EDGE_BYTES)):
                device.seek(offset)
                if not device.read(min(_EDGE_BYTES, end)):
                    return "it cannot be read"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None
