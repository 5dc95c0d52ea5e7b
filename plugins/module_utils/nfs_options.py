# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One form of NFS mount options: for what a user asks and for what the kernel says is in effect, so that they compare.

Must not know: mounting, hosts, profiles; it turns words into words.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ansible_collections.hostmax.storage.plugins.module_utils import host_state

Options = Dict[str, str]  # canonical name to value; a switch is "yes" or "no"
Words = List[Tuple[str, Optional[str]]]

LARGEST_IO_BYTES = 2**20
SMALLEST_IO_BYTES = 1024
FALLBACK_IO_BYTES = 4096
LARGEST_NCONNECT = 16
_ATTRIBUTE_TIMES = ("acregmin", "acregmax", "acdirmin", "acdirmax")
_NUMBERS = (*_ATTRIBUTE_TIMES, "actimeo", "rsize", "wsize", "nconnect", "timeo", "retrans", "port", "minorversion")

# what the kernel does not show while it is at its default (nfs(5) and fs/nfs/super.c of Linux 6.12, 2024-11)
DEFAULTS: Options = {
    "acregmin": "3",
    "acregmax": "60",
    "acdirmin": "30",
    "acdirmax": "60",
    "ac": "yes",
    "acl": "yes",
    "atime": "relatime",
    "cto": "yes",
    "dev": "yes",
    "diratime": "yes",
    "exec": "yes",
    "fsc": "no",
    "lock": "yes",
    "lookupcache": "all",
    "nconnect": "1",
    "rdirplus": "yes",
    "recovery": "hard",
    "resvport": "yes",
    "sharecache": "yes",
    "softreval": "no",
    "suid": "yes",
    "sync": "no",
    "write": "yes",
}

# words that mean a value of an option with another name
_WORDS: dict[str, Options] = {
    "actimeo": {},  # has a value, see _expand
    "async": {"sync": "no"},
    "sync": {"sync": "yes"},
    "ro": {"write": "no"},
    "rw": {"write": "yes"},
    "hard": {"recovery": "hard"},
    "soft": {"recovery": "soft"},
    "softerr": {"recovery": "softerr"},
    "tcp": {"proto": "tcp"},
    "udp": {"proto": "udp"},
    "rdma": {"proto": "rdma"},
    "noac": {"ac": "no", "sync": "yes"},
    "noatime": {"atime": "noatime"},
    "relatime": {"atime": "relatime"},
    "strictatime": {"atime": "strictatime"},
    "atime": {"atime": "relatime"},
}
_SWITCHES = (
    *("ac", "acl", "cto", "dev", "diratime", "exec", "fsc", "lock", "migration", "rdirplus", "resvport"),
    *("sharecache", "softreval", "suid", "trunkdiscovery"),
)
for _name in _SWITCHES:
    _WORDS.setdefault(_name, {_name: "yes"})
    _WORDS.setdefault("no" + _name, {_name: "no"})

# what never reaches the kernel, or is taken by it and dropped: nothing can be read back
_UNSEEN = {
    **dict.fromkeys(("bg", "fg"), "background"),
    **dict.fromkeys(("intr", "nointr"), "interruptible"),
    **dict.fromkeys(("auto", "noauto"), "at_boot"),
    **dict.fromkeys(("user", "users", "nouser", "owner", "group"), "who_may_mount"),
    **{name: name for name in ("retry", "_netdev", "nofail", "defaults", "comment")},
}
LEGACY = {
    "intr": "is ignored by the kernel since 2.6.25",
    "nointr": "is ignored by the kernel since 2.6.25",
    "udp": "is not supported by kernels since 5.6",
    "noacl": "only concerns NFSv2 and NFSv3",
    "bg": "lets mount return before anything is mounted, so tests mount in the foreground instead",
}


class OptionError(host_state.HostError):
    """Why an option string cannot be used; one sentence."""


class Difference(NamedTuple):
    """An option that is not in effect as asked, and the sentence for it."""

    name: str
    sentence: str


