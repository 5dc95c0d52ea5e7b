"""Tuning profiles: all of them usable and sourced, stacked with every doubt told."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import tuning_profiles
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError, load_profile, profile_names
from ansible_collections.hostmax.storage.plugins.plugin_utils.tuning_profiles import load_tuning, resolve, slots


def values(tuning):
    return {each["key"]: each["value"] for each in tuning.keys}


@pytest.mark.parametrize("name", profile_names("tuning"))
def test_every_profile_that_is_shipped_can_be_used_and_says_where_it_is_from(name):
    assert load_tuning(name).names == [name]
    assert load_profile("tuning", name)["source"]["publisher"]


def test_the_two_published_lists_for_chip_design_are_kept_as_they_differ():
    benefits, learn = values(load_tuning("azure_eda_2025")), values(load_tuning("azure_learn_eda"))
    differ = {key for key in benefits.keys() & learn if benefits[key] != learn[key]}
    assert differ == {
        "net.core.optmem_max",
        "net.ipv4.tcp_mem",
        "vm.dirty_expire_centisecs",
        "vm.dirty_writeback_centisecs",
    }


def test_a_key_given_twice_in_one_profile_is_told_and_the_last_counts():
    tuning = load_tuning("azure_learn_eda")
    assert values(tuning)["net.ipv4.tcp_sack"] == "0"
    assert "azure_learn_eda gives net.ipv4.tcp_sack twice, 1 and 0; the last counts." in tuning.warnings


def test_keys_that_will_not_be_written_are_told_when_the_profile_is_loaded():
    warnings = " ".join(load_tuning("azure_eda_2025").warnings)
    for key in ("net.ipv4.route.flush", "net.ipv4.tcp_low_latency", "net.ipv4.tcp_fack"):
        assert f"{key} of azure_eda_2025 is not" in warnings


def test_profiles_that_contradict_one_another_are_told_and_the_last_counts():
    tuning = resolve(["azure_learn_eda", "azure_eda_2025"])
    assert values(tuning)["vm.dirty_expire_centisecs"] == "30000"
    assert (
        "vm.dirty_expire_centisecs is 100 in azure_learn_eda and 30000 in azure_eda_2025; the last counts."
        in tuning.warnings
    )


def test_a_key_that_clears_one_of_an_earlier_profile_takes_its_place():
    tuning = resolve(["azure_learn_eda", "sas_grid"])
    assert "vm.dirty_ratio" not in values(tuning)
    assert values(tuning)["vm.dirty_bytes"] == "31457280"
    assert any("vm.dirty_ratio of azure_learn_eda is left out" in warning for warning in tuning.warnings)


def test_own_values_come_over_those_of_a_profile():
    tuning = resolve(["azure_eda_2025", {"net.ipv4.tcp_sack": True}])
    assert values(tuning)["net.ipv4.tcp_sack"] == "1"


def test_a_slot_key_becomes_the_parameter_that_holds_at_boot():
    [parameter] = resolve([{"sunrpc.tcp_max_slot_table_entries": 64}]).module_parameters
    assert (parameter["module"], parameter["parameter"]) == ("sunrpc", "tcp_max_slot_table_entries")


@pytest.mark.parametrize(
    ("clients", "nconnect", "expected"),
    [(1, 1, 128), (1, 16, 128), (10, 16, 62), (50, 16, 12), (250, 8, 5), (5000, 16, 2), (0, 0, 128)],
)
def test_all_clients_together_stay_within_the_slots_of_an_endpoint(clients, nconnect, expected):
    assert slots(clients, nconnect) == expected


def test_slots_of_a_setting_come_over_those_of_a_profile():
    tuning = resolve(["sap_hana_anf"], clients=10, nconnect=16, sunrpc_slots="auto", session_slots=180)
    found = {each["parameter"]: each["value"] for each in tuning.module_parameters}
    assert found["tcp_max_slot_table_entries"] == "62"
    assert found["max_session_slots"] == "180"


@pytest.mark.parametrize("value", [None, "none", ""])
def test_no_slots_are_set_where_none_are_asked_for(value):
    assert resolve([], sunrpc_slots=value, session_slots=value).module_parameters == []


@pytest.mark.parametrize(
    ("setting", "slots_asked", "says"),
    [
        (["azure_eda"], None, "did you mean azure_eda_2025?"),
        ([3], None, "hostmax_tuning[0] is 3; it must be the name of a tuning profile or a mapping"),
        ([{}], None, "hostmax_tuning[0] is {}"),
        ([{"net.core.rmem_max": None}], None, "the value None of net.core.rmem_max"),
        ([{"net core": 1}], None, "the sysctl key 'net core' is not one"),
        ([], "many", "hostmax_sunrpc_slots is 'many'; it must be a whole number from 2 to 65536, auto or none"),
        ([], 1, "hostmax_sunrpc_slots is 1"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(setting, slots_asked, says):
    with pytest.raises(ProfileError) as refused:
        resolve(setting, sunrpc_slots=slots_asked)
    assert says in str(refused.value)


def test_the_most_connections_are_found_in_options_and_profiles_of_mounts():
    mounts = [{"options": "vers=3,nconnect=4"}, {"options": "ro"}, {"profile": None}]
    assert tuning_profiles.largest_nconnect(mounts) == 4
    assert tuning_profiles.largest_nconnect([]) == 1
