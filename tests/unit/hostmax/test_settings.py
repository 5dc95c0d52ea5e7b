"""What a caller gives is refused in the collection's words before Ansible starts, or handed on as plain data."""

from __future__ import annotations

import pathlib

import pytest

from hostmax import settings
from hostmax.errors import BadInput


def refusal(check, *arguments):
    with pytest.raises(BadInput) as caught:
        check(*arguments)
    return caught.value.sentences


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"hostmax_runtme_s": 1}, "no setting is named hostmax_runtme_s, did you mean hostmax_runtime_s."),
        ({"hostmax_runtime_s": "ten"}, "hostmax_runtime_s is 'ten'; it must be a whole number of seconds."),
        ({"hostmax_runtime_s": object()}, "hostmax_runtime_s cannot be written as JSON"),
        ({"hostmax_settle_s": float("nan")}, "hostmax_settle_s cannot be written as JSON"),
        ({"hostmax_volumes": [{"paht": "/dev/x"}]}, "hostmax_volumes[0] has the unknown key 'paht', did you mean path"),
        ({"ansible_user": "me"}, "variables of Ansible go into variables= or the inventory."),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_in_one_sentence(given, sentence):
    (told,) = refusal(settings.check_settings, given, None)
    assert sentence in told


def test_all_faults_are_told_together():
    assert len(refusal(settings.check_settings, {"hostmax_seed": "x", "hostmax_sed": 1}, None)) == 2


@pytest.mark.parametrize(
    "value", ["{{ lookup('pipe', 'id') }}", ["{% set x = 1 %}"], [{"name": "{{ x }}"}], [{"{# x #}": 1}]]
)
def test_a_template_in_a_setting_is_refused_so_that_choosing_a_value_runs_no_code(value):
    assert "holds a template" in refusal(settings.check_settings, {"hostmax_workloads": value}, None)[0]


def test_a_nested_mapping_is_no_template_for_its_braces():
    given = {"hostmax_expect": {"profile": "oci_block_volume", "shape": {"a": {"b": 1}}}}
    assert settings.check_settings(given, None) == given


def test_paths_are_taken_and_results_are_seen_from_the_callers_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert settings.check_settings({}, pathlib.Path("out")) == {"hostmax_results": str(tmp_path / "out")}
    assert settings.check_settings({"hostmax_results": "out"}, None) == {"hostmax_results": str(tmp_path / "out")}


def test_results_given_twice_are_refused():
    assert "both given" in refusal(settings.check_settings, {"hostmax_results": "a"}, "b")[0]


def test_every_playbook_of_the_collection_can_be_run_and_no_other():
    assert {"host_max", "report", "restore", "stop"} <= set(settings.playbooks())
    assert settings.check_playbook("host_max") == "host_max"
    assert "did you mean host_max" in refusal(settings.check_playbook, "hostmax")[0]
    assert "no playbook is named" in refusal(settings.check_playbook, "../../etc/x")[0]


def test_without_an_inventory_only_this_machine_is_meant():
    assert list(settings.check_inventory(None)["all"]["hosts"]) == ["localhost"]


@pytest.mark.parametrize(
    "empty", [{}, {"all": {}}, {"all": {"hosts": {}}}, {"all": {"children": {"x": {"hosts": {}}}}}]
)
def test_an_inventory_without_hosts_is_refused_and_not_taken_for_this_machine(empty):
    assert "names no host" in refusal(settings.check_inventory, empty)[0]


def test_hosts_in_child_groups_are_found():
    inventory = {"all": {"children": {"clients": {"hosts": {"a": {"ansible_port": 22}}}}}}
    assert settings.check_inventory(inventory) == inventory


def test_an_inventory_that_is_not_there_is_refused(tmp_path):
    assert "does not exist" in refusal(settings.check_inventory, tmp_path / "hosts.yml")[0]


def test_the_value_of_a_variable_is_never_told():
    told = refusal(settings.check_variables, {"ansible_password": {"sesame"}})
    assert "sesame" not in told[0]
    assert "is a setting" in refusal(settings.check_variables, {"hostmax_seed": 1})[0]


def test_a_directory_that_is_no_run_is_refused_in_the_collections_words(tmp_path):
    told = refusal(settings.check_run_directory, {"hostmax_run": str(tmp_path)})
    assert "is not a run directory, it has no plan.json" in told[0]
