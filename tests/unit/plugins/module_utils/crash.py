"""A process that dies in the middle of its work: at the n-th line it executes in the files named.

The work runs in a forked child that leaves at once, without any clean-up of its own, as if the machine had ended it.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

_DIED = 42
_FAILED = 43


def dies_at_line(number: int, files: tuple[str, ...], work: Callable[[], Any]) -> bool:
    """Run the work in a child up to its n-th line in one of the files; False where it ended before."""
    pid = os.fork()
    if pid == 0:
        _run_child(number, files, work)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, _DIED), f"the work failed by itself ({status}) before line {number}"
    return status == _DIED


def _run_child(number: int, files: tuple[str, ...], work: Callable[[], Any]) -> None:
    left = number

    def trace(frame: Any, event: str, _arg: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os._exit(_DIED)
        return trace

    status = _FAILED
    try:
        sys.settrace(trace)
        work()
        status = 0
    finally:
        os._exit(status)
