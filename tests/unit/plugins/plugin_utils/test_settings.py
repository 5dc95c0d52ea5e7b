# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import datetime
import json

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import argument_specs
from ansible_collections.hostmax.storage.plugins.plugin_utils.settings import SettingsError, host_settings, plain
from hypothesis import given
from hypothesis import strategies as st

ONE = [{"path": "/dev/disk/by-path/pci-0000:00:05.0", "size": "1TB"}]


def settings(host="db1", **variables):
    return host_settings({"inventory_hostname": host, "ansible_host": "10.0.0.1", **variables})


def sentence(**variables):
    with pytest.raises(SettingsError) as caught:
        settings(**variables)
    return str(caught.value)


# -- what a run is without settings ---------------------------------------------------------------------------------


def test_named_volumes_are_measured_with_the_defaults():
    found = settings(hostmax_volumes=ONE)
    assert (found.runtime_s, found.ramp_s, found.settle_s, found.seed) == (60, 15, None, 0)
    assert [workload.name for workload in found.workloads] == ["4k-randread"]
    assert (found.results, found.expect, found.fail_on) == ("results", "thin_cap", ("fail", "invalid"))
    assert found.thin is None
    assert found.volumes == (
        {
            "name": "vol01",
            "path": "/dev/disk/by-path/pci-0000:00:05.0",
            "size_bytes": 10**12,
            "size": "1TB",
            "identity": None,
            "overwrite": None,
            "kind": "block",
            "cap": None,
            "needed_bytes": 4096,
        },
    )


def test_the_guard_learns_how_much_of_a_volume_the_largest_workload_needs():
    doing = {"name": "big", "rw": "randread", "block_size": "4k", "working_set": "10GiB"}
    found = settings(hostmax_volumes=[{"path": "/dev/sdb"}], hostmax_workloads=["4k-randread", doing])
    assert found.volumes[0]["needed_bytes"] == 10 * 2**30


def test_this_machine_without_volumes_gets_twenty_thin_ones():
    found = settings(host="localhost")
    assert found.thin == {"count": 20, "size_bytes": 10**12, "cap": {"iops": 25_000, "bytes_per_s": 480_000_000}}
    assert [volume["name"] for volume in found.volumes] == [f"thin{number:02}" for number in range(1, 21)]
    assert found.volumes[0]["path"] == "volumes/thin01"
    assert found.volumes[0]["cap"] == found.thin["cap"]


def test_a_host_reached_by_the_local_connection_is_this_machine():
    assert settings(host="bench", ansible_connection="local").thin["count"] == 20


def test_another_host_gets_thin_volumes_only_where_they_are_asked_for():
    assert settings(hostmax_thin_count=2).thin["count"] == 2


def test_named_volumes_come_before_thin_ones():
    assert settings(host="localhost", hostmax_volumes=ONE, hostmax_thin_count=3).thin is None


@pytest.mark.parametrize("cap", [None, {}, "none", "{}"])
def test_thin_volumes_can_go_without_a_cap(cap):
    assert settings(hostmax_thin_count=1, hostmax_thin_cap=cap).thin["cap"] is None


def test_a_cap_may_bound_one_quantity_only():
    found = settings(hostmax_thin_count=1, hostmax_thin_cap={"iops": 3000})
    assert found.volumes[0]["cap"] == {"iops": 3000, "bytes_per_s": None}


@pytest.mark.parametrize(("runtime_s", "ramp_s"), [(60, 15), (600, 15), (20, 5), (5, 1), (2, 0)])
def test_a_ramp_that_is_not_set_is_at_most_a_quarter_of_the_runtime(runtime_s, ramp_s):
    found = settings(hostmax_volumes=ONE, hostmax_runtime_s=runtime_s)
    assert found.ramp_s == found.values["hostmax_ramp_s"] == ramp_s


def test_variables_of_others_are_not_read():
    class Trap(dict):
        def __getitem__(self, name):
            assert name.startswith("hostmax_") or name in ("inventory_hostname", "ansible_connection")
            return super().__getitem__(name)

    assert host_settings(Trap(inventory_hostname="db1", secret="x", hostmax_volumes=ONE)).volumes


