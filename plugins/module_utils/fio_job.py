# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The text of the fio job file of one point: one group for each volume, only values every fio since 3.19 reads alike.

Must not know: how fio is run, what it answers, or which host the file is for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Sequence, Tuple

from ansible_collections.hostmax.storage.plugins.module_utils.workload import MIXED, JobError, Workload

__all__ = [
    "AUTO_ENGINE",
    "FILE_FORMAT",
    "LOG_PREFIX",
    "JobError",
    "Target",
    "Workload",
    "file_bytes",
    "file_name",
    "parse_job",
    "render_job",
    "targets_of",
]

AUTO_ENGINE = "io_uring"
LOG_PREFIX = "point"

Options = List[Tuple[str, str]]

_BLANKS = " \t\r\n\v\f"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# options by which a job names what fio opens
_NAMES_FILES = ("filename", "directory", "filename_format", "opendir", "include")
_FILE_KEYS = ("filename", "directory")
# the file of each job in a directory volume; `$jobnum` counts the jobs of one section from 0
FILE_FORMAT = "hostmax.$jobnum.$filenum"
_LARGEST_SEED = 2**63 - 1
_SEED_RANGE = 2**64
_LONGEST_NAME_BYTES = 4000
_REPLACED = ("${", "$ncpus", "$pagesize", "$mb_memory")


@dataclass(frozen=True)
class Target:
    """One volume as fio is to address it; `size_bytes` where known, so that sequential jobs can share it out.

    Of a `directory`, `filename` is its path, and each job has a file of its own in it, which is there already.
    """

    name: str
    filename: str
    seed: int
    block: bool
    size_bytes: int | None = None
    directory: bool = False

    def __post_init__(self) -> None:
        _check_text(f"The volume name {self.name!r}", self.name, "#;[]", ("${",))
        if self.name.startswith("global"):
            raise JobError(
                f"The volume name {self.name!r} begins with 'global', which fio keeps for itself: rename it."
            )
        _check_file_name(f"The file name {self.filename!r} of volume {self.name!r}", self.filename)
        if not 0 < self.seed <= _LARGEST_SEED:
            raise JobError(f"The seed {self.seed} of volume {self.name!r} is outside 1 to {_LARGEST_SEED}.")


def file_name(number: int) -> str:
    """The file of the `number`-th job (from 0) in a directory volume, as fio makes it of FILE_FORMAT."""
    return FILE_FORMAT.replace("$jobnum", str(number)).replace("$filenum", "0")


def file_bytes(workload: Workload) -> int:
    """How much of its own file each job of a workload uses in a directory volume; JobError without a working set."""
    if workload.working_set_bytes is None:
        raise JobError(
            f"The workload {workload.name!r} has no working_set, and a directory has no size of its own: set it, for "
            "example to 4GiB; the jobs of a host share it."
        )
    return workload.working_set_bytes // workload.num_jobs // workload.block_size_bytes * workload.block_size_bytes


def render_job(
    workload: Workload,
    targets: Sequence[Target],
    runtime_s: int,
    ramp_s: int,
    log_interval_ms: int | None = None,
    log_prefix: str = LOG_PREFIX,
) -> str:
    """The job file that drives `workload` on all `targets` at once, each a group that fio reports under its name."""
    _check_durations(workload, runtime_s, ramp_s, log_interval_ms)
    _check_targets(targets)
    _check_seeds(targets, workload.num_jobs)
    sections: list[tuple[str, Options]] = [
        ("global", _global_options(workload, runtime_s, ramp_s) + _log_options(log_interval_ms, log_prefix))
    ]
    sections += [(target.name, _target_options(workload, target)) for target in targets]
    lines = []
    for section, options in sections:
        lines.append(f"[{section}]")
        lines += [f"{key}={_escape(value) if key in _FILE_KEYS else value}" for key, value in options]
    return "\n".join(lines) + "\n"