# -- reading ----------------------------------------------------------------------------------------------------------


def parse(text: str) -> Words:
    """The words of an option string in their order, each with its value or None; refuses what no option can be."""
    words: Words = []
    for part in text.split(","):
        if not part:
            continue
        if re.search(r"[\s\"'\\\x00-\x1f]", part):
            raise OptionError(
                f"The mount option {part!r} holds a blank or a quote; give the options as name=value,name."
            )
        name, equals, value = part.partition("=")
        if not name:
            raise OptionError(f"The mount option {part!r} has no name; give the options as name=value,name.")
        _check_number(name, value if equals else None)
        words.append((name, value if equals else None))
    return words


def _check_number(name: str, value: str | None) -> None:
    if name not in _NUMBERS:
        return
    if value is None or not re.fullmatch(r"[0-9]{1,9}", value, re.ASCII):
        raise OptionError(f"The mount option {name} needs a whole number, as in {name}=8; it is {value or 'empty'!r}.")
    if name == "nconnect" and not 1 <= int(value) <= LARGEST_NCONNECT:
        raise OptionError(f"The mount option nconnect={value} is not possible; use 1 to {LARGEST_NCONNECT}.")


def _text(word: str, value: str | None) -> str:
    return word if value is None else f"{word}={value}"


def _expand(word: str, value: str | None) -> Options:
    """What one word sets, in canonical names."""
    if word == "actimeo":
        return dict.fromkeys(_ATTRIBUTE_TIMES, _number(value))
    if word in ("vers", "nfsvers") or (value is None and re.fullmatch(r"v[234](\.[0-9])?", word)):
        vers = value if value is not None else word[1:]
        return {"vers": vers, "minor": vers.partition(".")[2]}
    if word == "minorversion":
        return {"minor": _number(value)}
    if word == "xprtsec" or (value is not None and word not in _UNSEEN):
        return {word: _number(value) if word in _NUMBERS else str(value)}
    if value is None and word in _WORDS:
        return dict(_WORDS[word])
    return {_UNSEEN.get(word, word): "yes" if value is None else value}


def _number(value: str | None) -> str:
    return str(int(value or "0"))


def is_unseen(word: str) -> bool:
    """Whether an option is for mount, systemd or nobody, so that the kernel never shows it."""
    return word in _UNSEEN or word.startswith("x-")


def canonical(text: str) -> Options:
    """What an option string sets, one name and value each; of words that contradict each other the last counts."""
    found: Options = {}
    for word, value in parse(text):
        if not is_unseen(word):
            found.update(_expand(word, value))
    return _join_version(found)


def _join_version(found: Options) -> Options:
    """vers=4 with minorversion=1 is vers=4.1."""
    minor = found.pop("minor", "")
    if found.get("vers") == "4" and minor:
        found["vers"] = "4." + minor
    return found


def effective(*texts: str) -> Options:
    """What the kernel says (mountstats `opts:`, the two option fields of mountinfo), with the defaults it hides."""
    shown: Options = {}
    for text in texts:
        shown.update(canonical(_safe(text)))
    if shown.get("proto") in ("tcp6", "udp6", "rdma6"):
        shown["proto"] = shown["proto"][:-1]
    return {**DEFAULTS, **shown}


def _safe(text: str) -> str:
    """Words of the kernel that hold blanks (a SELinux context) are no options of NFS."""
    return ",".join(part for part in text.split(",") if not re.search(r"[\s\"'\\]", part))


# -- joining ----------------------------------------------------------------------------------------------------------


def merge(*texts: str) -> str:
    """One option string of several, a later word taking the place of the earlier ones it overrides.

    merge("hard,vers=3,tcp", "nocto,vers=4.1") is "hard,tcp,nocto,vers=4.1".
    """
    kept: Words = []
    overridden: set[str] = set()
    for word, value in reversed([pair for text in texts for pair in parse(text)]):
        names = set(_expand(word, value))
        if not names <= overridden:
            kept.append((word, value))
            overridden |= names
    return ",".join(_text(*pair) for pair in reversed(kept))


