# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.fio_output import (
    ExpectedVolume,
    documents,
    pack_sample,
    reduce_output,
    unpack_sample,
)
from ansible_collections.hostmax.storage.plugins.module_utils.histogram import Histogram
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import PackError, unpack_figures
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).parents[3] / "fixtures" / "fio"
READ_ONLY = [ExpectedVolume("thin01", True, False)]


def recorded(name: str) -> str:
    """What fio 3.33 really wrote."""
    with gzip.open(FIXTURES / f"{name}.json.gz", "rt", errors="surrogateescape") as text:
        return text.read()


def a_direction(ios: int = 1000, runtime_ms: int = 2000, **changes: Any) -> dict[str, Any]:
    lat = {"min": 900, "max": 1100, "mean": 1000.0, "stddev": 10.0, "N": ios, "bins": {"1004": ios}}
    data = {"total_ios": ios, "io_bytes": ios * 4096, "bw_bytes": ios * 2048, "iops": ios / 2, "runtime": runtime_ms}
    return {**data, "lat_ns": lat, **changes}


NO_IO = {
    "total_ios": 0,
    "io_bytes": 0,
    "runtime": 0,
    "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
}


def a_job(name: str = "thin01", **changes: Any) -> dict[str, Any]:
    return {
        "jobname": name,
        "error": 0,
        "usr_cpu": 5.0,
        "sys_cpu": 20.0,
        "read": a_direction(),
        "write": NO_IO,
        **changes,
    }


def a_document(*jobs: dict[str, Any]) -> str:
    return json.dumps({"fio version": "fio-3.33", "jobs": list(jobs or [a_job()])}, indent=2) + "\n"


def faults_of(text: str, expected: list[ExpectedVolume] | None = None, runtime_s: float = 2) -> list[str]:
    faults = reduce_output(text, expected or READ_ONLY, runtime_s)["faults"]
    assert all(fault.endswith(".") and "\n" not in fault for fault in faults)
    return faults


def test_a_good_result_has_figures_and_no_fault() -> None:
    reduced = reduce_output(a_document(), READ_ONLY, 2)
    assert (reduced["fio_version"], reduced["faults"], reduced["diagnostics"]) == ("3.33", [], "")
    assert reduced["volumes"]["thin01"] == {
        "read": {
            "ios": 1000,
            "io_bytes": 4096000,
            "iops": 500.0,
            "bytes_per_s": 2048000.0,
            "runtime_s": 2.0,
            "lat_ns": {"n": 1000, "mean": 1000.0, "stddev": 10.0, "min": 900, "max": 1100},
            "histogram": Histogram.from_fio_bins({"1004": 1000}).to_dense(),
        },
        "write": None,
        "error": 0,
        "usr": 0.05,
        "sys": 0.2,
    }


def test_a_recorded_output_of_four_jobs_a_volume_gives_one_entry_a_volume_with_fios_own_rates() -> None:
    text = recorded("randrw_two_volumes_four_jobs")
    expected = [ExpectedVolume("thin01", True, True), ExpectedVolume("thin02", True, True)]
    reduced = reduce_output(text, expected, 2)
    assert reduced["faults"] == []
    for job in json.loads(text)["jobs"]:
        for direction in ("read", "write"):
            done = reduced["volumes"][job["jobname"]][direction]
            assert done["iops"] == pytest.approx(job[direction]["iops"], abs=1e-6)
            assert done["bytes_per_s"] == pytest.approx(job[direction]["bw_bytes"], abs=1)
            assert done["lat_ns"]["n"] == Histogram.from_dense(done["histogram"]).n == job[direction]["lat_ns"]["N"]


noise = st.lists(
    st.text(st.characters(codec="utf-8"), max_size=30).filter(lambda line: line.strip() != "{"), max_size=5
)


@given(noise, noise)
def test_text_around_the_document_changes_nothing_but_the_diagnostics(before: list[str], after: list[str]) -> None:
    text = "\n".join([*(line.replace("\n", " ") for line in before), a_document(), *after])
    clean = reduce_output(a_document(), READ_ONLY, 2)
    assert reduce_output(text, READ_ONLY, 2)["volumes"] == clean["volumes"]


@given(
    st.text()
    | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))
    | st.text('{}[]":,\n a1', max_size=40)
)
def test_no_text_whatever_raises(text: str) -> None:
    assert faults_of(text)


@given(st.integers(0, len(a_document()) - 3))
def test_a_document_that_breaks_off_anywhere_is_a_fault(length: int) -> None:
    assert faults_of(a_document()[:length])


def test_a_result_that_breaks_off_after_an_earlier_complete_one_is_a_fault() -> None:
    assert "breaks off" in faults_of(a_document() + a_document()[:200])[0]


def test_the_last_of_several_documents_counts() -> None:
    first, last = a_document(a_job(read=a_direction(ios=1))), a_document()
    assert len(documents(first + "\n" + last)) == 2
    assert reduce_output(first + last, READ_ONLY, 2)["volumes"]["thin01"]["read"]["ios"] == 1000


