# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What fio wrote for one point, reduced to figures by volume and the reasons not to believe them.

Must not know: how fio was started, its exit code (which lies), or what other hosts measured.
"""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Dict, Mapping, NamedTuple, Sequence

from ansible_collections.hostmax.storage.plugins.module_utils.histogram import Histogram
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import pack_sample, unpack_sample

__all__ = ["ExpectedVolume", "documents", "pack_sample", "reduce_output", "unpack_sample"]

DIRECTIONS = ("read", "write")
LEAST_RUNTIME = 0.95
DIAGNOSTICS_CHARS = 4000

_START = re.compile(r"^\{[ \t\r]*$", re.MULTILINE)
_BARE_WORD = re.compile(
    r'^([ \t]*(?:"(?:[^"\\\n]|\\.)*"[ \t]*:[ \t]*)?)[-+]?(?:nan|inf)(?:inity)?(?=[ \t]*,?[ \t\r]*$)', re.MULTILINE
)
_DECODER = json.JSONDecoder(strict=False)
_SIGNALS = (
    (
        re.compile(r"got signal=(\d+)"),
        "A process of fio was killed by signal {0}: its I/Os count, its time does not.",
    ),
    (
        re.compile(r"terminating on signal (\d+)"),
        "fio was ended by signal {0}: the figures are of a part of the run.",
    ),
)

Json = Dict[str, Any]


class ExpectedVolume(NamedTuple):
    """A section of the job that was given to fio, and the directions in which it must have done I/O."""

    name: str
    reads: bool
    writes: bool


class _Scan(NamedTuple):
    documents: list[Json]
    outside: str
    truncated: bool


def documents(text: str) -> list[Json]:
    """Every complete JSON object that begins at a line `{`, whatever stands around it; the last is fio's final word.

    Where a key is repeated, the last value counts, as it does in fio. Bare `nan` and `inf` become None.
    """
    return _scan(text).documents


def reduce_output(text: str, expected: Sequence[ExpectedVolume], runtime_s: float) -> Json:
    """Figures by volume, and `faults`: one sentence for each reason why this output is not a valid result."""
    scan = _scan(text)
    document = next((found for found in reversed(scan.documents) if isinstance(found.get("jobs"), list)), {})
    entries = [entry for entry in document.get("jobs", []) if isinstance(entry, dict)]
    diagnostics = scan.outside[:DIAGNOSTICS_CHARS]
    faults = _text_faults(scan, bool(document))
    by_name: dict[str, list[Json]] = {}
    for entry in entries:
        by_name.setdefault(str(entry.get("jobname", "")), []).append(entry)
    volumes: dict[str, Json] = {}
    for name, found in by_name.items():
        volumes[name] = _reduce_volume(found[0], name, faults)
    if document:
        faults += _presence_faults(by_name, expected)
        for wish in expected:
            if wish.name in volumes:
                faults += _volume_faults(wish, volumes[wish.name], runtime_s, _first_words(scan.outside))
    version = document.get("fio version")
    return {
        "fio_version": _bare_version(version) if isinstance(version, str) else None,
        "volumes": volumes,
        "faults": faults,
        "diagnostics": diagnostics,
    }


def _bare_version(version: str) -> str:
    return version[len("fio-") :] if version.startswith("fio-") else version


def _scan(text: str) -> _Scan:
    found: list[Json] = []
    outside: list[str] = []
    truncated = False
    position = 0
    start = _START.search(text, position)
    while start is not None:
        document, text, end = _decode(text, start.start())
        truncated = end is None
        if end is None:
            start = _START.search(text, start.end())
            continue
        found.append(document)
        outside.append(text[position : start.start()])
        position = end
        start = _START.search(text, position)
    rest = text[position:]
    if truncated:
        rest = rest[: _first_start(rest)]
    outside.append(rest)
    return _Scan(found, "\n".join(part.strip() for part in outside if part.strip()), truncated)


def _first_start(text: str) -> int:
    start = _START.search(text)
    return len(text) if start is None else start.start()


def _decode(text: str, start: int) -> tuple[Json, str, int | None]:
    """The document at `start`, the text (with bare words replaced if that was needed) and where the document ends."""
    for attempt in range(2):
        try:
            document, end = _DECODER.raw_decode(text, start)
            return document, text, end
        except (ValueError, RecursionError):
            if attempt == 0:
                text = text[:start] + _BARE_WORD.sub(r"\1null", text[start:])
    return {}, text, None


def _text_faults(scan: _Scan, usable: bool) -> list[str]:
    faults = []
    if scan.truncated:
        faults.append("The output of fio breaks off in the middle: it was killed, or its file system is full.")
    elif not usable:
        faults.append(f"fio wrote no result{_first_words(scan.outside) or ' and no message'}.")
    for pattern, sentence in _SIGNALS:
        faults += [sentence.format(number) for number in dict.fromkeys(pattern.findall(scan.outside))]
    return faults


def _first_words(outside: str) -> str:
    """What fio said beside its document, to end a sentence with."""
    line = outside.split("\n", 1)[0].strip().rstrip(".")[:200]
    return f"; fio said: {line}" if line else ""


def _presence_faults(by_name: Mapping[str, Sequence[Json]], expected: Sequence[ExpectedVolume]) -> list[str]:
    names = [wish.name for wish in expected]
    faults = []
    for name in names:
        count = len(by_name.get(name, ()))
        if count == 0:
            faults.append(f"The volume {name!r} is missing in the output of fio.")
        elif count > 1:
            faults.append(f"The volume {name!r} stands {count} times in the output of fio, so its total is not known.")
    for name in by_name:
        if name not in names:
            faults.append(f"The output of fio holds {name!r}, which is not a volume of this point.")
    return faults


def _volume_faults(wish: ExpectedVolume, volume: Json, runtime_s: float, said: str) -> list[str]:
    faults = []
    if volume["error"]:
        reason = os.strerror(volume["error"])
        faults.append(f"The volume {wish.name!r} ended with error {volume['error']} ({reason}){said}.")
    for direction, wanted in (("read", wish.reads), ("write", wish.writes)):
        done = volume[direction]
        if wanted and done is None:
            faults.append(f"The volume {wish.name!r} did no {direction} at all{said}.")
        elif done is not None and not wanted:
            faults.append(f"The volume {wish.name!r} did {done['ios']} I/Os of kind {direction}, none was asked for.")
        elif done is not None and done["runtime_s"] < LEAST_RUNTIME * runtime_s:
            faults.append(
                f"The volume {wish.name!r} ran for {done['runtime_s']:.3f} s in direction {direction} "
                f"instead of {runtime_s:g} s."
            )
    return faults


def _reduce_volume(entry: Json, name: str, faults: list[str]) -> Json:
    volume: Json = {}
    for direction in DIRECTIONS:
        try:
            volume[direction] = _reduce_direction(entry.get(direction))
        except (TypeError, ValueError):
            volume[direction] = None
            faults.append(f"The volume {name!r} has latencies in direction {direction} that cannot be read.")
    volume["error"] = int(_number(entry, "error"))
    volume["usr"] = round(_number(entry, "usr_cpu") / 100, 6)
    volume["sys"] = round(_number(entry, "sys_cpu") / 100, 6)
    return volume


def _reduce_direction(data: Any) -> Json | None:
    if not isinstance(data, dict):
        return None
    ios = int(_number(data, "total_ios"))
    if ios <= 0:
        return None
    runtime_ms = _number(data, "runtime")
    io_bytes = int(_number(data, "io_bytes"))
    lat_ns, histogram = _latency(data)
    return {
        "ios": ios,
        "io_bytes": io_bytes,
        "iops": round(ios * 1000 / runtime_ms, 6) if runtime_ms else 0.0,
        "bytes_per_s": round(io_bytes * 1000 / runtime_ms, 3) if runtime_ms else 0.0,
        "runtime_s": runtime_ms / 1000,
        "lat_ns": lat_ns,
        "histogram": histogram.to_dense(),
    }


def _latency(data: Json) -> tuple[Json | None, Histogram]:
    """Total latency; completion latency where an old fio or another job file has bins only there."""
    candidates = [data[key] for key in ("lat_ns", "clat_ns") if isinstance(data.get(key), dict)]
    with_bins = [candidate for candidate in candidates if candidate.get("bins")]
    for candidate in with_bins or candidates:
        histogram = Histogram.from_fio_bins(candidate.get("bins") or {})
        n = histogram.n or int(_number(candidate, "N"))
        if n > 0:
            moments = {key: _number(candidate, key) for key in ("mean", "stddev", "min", "max")}
            return {"n": n, **moments}, histogram
    return None, Histogram()


def _number(data: Mapping[str, Any], key: str) -> float:
    """The number at `key`, 0 where fio has none: absent, text, nan or inf."""
    found = data.get(key)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
        return 0
    return found