# -- values from the command line -----------------------------------------------------------------------------------


def test_settings_from_the_command_line_are_text_and_mean_the_same():
    typed = settings(
        hostmax_volumes=[{"path": "/dev/sdb"}, {"path": "/dev/sdc"}],
        hostmax_runtime_s=10,
        hostmax_settle_s=0.5,
        hostmax_fio_install=False,
        hostmax_volume_counts=[1, 2],
        hostmax_workloads=["4k-randread", "256k-read"],
        hostmax_expect={"iops": 14000},
    )
    text = settings(
        hostmax_volumes="[{path: /dev/sdb}, {path: /dev/sdc}]",
        hostmax_runtime_s="10",
        hostmax_settle_s="0.5",
        hostmax_fio_install="no",
        hostmax_volume_counts="[1, 2]",
        hostmax_workloads="4k-randread, 256k-read",
        hostmax_expect='{"iops": 14000}',
    )
    assert text == typed


def test_one_number_is_a_list_of_one():
    assert settings(hostmax_volumes=ONE, hostmax_volume_counts="4").volume_counts == (4,)
    assert settings(hostmax_volumes=ONE, hostmax_volume_counts=4).volume_counts == (4,)


def test_counts_are_sorted_and_each_stands_once():
    assert settings(hostmax_volumes=ONE, hostmax_volume_counts=[4, 1, 4]).volume_counts == (1, 4)


def test_a_setting_that_is_null_is_not_set():
    assert settings(hostmax_volumes=ONE, hostmax_runtime_s=None).runtime_s == 60


def test_a_workload_can_be_described_in_place():
    found = settings(hostmax_volumes=ONE, hostmax_workloads=[{"name": "mine", "rw": "randrw", "block_size": "16k"}])
    assert (found.workloads[0].block_size_bytes, found.writes) == (16384, True)


def test_a_date_in_yaml_is_kept_as_text():
    assert plain({"date": datetime.date(2024, 7, 19)}) == {"date": "2024-07-19"}


@given(st.integers(-(10**12), 10**12), st.sampled_from([int, str, lambda n: f" {n} ", float]))
def test_a_whole_number_is_read_from_every_way_to_write_it(number, write):
    assert argument_specs.coerce(write(number), {"type": "int"}, "x") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_survives_being_written(number):
    assert argument_specs.coerce(repr(number), {"type": "float"}, "x") == number


@given(st.lists(st.integers(0, 99), min_size=1))
def test_a_list_of_numbers_is_read_from_json_commas_and_lists(numbers):
    spec = {"type": "list", "elements": "int"}
    for written in (numbers, json.dumps(numbers), ",".join(map(str, numbers))):
        assert argument_specs.coerce(written, spec, "x") == numbers


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(argument_specs.known_settings())), values)
def test_any_value_is_taken_or_refused_in_a_sentence_that_names_host_and_setting(name, value):
    sentences = ()
    try:
        host_settings({"inventory_hostname": "db1", "hostmax_thin_count": 1, name: value})
    except SettingsError as error:
        sentences = error.sentences
    assert all(each.startswith("host db1: ") and each.endswith((".", "?")) for each in sentences)


# -- bad input ------------------------------------------------------------------------------------------------------