def test_indented_braces_and_braces_within_a_line_begin_no_document() -> None:
    assert documents('  {\n"a": 1}\n{"b": 2}\n') == []


def test_bare_nan_and_inf_become_none() -> None:
    text = '{\n  "a" : nan,\n  "b" : -inf,\n  "c" : [\n    nan,\n    1.5\n  ],\n  "d : nan" : "nan",\n  "e" : -nan\n}\n'
    assert documents(text) == [{"a": None, "b": None, "c": [None, 1.5], "d : nan": "nan", "e": None}]


def test_control_bytes_and_bytes_that_are_no_text_are_read() -> None:
    raw = b'{\n  "jobname" : "a\tb\x01\xff"\n}\n'
    assert documents(raw.decode("utf-8", "surrogateescape")) == [{"jobname": "a\tb\x01\udcff"}]


def test_of_a_repeated_key_the_last_value_counts_as_in_fio() -> None:
    assert documents('{\n  "filename" : "a",\n  "filename" : "b"\n}\n') == [{"filename": "b"}]


@pytest.mark.parametrize(
    "document",
    [
        '{"jobs": 1}',
        '{"jobs": [1]}',
        '{"jobs": [{}]}',
        '{"jobs": [{"jobname": "thin01", "read": {"total_ios": "x"}}]}',
        "{}",
    ],
)
def test_a_document_of_another_shape_is_a_fault(document: str) -> None:
    assert faults_of("{\n" + document[1:])


def test_bins_that_cannot_be_read_are_a_fault() -> None:
    broken = a_direction(lat_ns={"bins": {"fast": 3}, "N": 3})
    assert "cannot be read" in faults_of(a_document(a_job(read=broken)))[0]


def test_every_volume_is_expected_exactly_once() -> None:
    assert faults_of(a_document(a_job("thin02"))) == [
        "The volume 'thin01' is missing in the output of fio.",
        "The output of fio holds 'thin02', which is not a volume of this point.",
    ]
    assert "stands 2 times" in faults_of(a_document(a_job(), a_job()))[0]


def test_each_direction_of_the_workload_must_have_done_io() -> None:
    assert faults_of(a_document(), [ExpectedVolume("thin01", True, True)]) == [
        "The volume 'thin01' did no write at all."
    ]


def test_a_write_nobody_asked_for_is_a_fault() -> None:
    assert "I/Os of kind write" in faults_of(a_document(a_job(write=a_direction())))[0]


def test_a_run_shorter_than_asked_is_a_fault_and_a_longer_one_is_not() -> None:
    assert "1.899 s" in faults_of(a_document(a_job(read=a_direction(runtime_ms=1899))))[0]
    assert faults_of(a_document(a_job(read=a_direction(runtime_ms=1901)))) == []
    assert faults_of(a_document(a_job(read=a_direction(runtime_ms=21478)))) == []


def test_an_error_is_named_in_words() -> None:
    assert "error 5 (Input/output error)" in faults_of(a_document(a_job(error=5)))[0]


def test_a_full_device_gives_text_before_the_document_and_faults_that_quote_it() -> None:
    reduced = reduce_output(recorded("device_full"), [ExpectedVolume("v", False, True)], 1)
    said = "fio said: fio: io_u error on file /dev/full"
    assert f"'v' ended with error 28 (No space left on device); {said}" in reduced["faults"][0]
    assert reduced["diagnostics"].count("\n") == 1


def test_a_mounted_device_that_fio_passes_over_without_an_error_is_a_fault() -> None:
    faults = faults_of(recorded("mounted"), [ExpectedVolume("v", False, True)])
    assert len(faults) == 1
    assert "did no write" in faults[0]
    assert "appears mounted" in faults[0]


def test_a_killed_worker_is_a_fault_although_fio_ends_with_0_and_error_0() -> None:
    expected = [ExpectedVolume("thin01", True, False), ExpectedVolume("thin02", True, False)]
    faults = faults_of(recorded("worker_killed"), expected, 3)
    assert "signal 9" in faults[0]
    assert "'thin02' ran for 0.000 s" in faults[1]


def test_an_ended_fio_is_a_fault_although_its_figures_look_good() -> None:
    expected = [ExpectedVolume("thin01", True, False), ExpectedVolume("thin02", True, False)]
    assert "signal 15" in faults_of(recorded("terminated"), expected, 3)[0]


def test_a_message_without_a_document_is_quoted() -> None:
    assert faults_of("Bad option <foo>\n") == ["fio wrote no result; fio said: Bad option <foo>."]
    assert faults_of("") == ["fio wrote no result and no message."]


