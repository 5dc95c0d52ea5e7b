# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a host's files say of sysctl keys and module parameters at boot: ours written, those of others read and told.

Must not know: live values, the journal; a file of somebody else is never touched.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from typing import Dict, Iterable, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.module_utils.sysctl_keys import (
    PARAMETER,
    SYSCTL,
    Name,
    SysctlError,
    parameter_name,
    preferred,
    same,
    sysctl_name,
)

# in the order of precedence of a file name that stands in several (sysctl.d(5), modprobe.d(5))
_PLACES = ("etc", "run", "usr/local/lib", "usr/lib", "lib")
# beside sysctl.d, the file that `sysctl --system` of procps applies last of all, and systemd not at all
_LEGACY_FILE = "etc/sysctl.conf"
_OURS = "zz-hostmax"
Settings = Dict[Name, str]


class Elsewhere(NamedTuple):
    """A setting in a file of somebody else: where, what, and whether it is applied after ours."""

    path: str
    name: Name
    value: str
    later: bool


# -- our files --------------------------------------------------------------------------------------------------------


def file_names(run_id: str, root: str = "/") -> tuple[str, str]:
    """Our sysctl.d file, and the pattern of our modprobe.d files; named to come last, after 99-sysctl.conf too."""
    own = "" if run_id == host_state.PREPARED else "-" + run_id
    return (
        os.path.join(root, f"etc/sysctl.d/{_OURS}{own}.conf"),
        os.path.join(root, f"etc/modprobe.d/{_OURS}{own}-{{}}.conf"),
    )


def contents(run_id: str, title: str, wanted: Settings, root: str = "/") -> dict[str, str]:
    """The files that set these values at boot, by path; none where there is nothing to set."""
    head = "".join(
        f"# {line}\n"
        for line in (
            f"hostmax.storage: {title}" if title else "hostmax.storage",
            f"Put in place by the run {run_id}; the playbook hostmax.storage.restore removes it again.",
        )
    )
    sysctl_path, module_pattern = file_names(run_id, root)
    found: dict[str, str] = {}
    keys = {name: value for name, value in wanted.items() if name.kind == SYSCTL}
    if keys:
        # a key of a module that is not loaded yet at boot is no error there
        lines = [f"{'-' if name.module else ''}{name.key} = {value}\n" for name, value in keys.items()]
        found[sysctl_path] = head + "".join(lines)
    for module in sorted({name.key.split("/")[0] for name in wanted if name.kind == PARAMETER}):
        options = [
            f"{name.key.split('/')[1]}={_quoted(value)}"
            for name, value in wanted.items()
            if name.kind == PARAMETER and name.key.startswith(module + "/")
        ]
        found[module_pattern.format(module)] = head + f"options {module} {' '.join(options)}\n"
    return found


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


# -- the files of others ----------------------------------------------------------------------------------------------


def elsewhere(wanted: Settings, run_id: str, root: str = "/") -> list[Elsewhere]:
    """Other files that set one of these names to another value at boot, in the order in which they are applied."""
    sysctl_path, module_pattern = file_names(run_id, root)
    found: list[Elsewhere] = []
    for path in _configured("sysctl.d", root):
        later = os.path.basename(path) > os.path.basename(sysctl_path)
        for each in _different(path, read_sysctl_file(path), wanted, later):
            # a sysctl key that is a module's parameter is set, if at all, after the module was loaded with our option
            found.append(each._replace(later=later or each.name.kind == PARAMETER))
    legacy = os.path.join(root, _LEGACY_FILE)
    if os.path.exists(legacy):
        found += _different(legacy, read_sysctl_file(legacy), wanted, later=True)
    for path in _configured("modprobe.d", root):
        for each in _different(path, read_module_file(path), wanted, later=False):
            ours = os.path.basename(module_pattern.format(each.name.key.split("/")[0]))
            found.append(each._replace(later=os.path.basename(path) > ours))
    return found