def parse_job(text: str) -> list[tuple[str, Options]]:
    """The sections of a job file as fio reads them: comments dropped, names unescaped."""
    sections: list[tuple[str, Options]] = []
    for line in text.split("\n"):
        line = re.split("[#;]", line, maxsplit=1)[0].strip(_BLANKS)
        if line.startswith("[") and line.endswith("]"):
            sections.append((line[1:-1], []))
        elif line:
            if not sections:
                raise JobError(f"The job file has {line!r} before its first section.")
            key, _unused, value = line.partition("=")
            key, value = key.strip(_BLANKS), value.strip(_BLANKS)
            sections[-1][1].append((key, value.replace("\\:", ":") if key in _FILE_KEYS else value))
    return sections


def targets_of(text: str) -> list[tuple[str, str | None]]:
    """What each section would open, with its name: a file or a directory; None for anything that is not plainly one."""
    found: list[tuple[str, str | None]] = []
    for section, options in parse_job(text):
        named = [(key, value) for key, value in options if key in _NAMES_FILES]
        if section != "global" or named:
            found.append((section, _only_target(named)))
    return found


def _only_target(named: Options) -> str | None:
    """The file, or the directory with a file for each job, that a section names; None for anything else."""
    if len(named) == 1 and named[0][0] == "filename":
        return named[0][1]
    given = dict(named)
    if len(named) == 2 and given.get("filename_format") == FILE_FORMAT:
        return given.get("directory")
    return None


def _global_options(workload: Workload, runtime_s: int, ramp_s: int) -> Options:
    options = [
        ("ioengine", AUTO_ENGINE if workload.engine == "auto" else workload.engine),
        ("direct", str(int(workload.direct))),
        ("rw", workload.rw),
        ("bs", str(workload.block_size_bytes)),
        ("iodepth", str(workload.io_depth)),
        ("numjobs", str(workload.num_jobs)),
        ("time_based", "1"),
        ("runtime", str(runtime_s)),
    ]
    if ramp_s:
        options.append(("ramp_time", str(ramp_s)))
    if workload.rw in MIXED:
        options.append(("rwmixread", str(workload.read_percent)))
    if workload.rate_iops is not None:
        options.append(("rate_iops", ",".join(str(rate) for rate in workload.rates_iops().values())))
    options.append(("randrepeat", "0"))
    if workload.random:
        options.append(("norandommap", "1"))
    if workload.writes:
        options.append(("refill_buffers", "1"))
        if not workload.direct:
            options.append(("end_fsync", "1"))
    return [*options, ("group_reporting", "1"), ("lat_percentiles", "1"), ("clat_percentiles", "0")]


def _log_options(log_interval_ms: int | None, log_prefix: str) -> Options:
    if log_interval_ms is None:
        return []
    _check_text(f"The log prefix {log_prefix!r}", log_prefix, "#;:", _REPLACED)
    interval = str(log_interval_ms)
    return [
        ("write_iops_log", log_prefix),
        ("log_avg_msec", interval),
        ("iopsavgtime", interval),
        ("bwavgtime", interval),
        ("log_unix_epoch", "1"),
    ]


def _target_options(workload: Workload, target: Target) -> Options:
    if target.directory:
        return [
            ("new_group", "1"),
            ("directory", target.filename),
            ("filename_format", FILE_FORMAT),
            ("nrfiles", "1"),
            ("randseed", str(target.seed)),
            # the files are laid out before: fio neither makes, nor allocates, nor lengthens them
            ("allow_file_create", "0"),
            ("fallocate", "none"),
            ("size", str(file_bytes(workload))),
        ]
    options = [("new_group", "1"), ("filename", target.filename), ("randseed", str(target.seed))]
    if target.block:
        options.append(("allow_file_create", "0"))
    return options + _region_options(workload, target)


