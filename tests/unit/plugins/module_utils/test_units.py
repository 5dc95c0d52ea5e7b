# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.units import (
    UnitError,
    format_bytes,
    format_count,
    format_duration,
    format_latency,
    format_rate,
    parse_size,
    size_matches,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("written", "size_bytes"),
    [
        ("1TB", 10**12),
        ("1 TiB", 2**40),
        ("4k", 4096),
        ("256 KiB", 262144),
        ("480MB", 480_000_000),
        ("1.5TB", 1_500_000_000_000),
        ("50g", 50 * 2**30),
        ("1tb", 10**12),
        (4096, 4096),
        ("4096", 4096),
        ("512B", 512),
        (" 4k ", 4096),
    ],
)
def test_a_size_means_the_same_as_to_a_storage_engineer(written: str | int, size_bytes: int) -> None:
    assert parse_size(written) == size_bytes


@pytest.mark.parametrize(
    "written",
    ["", "TB", "1XB", "-5", "1.5", "1.0000001k", "4Kb", "4 k b", True, 0, "9EiB", "1e12", None, 1.5, "４k", []],
)
def test_a_refused_size_names_the_value_and_the_units_in_one_sentence(written: object) -> None:
    with pytest.raises(UnitError) as refused:
        parse_size(written)  # type: ignore[arg-type]
    sentence = str(refused.value)
    assert repr(written) in sentence or repr(str(written)) in sentence
    assert "KB MB GB TB" in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_bits_are_not_taken_for_bytes() -> None:
    with pytest.raises(UnitError, match="bits"):
        parse_size("100Mb")


@pytest.mark.parametrize(
    ("declared", "size_bytes", "matches"),
    [
        ("1TB", 10**12, True),
        ("1TB", 2**40, True),
        ("1TB", 10**12 * 99 // 100, True),
        ("1TB", 10**12 * 98 // 100, False),
        ("1TB", 2**40 * 102 // 100, False),
        ("1TiB", 10**12, False),
        ("1TiB", 2**40 + 2**33, True),
        ("1T", 2**40, True),
        (10**12, 10**12, True),
        (10**12, 10**12 + 1, False),
        ("1000000000000", 10**12 - 512, False),
    ],
)
def test_a_declared_size_allows_what_its_unit_leaves_open(declared: str | int, size_bytes: int, matches: bool) -> None:
    assert size_matches(declared, size_bytes) is matches


def test_figures_read_as_people_write_them() -> None:
    assert [
        format_bytes(size) for size in (512, 4096, 262144, 10**12, 2**40, 1536, 1_500_000_000_000, 123_456_789)
    ] == [
        "512 B",
        "4 KiB",
        "256 KiB",
        "1 TB",
        "1 TiB",
        "1.5 KiB",
        "1.5 TB",
        "117.7 MiB",
    ]
    # 963 MB/s is below a GB/s and stands under other MB/s; 996 MB/s rounds to one
    assert [format_rate(rate) for rate in (963e6, 996e6)] == ["963.0 MB/s", "1.00 GB/s"]
    assert [format_rate(rate) for rate in (480e6, 98.3e6, 9.6e9, 0)] == [
        "480.0 MB/s",
        "98.3 MB/s",
        "9.60 GB/s",
        "0.0 B/s",
    ]
    assert format_count(430248.2) == "430,248"
    latencies = (850, 85_400, 1_270_000, 999_600, 17_179_869_184)
    assert [format_latency(lat_ns) for lat_ns in latencies] == ["850 ns", "85.4 us", "1.27 ms", "1.00 ms", "17.2 s"]
    durations = (0, 0.4, 42, 59.7, 102, 3599.7, 7500, 90061)
    texts = ["0 s", "0.4 s", "42 s", "1 min", "1 min 42 s", "1 h", "2 h 5 min", "1 d 1 h"]
    assert [format_duration(duration_s) for duration_s in durations] == texts


@given(st.integers(1, 2**62))
def test_every_whole_number_of_bytes_is_itself(size_bytes: int) -> None:
    assert parse_size(size_bytes) == parse_size(str(size_bytes)) == size_bytes
    assert size_matches(size_bytes, size_bytes)
