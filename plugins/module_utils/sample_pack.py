# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A sample small enough to travel: figures, histograms and steps of its volumes in three strings, the rest readable.

Must not know: what the numbers mean, or how the sample is sent and stored.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
import zlib
from array import array
from typing import Any, Callable, Dict, Iterable, Mapping, Sequence

VOLUMES_KEY, HISTOGRAMS_KEY, STEPS_KEY = "volumes_z", "histograms_z", "steps_z"

_DIRECTIONS = ("read", "write")
_LARGEST_UNPACKED_BYTES = 64 * 1024 * 1024
_WIDTH = 8

Json = Dict[str, Any]


class PackError(ValueError):
    """A packed sample that cannot be read; the message is one sentence for the user."""


def pack_sample(sample: Mapping[str, Any]) -> Json:
    """A copy in which `volumes` and `kernel`, each `histogram` and the lists of `steps` are strings (see `_z` keys).

    Histograms and steps stand in order of volume and direction, those of directions without any I/O left out.
    """
    packed = {key: value for key, value in sample.items() if key not in ("volumes", "kernel")}
    volumes = {name: dict(volume) for name, volume in sample["volumes"].items()}
    histograms = []
    for name, way in _places(volumes):
        figures = dict(volumes[name][way])
        histograms.append(figures.pop("histogram"))
        volumes[name][way] = figures
    figures = {key: sample[key] for key in ("kernel",) if key in sample}
    packed[VOLUMES_KEY] = _to_text(json.dumps({"volumes": volumes, **figures}, separators=(",", ":")).encode("utf-8"))
    packed[HISTOGRAMS_KEY] = _to_text(_to_bytes(histograms))
    steps = sample.get("steps")
    if steps:
        packed["steps"] = {key: value for key, value in steps.items() if key != "volumes"}
        packed[STEPS_KEY] = _to_text(_to_bytes([steps["volumes"][name][way] for name, way in _places(volumes)]))
    return packed


def unpack_sample(packed: Mapping[str, Any]) -> Json:
    """The sample that `pack_sample` was given; one that was never packed is returned as it is."""
    return _unpacked(packed, lambda numbers: numbers.tolist())


def unpack_arrays(packed: Mapping[str, Any]) -> Json:
    """As `unpack_sample`, with arrays for lists of numbers: half the time, for whoever merges thousands of samples."""
    return _unpacked(packed, lambda numbers: numbers)


def check_packed(packed: Mapping[str, Any]) -> None:
    """PackError where what was packed did not arrive as it was sent."""
    for key in (VOLUMES_KEY, HISTOGRAMS_KEY, STEPS_KEY):
        if key in packed:
            _from_text(packed[key])
    if HISTOGRAMS_KEY in packed and VOLUMES_KEY not in packed:
        raise PackError("The sample was packed by another version of this software: measure again.")


def _unpacked(packed: Mapping[str, Any], form: Callable[[array[int]], Any]) -> Json:
    if VOLUMES_KEY not in packed:
        check_packed(packed)
        return dict(packed)
    sample = unpack_figures(packed)
    volumes = sample["volumes"]
    places = list(_places(volumes))
    for (name, way), histogram in zip(places, _lists(sample.pop(HISTOGRAMS_KEY, None), len(places))):
        volumes[name][way]["histogram"] = form(histogram)
    text = sample.pop(STEPS_KEY, None)
    if sample.get("steps"):
        found: dict[str, dict[str, Any]] = {name: {way: [] for way in _DIRECTIONS} for name in volumes}
        for (name, way), counts in zip(places, _lists(text, len(places))):
            found[name][way] = form(counts)
        sample["steps"] = {**sample["steps"], "volumes": found}
    return sample


def unpack_figures(packed: Mapping[str, Any]) -> Json:
    """The sample with its figures alone, histograms and steps still packed: enough to see how it fared, and quick."""
    sample = dict(packed)
    text = sample.pop(VOLUMES_KEY, None)
    if text is None:
        return sample
    try:
        sample.update(json.loads(_from_text(text)))
        list(_places(sample["volumes"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PackError("The sample has figures that cannot be unpacked: it was damaged, measure again.") from error
    return sample


def _places(volumes: Mapping[str, Json]) -> Iterable[tuple[str, str]]:
    for name in sorted(volumes):
        for way in _DIRECTIONS:
            if volumes[name].get(way) is not None:
                yield name, way


def _to_bytes(lists: Sequence[Sequence[int]]) -> bytes:
    """How many lists, how long each is, and all their numbers; every byte of the numbers in a plane of its own.

    Low bytes are noise and high bytes are nearly all alike: apart they compress best, and both ways run at C speed.
    """
    numbers = array("Q", [len(lists), *map(len, lists)])
    for each in lists:
        numbers.extend(each)
    if sys.byteorder == "big":
        numbers.byteswap()
    raw = numbers.tobytes()
    planes = [raw[place::_WIDTH] for place in range(_WIDTH)]
    while len(planes) > 1 and not any(planes[-1]):
        planes.pop()
    return bytes([len(planes)]) + b"".join(planes)


def _lists(text: Any, expected: int) -> list[array[int]]:
    raw = _from_text(text)
    width, rest = (raw[0], len(raw) - 1) if raw else (0, 0)
    if not 1 <= width <= _WIDTH or rest % width or rest < width:
        raise PackError("The sample has numbers of no known form: it was damaged, measure again.")
    count = rest // width
    wide = bytearray(_WIDTH * count)
    for place in range(width):
        wide[place::_WIDTH] = raw[1 + place * count : 1 + (place + 1) * count]
    numbers = array("Q")
    numbers.frombytes(wide)
    if sys.byteorder == "big":
        numbers.byteswap()
    lengths = numbers[1 : 1 + numbers[0]].tolist()
    if len(lengths) != expected or 1 + expected + sum(lengths) != count:
        raise PackError("The sample has numbers for other volumes than it names: it was damaged, measure again.")
    found, first = [], 1 + expected
    for length in lengths:
        found.append(numbers[first : first + length])
        first += length
    return found


def _to_text(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def _from_text(text: Any) -> bytes:
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(base64.b64decode(text, validate=True), _LARGEST_UNPACKED_BYTES)
    except (binascii.Error, zlib.error, ValueError, TypeError) as error:
        raise PackError("The sample has numbers that cannot be unpacked: it was damaged, measure again.") from error
    if not unpacker.eof:
        raise PackError("The sample has numbers that break off: it was damaged, measure again.")
    return raw
