"""Mount profiles: what was documented, what is odd about it, and which endpoint a host takes."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.plugin_utils import mount_profiles
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError

EDA = "nocto,actimeo=600,hard,rsize=262144,wsize=262144,vers=3,tcp,noatime,nconnect=8"


@pytest.mark.parametrize("name", mount_profiles.mount_profiles())
def test_every_profile_has_usable_options_and_a_dated_source(name):
    profile = mount_profiles.mount_profile(name)
    assert nfs_options.canonical(profile["options"])
    assert profile["source"]["date"][:2] == "20"
    assert profile["source"]["url"].startswith("https://")


def test_the_documented_sets_are_all_there():
    assert mount_profiles.mount_profiles() == [
        "azure_eda_2025",
        "azure_large_scale_out",
        "azure_large_scale_up",
        "azure_learn_eda",
        "azure_regular_benchmark",
        "sap_hana_anf",
        "study_baseline",
    ]


def test_options_are_merged_over_those_of_a_profile():
    assert mount_profiles.resolve("azure_eda_2025") == EDA
    assert mount_profiles.resolve("azure_eda_2025", "nconnect=16,vers=4.1") == (
        "nocto,actimeo=600,hard,rsize=262144,wsize=262144,tcp,noatime,nconnect=16,vers=4.1"
    )
    assert mount_profiles.resolve(None, "hard,soft") == "soft"


def test_the_practices_of_the_study_stacked_are_the_learn_set():
    base = mount_profiles.resolve("study_baseline")
    stacked = nfs_options.merge(base, "nocto,actimeo=600", "nconnect=16")
    assert nfs_options.differences(stacked, nfs_options.effective(mount_profiles.resolve("azure_learn_eda"))) == []


def test_options_without_effect_are_told():
    assert mount_profiles.mount_profile("azure_learn_eda")["remarks"] == [
        "The mount option intr is ignored by the kernel since 2.6.25."
    ]
    assert "foreground" in mount_profiles.mount_profile("azure_regular_benchmark")["remarks"][0]
    assert mount_profiles.mount_profile("azure_eda_2025")["remarks"] == []


def test_several_connections_with_kerberos_are_warned_of():
    assert "drop requests" in mount_profiles.remarks("sec=krb5p,nconnect=8")[0]
    assert mount_profiles.remarks("sec=krb5p,nconnect=1") == []
    assert mount_profiles.remarks("sec=sys,nconnect=8") == []


def test_a_profile_nobody_knows_is_told_with_the_one_meant():
    with pytest.raises(ProfileError, match=r"no mount profile is named 'azure_eda', did you mean azure_eda_2025\?"):
        mount_profiles.resolve("azure_eda")


def test_bad_options_are_told():
    with pytest.raises(ProfileError, match="use 1 to 16"):
        mount_profiles.resolve("azure_eda_2025", "nconnect=99")


@pytest.mark.parametrize(
    ("number", "source"),
    [
        (0, "10.0.0.4:/vol1"),
        (1, "10.0.0.5:/vol1"),
        (2, "[fd00::6]:/vol1"),
        (3, "10.0.0.4:/vol1"),
        (1000, "10.0.0.5:/vol1"),
    ],
)
def test_hosts_are_spread_over_the_endpoints_by_their_number(number, source):
    servers = ["10.0.0.4", "10.0.0.5", "fd00::6"]
    assert mount_profiles.endpoint("10.0.0.9:/vol1", servers, number) == source


def test_a_volume_with_one_endpoint_keeps_its_source():
    assert mount_profiles.endpoint("10.0.0.9:/vol1", [], 7) == "10.0.0.9:/vol1"