def _region_options(workload: Workload, target: Target) -> Options:
    """Which part of the volume is used; sequential jobs get a part each, else all read the same blocks."""
    region_bytes = workload.working_set_bytes or target.size_bytes
    if workload.working_set_bytes and target.size_bytes and workload.working_set_bytes > target.size_bytes:
        raise JobError(
            f"The workload {workload.name!r} has working_set_bytes {workload.working_set_bytes}: "
            f"the volume {target.name!r} has only {target.size_bytes}."
        )
    if workload.random or workload.num_jobs == 1:
        return [("size", str(workload.working_set_bytes))] if workload.working_set_bytes else []
    if region_bytes is None:
        share = f"{100 // workload.num_jobs}%"
    else:
        share = str(region_bytes // workload.num_jobs // workload.block_size_bytes * workload.block_size_bytes)
    if share in ("0", "0%"):
        raise JobError(
            f"The workload {workload.name!r} has num_jobs {workload.num_jobs}: "
            f"the volume {target.name!r} is too small to give each sequential job a part of its own."
        )
    return [("size", share), ("offset_increment", share)]


def _check_durations(workload: Workload, runtime_s: int, ramp_s: int, log_interval_ms: int | None) -> None:
    for key, number, least in (("runtime", runtime_s, 1), ("ramp", ramp_s, 0), ("log interval", log_interval_ms, 1)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < least):
            unit = "milliseconds" if key == "log interval" else "seconds"
            raise JobError(
                f"The workload {workload.name!r} has the {key} {number!r}: use whole {unit}, at least {least}."
            )
    if ramp_s >= runtime_s:
        raise JobError(
            f"The workload {workload.name!r} has a ramp of {ramp_s} s and a runtime of {runtime_s} s: "
            "fio 3.28 to 3.35 would report the ramp, make the runtime longer than the ramp."
        )


def _check_targets(targets: Sequence[Target]) -> None:
    if not targets:
        raise JobError("The job has no volume: name at least one.")
    for key, what in (("name", "name"), ("filename", "file name")):
        seen = set()
        for target in targets:
            item = getattr(target, key)
            if item in seen:
                raise JobError(f"The job has two volumes with the {what} {item!r}: each volume needs its own.")
            seen.add(item)


def _check_seeds(targets: Sequence[Target], num_jobs: int) -> None:
    """fio multiplies a seed by the number of the process (1 for the first), so unequal seeds can still coincide."""
    owners: dict[int, Target] = {}
    for position, target in enumerate(targets):
        for number in range(position * num_jobs + 1, (position + 1) * num_jobs + 1):
            owner = owners.setdefault(target.seed * number % _SEED_RANGE, target)
            if owner is not target:
                raise JobError(
                    f"The seeds {owner.seed} of volume {owner.name!r} and {target.seed} of volume {target.name!r} "
                    "would make fio read the same blocks of both: choose another seed."
                )


def _check_file_name(what: str, name: str) -> None:
    _check_text(what, name, "#;", _REPLACED)
    if name == "-":
        raise JobError(f"{what} means standard input to fio: name a file or a device.")


def _check_text(what: str, text: str, forbidden: str, replaced: Sequence[str]) -> None:
    """fio ends a line at `#` and `;` wherever they stand, trims blanks, and replaces some words that begin with `$`."""
    if not text or text != text.strip(_BLANKS):
        raise JobError(f"{what} is empty or begins or ends with a blank, which fio drops: rename it or use a link.")
    if _CONTROL.search(text):
        raise JobError(f"{what} holds a control character, which fio cannot report: rename it or use a link.")
    for sign in (*forbidden, *replaced):
        if sign in text:
            raise JobError(f"{what} holds {sign!r}, which fio would not take literally: rename it or use a link.")
    if len(text.encode("utf-8", "surrogateescape")) > _LONGEST_NAME_BYTES:
        raise JobError(f"{what} is too long for fio: rename it or use a link.")


def _escape(name: str) -> str:
    """`:` separates files; a backslash is literal except before `:`, so escaping every `:` is always enough."""
    return name.replace(":", "\\:")
