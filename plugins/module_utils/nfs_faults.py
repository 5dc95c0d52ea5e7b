# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Why an NFS mount failed, as one sentence with what to do: from what mount.nfs printed, and from what a host lacks.

Must not know: runs, journals; it reads words and looks at this host, and changes nothing.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state, nfs_options

FILESYSTEMS = "/proc/filesystems"
_SYSTEM_PATH = os.pathsep.join(("/usr/sbin", "/sbin", "/usr/bin", "/bin"))


class MountError(host_state.HostError):
    """Why something cannot be mounted or unmounted; one sentence."""


class _Fault(NamedTuple):
    pattern: str
    sentence: str  # may use {source} {path} {options} {vers} {server}


# what mount and mount.nfs of nfs-utils 2.3 to 2.8 print (2026-08), the special before the general
_FAULTS = (
    _Fault(
        r"rpc\.statd is not running",
        "{source} cannot be mounted with NFSv3 locks: rpc.statd does not run on this host; "
        "install and start it (nfs-common, nfs-utils), or add nolock to the mount options.",
    ),
    _Fault(
        r"access denied by server|Operation not permitted|Permission denied",
        "The server denies this host {source}; let it export that path to this client's address "
        "(and with the security flavour asked for).",
    ),
    _Fault(
        r"requested NFS version or transport protocol is not supported|Protocol not supported|Program not registered",
        "The server of {source} does not support {vers}; use another vers= or enable it on the server.",
    ),
    _Fault(
        r"Protocol family not supported|No such device|unknown filesystem type",
        "This host's kernel has no NFS: {source} cannot be mounted; "
        "use a kernel with the modules nfs, nfsv3 and nfsv4.",
    ),
    _Fault(
        r"No such file or directory",
        "The server of {source} has no such export; look at its exports (showmount -e {server}).",
    ),
    _Fault(
        r"incorrect mount option|bad option|Invalid argument|[Uu]nknown (mount )?option|unsupported .*option",
        "This host's mount.nfs or kernel does not know one of the mount options {options}; "
        "remove the one that is too new for it or misspelt.",
    ),
    _Fault(
        r"timed out|No route to host|Network is unreachable|Host is down",
        "The server of {source} does not answer; check the address, the network and firewalls.",
    ),
    _Fault(r"Connection refused", "The server of {source} refuses the connection; no NFS server runs there."),
    _Fault(r"Stale file handle", "The server of {source} no longer knows the export; export it again, then try again."),
    _Fault(r"Name or service not known|resolve", "The server name in {source} cannot be resolved on this host."),
    _Fault(r"busy or already mounted", "{path} is in use or mounted already; unmount it or use another path."),
    _Fault(r"Not a directory", "The export {source} is not a directory, or {path} is none."),
    _Fault(
        r"Input/output error|Remote I/O error",
        "The server of {source} answers with an error; look at its log, it may be starting or have a faulty export.",
    ),
)


def explain(message: str, source: str, path: str, options: str) -> str:
    """The sentence for what mount printed; where it says nothing known, its own words."""
    vers = nfs_options.canonical(options).get("vers")
    words = " ".join(message.split())
    for fault in _FAULTS:
        if re.search(fault.pattern, message):
            return fault.sentence.format(
                source=source,
                path=path,
                options=options,
                server=source.rpartition(":/")[0],
                vers=f"NFS {vers}" if vers else "an NFS version of this host",
            )
    return f"{source} cannot be mounted on {path}: {words or 'mount gave no reason'}."


def find_helper() -> str | None:
    """The mount.nfs of this host, also where a user's PATH leaves the system directories out."""
    return shutil.which("mount.nfs", path=os.pathsep.join((os.environ.get("PATH", ""), _SYSTEM_PATH)))


def has_nfs(run: host_state.Run = host_state.run_command) -> bool:
    """Whether this host's kernel has NFS, loaded or as a module."""
    with open(FILESYSTEMS, encoding="ascii", errors="replace") as handle:
        if "nfs" in handle.read().split():
            return True
    modprobe = shutil.which("modprobe", path=_SYSTEM_PATH)
    return modprobe is not None and run([modprobe, "--dry-run", "--quiet", "nfs"])[0] == 0


def check_host(run: host_state.Run = host_state.run_command) -> None:
    """Refuse a host that can mount no NFS at all, before anything is changed."""
    if not host_state.is_root():
        raise MountError("Mounting needs root on this host; set become: true.")
    if not has_nfs(run):
        raise MountError(
            f"This host's kernel ({os.uname().release}) has no NFS: neither built in nor as a module; "
            "use a kernel with the modules nfs, nfsv3 and nfsv4 (cloud images may need linux-modules-extra)."
        )
    if find_helper() is None:
        raise MountError("mount.nfs is not installed on this host; install nfs-common (Debian, Ubuntu) or nfs-utils.")
