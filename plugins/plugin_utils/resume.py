# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An interrupted run goes on in a new one: which of its points may be kept, and how they come into the new plan.

It must not know how a point is measured or what its figures are worth; the gates judge kept samples like all others.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.fio_output import unpack_sample
from ansible_collections.hostmax.storage.plugins.module_utils.test_file_places import is_directory
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import Clock, clocks_of_run
from ansible_collections.hostmax.storage.plugins.plugin_utils.gates import MIN_OVERLAP
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import (
    RunDirectory,
    RunDirectoryError,
    open_run,
    safe_file_name,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.stages import set_times

Json = dict[str, Any]

# of a run and not of what it measures, so never a reason to measure again
_NOT_MEASURED = ("results", "expect", "fail_on", "seed", "settle_s", "fio_install", "patience_s", "shared_volumes")
# what a host's samples depend on besides the plan: (fact, its name in a sentence)
_FACTS = (
    ("fio_version", "fio"),
    ("kernel", "the kernel"),
    ("cpus", "the number of CPUs"),
    ("root", "running as root"),
)


class ResumeError(RunDirectoryError):
    """Why a run cannot be resumed; one sentence."""


def open_previous(path: str, playbook: str, hosts: list[str]) -> RunDirectory:
    """The run to resume, after making sure that it is one of this playbook and of these hosts."""
    run = open_run(path)
    plan = run.plan
    if plan["playbook"] != playbook:
        raise ResumeError(
            f"hostmax_resume {run.path} is a run of {plan['playbook']} and this is {playbook}; "
            "name a run of this playbook."
        )
    if not isinstance(plan["hosts"], dict) or not isinstance(plan["settings"], dict):
        raise ResumeError(f"{run.path / 'plan.json'} was damaged, its hosts or settings are none; start a new run.")
    if set(plan["hosts"]) != set(hosts):
        gone = sorted(set(plan["hosts"]) - set(hosts))
        new = sorted(set(hosts) - set(plan["hosts"]))
        parts = [f"{_some(gone)} of it {'is' if len(gone) == 1 else 'are'} not in this run"] if gone else []
        parts += [f"{_some(new)} {'is' if len(new) == 1 else 'are'} not in it"] if new else []
        raise ResumeError(
            f"hostmax_resume {run.run_id} was made for other hosts, {' and '.join(parts)}: points count only with all "
            "their hosts, so nothing could be kept; give the same hosts, or start a new run without hostmax_resume."
        )
    return run


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:5])} and {len(names) - 5} more"


def settings_of(previous: RunDirectory, host: str) -> Json:
    """The settings a host had in the earlier run; its results go beside it where no other place is given."""
    plan = previous.plan
    values = {**plan["settings"], **plan["hosts"][host].get("settings", {})}
    # whether fio may be installed is asked of today's host
    values.pop("hostmax_fio_install", None)
    return {**values, "hostmax_results": str(previous.path.parent)}


