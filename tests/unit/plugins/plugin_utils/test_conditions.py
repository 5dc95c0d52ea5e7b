# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
import yaml
from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.plugin_utils.conditions import (
    ConditionError,
    condition_sets,
    named_conditions,
    resolve_conditions,
)

EDA = ["baseline", "nocto-actimeo", "tuned", "nconnect16", "vers4.1", "rsize64k", "rsize1m"]


def names(found):
    return [condition.name for condition in found]


def sentence(*entries):
    with pytest.raises(ConditionError) as caught:
        resolve_conditions(entries)
    return str(caught.value)


# -- the study ------------------------------------------------------------------------------------------------------


def test_the_study_has_its_practices_in_order():
    assert names(resolve_conditions(["nfs_practices"])) == EDA


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("baseline", "hard,vers=3,tcp,rsize=262144,wsize=262144"),
        ("nocto-actimeo", "hard,vers=3,tcp,rsize=262144,wsize=262144,nocto,actimeo=600"),
        ("tuned", "hard,vers=3,tcp,rsize=262144,wsize=262144,nocto,actimeo=600"),
        ("nconnect16", "hard,vers=3,tcp,rsize=262144,wsize=262144,nocto,actimeo=600,nconnect=16"),
        ("vers4.1", "hard,vers=4.1,tcp,rsize=262144,wsize=262144,nocto,actimeo=600,nconnect=16"),
        ("rsize64k", "hard,vers=3,tcp,rsize=65536,wsize=65536,nocto,actimeo=600,nconnect=16"),
        ("rsize1m", "hard,vers=3,tcp,rsize=1048576,wsize=1048576,nocto,actimeo=600,nconnect=16"),
    ],
)
def test_each_practice_has_the_options_of_all_below_it(name, options):
    assert nfs_options.same(str(named_conditions()[name].mount), options)


def test_tuning_comes_with_the_condition_that_adds_it_and_stays_above():
    found = named_conditions()
    assert [bool(found[name].tuning) for name in EDA] == [False, False, True, True, True, True, True]
    assert found["nconnect16"].tuning == ("azure_eda_2025",)


def test_a_set_may_measure_less_than_it_knows():
    assert condition_sets()["nfs_limits"] == ("scale-out",)
    assert names(resolve_conditions(["nfs_limits", "nconnect8"])) == ["scale-out", "nconnect8"]


# -- choosing -------------------------------------------------------------------------------------------------------


def test_a_condition_that_is_left_out_still_counts_for_those_above_it():
    first, last = resolve_conditions(["baseline", "nconnect16"])
    assert (first.on, last.on) == (None, "baseline")
    assert "nocto" in str(last.mount)
    assert last.tuning == ("azure_eda_2025",)


def test_what_is_named_twice_is_measured_once():
    assert names(resolve_conditions(["baseline", "nfs_practices", "baseline"])) == EDA


def test_an_own_condition_stands_on_a_named_one():
    found = resolve_conditions(["baseline", {"name": "mine", "on": "baseline", "mount": "nconnect=4,rsize=65536"}])
    assert nfs_options.same(str(found[1].mount), "hard,vers=3,tcp,wsize=262144,nconnect=4,rsize=65536")
    assert (found[1].on, found[1].title, found[1].adds) == ("baseline", "mine", "nconnect=4,rsize=65536")


def test_the_word_on_is_read_as_yaml_has_it():
    """YAML 1.1 takes `on` for true."""
    written = yaml.safe_load("[{name: a, mount: hard}, {name: b, on: a, mount: nocto}]")
    assert True in written[1]
    assert resolve_conditions(written)[1].on == "a"
    assert resolve_conditions([{"name": "a"}, {"name": "b", "true": "a"}])[1].on == "a"


def test_nothing_at_all_may_be_a_condition():
    (found,) = resolve_conditions([{"name": "as-it-is"}])
    assert (found.mount, found.tuning, found.adds) == (None, (), "nothing")


def test_mount_may_name_a_profile():
    (found,) = resolve_conditions([{"name": "mine", "mount": "study_baseline"}])
    assert nfs_options.same(str(found.mount), "hard,vers=3,tcp,rsize=262144,wsize=262144")
    assert found.adds == "study_baseline"


def test_own_keys_stack_with_profiles():
    found = resolve_conditions([{"name": "a", "tuning": "sas_grid"}, {"name": "b", "on": "a", "tuning": {"vm.x": 1}}])
    assert found[1].tuning == ("sas_grid", {"vm.x": 1})


# -- refusing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["nconect16"], "hostmax_conditions[0]: no condition is named 'nconect16', did you mean nconnect16?"),
        (["baseline", 7], "hostmax_conditions[1]: no condition is named '7'; there are:"),
        ([{"mount": "hard"}], "hostmax_conditions[0]: the name '' must be"),
        ([{"name": "a b"}], "hostmax_conditions[0]: the name 'a b' must be up to 40 letters"),
        ([{"name": "a", "mont": "hard"}], "has the unknown key 'mont', did you mean mount?"),
        ([{"name": "a", "on": "b"}, {"name": "b"}], "the condition 'a' stands on 'b', which is not known before it"),
        ([{"name": "a", "on": "a"}], "the condition 'a' stands on 'a', which is not known before it"),
        ([{"name": "baseline"}], "there is a condition named 'baseline' already"),
        ([{"name": "a"}, {"name": "a"}], "hostmax_conditions[1]: there is a condition named 'a' already"),
        ([{"name": "a", "mount": "hard,soft"}], "the mount options hard and soft, which contradict each other"),
        ([{"name": "a", "mount": "nocto,cto"}], "the mount options nocto and cto, which contradict"),
        ([{"name": "a", "mount": "vers=3,vers=4.1"}], "the mount options vers=3 and vers=4.1, which contradict"),
        ([{"name": "a", "mount": "rsize=lots"}], "hostmax_conditions[0]: the condition 'a': "),
        ([{"name": "a", "mount": ["hard"]}], "give mount options as one text"),
        ([{"name": "a", "tuning": 5}], "has the tuning 5; name tuning profiles"),
    ],
)
def test_conditions_that_cannot_be_used_are_refused_in_one_sentence(entries, words):
    said = sentence(*entries)
    assert words in said
    assert "\n" not in said


def test_more_conditions_than_anybody_reads_are_refused():
    assert "measure 50 at most" in sentence(*({"name": f"c{number}"} for number in range(51)))
