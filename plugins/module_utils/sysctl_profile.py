# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tuning of a host: sysctl keys and module parameters set live and for the next boot, each read back, and put back.

Must not know: where the values come from (profiles), mounts, what is measured; every change is in the journal first.
"""

from __future__ import annotations

import os
import shutil
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils import (
    host_state,
    sysctl_config,
    sysctl_keys,
    sysctl_live,
    system_file,
)
from ansible_collections.hostmax.storage.plugins.module_utils.journal import LEFT, RESTORED, Entry, Handler, Journal
from ansible_collections.hostmax.storage.plugins.module_utils.sysctl_keys import PARAMETER, SYSCTL, Name, SysctlError
from ansible_collections.hostmax.storage.plugins.module_utils.sysctl_live import Result

# modules that the collection may load, because what they hold is part of the tuning
_MAY_LOAD = ("sunrpc", "nfs")
# what was set, or would be, and so belongs into the files for the next boot
_KEPT = (sysctl_live.SET, sysctl_live.ALREADY, sysctl_live.CLAMPED)
HANDLERS: dict[str, Handler] = {**sysctl_live.HANDLERS, **system_file.HANDLERS}


class Wanted(NamedTuple):
    """The tuning somebody asks for: values by name in the order given, what is told of them, and how long they stay."""

    run_id: str
    values: Mapping[Name, str]
    persistent: bool
    title: str
    warnings: Sequence[str]
    root: str


def want(
    run_id: str,
    keys: Iterable[Mapping[str, Any]],
    parameters: Iterable[Mapping[str, Any]] = (),
    persistent: bool = True,
    title: str = "",
    root: str = "/",
) -> Wanted:
    """Check what is asked for by itself, before looking at the host. Raises SysctlError."""
    host_state.work_dir(run_id)
    values: dict[Name, str] = {}
    warnings: list[str] = []
    given = [(sysctl_keys.preferred(sysctl_keys.sysctl_name(_get(each, "key"))), each) for each in keys]
    given += [(sysctl_keys.parameter_name(_get(each, "module"), _get(each, "parameter")), each) for each in parameters]
    for name, each in given:
        value = sysctl_keys.clean_value(_get(each, "value"), name.key)
        if name in values and not sysctl_keys.same(values[name], value):
            warnings.append(f"{name.key} is given as {values.pop(name)} and then as {value}; the last counts.")
        values[name] = value
    for name in values:
        partner = sysctl_keys.PARTNERS.get(name.key)
        if partner and Name(SYSCTL, partner) in values:
            raise SysctlError(f"{name.key} and {partner} exclude one another, setting one clears the other; keep one.")
    return Wanted(run_id, values, persistent, " ".join(title.split()), warnings, root)


def _get(each: Mapping[str, Any], field: str) -> Any:
    if not isinstance(each, Mapping) or each.get(field) is None:
        raise SysctlError(f"The tuning entry {each!r} has no {field}; give one.")
    return each[field]


def apply(wanted: Wanted, book: Journal, run: host_state.Run = host_state.run_command) -> dict[str, Any]:
    """Make the host's tuning of this run exactly this, and return the result of the module of this name.

    What the run has set before and is not wanted any more is put back first. A value that cannot be set is told and
    does not stop the others. Raises HostError where the journal or a file cannot be written.
    """
    if not planned(wanted, book, run)["changed"]:
        return planned(wanted, book, run)
    if wanted.root == "/" and not host_state.is_root():
        raise SysctlError("Tuning this host needs root; set become: true.")
    warnings = list(wanted.warnings)
    host_state.make_work_dir(wanted.run_id)
    with book.held():
        undone = _undo(book, _unwanted(book, wanted), check=False)
        _load_modules(wanted, warnings, run)
        results = sysctl_live.set_all(wanted.values, book, wanted.root)
        files = _write_files(wanted, results, book)
        _end_preparation(book)
    return _finish(wanted, results, files, undone, warnings)


def planned(wanted: Wanted, book: Journal, run: host_state.Run = host_state.run_command) -> dict[str, Any]:
    """What apply would return, as far as it can be known without changing anything."""
    warnings = list(wanted.warnings)
    undone = _undo(book, _unwanted(book, wanted), check=True)
    results = _planned(wanted, book, warnings, run)
    files = _planned_files(wanted, results) + _surplus_files(book, wanted, results, check=True)
    return _finish(wanted, results, files, undone, warnings)


def absent(book: Journal, check: bool = False) -> dict[str, Any]:
    """Put all tuning of this run back, and return what apply does; "left" names what was not, and why.

    A standing preparation that changed nothing else ends with it.
    """
    result = book.restore(HANDLERS, check=check, kinds=HANDLERS)
    if not check:
        _end_preparation(book)
    warnings = [f"{each['what']} was not put back: {each['why']}" for each in result["left"]]
    nothing: dict[str, Any] = {"keys": [], "files": [], "files_changed": [], "warnings": warnings}
    return {**nothing, **result, "changed": bool(result["restored"])}


def difference(tuning: Mapping[str, Any]) -> dict[str, str]:
    """The live values and files that a call changed, as Ansible shows differences."""
    lines: dict[str, list[str]] = {"before": [], "after": []}
    for each in tuning["keys"]:
        if each["changed"]:
            for side, found in lines.items():
                found.append(f"{each['key']} = {each[side]}\n")
    for path in tuning["files_changed"]:
        side = "after" if path in tuning["files"] else "before"
        lines[side].append(f"{path}\n")
    lines["before"] += [f"{what}\n" for what in tuning["restored"]]
    return {side: "".join(found) for side, found in lines.items()}


def _end_preparation(book: Journal) -> None:
    """A preparation of which nothing stands any more has ended."""
    if book.run_id == host_state.PREPARED and all(entry.result is not None for entry in book.entries()):
        host_state.remove_work_dir(book.run_id)


# -- parts of apply ---------------------------------------------------------------------------------------------------


def _unwanted(book: Journal, wanted: Wanted) -> list[Entry]:
    """What this run changed that the new tuning does not name; its files follow from what is named."""
    units = {(name.kind, sysctl_live.unit_key(name)) for name in wanted.values}
    return [
        entry
        for entry in book.entries()
        if entry.result is None and entry.kind in sysctl_live.HANDLERS and (entry.kind, entry.key) not in units
    ]


def _undo(book: Journal, entries: list[Entry], check: bool) -> list[dict[str, str]]:
    """Put these back, the last first; [{"what", "why" it was left or ""}] of what was not just as before."""
    told = []
    for entry in reversed(entries):
        outcome = HANDLERS[entry.kind](entry, check)
        if outcome.state != LEFT and not check:
            book.restored(entry.id, outcome.state)
        if outcome.state in (LEFT, RESTORED):
            told.append({"what": entry.what, "why": outcome.why})
    return told


def _write_files(wanted: Wanted, results: Sequence[Result], book: Journal) -> list[str]:
    """Put our files in place, and take away those of an earlier call that are not wanted now; the changed ones."""
    contents = _file_contents(wanted, results)
    changed = []
    for path, content in contents.items():
        if system_file.put(book, path, content):
            changed.append(path)
    return changed + _surplus_files(book, wanted, results, check=False)


def _surplus_files(book: Journal, wanted: Wanted, results: Sequence[Result], check: bool) -> list[str]:
    """Take away the files of an earlier call that are not wanted now, and name them."""
    contents = _file_contents(wanted, results)
    surplus = [
        entry
        for entry in book.entries()
        if (entry.kind, entry.result) == (system_file.KIND, None)
        and _is_ours(str(entry.key), wanted)
        and entry.key not in contents
    ]
    left = [each["what"] for each in _undo(book, surplus, check) if each["why"]]
    return [str(entry.key) for entry in surplus if entry.what not in left]


def _is_ours(path: str, wanted: Wanted) -> bool:
    """Whether a file of this run's journal is one of tuning; others (fstab) may stand in it too."""
    sysctl_path, module_pattern = sysctl_config.file_names(wanted.run_id, wanted.root)
    return path == sysctl_path or path.startswith(module_pattern.partition("{")[0])


