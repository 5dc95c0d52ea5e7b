# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils.expectations import (
    ExpectationError,
    check_expect,
    known_caps,
    published_references,
    resolve_expectations,
)

BALANCED = {"iops": 25_000, "bytes_per_s": 480_000_000}
SMALL = {"iops": 3_000, "bytes_per_s": 24_576_000}
TB = 1024 * 2**30


def workload(rw="randread", block_size="4k", **options):
    made = Workload.from_mapping({"name": "w", "rw": rw, "block_size": block_size, "io_depth": 32, **options})
    return made.to_mapping()


def volumes(number, size_bytes=TB, cap=None):
    return [{"name": f"vol{n:02}", "size_bytes": size_bytes, "cap": cap} for n in range(1, number + 1)]


def only(found):
    (expectation,) = found
    return expectation


@pytest.mark.parametrize("setting", ["none", None, "", []])
def test_nothing_is_expected_where_nothing_was_asked(setting):
    assert resolve_expectations(setting, {"h": volumes(1, cap=BALANCED)}, workload(), 1) == []


@pytest.mark.parametrize(
    ("doing", "cap", "number", "unit", "value"),
    [
        (workload(), SMALL, 4, "iops", 12_000),
        (workload(block_size="256k"), SMALL, 4, "bytes_per_s", 98_304_000),
        (workload(), BALANCED, 20, "iops", 500_000),
        (workload(rw="randrw", read_percent=70), BALANCED, 2, "iops", 2 * 25_000 / 0.7),
        (workload(), {"iops": None, "bytes_per_s": 4_096_000}, 1, "iops", 1_000),
    ],
)
def test_the_caps_of_thin_volumes_are_what_they_reach(doing, cap, number, unit, value):
    found = only(resolve_expectations("thin_cap", {"h": volumes(number, cap=cap)}, doing, number))
    assert (found.unit, found.value, found.tolerance) == (unit, pytest.approx(value), 0.02)


def test_only_the_volumes_driven_count():
    assert only(resolve_expectations("thin_cap", {"h": volumes(20, cap=BALANCED)}, workload(), 4)).value == 100_000


def test_volumes_without_a_cap_have_no_oracle():
    assert resolve_expectations("thin_cap", {"h": volumes(2)}, workload(), 2) == []
    assert resolve_expectations("thin_cap", {}, workload(), 2) == []


def test_hosts_add_up_and_the_parts_name_them():
    hosts = {"a": volumes(2, cap=SMALL), "b": volumes(1, cap=SMALL)}
    found = only(resolve_expectations("thin_cap", hosts, workload(), 2))
    assert found.value == 9_000
    assert [(part["host"], part["value"]) for part in found.parts] == [("a", 6_000), ("b", 3_000)]


def test_a_profile_by_name_is_the_balanced_level_with_its_source_and_date():
    found = only(resolve_expectations("oci_block_volume", {"h": volumes(20)}, workload(), 20))
    assert (found.value, found.unit, found.tolerance) == (500_000, "iops", 0.05)
    assert (found.source, found.date) == ("Block Volume Performance", "2024-07-19")


@pytest.mark.parametrize(
    ("setting", "block_size", "value"),
    [
        ({"vpu": 0}, "4k", 20 * 2048),
        ({"level": "higher"}, "4k", 1_000_000),
        ({"vpu": "30", "shape": "BM.Standard.E4.128"}, "4k", 1_300_000),
        ({"shape": "BM.Standard.E4.128"}, "256k", 6e9),
        ({"shape": "VM.Standard.E4.Flex", "ocpus": 10}, "4k", 200_000),
        ({"shape": "VM.Standard.E4.Flex", "network_gbps": "40"}, "1m", 4.8e9),
    ],
)
def test_level_and_shape_decide_what_a_profile_expects(setting, block_size, value):
    setting = {"profile": "oci_block_volume", **setting}
    found = only(resolve_expectations(setting, {"h": volumes(20)}, workload(block_size=block_size), 20))
    assert found.value == pytest.approx(value)


def test_a_shape_bounds_each_host_and_not_their_sum():
    setting = {"profile": "oci_block_volume", "shape": "VM.Standard2.1"}
    hosts = {"a": volumes(20), "b": volumes(20)}
    assert only(resolve_expectations(setting, hosts, workload(), 20)).value == 50_000


def test_a_figure_of_the_user_stands_as_given():
    setting = {
        "iops": "14000",
        "name": "contract",
        "source": "offer 7",
        "date": "2026-01-31",
        "tolerance": 0.1,
        "workload": "w",
    }
    found = only(resolve_expectations(setting, {"h": volumes(1)}, workload(), 1))
    assert found.to_mapping() == {
        "name": "contract",
        "expected": 14_000.0,
        "unit": "iops",
        "source": "offer 7",
        "date": "2026-01-31",
        "tolerance": 0.1,
        "parts": [],
    }


