# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sizes as people write them, and figures as people read them: exact bytes in, short text out.

Must not know: fio, volumes, settings or who asks.
"""

from __future__ import annotations

import re
from fractions import Fraction

_PREFIXES = "KMGTPE"
_DECIMAL = {prefix + "B": 1000**power for power, prefix in enumerate(_PREFIXES, 1)}
_BINARY = {prefix + "iB": 1024**power for power, prefix in enumerate(_PREFIXES, 1)}
_BARE = {prefix: 1024**power for power, prefix in enumerate(_PREFIXES, 1)}
_FACTORS = {unit.lower(): factor for table in (_DECIMAL, _BINARY, _BARE) for unit, factor in table.items()}
_FACTORS.update({"": 1, "b": 1})

_ALLOWED = (
    "use a whole number of bytes, or KB MB GB TB PB EB (powers of 1000), "
    "KiB MiB GiB TiB PiB EiB or k m g t p e (powers of 1024)"
)
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)", re.ASCII)
_BITS = re.compile(r"[KMGTPE]i?b")
_LARGEST_BYTES = 2**63 - 1
_TOLERANCE = Fraction(1, 100)


class UnitError(ValueError):
    """A size that cannot be read; the message is one sentence for the user."""


def parse_size(value: str | int) -> int:
    """Bytes of `1TB` (10**12), `1 TiB` (2**40), `4k` (4096) or a plain number of bytes."""
    return _parse(value)[0]


def size_matches(declared: str | int, size_bytes: int) -> bool:
    """Whether a volume of `size_bytes` is what `declared` promises.

    Plain bytes are exact; binary units allow 1 %; `1TB` is read both ways, because vendors and tools disagree.
    """
    nominal, unit = _parse(declared)
    if unit in ("", "b"):
        return size_bytes == nominal
    high = nominal
    if len(unit) == 2:
        high = nominal * _FACTORS[unit[0]] // _FACTORS[unit]
    return nominal * (1 - _TOLERANCE) <= size_bytes <= high * (1 + _TOLERANCE)


def _parse(value: str | int) -> tuple[int, str]:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise UnitError(f"The size {value!r} is not a size: {_ALLOWED}.")
    text = str(value).strip()
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UnitError(f"The size {str(value)!r} is not a size: {_ALLOWED}.")
    number, unit = found.groups()
    if _BITS.fullmatch(unit):
        raise UnitError(f"The size {str(value)!r} has a unit of bits: {_ALLOWED}.")
    factor = _FACTORS.get(unit.lower())
    if factor is None:
        raise UnitError(f"The size {str(value)!r} has the unknown unit {unit!r}: {_ALLOWED}.")
    exact = Fraction(number) * factor
    if exact.denominator != 1:
        raise UnitError(f"The size {str(value)!r} is not a whole number of bytes: {_ALLOWED}.")
    if not 0 < exact <= _LARGEST_BYTES:
        raise UnitError(f"The size {str(value)!r} is out of range, it must be 1 byte to 8 EiB - 1: {_ALLOWED}.")
    return int(exact), unit.lower()


def format_bytes(size_bytes: int) -> str:
    """`4 KiB`, `1 TB`, `1.5 GiB`: the unit in which the size is a round number, else one decimal."""
    if abs(size_bytes) < 1000:
        return f"{size_bytes} B"
    for tenths in (1, 10):
        for table, base in ((_BINARY, 1024), (_DECIMAL, 1000)):
            for unit, factor in table.items():
                count, rest = divmod(size_bytes * tenths, factor)
                if rest == 0 and tenths <= abs(count) < base * tenths:
                    return f"{_short(count, tenths)} {unit}"
    return _scaled(size_bytes, list(_BINARY.items()), "B")


def _short(count: int, tenths: int) -> str:
    return str(count) if tenths == 1 else f"{count / tenths:.1f}"


def _scaled(number: float, units: list[tuple[str, int]], smallest: str) -> str:
    chosen, factor = smallest, 1
    for unit, unit_factor in units:
        if round(abs(number) / unit_factor, 1) >= 1:
            chosen, factor = unit, unit_factor
    return f"{number / factor:.1f} {chosen}"


def format_rate(bytes_per_s: float) -> str:
    """`480.0 MB/s`: powers of 1000, as vendors and the published figures state it; four digits where they matter."""
    fits = [(unit, by) for unit, by in _DECIMAL.items() if round(abs(bytes_per_s) / by, 2 if by >= 10**9 else 1) >= 1]
    unit, factor = fits[-1] if fits else ("B", 1)
    scaled = bytes_per_s / factor
    decimals = 2 if abs(scaled) < 99.95 and factor >= 10**9 else 1
    return f"{scaled:.{decimals}f} {unit}/s"


def format_count(count: float) -> str:
    """`430,248`: whole, with thousands separated."""
    return f"{count:,.0f}"


def format_latency(lat_ns: float) -> str:
    """`850 ns`, `85.4 us`, `1.27 ms`, `17.2 s`: three digits that matter."""
    for limit_ns, factor_ns, unit in ((999.5, 1, "ns"), (999.5e3, 10**3, "us"), (999.5e6, 10**6, "ms")):
        if abs(lat_ns) < limit_ns:
            return f"{_three_digits(lat_ns / factor_ns, whole=factor_ns == 1)} {unit}"
    return f"{_three_digits(lat_ns / 10**9, whole=False)} s"


def _three_digits(number: float, whole: bool) -> str:
    if whole or abs(number) >= 99.95:
        return f"{number:.0f}"
    return f"{number:.1f}" if abs(number) >= 9.995 else f"{number:.2f}"


def format_duration(duration_s: float) -> str:
    """`0.4 s`, `42 s`, `1 min 42 s`, `2 h 5 min`, `3 d 4 h`: the two largest parts."""
    if duration_s < 9.95 and round(duration_s, 1) != round(duration_s):
        return f"{duration_s:.1f} s"
    whole_s = round(duration_s)
    if whole_s >= 3600:
        whole_s = 60 * round(duration_s / 60)
    parts: list[tuple[int, str]] = []
    for unit, unit_s in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, whole_s = divmod(whole_s, unit_s)
        if count or parts:
            parts.append((count, unit))
    text = " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)
    return text or "0 s"
