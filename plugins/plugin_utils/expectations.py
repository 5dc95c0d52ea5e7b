# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a workload should reach on given volumes: from a published model, from caps that were set, or as the user says.

It must not know what was measured; judge compares. All figures are in bytes and bytes a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import UnitError, parse_size, size_matches
from ansible_collections.hostmax.storage.plugins.plugin_utils import observed
from ansible_collections.hostmax.storage.plugins.plugin_utils.ladder import headline_unit
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import did_you_mean, profile_names
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import (
    WHOLE_IO_BYTES,
    Caps,
    ExpectationError,
    expectation_profile,
    level_figures,
    level_vpu,
    shape_caps,
    total_limit,
    volume_caps,
)

__all__ = [
    "Expectation",
    "ExpectationError",
    "check_expect",
    "known_caps",
    "observed_references",
    "published_references",
    "resolve_expectations",
]

Json = dict[str, Any]
Hosts = Mapping[str, Sequence[Json]]

TOLERANCE = 0.05
CAP_TOLERANCE = 0.02
UNITS = ("iops", "bytes_per_s")
CAP_SOURCE = "cap of the thin volumes, hostmax_thin_cap"
USER_SOURCE = "hostmax_expect"

_PROFILE_KEYS = ("profile", "name", "vpu", "level", "shape", "ocpus", "network_gbps", "tolerance", "workload")
_FIGURE_KEYS = ("name", "iops", "bytes_per_s", "source", "date", "tolerance", "workload")


@dataclass(frozen=True)
class Expectation:
    """One figure to be reached, with where it comes from; `parts` are the limits it is the smallest of.

    `kind` says who expects it: thin_cap, profile (a model), observed, or figure where the user gave it.
    """

    name: str
    value: float
    unit: str
    source: str
    date: str | None
    tolerance: float
    kind: str
    parts: tuple[Json, ...] = ()

    def to_mapping(self) -> Json:
        """Plain data, as a verdict carries it."""
        return {
            "name": self.name,
            "expected": self.value,
            "unit": self.unit,
            "source": self.source,
            "date": self.date,
            "tolerance": self.tolerance,
            "parts": list(self.parts),
        }


# -- what the user asked for ----------------------------------------------------------------------------------------


def check_expect(setting: object, workloads: Sequence[str] = ()) -> list[Json]:
    """`hostmax_expect` as a list of checked mappings ({kind: thin_cap|profile|observed|figure, ...}); [] for none."""
    if setting is None or setting in ("none", "", []):
        return []
    if isinstance(setting, list):
        return [item for each in setting for item in check_expect(each, workloads)]
    if setting == "thin_cap":
        return [{"kind": "thin_cap", "tolerance": CAP_TOLERANCE}]
    if isinstance(setting, str):
        known = ["none", "thin_cap", *profile_names("expectations")]
        if setting not in known:
            hint = did_you_mean(setting, known)
            raise ExpectationError(
                f"hostmax_expect: no expectation is named {setting!r}{hint or ';'} there are: {', '.join(known)}"
            )
        setting = {"profile": setting}
    if not isinstance(setting, Mapping):
        raise ExpectationError(f"hostmax_expect: {setting!r} is neither a name nor a mapping nor a list of them")
    _check_workload(setting, workloads)
    return [_check_profile(setting) if "profile" in setting else _check_figure(setting)]


def _check_workload(setting: Mapping[str, Any], workloads: Sequence[str]) -> None:
    named = setting.get("workload")
    if named is not None and workloads and named not in workloads:
        hint = did_you_mean(str(named), workloads)
        raise ExpectationError(
            f"hostmax_expect: the workload {named!r} is not in this run{hint or ';'} it runs: {', '.join(workloads)}"
        )


