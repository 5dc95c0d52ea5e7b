"""Process 1 of a test host: puts the host's own files over the machine's, then buries every process that dies.

Runs inside the host's namespaces, with the system's Python; its only argument is the host's description as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def main() -> None:
    host = json.loads(sys.argv[1])
    socket.sethostname(host["name"])
    for source, target in host["binds"]:
        mount("--bind", source, target)
    for target in host["empty"]:
        mount("-t", "tmpfs", "hostmax-lab", target)
    os.mkdir("/run/sshd", 0o755)
    os.chdir("/")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    os.write(1, b"up\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        signal.sigwait({signal.SIGCHLD})


main()
