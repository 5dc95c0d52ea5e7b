# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A sample small enough to travel: the histograms of all its volumes in one string, everything else left readable.

Must not know: what the counts mean, or how the sample is sent and stored.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any, Dict, Iterable, Mapping

PACKED_KEY = "histograms_z"

_DIRECTIONS = ("read", "write")
_LARGEST_UNPACKED_BYTES = 64 * 1024 * 1024

Json = Dict[str, Any]


class PackError(ValueError):
    """A packed sample that cannot be read; the message is one sentence for the user."""


def pack_sample(sample: Mapping[str, Any]) -> Json:
    """A copy with every `histogram` taken out and all of them, in order of volume and direction, in `histograms_z`.

    The string is base64 of zlib of numbers of 7 bits a byte: how many bins each histogram has, then all steps, then all
    counts. Steps and counts stand apart because each kind alone compresses better.
    """
    packed = dict(sample)
    packed["volumes"] = {name: dict(volume) for name, volume in sample["volumes"].items()}
    lengths: list[int] = []
    steps: list[int] = []
    counts: list[int] = []
    for volume, direction in _places(packed["volumes"]):
        without = dict(volume[direction])
        sparse = without.pop("histogram")
        volume[direction] = without
        lengths.append(len(sparse) // 2)
        steps += sparse[::2]
        counts += sparse[1::2]
    raw = _to_bytes(lengths) + _to_bytes(steps) + _to_bytes(counts)
    packed[PACKED_KEY] = base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
    return packed


def unpack_sample(packed: Mapping[str, Any]) -> Json:
    """The sample that `pack_sample` was given; one that was never packed is returned as it is."""
    sample = dict(packed)
    text = sample.pop(PACKED_KEY, None)
    if text is None:
        return sample
    sample["volumes"] = {name: dict(volume) for name, volume in packed["volumes"].items()}
    places = list(_places(sample["volumes"]))
    numbers = _numbers(text)
    lengths = numbers[: len(places)]
    total = sum(lengths)
    if len(numbers) != len(places) + 2 * total:
        raise PackError("The sample has histograms for other volumes than it names: it was damaged, measure again.")
    steps, counts = numbers[len(places) : len(places) + total], numbers[len(places) + total :]
    first = 0
    for (volume, direction), length in zip(places, lengths):
        sparse = [0] * (2 * length)
        sparse[::2] = steps[first : first + length]
        sparse[1::2] = counts[first : first + length]
        volume[direction] = dict(volume[direction], histogram=sparse)
        first += length
    return sample


def _places(volumes: Mapping[str, Json]) -> Iterable[tuple[Json, str]]:
    for name in sorted(volumes):
        for direction in _DIRECTIONS:
            if volumes[name].get(direction) is not None:
                yield volumes[name], direction


def _to_bytes(numbers: Iterable[int]) -> bytes:
    packed = bytearray()
    for number in numbers:
        while number > 127:
            packed.append(number & 127 | 128)
            number >>= 7
        packed.append(number)
    return bytes(packed)


def _numbers(text: str) -> list[int]:
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(base64.b64decode(text, validate=True), _LARGEST_UNPACKED_BYTES)
    except (binascii.Error, zlib.error, ValueError, TypeError) as error:
        raise PackError("The sample has histograms that cannot be unpacked: it was damaged, measure again.") from error
    if not unpacker.eof:
        raise PackError("The sample has histograms that break off: it was damaged, measure again.")
    numbers: list[int] = []
    number = shift = 0
    for byte in raw:
        number |= (byte & 127) << shift
        if byte & 128:
            shift += 7
        else:
            numbers.append(number)
            number = shift = 0
    return numbers