NO_VOLUME = (
    "host db1: hostmax_volumes names no volume; name its raw volumes,"
    " or set hostmax_thin_count to make thin volumes on it."
)
REFUSED = {
    "a misspelled setting": (
        {"hostmax_runtime": 5},
        "host db1: no setting is named hostmax_runtime, did you mean hostmax_runtime_s?",
    ),
    "a wrong unit": (
        {"hostmax_runtime_s": "1m"},
        "host db1: hostmax_runtime_s is '1m'; it must be a whole number of seconds.",
    ),
    "a boolean where a number is meant": (
        {"hostmax_runtime_s": True},
        "host db1: hostmax_runtime_s is True; it must be a whole number of seconds.",
    ),
    "a runtime of nothing": (
        {"hostmax_runtime_s": 0},
        "host db1: hostmax_runtime_s is 0; it must be 1 to 604800.",
    ),
    "a ramp as long as the runtime": (
        {"hostmax_runtime_s": 5, "hostmax_ramp_s": 5},
        "host db1: hostmax_ramp_s is 5 and hostmax_runtime_s is 5; the ramp must be shorter than the runtime.",
    ),
    "no volume": ({"hostmax_volumes": []}, NO_VOLUME),
    "no thin volume": ({"hostmax_volumes": [], "hostmax_thin_count": 0}, NO_VOLUME),
    "a volume named twice": (
        {"hostmax_volumes": [{"path": "/dev/sdb"}, {"path": "/dev//sdb"}]},
        "host db1: hostmax_volumes[1]: the path /dev/sdb is that of hostmax_volumes[0];"
        " name each volume once, with its own path.",
    ),
    "two volumes with one name": (
        {"hostmax_volumes": [{"path": "/dev/sdb", "name": "vol02"}, {"path": "/dev/sdc"}]},
        "host db1: hostmax_volumes[1]: the name vol02 is that of hostmax_volumes[0];"
        " name each volume once, with its own name.",
    ),
    "a volume's name that cannot be a file": (
        {"hostmax_volumes": [{"path": "/dev/sdb", "name": "a b"}]},
        "host db1: hostmax_volumes[0]: the name 'a b' must be up to 64 letters, digits and signs of '_-.'.",
    ),
    "a misspelled key of a volume": (
        {"hostmax_volumes": [{"path": "/dev/sdb", "siez": "1TB"}]},
        "host db1: hostmax_volumes[0] has the unknown key 'siez', did you mean size?"
        " use path, kind, name, size, identity, overwrite.",
    ),
    "a volume without a path": (
        {"hostmax_volumes": [{"size": "1TB"}]},
        "host db1: hostmax_volumes[0] has no path; give one.",
    ),
    "a path that is not absolute": (
        {"hostmax_volumes": [{"path": "sdb"}]},
        "host db1: hostmax_volumes[0]: the path 'sdb' is not absolute; give one like /dev/disk/by-path/….",
    ),
    "a path fio would cut": (
        {"hostmax_volumes": [{"path": "/dev/a;b"}]},
        "host db1: hostmax_volumes[0]: The file name '/dev/a;b' of volume 'vol01' holds ';',"
        " which fio would not take literally: rename it or use a link.",
    ),
    "an overwrite without an identity": (
        {"hostmax_volumes": [{"path": "/dev/sdb", "overwrite": "ext4"}]},
        "host db1: hostmax_volumes[0]: overwrite needs identity too; name the serial, WWN or IQN of the volume.",
    ),
    "a volume too small for its workload": (
        {"hostmax_volumes": [{"path": "/dev/sdb", "size": "2k"}]},
        "host db1: volume vol01: the workload 4k-randread needs 4096 bytes of it, it has 2048.",
    ),
    "a misspelled workload": (
        {"hostmax_workloads": "4k-randraed"},
        "host db1: hostmax_workloads[0]: no workload is named '4k-randraed', did you mean 4k-randread?",
    ),
    "a depth that a synchronous engine would not have": (
        {"hostmax_workloads": [{"name": "x", "rw": "read", "block_size": "4k", "io_depth": 8, "engine": "psync"}]},
        "host db1: hostmax_workloads[0]: The workload 'x' has io_depth 8: the engine psync is synchronous,"
        " use 1 and more num_jobs.",
    ),
    "no workload": (
        {"hostmax_workloads": []},
        "host db1: hostmax_workloads is empty; name at least one workload, for example 4k-randread.",
    ),
    "a misspelled expectation profile": (
        {"hostmax_expect": "oci_blok_volume"},
        "host db1: hostmax_expect: no expectation is named 'oci_blok_volume', did you mean oci_block_volume?"
        " there are: none, thin_cap, azure_netapp_files, oci_block_volume.",
    ),
    "a choice that is none": (
        {"hostmax_fail_on": "failed"},
        "host db1: hostmax_fail_on is 'failed', did you mean fail?"
        " it must be any of fail, inconclusive, invalid, never.",
    ),
    "a count of no volumes": (
        {"hostmax_volume_counts": [0, 1]},
        "host db1: hostmax_volume_counts is [0, 1]; it must be a list of whole numbers above 0.",
    ),
    "a list that breaks off": (
        {"hostmax_volume_counts": "[1, 2"},
        "host db1: hostmax_volume_counts is '[1, 2'; it must be JSON or YAML where it begins with [ or {.",
    ),
}