def _refuse_keys(setting: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in setting:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise ExpectationError(f"hostmax_expect: {key!r} is no key here{hint or ';'} use {', '.join(known)}")


def _number(setting: Mapping[str, Any], key: str, most: float = float("inf")) -> float:
    value = setting[key]
    try:
        number = float(parse_size(value)) if key == "bytes_per_s" else float(value)
    except (TypeError, ValueError, UnitError):
        number = -1.0
    if isinstance(value, bool) or not 0 < number <= most:
        range_text = "a number above 0" if most == float("inf") else f"a number above 0 and up to {most:g}"
        raise ExpectationError(f"hostmax_expect: {key} is {value!r}; it must be {range_text}")
    return number


def _check_profile(setting: Mapping[str, Any]) -> Json:
    profile = str(setting["profile"])
    model = expectation_profile(profile)
    if observed.is_observed(model):
        return _check_observed(setting, model)
    _refuse_keys(setting, _PROFILE_KEYS)
    if "vpu" in setting and "level" in setting:
        raise ExpectationError("hostmax_expect: vpu and level are both given; give one of them")
    vpu = level_vpu(str(setting.get("level", "balanced")), profile)
    if "vpu" in setting:
        wanted = str(setting["vpu"])
        vpu = int(wanted) if wanted.isdecimal() else -1
        if vpu < 0:
            raise ExpectationError(f"hostmax_expect: vpu is {wanted!r}; it must be a whole number, for example 10")
    level_figures(vpu, profile)
    checked: Json = {"kind": "profile", "profile": profile, "vpu": vpu, "workload": setting.get("workload")}
    checked["name"] = str(setting.get("name") or f"{model['title']}, {vpu} VPU")
    checked["tolerance"] = _number(setting, "tolerance", 1) if "tolerance" in setting else TOLERANCE
    checked["shape"] = setting.get("shape")
    for key in ("ocpus", "network_gbps"):
        checked[key] = _number(setting, key) if setting.get(key) is not None else None
    if checked["shape"] is not None:
        checked["shape"] = str(checked["shape"])
        shape_caps(checked["shape"], checked["ocpus"], checked["network_gbps"], profile)
    elif checked["ocpus"] or checked["network_gbps"]:
        raise ExpectationError("hostmax_expect: ocpus and network_gbps need a flexible shape; give shape")
    return checked


def _check_observed(setting: Mapping[str, Any], profile: Mapping[str, Any]) -> Json:
    _refuse_keys(setting, observed.KEYS)
    return {
        "kind": observed.KIND,
        "profile": profile["name"],
        "volume": observed.check_volume(setting, profile),
        "name": str(setting["name"]) if setting.get("name") else None,
        "tolerance": _number(setting, "tolerance", 1) if "tolerance" in setting else TOLERANCE,
        "workload": setting.get("workload"),
    }


def _check_figure(setting: Mapping[str, Any]) -> Json:
    _refuse_keys(setting, _FIGURE_KEYS)
    units = [unit for unit in UNITS if setting.get(unit) is not None]
    if len(units) != 1:
        raise ExpectationError("hostmax_expect: a figure has either iops or bytes_per_s; or name a profile")
    return {
        "kind": "figure",
        "unit": units[0],
        "value": _number(setting, units[0]),
        "name": str(setting.get("name") or "expected by the user"),
        "source": str(setting.get("source") or USER_SOURCE),
        "date": str(setting["date"]) if setting.get("date") else None,
        "tolerance": _number(setting, "tolerance", 1) if "tolerance" in setting else TOLERANCE,
        "workload": setting.get("workload"),
    }


def resolve_expectations(
    setting: object,
    hosts: Hosts,
    workload: Mapping[str, Any],
    n_volumes: int,
    unit: str | None = None,
) -> list[Expectation]:
    """Every expectation of `hostmax_expect` for one workload on the first `n_volumes` volumes of each host.

    `hosts` gives the volumes of each host as in the plan or the results (size_bytes, cap); `unit` is the quantity the
    workload is run for. A figure of the user is in the unit the user gave. What volumes may give at most is expected of
    workloads that ask for it: not of one I/O at a time, which measures latency, and not of a limited rate.
    """
    unit = unit or headline_unit(workload)
    driven = {host: list(volumes)[:n_volumes] for host, volumes in hosts.items()}
    found = []
    for item in check_expect(setting):
        if item.get("workload") not in (None, workload["name"]):
            continue
        if item["kind"] != "figure" and not item.get("workload") and not _asks_for_all(workload):
            continue
        expectation = _RESOLVERS[item["kind"]](item, driven, workload, unit)
        if expectation is not None:
            found.append(expectation)
    return found


def known_caps(setting: object, hosts: Hosts) -> dict[tuple[str, str], Caps]:
    """What each volume may give, by host and name: its own cap where one was set, else what the expected model says."""
    model = next((item for item in check_expect(setting) if item["kind"] == "profile"), None)
    found = {}
    for host, volumes in hosts.items():
        for volume in volumes:
            cap, size_bytes = volume.get("cap"), volume.get("size_bytes")
            if cap:
                caps = Caps(cap.get("iops"), cap.get("bytes_per_s"), each_direction=True, source="the cap that was set")
            elif model and size_bytes:
                caps = replace(volume_caps(size_bytes, model["vpu"], model["profile"]), source=model["name"])
            else:
                continue
            found[host, volume["name"]] = caps
    return found


def _asks_for_all(workload: Mapping[str, Any]) -> bool:
    """Whether a workload can reach what volumes may give: not with one I/O at a time, nor at a rate of its own."""
    return workload["io_depth"] * workload["num_jobs"] > 1 and not workload.get("rate_iops")


def _from_caps(item: Json, hosts: Hosts, workload: Mapping[str, Any], unit: str) -> Expectation | None:
    caps = {host: [volume.get("cap") for volume in volumes] for host, volumes in hosts.items()}
    if not caps or any(cap is None for each in caps.values() for cap in each) or not any(caps.values()):
        return None
    if workload["block_size_bytes"] > WHOLE_IO_BYTES:
        return None
    # the kernel's throttle caps reads and writes each on their own
    each = {
        host: ([Caps(cap.get("iops"), cap.get("bytes_per_s"), each_direction=True) for cap in found if cap], None)
        for host, found in caps.items()
    }
    value, parts = total_limit(each, workload, unit)
    name = f"{workload['name']}: the caps of {sum(map(len, hosts.values()))} thin volume(s)"
    return Expectation(name, value, unit, CAP_SOURCE, None, item["tolerance"], item["kind"], parts)


def _from_profile(item: Json, hosts: Hosts, workload: Mapping[str, Any], unit: str) -> Expectation:
    source = expectation_profile(item["profile"])["model"]["source"]
    own = shape_caps(item["shape"], item["ocpus"], item["network_gbps"], item["profile"]) if item["shape"] else None
    each: dict[str, tuple[Sequence[Caps], Caps | None]] = {}
    for host, volumes in hosts.items():
        for volume in volumes:
            if volume.get("size_bytes") is None:
                raise ExpectationError(
                    f"host {host}: volume {volume['name']}: its size is not known, which {item['profile']} needs;"
                    " give its size in hostmax_volumes"
                )
        each[host] = ([volume_caps(volume["size_bytes"], item["vpu"], item["profile"]) for volume in volumes], own)
    value, parts = total_limit(each, workload, unit)
    return Expectation(
        item["name"], value, unit, source["title"], source["date"], item["tolerance"], item["kind"], parts
    )


def _from_figure(item: Json, hosts: Hosts, workload: Mapping[str, Any], unit: str) -> Expectation:
    return Expectation(
        item["name"], item["value"], item["unit"], item["source"], item["date"], item["tolerance"], item["kind"]
    )


def _from_observed(item: Json, hosts: Hosts, workload: Mapping[str, Any], unit: str) -> Expectation | None:
    """What was observed on one volume, times the volumes that all hosts share."""
    seen = observed.expected(item, workload)
    if seen is None:
        return None
    shared = max(1, len({volume["name"] for volumes in hosts.values() for volume in volumes}))
    name = (item["name"] or observed.title(seen)) + (f", {shared} volumes" if shared > 1 else "")
    source = seen["source"]
    value = float(seen["value"]) * shared
    return Expectation(name, value, seen["unit"], source["title"], source["date"], item["tolerance"], item["kind"])


_RESOLVERS = {
    "thin_cap": _from_caps,
    "profile": _from_profile,
    "figure": _from_figure,
    observed.KIND: _from_observed,
}


def observed_references(setting: object, hosts: Hosts, workload: Mapping[str, Any], unit: str) -> list[Json]:
    """Observations of the kinds of volumes that are expected, but not of this very case: to compare with."""
    return [
        _reference(seen)
        for item in check_expect(setting)
        if item["kind"] == observed.KIND and item["workload"] in (None, workload["name"])
        for seen in observed.references(item, workload, unit, len(hosts))
    ]


def published_references(hosts: Hosts, workload: Mapping[str, Any], n_volumes: int) -> list[Json]:
    """Published observations of the same case: one host, as many volumes of the same size, the same block size.

    They are what results.json calls references: to compare with, never to judge by.
    """
    if len(hosts) != 1:
        return []
    sizes = [volume.get("size_bytes") for volume in next(iter(hosts.values()))[:n_volumes]]
    found = []
    for name in profile_names("expectations"):
        for seen in expectation_profile(name)["observations"]:
            if seen.get("volumes") == len(sizes) and _same_case(seen, sizes, workload):
                found.append(_reference(seen))
    return found


def _reference(seen: Mapping[str, Any]) -> Json:
    title = seen["source"]["title"]
    return {
        "name": seen["name"],
        "value": seen["value"],
        "unit": seen["unit"],
        "source": f"{title}, observed {seen['observed']}" if "observed" in seen else title,
        "date": seen["source"]["date"],
        "note": seen.get("note"),
    }


def _same_case(seen: Mapping[str, Any], sizes: Sequence[int | None], workload: Mapping[str, Any]) -> bool:
    """Block size and volume size agree; "1 TB" is read as the page means it and as people write it."""
    block, published = workload["block_size_bytes"], parse_size(seen["block_size"])
    if block != published and not (seen.get("or_larger") and block > published):
        return False
    size_gb = seen["size_gb"]
    declared = f"{size_gb // 1024}TB" if size_gb % 1024 == 0 else f"{size_gb}GB"
    return all(size is not None and size_matches(declared, size) for size in sizes)