def test_a_bandwidth_of_the_user_may_have_a_unit():
    found = only(resolve_expectations({"bytes_per_s": "480MB"}, {"h": volumes(1)}, workload(), 1))
    assert (found.value, found.unit) == (480_000_000, "bytes_per_s")


def test_a_figure_for_another_workload_is_not_expected_of_this_one():
    assert resolve_expectations({"iops": 1, "workload": "other"}, {"h": volumes(1)}, workload(), 1) == []


def test_several_expectations_are_resolved_in_order():
    setting = ["thin_cap", {"iops": 1}, "oci_block_volume"]
    found = resolve_expectations(setting, {"h": volumes(1, cap=SMALL)}, workload(), 1)
    assert [(each.kind, each.value) for each in found] == [("thin_cap", 3_000), ("figure", 1), ("profile", 25_000)]


def test_a_profile_needs_the_size_of_every_volume():
    with pytest.raises(ExpectationError) as caught:
        resolve_expectations("oci_block_volume", {"db1": volumes(1, size_bytes=None)}, workload(), 1)
    assert str(caught.value) == (
        "host db1: volume vol01: its size is not known, which oci_block_volume needs; give its size in hostmax_volumes"
    )


REFUSED = [
    ("oci", "no expectation is named 'oci'; there are: none, thin_cap, azure_netapp_files, oci_block_volume"),
    (5, "5 is neither a name nor a mapping nor a list of them"),
    ({"profile": "oci_block_volume", "vpu": 10, "level": "balanced"}, "vpu and level are both given; give one of them"),
    ({"profile": "oci_block_volume", "vpu": "ten"}, "vpu is 'ten'; it must be a whole number, for example 10"),
    ({"profile": "oci_block_volume", "ocpus": 4}, "ocpus and network_gbps need a flexible shape; give shape"),
    ({"profile": "oci_block_volume", "tolerance": 5}, "tolerance is 5; it must be a number above 0 and up to 1"),
    ({"profile": "oci_block_volume", "lvl": 1}, "'lvl' is no key here, did you mean level?"),
    ({"iops": 1, "bytes_per_s": 1}, "a figure has either iops or bytes_per_s; or name a profile"),
    ({"iops": True}, "iops is True; it must be a number above 0"),
    ({"iops": "fast"}, "iops is 'fast'; it must be a number above 0"),
    ({"iops": 1, "workload": "4k-write"}, "the workload '4k-write' is not in this run; it runs: w"),
]


@pytest.mark.parametrize(("setting", "sentence"), REFUSED)
def test_an_expectation_that_cannot_be_used_is_refused(setting, sentence):
    with pytest.raises(ExpectationError) as caught:
        check_expect(setting, ["w"])
    assert str(caught.value).startswith(f"hostmax_expect: {sentence}")


def names(hosts, doing, number):
    return [(each["name"], each["value"], each["unit"]) for each in published_references(hosts, doing, number)]


def test_the_published_host_maximum_is_named_for_twenty_volumes_of_1_tb():
    expected = [("Host maximum, twenty 1 TB volumes, Ashburn", 400_000, "iops")]
    assert names({"h": volumes(20)}, workload(), 20) == expected
    assert names({"h": volumes(20, size_bytes=10**12)}, workload(), 20) == expected


def test_an_observation_of_another_case_is_not_named():
    assert names({"h": volumes(20)}, workload(), 19) == []
    assert names({"h": volumes(20)}, workload(block_size="8k"), 20) == []
    assert names({"h": volumes(20, size_bytes=2 * TB)}, workload(), 20) == []
    assert names({"a": volumes(20), "b": volumes(20)}, workload(), 20) == []
    assert names({"h": volumes(20, size_bytes=None)}, workload(), 20) == []


def test_the_bandwidth_of_2017_is_named_as_old_for_256_kib_and_larger():
    for block_size in ("256k", "1m"):
        (reference,) = published_references({"h": volumes(1)}, workload(block_size=block_size), 1)
        assert (reference["value"], reference["unit"]) == (320_000_000, "bytes_per_s")
        assert reference["source"].endswith("observed 2017")


def test_the_caps_known_of_volumes_are_those_set_on_them_else_those_of_the_expected_model():
    own = {"name": "thin01", "size_bytes": TB, "cap": {"iops": 3000}}
    raw = {"name": "vol01", "size_bytes": TB, "cap": None}
    unsized = {"name": "vol02", "size_bytes": None, "cap": None}
    found = known_caps("oci_block_volume", {"h": [own, raw, unsized]})
    assert (found["h", "thin01"].iops, found["h", "thin01"].each_direction) == (3000, True)
    assert (found["h", "vol01"].iops, found["h", "vol01"].bytes_per_s) == (25_000, 480_000_000)
    assert "OCI Block Volume" in found["h", "vol01"].source
    assert ("h", "vol02") not in found
    assert known_caps("none", {"h": [raw]}) == {}