def for_mounting(text: str) -> str:
    """The words that mount.nfs is given: without those for fstab and systemd, and in the foreground, tried once."""
    words = [_text(*pair) for pair in parse(merge(text)) if not is_unseen(pair[0])]
    return ",".join([*words, "retry=0"])


def same(one: str, other: str) -> bool:
    """Whether two option strings ask for the same mount."""
    return canonical(one) == canonical(other)


# -- comparing --------------------------------------------------------------------------------------------------------


def differences(asked: str, in_effect: Options, page_bytes: int = 4096) -> list[Difference]:
    """Every asked option that is in effect with another value, with a sentence that says why where it is known."""
    found = []
    for name, wanted in canonical(asked).items():
        got = in_effect.get(name)
        if got is not None and not _fits(name, wanted, got):
            found.append(Difference(name, _sentence(name, wanted, got, page_bytes)))
    return found


def _fits(name: str, wanted: str, got: str) -> bool:
    if name == "vers" and wanted == "4":
        return got.split(".")[0] == "4"
    if name == "proto":
        return wanted.rstrip("6") == got.rstrip("6")
    if name == "sec":
        return got in wanted.split(":")
    return wanted == got


def _sentence(name: str, wanted: str, got: str, page_bytes: int) -> str:
    asked, in_effect = as_option(name, wanted), as_option(name, got)
    if name in ("rsize", "wsize"):
        return _size_sentence(asked, int(wanted), in_effect, int(got), page_bytes)
    if name == "nconnect":
        return (
            f"{asked} was asked and is ignored, {in_effect} is in effect: the first mount of a server decides for all "
            "later ones of the same version."
        )
    return f"{asked} was asked, {in_effect} is in effect."


def _size_sentence(asked: str, wanted: int, in_effect: str, got: int, page_bytes: int) -> str:
    possible = kernel_io_bytes(wanted, page_bytes)
    if got < possible:
        return f"{asked} was asked, the server allows no more than {in_effect}."
    if got == possible and wanted > LARGEST_IO_BYTES:
        return f"{asked} was asked, the kernel takes no more than 1 MiB: {in_effect}."
    if got == possible and wanted < SMALLEST_IO_BYTES:
        return f"{asked} was asked, the kernel takes {in_effect} for anything below {SMALLEST_IO_BYTES}."
    if got == possible:
        return f"{asked} was asked, the kernel rounds it down to {in_effect}."
    return f"{asked} was asked, {in_effect} is in effect."


def kernel_io_bytes(wanted: int, page_bytes: int = 4096) -> int:
    """What the kernel makes of an rsize or wsize over TCP before it asks the server (fs/nfs/internal.h nfs_io_size)."""
    if wanted < SMALLEST_IO_BYTES:
        return FALLBACK_IO_BYTES
    if wanted >= LARGEST_IO_BYTES:
        return LARGEST_IO_BYTES
    if wanted < page_bytes:
        return 1 << (wanted.bit_length() - 1)
    return wanted // page_bytes * page_bytes


def unverifiable(asked: str, in_effect: Options) -> list[str]:
    """The asked options of which the kernel shows nothing, as they were written."""
    return [
        _text(word, value)
        for word, value in parse(asked)
        if is_unseen(word)
        or not {"vers" if name == "minor" else name for name in _expand(word, value)} <= set(in_effect)
    ]


def as_option(name: str, value: str) -> str:
    """A canonical option as people write it: nocto, hard, rsize=65536."""
    if name in ("recovery", "atime"):
        return value
    if name == "write":
        return "rw" if value == "yes" else "ro"
    if name == "sync":
        return "sync" if value == "yes" else "async"
    if name in _SWITCHES and value in ("yes", "no"):
        return name if value == "yes" else "no" + name
    if value == "yes" and name not in _NUMBERS:
        return name
    return f"{name}={value}"
