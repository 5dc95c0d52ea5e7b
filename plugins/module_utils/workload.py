# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One access pattern, checked when it is made: a Workload that exists is one fio can run and that means what it says.

Must not know: volumes, hosts, durations or the syntax of a job file.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Mapping

from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    UnitError,
    format_bytes,
    format_count,
    parse_size,
)

IMPLIED_READ_PERCENT = {"read": 100, "randread": 100, "write": 0, "randwrite": 0}
MIXED = ("rw", "randrw")
PATTERNS = (*IMPLIED_READ_PERCENT, *MIXED)
ALIASES = {"readwrite": "rw"}
ENGINES_WITH_DEPTH = ("io_uring", "libaio", "posixaio")
SYNCHRONOUS_ENGINES = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap")
ENGINES = ("auto", *ENGINES_WITH_DEPTH, *SYNCHRONOUS_ENGINES)

_SIZES = {"block_size": "block_size_bytes", "working_set": "working_set_bytes"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_SECTOR_BYTES = 512


class JobError(ValueError):
    """A workload or job that must not be run; the message is one sentence for the user."""


@dataclass(frozen=True)
class Workload:
    """What fio does to each volume of a point. `rate_iops` is for one volume, over all its jobs and both directions."""

    name: str
    rw: str
    read_percent: int
    block_size_bytes: int
    io_depth: int = 1
    num_jobs: int = 1
    engine: str = "auto"
    direct: bool = True
    working_set_bytes: int | None = None
    rate_iops: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise JobError(
                f"The workload name {self.name!r} cannot be a file name: use letters, digits, '_', '-' and '.'."
            )
        self._check_pattern()
        self._check_numbers()
        self._check_engine()

    def _check_pattern(self) -> None:
        if self.rw not in PATTERNS:
            self._refuse("rw", self.rw, f"use one of {', '.join(PATTERNS)}")
        implied = IMPLIED_READ_PERCENT.get(self.rw)
        if implied is not None and self.read_percent != implied:
            self._refuse("read_percent", self.read_percent, f"rw {self.rw} means {implied}, use randrw or rw for a mix")
        if implied is None and not 0 < self.read_percent < 100:
            self._refuse("read_percent", self.read_percent, f"rw {self.rw} needs 1 to 99")

    def _check_numbers(self) -> None:
        for key in ("block_size_bytes", "io_depth", "num_jobs"):
            if getattr(self, key) < 1:
                self._refuse(key, getattr(self, key), "it must be at least 1")
        if self.direct and self.block_size_bytes % _SECTOR_BYTES:
            self._refuse("block_size_bytes", self.block_size_bytes, "direct I/O needs a multiple of 512")
        if self.working_set_bytes is not None and self.working_set_bytes < self.block_size_bytes * self.num_jobs:
            self._refuse("working_set_bytes", self.working_set_bytes, "each job needs room for one block at least")
        if self.rate_iops is not None and min(self.rates_iops().values()) < 1:
            self._refuse("rate_iops", self.rate_iops, "each job needs at least 1 IOPS in each direction it uses")

    def _check_engine(self) -> None:
        if self.engine not in ENGINES:
            self._refuse("engine", self.engine, f"use one of {', '.join(ENGINES)}")
        if self.io_depth > 1 and self.engine in SYNCHRONOUS_ENGINES:
            self._refuse("io_depth", self.io_depth, f"the engine {self.engine} is synchronous, use 1 and more num_jobs")
        if self.engine == "libaio" and not self.direct:
            self._refuse("engine", self.engine, "libaio is synchronous without direct I/O, set direct or use io_uring")

    def _refuse(self, key: str, found: object, why: str) -> None:
        raise JobError(f"The workload {self.name!r} has {key} {found!r}: {why}.")

    @property
    def reads(self) -> bool:
        return self.read_percent > 0

    @property
    def writes(self) -> bool:
        return self.read_percent < 100

    @property
    def random(self) -> bool:
        return self.rw.startswith("rand")

    def rates_iops(self) -> dict[str, int]:
        """The rate of one job in each direction it uses: fio limits each job and each direction on its own."""
        if self.rate_iops is None:
            return {}
        shares = {"read": self.read_percent, "write": 100 - self.read_percent}
        return {way: round(self.rate_iops * share / 100 / self.num_jobs) for way, share in shares.items() if share}

    @property
    def title(self) -> str:
        """`4 KiB random 70/30 read/write, queue depth 64 x 4 jobs`."""
        kind = "read" if not self.writes else "write"
        if self.rw in MIXED:
            kind = f"{self.read_percent}/{100 - self.read_percent} read/write"
        text = f"{format_bytes(self.block_size_bytes)} {'random' if self.random else 'sequential'} {kind}"
        text += f", queue depth {self.io_depth}"
        if self.num_jobs > 1:
            text += f" x {self.num_jobs} jobs"
        if self.working_set_bytes is not None:
            text += f", within {format_bytes(self.working_set_bytes)}"
        if self.rate_iops is not None:
            text += f", at {format_count(self.rate_iops)} IOPS"
        return text if self.direct else text + ", buffered"

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Workload:
        """From the data of a workload set, a playbook or `to_mapping`; `block_size: 4k` is read as well as bytes."""
        if not isinstance(mapping, Mapping):
            raise JobError(f"A workload is a mapping with the keys {', '.join(_KEYS)}, not {mapping!r}.")
        name = str(mapping.get("name") or "")
        known = {_SIZES.get(key, key): item for key, item in mapping.items() if item is not None}
        _refuse_keys(name, mapping, known)
        values: dict[str, Any] = {"name": name}
        for key, item in known.items():
            if key != "name":
                values[key] = _coerce(name, key, item)
        values["rw"] = ALIASES.get(values["rw"], values["rw"])
        values.setdefault("read_percent", IMPLIED_READ_PERCENT.get(values["rw"], 50))
        return cls(**values)

    def to_mapping(self) -> dict[str, Any]:
        """Plain data that `from_mapping` reads back."""
        return asdict(self)


_KEYS = tuple(field.name for field in fields(Workload))


def _refuse_keys(name: str, mapping: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for key in mapping:
        if _SIZES.get(key, key) not in _KEYS:
            allowed = ", ".join([*_KEYS, *_SIZES])
            raise JobError(f"The workload {name!r} has the unknown key {key!r}: use {allowed}.")
    for short, full in _SIZES.items():
        if mapping.get(short) is not None and mapping.get(full) is not None:
            raise JobError(f"The workload {name!r} has both {short} and {full}: give one of them.")
    for key, example in (("name", "4k-randread"), ("rw", "randread"), ("block_size_bytes", 4096)):
        if key not in known:
            raise JobError(f"The workload {name!r} has no {key}: give one, for example {example}.")


def _coerce(name: str, key: str, item: Any) -> Any:
    if key in _SIZES.values():
        try:
            return parse_size(item)
        except UnitError as error:
            raise JobError(f"The workload {name!r} has a wrong {key}. {error}") from error
    if key == "direct":
        word = _WORDS.get(str(item).lower())
        if word is None:
            raise JobError(f"The workload {name!r} has {key} {item!r}: use true or false.")
        return word
    if key in ("rw", "engine"):
        return str(item)
    if isinstance(item, bool) or not re.fullmatch(r"-?[0-9]+", str(item), re.ASCII):
        raise JobError(f"The workload {name!r} has {key} {item!r}: use a whole number.")
    return int(item)