def _file_contents(wanted: Wanted, results: Sequence[Result]) -> dict[str, str]:
    """Our files: a key that this host refuses or does not have would only be an error at every boot."""
    if not wanted.persistent:
        return {}
    kept = {each.name: wanted.values[each.name] for each in results if _is_kept(each)}
    return sysctl_config.contents(wanted.run_id, wanted.title, kept, wanted.root)


def _is_kept(result: Result) -> bool:
    if result.name.kind == PARAMETER and result.status == sysctl_live.NOT_LOADED:
        return True
    return result.status in _KEPT


def _planned_files(wanted: Wanted, results: Sequence[Result]) -> list[str]:
    contents = _file_contents(wanted, results)
    return [path for path, content in contents.items() if system_file.look(path).content != content]


def _planned(wanted: Wanted, book: Journal, warnings: list[str], run: host_state.Run) -> list[Result]:
    """What would come of each value; one in a module that can be loaded is taken as to be set."""
    results = []
    loadable: dict[str, bool] = {}
    for each in sysctl_live.look_all(wanted.values, book, wanted.root):
        module = each.name.module
        if each.status == sysctl_live.NOT_LOADED and module in _MAY_LOAD:
            if module not in loadable:
                loadable[module] = _modprobe(["--dry-run", "--quiet", module], wanted.root, run)
                if loadable[module]:
                    warnings.append(f"The kernel module {module} would be loaded.")
            if loadable[module]:
                each = each._replace(
                    status=sysctl_live.SET, changed=True, note=f"The kernel module {module} would be loaded."
                )
        results.append(each)
    return results