def changed_settings(previous: RunDirectory, values_by_host: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The settings, sorted, that decide what is measured and are not those of the earlier run."""
    found = set()
    for host, values in values_by_host.items():
        for name, before in settings_of(previous, host).items():
            if name.removeprefix("hostmax_") not in _NOT_MEASURED and name in values and values[name] != before:
                found.add(name)
    return sorted(found)


# -- which points are kept ------------------------------------------------------------------------------------------


def keep_points(plan: Json, previous: RunDirectory, changed: list[str]) -> dict[str, str]:
    """Mark the points of a new plan that the earlier run measured; return {point id: its id in the earlier run}.

    The others of a stage move together. Raises ResumeError where none is left to measure.
    """
    try:
        measured = _measured(previous)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ResumeError(
            f"hostmax_resume {previous.path} was damaged, a part of its plan or samples is missing or another's "
            f"({type(error).__name__}: {error}); start a new run without hostmax_resume."
        ) from error
    kept = {}
    for point in plan["points"]:
        earlier = measured.get(point["hash"])
        if earlier is not None:
            kept[point["id"]] = earlier["id"]
            # exactly what was run, under its own names of files and with its own seeds
            point.update(kept=True, offset_s=None, jobs=earlier["jobs"], targets=earlier["targets"])
    if len(kept) == len(plan["points"]):
        raise ResumeError(
            f"Nothing of {previous.run_id} is left to measure, all {len(kept)} points were measured by every host; "
            f"make its report with ansible-playbook hostmax.storage.report -e hostmax_run={previous.path}"
        )
    set_times(plan)
    plan["resumed_from"] = previous.run_id
    plan["changed_settings"] = changed
    for host, entry in plan["hosts"].items():
        entry["measured_with"] = measured_with(previous, host)
    return kept


def _measured(run: RunDirectory) -> dict[str, Json]:
    """The points of a run that need not be measured again, by their content hash."""
    index, clocks = run.sample_index(), _clocks(run)
    found: dict[str, Json] = {}
    for point in run.plan["points"]:
        samples = index.of(point["id"])
        mine = {host: samples[host] for host in point["jobs"] if host in samples}
        if mine and len(mine) == len(point["jobs"]) and _is_whole(run, point, mine, clocks):
            found.setdefault(point["hash"], point)
    return found


def _clocks(run: RunDirectory) -> dict[str, Clock]:
    """How every host's clock went in a run, as its results have it."""
    facts = {host: run.read_facts(host) or {} for host in run.plan["hosts"]}
    return clocks_of_run(facts, run.sample_index().last())


def _is_whole(run: RunDirectory, point: Json, samples: Mapping[str, Json], clocks: Mapping[str, Clock]) -> bool:
    """Every host measured it, as planned, at the same time, and fio's own output is there."""
    good = all(
        sample.get("hash") == point["hash"]
        and sample.get("status") == "measured"
        and not sample.get("faults")
        and sample.get("window")
        and _unpacks(sample)
        and _raw_is_whole(run, host, point["id"])
        for host, sample in samples.items()
    )
    return good and _overlap(samples, clocks) >= MIN_OVERLAP


def _unpacks(sample: Json) -> bool:
    try:
        return bool(unpack_sample(sample)["volumes"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


def _raw_is_whole(run: RunDirectory, host: str, point_id: str) -> bool:
    """Whether the compressed file ends where it should and its checksum fits."""
    try:
        return bool(gzip.decompress(_raw(run, host, point_id)))
    except (OSError, EOFError, zlib.error):
        return False


def _raw(run: RunDirectory, host: str, point_id: str) -> bytes:
    return (run.host_path(host) / f"{safe_file_name(point_id)}.json.gz").read_bytes()


def _overlap(samples: Mapping[str, Json], clocks: Mapping[str, Clock]) -> float:
    """The share of the longest host window in which all hosts were measuring."""
    windows = []
    for host, sample in samples.items():
        offset_s = (sample.get("clock_shift_s") or 0.0) + clock_of(sample, clocks[host])["offset_s"]
        windows.append((sample["window"]["start_s"] - offset_s, sample["window"]["end_s"] - offset_s))
    longest_s = max(end_s - start_s for start_s, end_s in windows)
    together_s = min(end_s for _start_s, end_s in windows) - max(start_s for start_s, _end_s in windows)
    return max(0.0, together_s) / longest_s if longest_s > 0 else 0.0


def clock_of(sample: Mapping[str, Any], clock: Clock) -> Json:
    """{"offset_s", "uncertainty_s"} of a host's clock when the sample began; its own where it was taken over before."""
    if sample.get("clock"):
        return dict(sample["clock"])
    start_s, shift_s = sample["window"]["start_s"], sample.get("clock_shift_s") or 0.0
    return {
        "offset_s": start_s - shift_s - clock.to_controller(start_s, shift_s),
        "uncertainty_s": clock.uncertainty_s,
    }


# -- taking them over -----------------------------------------------------------------------------------------------


def copy_points(previous: RunDirectory, run: RunDirectory, kept: Mapping[str, str]) -> None:
    """Put the samples and fio's output of kept points into the new run directory, under their new ids."""
    index, clocks = previous.sample_index(), _clocks(previous)
    for point_id, earlier_id in kept.items():
        for host, sample in index.of(earlier_id).items():
            if host in clocks:
                taken = {**sample, "point": point_id, "clock": clock_of(sample, clocks[host])}
                taken.pop("host", None)
                run.add_sample(host, taken, _raw(previous, host, earlier_id))
    repeats = previous.read_repeats()
    again = {point_id: repeats[earlier_id] for point_id, earlier_id in kept.items() if earlier_id in repeats}
    if again:
        run.write_repeats(again)
    if kept:
        run.write_notes([f"{len(kept)} of {len(run.plan['points'])} points were taken over from {previous.run_id}."])


def measured_with(run: RunDirectory, host: str) -> Json:
    """What the samples of a run depend on besides its plan: tools of the host, and the volumes that were found."""
    facts = run.read_facts(host)
    if facts is None:
        # ended before it reached the host: all it has was taken over
        return dict(run.plan["hosts"][host].get("measured_with") or {})
    thin = run.plan["hosts"][host].get("thin")
    volumes = [] if thin else facts.get("volumes") or []
    return {
        **{name: facts.get(name) for name, _title in _FACTS},
        "volumes": {each["name"]: {key: each.get(key) for key in ("identity", "size_bytes")} for each in volumes},
    }


def differences(previous: RunDirectory, found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why samples of an earlier run no longer go with what would be measured now; `found` is the probe's, by host."""
    texts = []
    for host, seen in found.items():
        before = measured_with(previous, host)
        for name, title in _FACTS:
            now = (seen.get("host") or {}).get(name)
            if before.get(name) is not None and now != before[name]:
                texts.append(f"on {host} {title} is {_word(now)} and was {_word(before[name])}")
        for volume in seen.get("volumes") or ():
            if is_directory(volume):
                # its files are made anew for each run, as large as the workloads ask for
                continue
            earlier = (before.get("volumes") or {}).get(volume["name"]) or {}
            identity = earlier.get("identity")
            other = identity is not None and identity not in volume["identities"]
            if other or earlier.get("size_bytes") not in (None, volume["size_bytes"]):
                texts.append(f"on {host} {volume['path']} is not the volume {volume['name']} that was measured")
    return texts


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value or "not installed")


def keep_nothing(fresh: Json, plan: Mapping[str, Any]) -> Json:
    """The plan of a resumed run whose kept points are measured again after all; `fresh` was made without keeping."""
    taken = {key: plan[key] for key in ("created_utc", "resumed_from", "changed_settings")}
    return json.loads(json.dumps({**fresh, **taken}))  # type: ignore[no-any-return]
