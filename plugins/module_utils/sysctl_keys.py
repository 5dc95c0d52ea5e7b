# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a sysctl key or module parameter is on this host, its value read and written; never through the `sysctl` binary,
whose exit status proves nothing. Must not know: profiles, the journal, files of /etc, how a value is put back.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import stat
from typing import Any, NamedTuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

SYSCTL = "sysctl"
PARAMETER = "module_parameter"

# keys that the kernel keeps for old tools and does not look at (Documentation/networking/ip-sysctl.rst)
LEGACY = {
    "net.ipv4.tcp_low_latency": "it has had no effect since Linux 4.14",
    "net.ipv4.tcp_fack": "it has had no effect since Linux 4.15",
}
# writing these does something once; there is no state that could be compared or put back
ACTIONS = {
    "net.ipv4.route.flush": "it empties the route cache once and cannot be read",
    "net.ipv6.route.flush": "it empties the route cache once and cannot be read",
    "vm.compact_memory": "it compacts memory once and cannot be read",
    "vm.drop_caches": "it drops caches once and is no setting",
}
# writing one of a pair sets the other to 0, and 0 itself cannot be written
_PAIRS = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
PARTNERS = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
# keys that are there only while a kernel module is loaded
_MODULE_OF = (
    ("sunrpc.", "sunrpc"),
    ("fs.nfs.", "nfs"),
    ("net.bridge.", "br_netfilter"),
    ("net.netfilter.nf_conntrack", "nf_conntrack"),
    ("net.nf_conntrack", "nf_conntrack"),
)
# sysctl keys that are the same variable as a module parameter: at boot only the latter is set in time
_SAME_PARAMETER = {
    "sunrpc." + name: ("sunrpc", name)
    for name in (
        "tcp_slot_table_entries",
        "tcp_max_slot_table_entries",
        "udp_slot_table_entries",
        "min_resvport",
        "max_resvport",
    )
}
# the kernel has it in its first network namespace only, in every version
_ONLY_IN_INIT_NET = "net.core.netdev_max_backlog"
_KEY = re.compile(r"[A-Za-z0-9_./:@-]+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_LONGEST_VALUE = 1024


class SysctlError(host_state.HostError):
    """Why a key or a value cannot be used; one sentence."""


class Name(NamedTuple):
    """A sysctl key (`net.core.rmem_max`) or a module parameter (`sunrpc/tcp_max_slot_table_entries`)."""

    kind: str
    key: str

    def path(self, root: str = "/") -> str:
        """Where its value stands, below ``root``."""
        if self.kind == PARAMETER:
            module, parameter = self.key.split("/")
            return os.path.join(root, "sys/module", module, "parameters", parameter)
        return os.path.join(root, "proc/sys", _swapped(self.key))

    @property
    def module(self) -> str | None:
        """The kernel module without which it is not there; None where that is not known or none is needed."""
        if self.kind == PARAMETER:
            return self.key.split("/")[0]
        return next((module for prefix, module in _MODULE_OF if self.key.startswith(prefix)), None)

    @property
    def of_network(self) -> bool:
        """Whether a network namespace may have a value of its own, or not have it at all."""
        return self.kind == SYSCTL and self.key.startswith("net.")


class Facts(NamedTuple):
    """What there is on this host: value as read (None where it cannot be), and whether its mode allows a write."""

    exists: bool
    value: str | None
    readable: bool
    writable: bool


# -- names and values -------------------------------------------------------------------------------------------------


def _swapped(text: str) -> str:
    return text.translate(str.maketrans("./", "/."))


def sysctl_name(key: Any) -> Name:
    """The key in its dotted form; `net/ipv4/tcp_rmem` is read as well (sysctl.d(5)). Raises SysctlError."""
    text = str(key)
    first = re.search(r"[./]", text)
    dotted = _swapped(text) if first and first.group() == "/" else text
    if not _KEY.fullmatch(text) or not all(dotted.split(".")) or ".." in _swapped(dotted).split("/"):
        raise SysctlError(f"The sysctl key {text!r} is not one; write it like net.core.rmem_max.")
    return Name(SYSCTL, dotted)


def parameter_name(module: Any, parameter: Any) -> Name:
    """A parameter of a kernel module; `-` and `_` are the same in a module's name. Raises SysctlError."""
    for what, text in (("kernel module", module), ("module parameter", parameter)):
        if not _NAME.fullmatch(str(text)):
            raise SysctlError(f"The {what} {text!r} is not a name; write it like sunrpc.")
    return Name(PARAMETER, "{}/{}".format(str(module).replace("-", "_"), parameter))


def preferred(name: Name) -> Name:
    """The module parameter that is the same variable as a sysctl key, where there is one; else the name itself."""
    return Name(PARAMETER, "/".join(_SAME_PARAMETER[name.key])) if name.key in _SAME_PARAMETER else name


def clean_value(value: Any, key: str) -> str:
    """The value as it is written: words with one blank between; true and false are 1 and 0. Raises SysctlError."""
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, (list, tuple)):
        value = " ".join(clean_value(part, key) for part in value)
    if not isinstance(value, (str, int)):
        raise SysctlError(f"The value {value!r} of {key} is neither a whole number nor a text; write it in quotes.")
    text = str(value)
    clean = " ".join(text.split())
    if (
        not clean
        or len(clean) > _LONGEST_VALUE
        or not clean.isprintable()
        or not clean.isascii()
        or "\n" in text.strip()
    ):
        raise SysctlError(f"The value {text!r} of {key} is not one line of plain text; give numbers or words.")
    return clean


