# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Profiles: the collection's named, sourced and dated data, found beside this code, loaded and checked.

It must not know what a profile's figures mean; expectations and settings do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.hostmax.storage.plugins.module_utils.workload import JobError, Workload

Json = dict[str, Any]

COLLECTION = Path(__file__).parents[2]
# the keys a profile of each kind must have; every one of them has a source with a title and a date
REQUIRED = {
    "workloads": ("name", "title", "source", "default", "workloads"),
    "expectations": ("name", "title", "publisher", "units", "observations"),
    "mount": ("name", "title", "source", "options", "notes"),
    "tuning": ("name", "title", "source", "keys"),
    "conditions": ("name", "title", "source", "conditions"),
    "studies": ("name", "title", "source", "settings"),
}
# what a workload in a set says about itself besides the access pattern
REMARKS = ("documented", "corrected")


class ProfileError(ValueError):
    """A profile that is not there or not usable; the message is one sentence for the user."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`, did you mean X?` for a name close to a known one, else nothing."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f", did you mean {close[0]}?" if close else ""


def profile_names(kind: str) -> list[str]:
    """The profiles of a kind (`workloads`, `expectations`, `mount`, `tuning`, …) this collection ships."""
    return sorted(path.stem for path in (COLLECTION / "profiles" / kind).glob("*.yml"))


def _one(kind: str) -> str:
    return kind.removesuffix("s")


@cache
def load_profile(kind: str, name: str) -> Json:
    """One profile, checked; the result is shared and must not be changed."""
    known = profile_names(kind)
    if name not in known:
        hint = did_you_mean(name, known)
        raise ProfileError(f"no {_one(kind)} profile is named {name!r}{hint or ';'} there are: {', '.join(known)}")
    path = COLLECTION / "profiles" / kind / f"{name}.yml"
    try:
        profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ProfileError(f"the {_one(kind)} profile {path} cannot be read: {error}") from error
    _check(profile, kind, path)
    return dict(profile)


def _check(profile: object, kind: str, path: Path) -> None:
    missing = [key for key in REQUIRED[kind] if not isinstance(profile, Mapping) or key not in profile]
    if missing or not isinstance(profile, Mapping):
        raise ProfileError(f"the {_one(kind)} profile {path} lacks {', '.join(missing)}")
    if kind == "expectations" and "model" not in profile and "volumes" not in profile:
        raise ProfileError(f"the {_one(kind)} profile {path} has neither a model nor the volumes it observed")
    if profile["name"] != path.stem:
        raise ProfileError(f"the {_one(kind)} profile {path} calls itself {profile['name']!r}, unlike its file")
    for place, source in _sources(profile):
        if not all(isinstance(source.get(key), str) and source[key] for key in ("title", "date")):
            raise ProfileError(f"the {_one(kind)} profile {path} gives no title and date for the source of {place}")


def _sources(profile: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Every place in a profile that holds figures, with the source it names (empty where it names none)."""
    if "source" in profile:
        yield "the set", profile["source"]
        return
    # a publisher may give figures that were observed and no model to compute others from
    for part in ("model", "shapes"):
        if part in profile:
            yield f"the {part}", profile[part].get("source", {})
    for observation in profile["observations"]:
        yield f"the observation {observation.get('name')!r}", observation.get("source", {})


@cache
def workload_sets() -> dict[str, tuple[str, ...]]:
    """The names of the workload sets, each with the workloads that run when the set is named."""
    return {name: tuple(load_profile("workloads", name)["default"]) for name in profile_names("workloads")}


@cache
def named_workloads() -> dict[str, Workload]:
    """Every workload of every set by its name; a name may stand in one set only."""
    found: dict[str, Workload] = {}
    for set_name in profile_names("workloads"):
        profile = load_profile("workloads", set_name)
        for entry in profile["workloads"]:
            mapping = {key: value for key, value in entry.items() if key not in REMARKS}
            try:
                workload = Workload.from_mapping(mapping)
            except JobError as error:
                raise ProfileError(f"the workload set {set_name} is not usable: {error}") from error
            if workload.name in found:
                raise ProfileError(f"the workload {workload.name} stands in two sets, one of them {set_name}")
            found[workload.name] = workload
        unknown = [name for name in profile["default"] if name not in found]
        if unknown:
            raise ProfileError(f"the workload set {set_name} runs {', '.join(unknown)}, which it does not describe")
    return found


def resolve_workloads(names: Iterable[str]) -> list[Workload]:
    """The workloads meant by names of workloads or of sets, in the order given, each once."""
    known, sets = named_workloads(), workload_sets()
    chosen: dict[str, Workload] = {}
    for name in names:
        if name not in known and name not in sets:
            hint = did_you_mean(name, [*known, *sets])
            there_are = f"; there are: {', '.join(sorted(known))} and the sets {', '.join(sorted(sets))}"
            raise ProfileError(f"no workload is named {name!r}{hint or there_are}")
        for member in sets.get(name, (name,)):
            chosen.setdefault(member, known[member])
    return list(chosen.values())
