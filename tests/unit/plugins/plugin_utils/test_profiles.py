# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import profiles

KINDS = [(kind, name) for kind in profiles.REQUIRED for name in profiles.profile_names(kind)]

# tuning.md 1.1: the documented sets for raw devices (number: rw, bs, depth, jobs)
DOCUMENTED = {
    1: ("randread", 4096, 256, 4),
    3: ("randrw", 4096, 256, 4),
    4: ("read", 4096, 256, 4),
    5: ("randread", 262144, 64, 4),
    7: ("randrw", 262144, 64, 4),
    8: ("read", 262144, 64, 4),
    9: ("randread", 4096, 1, 1),
    10: ("randrw", 4096, 1, 1),
}


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_every_shipped_profile_loads_and_names_its_sources(kind, name):
    assert profiles.load_profile(kind, name)["name"] == name


def test_the_default_workload_is_4k_random_read_at_depth_32_from_one_job():
    (workload,) = profiles.resolve_workloads(["host_max"])
    assert (workload.name, workload.rw, workload.block_size_bytes) == ("4k-randread", "randread", 4096)
    assert (workload.io_depth, workload.num_jobs, workload.engine, workload.direct) == (32, 1, "auto", True)


def test_the_oci_sets_are_the_documented_ones_for_raw_devices():
    entries = profiles.load_profile("workloads", "oci_block_volume")["workloads"]
    found = {}
    for entry in entries:
        workload = profiles.named_workloads()[entry["name"]]
        found[entry["documented"]["set"]] = (
            workload.rw,
            workload.block_size_bytes,
            workload.io_depth,
            workload.num_jobs,
        )
    assert found == DOCUMENTED


def test_each_oci_set_that_reads_only_is_documented_with_readonly():
    for entry in profiles.load_profile("workloads", "oci_block_volume")["workloads"]:
        workload = profiles.named_workloads()[entry["name"]]
        assert entry["documented"]["readonly"] is not workload.writes


def test_sequential_sets_of_several_jobs_say_that_the_jobs_are_kept_apart():
    for entry in profiles.load_profile("workloads", "oci_block_volume")["workloads"]:
        workload = profiles.named_workloads()[entry["name"]]
        if not workload.random and workload.num_jobs > 1:
            assert "a part of the volume of its own" in entry["corrected"]


def test_a_set_and_a_workload_can_be_named_together_and_nothing_runs_twice():
    names = [workload.name for workload in profiles.resolve_workloads(["256k-read", "host_max", "4k-randread"])]
    assert names == ["256k-read", "4k-randread"]


def test_an_unknown_workload_is_answered_with_the_one_meant():
    with pytest.raises(profiles.ProfileError, match=r"^no workload is named .*, did you mean 4k-randread\?$"):
        profiles.resolve_workloads(["4k-randraed"])


def test_a_workload_like_no_other_is_answered_with_all_there_are():
    with pytest.raises(profiles.ProfileError) as caught:
        profiles.resolve_workloads(["database"])
    assert str(caught.value).startswith("no workload is named 'database'; there are: 16k-randread, 1m-read,")
    assert str(caught.value).endswith("and the sets azure_eda_fio, azure_large_volume, host_max, oci_block_volume")


def test_an_unknown_profile_is_answered_with_those_there_are():
    with pytest.raises(profiles.ProfileError) as caught:
        profiles.load_profile("expectations", "ebs")
    assert str(caught.value) == "no expectation profile is named 'ebs'; there are: azure_netapp_files, oci_block_volume"


BAD = {
    "a profile without figures": ("expectations", "name: bad\ntitle: t\n", "lacks publisher, units, observations"),
    "a profile of neither a model nor volumes": (
        "expectations",
        "{name: bad, title: t, publisher: p, units: [], observations: []}",
        "has neither a model nor the volumes it observed",
    ),
    "a profile that is no mapping": ("expectations", "- 1\n", "lacks name, title, publisher"),
    "a profile that is no YAML": ("workloads", "a: [\n", "cannot be read"),
    "a profile under another name": (
        "workloads",
        "{name: other, title: t, source: {title: a, date: b}, default: [], workloads: []}",
        "calls itself 'other'",
    ),
    "a set without the date of its source": (
        "workloads",
        "{name: bad, title: t, source: {title: a}, default: [], workloads: []}",
        "gives no title and date for the source of the set",
    ),
}


@pytest.mark.parametrize(("kind", "text", "message"), BAD.values(), ids=BAD)
def test_an_unusable_profile_is_refused_with_its_file(tmp_path, monkeypatch, kind, text, message):
    path = tmp_path / "profiles" / kind / "bad.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    monkeypatch.setattr(profiles, "COLLECTION", tmp_path)
    profiles.load_profile.cache_clear()
    try:
        with pytest.raises(profiles.ProfileError, match=r"bad\.yml") as caught:
            profiles.load_profile(kind, "bad")
    finally:
        profiles.load_profile.cache_clear()
    assert message in str(caught.value)
