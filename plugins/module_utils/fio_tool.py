# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fio of this host: where it is, whether it is new enough, and which I/O engine it can use here.

Must not know: jobs, volumes or results; commands are run by the `run` it is given.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
from typing import Callable, List, Sequence, Tuple

Run = Callable[[List[str]], Tuple[int, str, str]]
Probe = Callable[[int], Tuple[bool, "str | None"]]

MINIMUM = (3, 19)
PLACES = ("/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin")

_VERSION = re.compile(r"(?:fio-)?([0-9]+(?:\.[0-9]+)+)", re.ASCII)
_IO_URING_SETUP = 425
_IO_URING_PARAMS_BYTES = 120
_WHY_NO_IO_URING = {
    errno.ENOSYS: "this kernel does not have it, or a container's seccomp profile hides it",
    errno.EPERM: "it is not allowed here (kernel.io_uring_disabled, or a container's seccomp profile)",
    errno.EACCES: "it is not allowed here (a security module)",
    errno.ENOMEM: "the limit of locked memory (ulimit -l) is too small for this queue depth",
    errno.EINVAL: "the kernel does not accept this queue depth",
}


class ToolError(ValueError):
    """fio cannot be used as asked; the message is one sentence for the user."""


def find_fio() -> str | None:
    """The path of fio, also where PATH lacks the usual places (as under sudo and in SSH sessions)."""
    places = [place for place in os.environ.get("PATH", "").split(os.pathsep) if place]
    return shutil.which("fio", path=os.pathsep.join([*places, *PLACES]))


def read_version(fio: str, run: Run) -> str | None:
    """`3.33`, or what else stands behind `fio-`; None where the program gives no version."""
    rc, out, _unused = run([fio, "--version"])
    text = out.strip()
    if rc != 0 or not text:
        return None
    return text[len("fio-") :] if text.startswith("fio-") else text


def parse_version(version: str) -> tuple[int, ...] | None:
    """(3, 36) of `fio-3.36-123-gabc`; None where there is no number."""
    found = _VERSION.match(version.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def version_fault(version: str | None) -> str | None:
    """Why this fio cannot be used, or None."""
    needed = ".".join(str(part) for part in MINIMUM)
    parsed = parse_version(version) if version else None
    if parsed is None:
        return f"The program fio gives the version {version!r}, which is none: install fio {needed} or newer."
    if parsed < MINIMUM:
        return f"The installed fio {version} is too old: install fio {needed} or newer."
    return None


def read_engines(fio: str, run: Run) -> list[str]:
    """The I/O engines this fio was built with."""
    rc, out, _unused = run([fio, "--enghelp"])
    if rc != 0:
        return []
    return [line.strip() for line in out.splitlines() if line[:1].isspace() and line.strip()]


def io_uring_usable(io_depth: int) -> tuple[bool, str | None]:
    """Whether the kernel gives this process a ring of that depth; the ring is closed at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    params = ctypes.create_string_buffer(_IO_URING_PARAMS_BYTES)
    ring = libc.syscall(ctypes.c_long(_IO_URING_SETUP), ctypes.c_uint(io_depth), params)
    if ring >= 0:
        os.close(ring)
        return True, None
    code = ctypes.get_errno()
    why = _WHY_NO_IO_URING.get(code, os.strerror(code))
    return False, f"The engine io_uring cannot be used with a queue depth of {io_depth}: {why}."


def choose_engine(
    wanted: str, engines: Sequence[str], io_depth: int, probe: Probe = io_uring_usable
) -> tuple[str, str | None]:
    """The engine to use and, where it is not the first choice, a sentence that says why.

    `auto` is io_uring, or libaio where io_uring cannot be used; an engine asked for by name is never replaced.
    """
    if wanted not in ("auto", "io_uring"):
        if wanted not in engines:
            raise ToolError(f"The engine {wanted} is not in this fio: use one of {', '.join(engines) or 'none'}.")
        return wanted, None
    usable, why = (False, "The engine io_uring is not in this fio.")
    if "io_uring" in engines:
        usable, why_not = probe(io_depth)
        why = why_not or why
    if usable:
        return "io_uring", None
    if wanted == "io_uring":
        raise ToolError(f"{why} Use the engine auto or libaio.")
    if "libaio" not in engines:
        raise ToolError(f"{why} The engine libaio is not in this fio either: install fio with one of them.")
    return "libaio", f"{why} libaio was used instead."
