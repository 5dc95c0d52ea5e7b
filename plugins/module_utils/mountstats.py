# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""/proc/self/mountstats read into mounts: effective options, events, bytes, connections and operations of NFS.

It must not know about runs, volumes or what a figure is worth; reading the file never asks a server.
"""

from __future__ import annotations

import os
import re
from typing import Any, Container, Dict, Iterable, NamedTuple, Sequence

# include/linux/nfs_iostat.h, in the order in which fs/nfs/super.c prints them
EVENTS = (
    "inode_revalidate", "dentry_revalidate", "data_invalidate", "attr_invalidate", "open", "lookup", "access",
    "update_page", "read_page", "read_pages", "write_page", "write_pages", "getdents", "setattr", "flush", "fsync",
    "lock", "release", "congestion_wait", "setattr_truncate", "extend_write", "silly_rename", "short_read",
    "short_write", "delay", "pnfs_read", "pnfs_write",
)  # fmt: skip
BYTES = (
    "normal_read", "normal_write", "direct_read", "direct_write", "server_read", "server_write", "pages_read",
    "pages_written",
)  # fmt: skip
# net/sunrpc/xprtsock.c and xprtrdma/transport.c; times in seconds, the _u are queue lengths summed at every send
_COMMON = ("sends", "recvs", "bad_xids", "req_u", "bklog_u")
_QUEUES = ("max_slots", "sending_u", "pending_u")
XPRT = {
    "tcp": ("srcport", "binds", "connects", "connect_s", "idle_s", *_COMMON, *_QUEUES),
    "udp": ("srcport", "binds", *_COMMON, *_QUEUES),
    "local": ("binds", "connects", "connect_s", "idle_s", *_COMMON, *_QUEUES),
    "rdma": (
        "srcport", "binds", "connects", "connect_s", "idle_s", *_COMMON, "read_segments", "write_segments",
        "reply_segments", "total_rdma_request", "total_rdma_reply", "pullup_copies", "fixup_copies",
        "hardway_registers", "failed_marshals", "bad_replies", "nomsg_calls",
    ),
}  # fmt: skip
# include/linux/sunrpc/metrics.h; `errors` since 5.3
OP_FIELDS = (
    "ops", "transmissions", "timeouts", "bytes_sent", "bytes_received", "queue_ms", "rtt_ms", "execute_ms", "errors",
)  # fmt: skip
LEAST_OP_FIELDS = 8
# a name of an export and a path, every byte of them escaped, are not longer
_HEAD_CHARS = 40_000

_HEAD = re.compile(r"(?:device (\S+)|no device) mounted on (\S+) with fstype (\S+)(?: statvers=(\S+))?")
_OP = re.compile(r"\s*([A-Z][A-Z0-9_]*|[0-9]+): ([0-9 ]+)$")
_OCTAL = re.compile(r"\\([0-7]{3})")

Counts = Dict[str, int]


class Mount(NamedTuple):
    """One mount point. Several may show one superblock, and several superblocks the same connections.

    ``xprts`` has a mapping for each connection (nconnect), with ``protocol`` beside the columns of that protocol.
    """

    source: str
    path: str
    fstype: str
    vers: str | None
    age_s: int | None
    options: str
    events: Counts
    bytes: Counts
    xprts: tuple[dict[str, Any], ...]
    ops: dict[str, Counts]

    @property
    def is_nfs(self) -> bool:
        """Whether this is an NFS mount (version 2, 3 or 4)."""
        return self.fstype in ("nfs", "nfs4")

    @property
    def connections(self) -> tuple[Any, ...]:
        """What tells the transports of one server from those of another: protocol and source port of each."""
        return tuple(value for xprt in self.xprts for value in (xprt["protocol"], xprt.get("srcport", 0)))


def parse(text: str) -> list[Mount]:
    """All mounts of a mountstats text, in its order; of those that are not NFS only source, path and type.

    A text that was cut short gives what is there: an incomplete line is left out.
    """
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if _HEAD.match(line):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
    if blocks and not text.endswith("\n"):
        # the last line may be a part of one: its last number is not to be trusted
        blocks[-1] = blocks[-1][:1] + blocks[-1][1:-1]
    return [_mount(block) for block in blocks]


def nfs_mounts(text: str) -> list[Mount]:
    """The NFS mounts of a mountstats text."""
    return [mount for mount in parse(text) if mount.is_nfs]


def read(proc: str = "/proc") -> list[Mount]:
    """The mounts that this process sees now; raises OSError where /proc cannot be read."""
    with open(os.path.join(proc, "self", "mountstats"), encoding="utf-8", errors="surrogateescape") as handle:
        return parse(handle.read())


def only(text: str, paths: Container[str]) -> str:
    """The blocks of a mountstats text that are of NFS mounts at these paths, unread: for whoever keeps many texts."""
    blocks = re.split(r"^(?=device |no device )", text, flags=re.MULTILINE)
    heads = ((_HEAD.match(block), block) for block in blocks if " with fstype nfs" in block[:_HEAD_CHARS])
    return "".join(block for head, block in heads if head and unescape(head.group(2)) in paths)


def find(mounts: Iterable[Mount], path: str) -> Mount | None:
    """The mount that an absolute path is on, by the names alone; the last one where mounts cover each other."""
    found = None
    for mount in mounts:
        inside = path == mount.path or path.startswith(mount.path.rstrip("/") + "/")
        if inside and (found is None or len(mount.path) >= len(found.path)):
            found = mount
    return found


def unescape(word: str) -> str:
    """A word of a table of mounts, of swaps or of fstab as it is on disk: blanks and backslashes are octal there."""
    if "\\" not in word:
        return word
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), word)


def _mount(lines: Sequence[str]) -> Mount:
    head = _HEAD.match(lines[0])
    source, path, fstype, statvers = head.groups() if head else ("", "", "", None)
    options, age_s, events, volume, xprts, ops = "", None, {}, {}, [], {}
    for line in lines[1:] if statvers else ():
        label, _colon, rest = line.strip().partition(":")
        rest = rest.strip()
        if label == "opts":
            options = rest
        elif label == "age" and rest.isdigit():
            age_s = int(rest)
        elif label == "events":
            events = _columns(EVENTS, rest.split())
        elif label == "bytes":
            volume = _columns(BYTES, rest.split())
        elif label == "xprt":
            xprt = _xprt(rest.split())
            if xprt:
                xprts.append(xprt)
        else:
            match = _OP.match(line)
            if match and len(match.group(2).split()) >= LEAST_OP_FIELDS:
                ops[match.group(1)] = _columns(OP_FIELDS, match.group(2).split())
    return Mount(
        unescape(source or ""), unescape(path), fstype, version_of(options), age_s, options, events, volume,
        tuple(xprts), ops,
    )  # fmt: skip


def version_of(options: str) -> str | None:
    """The NFS version in effective options, such as "3" or "4.1"; None where they name none."""
    named = dict(word.partition("=")[::2] for word in options.split(","))
    version = named.get("vers") or named.get("nfsvers")
    if version and "." not in version and named.get("minorversion", "0") != "0":
        return "{}.{}".format(version, named["minorversion"])
    return version


def _columns(names: Sequence[str], words: Sequence[str]) -> Counts:
    """Columns by name: an older kernel has fewer, a newer one may have more."""
    return {name: int(word) for name, word in zip(names, words) if word.lstrip("-").isdigit()}


def _xprt(words: Sequence[str]) -> dict[str, Any] | None:
    if not words or words[0] not in XPRT:
        return None
    return {"protocol": words[0], **_columns(XPRT[words[0]], words[1:])}