def test_fio_3_1_without_n_and_with_bins_of_completion_only_is_read() -> None:
    old = a_direction(lat_ns={"min": 1, "max": 2, "mean": 1.5, "stddev": 0.1})
    del old["bw_bytes"]
    old["clat_ns"] = {"min": 900, "max": 1100, "mean": 990.0, "stddev": 9.0, "bins": {"1004": 600, "1012": 399}}
    read = reduce_output(a_document(a_job(read=old)), READ_ONLY, 2)["volumes"]["thin01"]["read"]
    assert (read["lat_ns"]["n"], read["lat_ns"]["mean"], read["bytes_per_s"]) == (999, 990.0, 2048000.0)


def test_latency_that_was_not_measured_is_none_and_not_zero() -> None:
    silent = a_direction(lat_ns=NO_IO["lat_ns"])
    assert reduce_output(a_document(a_job(read=silent)), READ_ONLY, 2)["volumes"]["thin01"]["read"]["lat_ns"] is None


dense = st.dictionaries(st.integers(0, 1855), st.integers(1, 2**40)).map(lambda counts: Histogram(counts).to_dense())
volumes = st.dictionaries(
    st.text(max_size=5),
    st.fixed_dictionaries({way: st.none() | st.fixed_dictionaries({"histogram": dense}) for way in ("read", "write")}),
)


def a_sample(found: dict[str, Any], counts: list[int] | None) -> dict[str, Any]:
    """A sample with a figure of its own at every place, with or without steps."""
    steps = {
        name: {way: counts if volume[way] is not None else [] for way in ("read", "write")}
        for name, volume in found.items()
    }
    timed = {"start_s": 1.5, "interval_s": 0.2, "unlogged": ["a read"], "volumes": steps}
    return {"volumes": found, "kernel": {"a": {"busy": 0.5}}, "point": "p01", "steps": timed if counts else None}


@given(volumes, st.none() | st.lists(st.integers(0, 2**40), min_size=1))
def test_a_packed_sample_comes_back_whole_and_the_original_is_left_alone(
    found: dict[str, Any], counts: list[int] | None
) -> None:
    sample = a_sample(found, counts)
    before = json.dumps(sample)
    packed = json.loads(json.dumps(pack_sample(sample)))
    assert unpack_sample(packed) == sample
    assert json.dumps(sample) == before
    figures = unpack_figures(packed)
    assert figures["kernel"] == {"a": {"busy": 0.5}}
    assert list(figures["volumes"]) == list(found)


def test_what_says_how_a_packed_sample_fared_stays_readable() -> None:
    packed = pack_sample(
        {**reduce_output(a_document(), READ_ONLY, 2), "status": "measured", "window": {"start_s": 1.0}}
    )
    assert (packed["status"], packed["window"], packed["faults"]) == ("measured", {"start_s": 1.0}, [])


def test_a_packed_sample_of_twenty_volumes_is_small() -> None:
    """19 KB of 428 KB before; every volume here has 600 bins, a minute of steps, and what the kernel saw."""
    rng = random.Random(3)
    volumes = {}
    for number in range(20):
        counts = {
            700 + k: 1 + int(900 * math.exp(-((k - 200) ** 2) / 9000) * rng.uniform(0.8, 1.2)) for k in range(600)
        }
        ios, mean = sum(counts.values()), rng.uniform(1e6, 2e6)
        lat = {"n": ios, "mean": mean, "stddev": mean / 3, "min": 140000 + number, "max": 9000000 + number}
        way = {"ios": ios, "io_bytes": ios * 4096, "iops": ios / 60.003, "bytes_per_s": ios * 4096 / 60.003}
        read = {**way, "runtime_s": 60.003, "lat_ns": lat, "histogram": Histogram(counts).to_dense()}
        volumes[f"thin{number:02}"] = {"read": read, "write": None, "error": 0, "usr": 0.0513, "sys": 0.1312}
    sample = a_sample(volumes, [rng.randrange(4800, 5200) for _unused in range(60)])
    busy = {key: rng.uniform(1e4, 1e6) for key in ("read_iops", "write_iops", "read_bytes_per_s", "busy")}
    sample["kernel"] = dict.fromkeys(volumes, busy)
    assert len(json.dumps(pack_sample(sample))) <= 25_000


def test_a_sample_that_was_never_packed_is_unpacked_as_it_is() -> None:
    assert unpack_sample({"volumes": {}, "faults": []}) == {"volumes": {}, "faults": []}


def test_a_damaged_packed_sample_is_refused_in_a_sentence() -> None:
    packed = pack_sample(reduce_output(a_document(), READ_ONLY, 2))
    others = pack_sample({"volumes": {}})
    for key in ("volumes_z", "histograms_z"):
        for damaged in ("?", "AAAA", packed[key][:8], others["histograms_z"], 5):
            with pytest.raises(PackError, match="measure again"):
                unpack_sample({**packed, key: damaged})


def test_a_sample_of_another_packing_is_refused_in_a_sentence() -> None:
    with pytest.raises(PackError, match="another version"):
        unpack_sample({"volumes": {}, "histograms_z": "eJxjAAAAAQAB"})