@pytest.mark.parametrize(("variables", "expected"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_in_one_sentence(variables, expected):
    assert sentence(**{"hostmax_volumes": ONE, **variables}) == expected


@pytest.mark.parametrize(
    ("variables", "beginning"),
    [
        (
            {"hostmax_volumes": [{"path": "/dev/sdb", "size": "1 furlong"}]},
            "host db1: hostmax_volumes[0]: size: The size '1 furlong' has the unknown unit 'furlong': use",
        ),
        (
            {"hostmax_thin_count": 1, "hostmax_thin_size": "1Tb"},
            "host db1: hostmax_thin_size: The size '1Tb' has a unit of bits: use",
        ),
    ],
)
def test_a_wrong_size_is_refused_with_the_units_there_are(variables, beginning):
    assert sentence(**variables).startswith(beginning)


def test_all_faults_of_a_kind_are_told_together():
    told = sentence(hostmax_volumes=ONE, hostmax_runtime_s="x", hostmax_ramp_s="y").split("\n")
    assert [each.split(" is ")[0] for each in sorted(told)] == [
        "host db1: hostmax_ramp_s",
        "host db1: hostmax_runtime_s",
    ]


def test_a_variable_that_cannot_be_worked_out_is_named():
    class Broken(dict):
        def __getitem__(self, name):
            if name == "hostmax_seed":
                raise RuntimeError("'nothing' is undefined\nmore")
            return super().__getitem__(name)

    with pytest.raises(SettingsError) as caught:
        host_settings(Broken(inventory_hostname="db1", hostmax_seed="{{ nothing }}"))
    assert str(caught.value) == "host db1: hostmax_seed cannot be worked out: 'nothing' is undefined."


# -- what a resumed run takes over ------------------------------------------------------------------------------------

EARLIER = {
    "hostmax_runtime_s": 20,
    "hostmax_ramp_s": 2,
    "hostmax_volumes": ONE,
    "hostmax_thin_count": 20,
    "hostmax_thin_cap": None,
    "hostmax_settle_s": 0.5,
}


def resumed(**variables):
    return host_settings({"inventory_hostname": "db1", **variables}, EARLIER)


def test_settings_that_are_not_given_are_those_of_the_earlier_run():
    found = resumed()
    assert (found.runtime_s, found.ramp_s, found.settle_s) == (20, 2, 0.5)
    assert ([volume["path"] for volume in found.volumes], found.thin) == ([ONE[0]["path"]], None)


def test_a_setting_that_is_given_comes_before_that_of_the_earlier_run():
    assert (resumed(hostmax_settle_s=1).settle_s, resumed(hostmax_settle_s=None).settle_s) == (1, 0.5)
    other = [{"path": "/dev/sdz"}]
    assert [volume["path"] for volume in resumed(hostmax_volumes=other).volumes] == ["/dev/sdz"]


def test_a_ramp_that_followed_from_the_runtime_follows_from_the_new_one():
    assert (resumed(hostmax_runtime_s=2).ramp_s, resumed(hostmax_runtime_s=2, hostmax_ramp_s=1).ramp_s) == (0, 1)


def test_thin_volumes_that_are_asked_for_come_before_the_named_volumes_of_the_earlier_run():
    found = resumed(hostmax_thin_count=2)
    assert (found.thin["count"], found.thin["cap"]) == (2, None)


def test_the_default_number_of_thin_volumes_of_an_earlier_run_asks_for_none():
    with pytest.raises(SettingsError, match="names no volume"):
        resumed(hostmax_volumes=[])
