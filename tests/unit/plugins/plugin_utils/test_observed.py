# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Observed figures: the very same case is judged by its current one, every other is only compared with."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.units import parse_size
from ansible_collections.hostmax.storage.plugins.module_utils.workload import Workload
from ansible_collections.hostmax.storage.plugins.plugin_utils import expectations, observed, profiles

PROFILE = "azure_netapp_files"
MIB = 2**20
HOSTS = {"a": [{"name": "vol1", "size_bytes": None}], "b": [{"name": "vol1", "size_bytes": None}]}
ONE_HOST = {"a": HOSTS["a"]}


def doing(rw, block_size, **more):
    made = {"name": "w", "rw": rw, "block_size": block_size, "io_depth": 128, "num_jobs": 4, **more}
    return Workload.from_mapping(made).to_mapping()


def setting(volume="regular", **more):
    return {"profile": PROFILE, "volume": volume, **more}


def resolved(volume, rw, block_size, hosts=None, n_volumes=1, **more):
    return expectations.resolve_expectations(setting(volume, **more), hosts or HOSTS, doing(rw, block_size), n_volumes)


JUDGED = [
    ("regular", "read", "64k", 4500 * MIB, "bytes_per_s", "2024-03-24"),
    ("regular", "write", "64k", 1600 * MIB, "bytes_per_s", "2024-03-24"),
    ("regular", "randread", "4k", 460_000, "iops", "2024-03-24"),
    ("regular", "randwrite", "4k", 130_000, "iops", "2024-03-24"),
    ("large", "read", "256k", 12_761 * MIB, "bytes_per_s", "after 2024-03"),
    ("large", "write", "256k", 8_518 * MIB, "bytes_per_s", "2023-05-01"),
    ("large", "randread", "8k", 709_000, "iops", "2023-05-01"),
    ("large", "randwrite", "8k", 474_000, "iops", "2023-05-01"),
    ("large_one_client", "randwrite", "8k", 405_000, "iops", "2023-05-01"),
    ("regular_one_client", "read", "64k", 3500 * MIB, "bytes_per_s", "2024-03-24"),
]


@pytest.mark.parametrize(("volume", "rw", "block_size", "value", "unit", "date"), JUDGED)
def test_the_very_same_case_is_judged_by_its_current_figure(volume, rw, block_size, value, unit, date):
    (found,) = resolved(volume, rw, block_size)
    assert (found.value, found.unit, found.date, found.kind) == (value, unit, date, "observed")


NOT_JUDGED = [
    ("regular", "randread", "8k", {}),
    ("regular", "randrw", "4k", {"read_percent": 70}),
    ("regular", "randread", "64k", {}),
    ("large", "read", "64k", {}),
]


@pytest.mark.parametrize(("volume", "rw", "block_size", "more"), NOT_JUDGED)
def test_another_block_size_mix_or_pattern_is_not_judged(volume, rw, block_size, more):
    assert expectations.resolve_expectations(setting(volume), HOSTS, doing(rw, block_size, **more), 1) == []


def names(volume, rw, block_size, unit, hosts=None, **more):
    found = expectations.observed_references(setting(volume), hosts or HOSTS, doing(rw, block_size, **more), unit)
    return [(each["name"], each["value"], each["date"]) for each in found]


def test_the_older_page_is_compared_with_beside_the_newer_one():
    assert (
        "Large volume, 256 KiB sequential read, older page: 9,970 MiB/s",
        9_970 * MIB,
        "2023-05-01",
    ) in names("large", "read", "256k", "bytes_per_s")


def test_another_block_size_is_compared_with_and_says_so():
    found = names("regular", "randread", "8k", "iops")
    assert ("Regular volume, 4 KiB random read (here 8 KiB)", 460_000, "2024-03-24") in found
    assert ("Regular volume, most read IOPS in the study", 200_000, "2023-08-03") in found


def test_one_client_is_compared_with_what_one_client_reached_and_many_are_not():
    assert not [name for name, *_rest in names("large", "randread", "8k", "iops") if "one client" in name]
    alone = names("large", "randread", "8k", "iops", hosts=ONE_HOST)
    assert ("Large volume from one client, 8 KiB random read", 426_000, "2023-05-01") in alone


def test_the_figure_that_is_judged_by_is_no_reference_too():
    assert "Large volume, 8 KiB random read" not in [name for name, *_rest in names("large", "randread", "8k", "iops")]


def test_reads_and_writes_are_not_compared_with_each_other():
    assert not [name for name, *_rest in names("regular", "randwrite", "8k", "iops") if "read" in name]


def test_nothing_is_compared_with_where_nothing_was_asked():
    assert expectations.observed_references("none", HOSTS, doing("randread", "8k"), "iops") == []


def test_several_volumes_add_up_and_several_hosts_of_one_volume_do_not():
    hosts = {host: [{"name": "vol1"}, {"name": "vol2"}] for host in ("a", "b", "c")}
    (found,) = resolved("large", "randread", "8k", hosts=hosts, n_volumes=2)
    assert (found.value, found.name) == (2 * 709_000, "Large volume, 8 KiB random read, 2 volumes")
    assert resolved("large", "randread", "8k", hosts=hosts, n_volumes=1)[0].value == 709_000


def test_the_tolerance_and_the_name_are_the_users():
    (found,) = resolved("regular", "read", "64k", tolerance=0.1, name="our contract")
    assert (found.tolerance, found.name) == (0.1, "our contract")


REFUSED = [
    (PROFILE, "azure_netapp_files needs a kind of volume; give volume: regular, large, regular_one_client,"),
    (setting("lage"), "no volume is named 'lage', did you mean large?"),
    (setting("regular", vpu=10), "'vpu' is no key here; use profile, name, volume, tolerance, workload"),
    (setting("regular", tolerance=3), "tolerance is 3; it must be a number above 0 and up to 1"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_what_cannot_be_used_is_refused_with_what_to_do(given, sentence):
    with pytest.raises(expectations.ExpectationError) as caught:
        expectations.check_expect(given)
    assert str(caught.value).startswith(f"hostmax_expect: {sentence}")


def test_volumes_of_an_observed_profile_have_no_caps():
    assert expectations.known_caps(setting("large"), {"a": [{"name": "v", "size_bytes": 2**40, "cap": None}]}) == {}


def test_lines_for_a_chart_are_the_pure_reads_and_the_pure_writes():
    mixes = [doing("randread", "8k"), doing("randrw", "8k", read_percent=50), doing("randwrite", "8k")]
    drawn = list(observed.lines(expectations.check_expect([setting("large"), "thin_cap"]), mixes))
    assert [(line["read_percent"], line["value"]) for line in drawn] == [(100, 709_000), (0, 474_000)]


def test_every_figure_is_the_published_one_in_base_units():
    for seen in profiles.load_profile("expectations", PROFILE)["observations"]:
        number = int(seen["published"].strip("~").split()[0].replace(",", ""))
        assert seen["value"] == number * (MIB if seen["published"].endswith(" MiB/s") else 1), seen["name"]
        assert (seen["unit"] == "bytes_per_s") is seen["published"].endswith(" MiB/s")


def test_of_each_case_one_figure_at_most_is_current():
    seen = [each for each in profiles.load_profile("expectations", PROFILE)["observations"] if each["current"]]
    cases = [(e["volume"], e["pattern"], parse_size(e["block_size"]), e["read_percent"]) for e in seen]
    assert len(set(cases)) == len(cases)
