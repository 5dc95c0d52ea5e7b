"""``python -m tests.lab.kernel up|down|status|inventory|check``: the guests by hand; they stay up until taken down."""

from __future__ import annotations

import argparse
import pathlib
import shlex
import signal
import sys

from ..machine import LabError
from .image import missing
from .lab import KernelLab


def describe(lab: KernelLab) -> str:
    """How to reach the guests."""
    lines = [
        f"{guest.name:8}  {','.join(guest.addresses):20}  {shlex.join(guest.ssh_command())}"
        for guest in lab.guests.values()
    ]
    lines += [
        f"Exports of {lab.server.address}: {', '.join(lab.exports.values())} (the last one to nobody here)",
        f"Inventory of the clients: {lab.inventory()}",
    ]
    return "\n".join(lines)


def main() -> int:
    """Do one thing and return the exit code: 1 with a sentence on stderr where it cannot be done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["up", "down", "status", "inventory", "check"])
    action = parser.parse_args().action
    lab = KernelLab()
    # ended while it builds or boots, it takes down what it made
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    try:
        reason = missing()
        if action == "check" and reason:
            raise LabError(f"This machine cannot have guests: it {reason}.")
        if action == "up":
            print("The guests are up." if lab.up(keep=True) else "The guests were up already.")
            print(describe(lab))
        elif action == "down":
            lab.down()
            print("The guests are down.")
        elif action != "check" and lab.is_up():
            print(describe(lab) if action == "status" else pathlib.Path(lab.inventory()).read_text())
        elif action != "check":
            raise LabError("The guests are down.")
    except LabError as exc:
        print(str(exc), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