def _load_modules(wanted: Wanted, warnings: list[str], run: host_state.Run) -> None:
    """Load the modules without which a wanted value is not there, before a file of ours says what they begin with."""
    needed = dict.fromkeys(
        str(name.module)
        for name in wanted.values
        if name.module in _MAY_LOAD and not sysctl_keys.look(name, wanted.root).exists
    )
    for module in needed:
        if sysctl_keys.is_loaded(module, wanted.root):
            continue
        if _modprobe([module], wanted.root, run):
            warnings.append(f"The kernel module {module} was loaded, so that its values can be set; it stays loaded.")


def _modprobe(arguments: list[str], root: str, run: host_state.Run) -> bool:
    """Ask modprobe, where the host has one; whether it did what it was asked."""
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    program = shutil.which("modprobe", path=path)
    return root == "/" and program is not None and run([program, *arguments])[0] == 0


def _finish(
    wanted: Wanted, results: Sequence[Result], files: list[str], undone: list[dict[str, str]], warnings: list[str]
) -> dict[str, Any]:
    """The result in words and figures, as the module returns it."""
    root = wanted.root
    kept = {each.name: wanted.values[each.name] for each in results if _is_kept(each)}
    if wanted.persistent:
        warnings += sysctl_config.sentences(sysctl_config.elsewhere(kept, wanted.run_id, root), root)
    if wanted.values:
        warnings += _surroundings(wanted, results)
    left = [each for each in undone if each["why"]]
    warnings += [f"{each['what']} of an earlier call was not put back: {each['why']}" for each in left]
    restored = [each["what"] for each in undone if not each["why"]]
    return {
        "keys": [each.as_dict() for each in results],
        "files": sorted(_file_contents(wanted, results)),
        "files_changed": files,
        "restored": restored,
        "left": left,
        "warnings": warnings,
        "changed": any(each.changed for each in results) or bool(files) or bool(restored),
    }


def _surroundings(wanted: Wanted, results: Sequence[Result]) -> list[str]:
    """What on this host may undo the tuning or keep it from having an effect."""
    root, told = wanted.root, []
    foreign = [each.name.key for each in results if each.status == sysctl_live.OTHER_NAMESPACE]
    if foreign:
        told.append(
            f"This host is in a network namespace of its own (as a container is), which does not own {_some(foreign)}; "
            "set them on the machine itself."
        )
    profile = sysctl_config.tuned_profile(root)
    if profile is not None:
        told.append(
            f"tuned is running with the profile {profile}; it sets its own values again when it is started or changes "
            "its profile. It was left as it is."
        )
    slots = [each.name.key for each in results if each.name.module in _MAY_LOAD and each.changed]
    if slots and sysctl_config.has_nfs_mounts(root):
        told.append(
            f"{_some(slots)}: connections to NFS servers that are mounted now keep what they were made with, until all "
            "mounts of the server were unmounted."
        )
    return told


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