def sentences(found: Iterable[Elsewhere], root: str = "/") -> list[str]:
    """What to tell of other files, one sentence for each file and outcome."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for each in found:
        groups.setdefault((each.path, each.later), []).append(f"{each.name.key} = {each.value}")
    legacy = os.path.join(root, _LEGACY_FILE)
    told = []
    for (path, later), settings in groups.items():
        if path == legacy:
            end = "`sysctl --system` applies it after all others, at boot systemd does not read it under this name"
        elif later:
            end = "it is applied after the file of hostmax.storage and wins at the next boot"
        else:
            end = "the file of hostmax.storage is applied after it and wins"
        told.append(f"{path} sets {', '.join(settings)} too; {end}. It was left as it is.")
    return told


def _configured(directory: str, root: str) -> list[str]:
    """The .conf files of one kind, ours left out, in the order in which they are applied."""
    found: dict[str, str] = {}
    for place in reversed(_PLACES):
        base = os.path.join(root, place, directory)
        names: Sequence[str] = ()
        with contextlib.suppress(OSError):
            names = os.listdir(base)
        for name in names:
            if name.endswith(".conf") and not name.startswith(_OURS):
                found[name] = os.path.join(base, name)
    return [found[name] for name in sorted(found)]


def _different(path: str, settings: list[tuple[Name, str]], wanted: Settings, later: bool) -> list[Elsewhere]:
    """The last value of each wanted name in one file, where it is not ours."""
    last: dict[Name, str] = {}
    for pattern, value in settings:
        for name in wanted:
            if name.kind == pattern.kind and fnmatch.fnmatchcase(name.key, pattern.key):
                last[name] = value
    return [Elsewhere(path, name, value, later) for name, value in last.items() if not same(value, wanted[name])]


def read_sysctl_file(path: str) -> list[tuple[Name, str]]:
    """The settings of a sysctl.d file, in order; what is no setting is passed over. Keys may be patterns."""
    found = []
    for line in _lines(path):
        if line[:1] in ("#", ";") or "=" not in line:
            continue
        key, _equals, value = line.partition("=")
        key = key.strip().lstrip("-").strip()
        try:
            found.append((preferred(sysctl_name(key)), value.strip()))
        except SysctlError:
            # a pattern as systemd knows it
            dotted = key.replace("/", ".") if re.match(r"[^.]*/", key) else key
            found.append((Name(SYSCTL, dotted), value.strip()))
    return found


def read_module_file(path: str) -> list[tuple[Name, str]]:
    """The `options` lines of a modprobe.d file, in order."""
    found = []
    for line in _lines(path):
        words = line.split()
        if words[:1] == ["options"] and len(words) > 2:
            for option in words[2:]:
                parameter, _equals, value = option.partition("=")
                with contextlib.suppress(SysctlError):
                    found.append((parameter_name(words[1], parameter), value.strip('"')))
    return found


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            text = handle.read()
    except OSError:
        return []
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


# -- daemons ----------------------------------------------------------------------------------------------------------


def tuned_profile(root: str = "/") -> str | None:
    """The profile of a tuned daemon that runs on this host; None where none runs."""
    pid = _first_line(os.path.join(root, "run/tuned/tuned.pid"))
    if not pid.isdigit() or "tuned" not in _command(os.path.join(root, "proc", pid)):
        return None
    return _first_line(os.path.join(root, "etc/tuned/active_profile")) or "unnamed"


def _command(process: str) -> str:
    try:
        with open(os.path.join(process, "cmdline"), "rb") as handle:
            return handle.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _first_line(path: str) -> str:
    return next(iter(_lines(path)), "")


def has_nfs_mounts(root: str = "/") -> bool:
    """Whether an NFS mount is there: its connections keep the slots they were made with."""
    lines = _lines(os.path.join(root, "proc/self/mountinfo"))
    return any(line.partition(" - ")[2].startswith(("nfs ", "nfs4 ")) for line in lines)