def tokens(value: str | None) -> list[str]:
    """A value as it is compared: `4096 131072 …` and the same with tabs are equal."""
    return (value or "").split()


def same(first: str | None, second: str | None) -> bool:
    """Whether two values mean the same."""
    return (first is None) == (second is None) and tokens(first) == tokens(second)


def matches(name: Name, value: str | None, wanted: str) -> bool:
    """Whether a value that was read is the wanted one; a parameter that is true or false reads as Y or N."""
    if name.kind == PARAMETER and value in ("Y", "N"):
        return wanted in ((value, "1", "y") if value == "Y" else (value, "0", "n"))
    return same(value, wanted)


def unit_of(name: Name) -> list[Name]:
    """The keys that a write to this one may change: itself, and its partner; always in the same order."""
    partner = PARTNERS.get(name.key) if name.kind == SYSCTL else None
    return [name] if partner is None else [Name(SYSCTL, key) for key in sorted((name.key, partner))]


# -- this host --------------------------------------------------------------------------------------------------------


def look(name: Name, root: str = "/") -> Facts:
    """What there is of this name on the host; reading it changes nothing."""
    path = name.path(root)
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return Facts(False, None, False, False)
    if not stat.S_ISREG(mode):
        return Facts(False, None, False, False)
    value = read(name, root) if mode & 0o444 else None
    return Facts(True, value, value is not None, bool(mode & 0o222))


def read(name: Name, root: str = "/") -> str | None:
    """The value without its line end; None where it is not there or cannot be read."""
    try:
        with open(name.path(root), encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read().rstrip("\n")
    except OSError:
        return None


def write(name: Name, value: str, root: str = "/") -> None:
    """Write a value with one call; raises OSError with the kernel's reason. Nothing is known until it is read back."""
    handle = os.open(name.path(root), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(handle, (value + "\n").encode("utf-8", "surrogateescape"))
    finally:
        os.close(handle)


def in_init_net(root: str = "/") -> bool:
    """Whether this is the network namespace the host was started in; containers have one of their own."""
    return os.path.exists(Name(SYSCTL, _ONLY_IN_INIT_NET).path(root))


def net_namespace() -> str:
    """The name of this process's network namespace: `net:[4026531833]`."""
    return os.readlink("/proc/self/ns/net")


def is_loaded(module: str, root: str = "/") -> bool:
    """Whether a kernel module is loaded or built in."""
    return os.path.isdir(os.path.join(root, "sys/module", module))


def did_you_mean(name: Name, root: str = "/") -> str:
    """`, did you mean X?` where the host has something of a close name beside it; else nothing."""
    directory, wanted = os.path.split(name.path(root))
    there: list[str] = []
    with contextlib.suppress(OSError):
        there = os.listdir(directory)
    close = difflib.get_close_matches(wanted, sorted(there), n=1, cutoff=0.8)
    return f", did you mean {name.key[: -len(wanted)]}{close[0]}?" if close else ""
