"""Tuning a host: every value told by what reads back, our files only, and everything put back."""

from __future__ import annotations

import os

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import host_state, restore, sysctl_keys, sysctl_profile
from ansible_collections.hostmax.storage.plugins.module_utils.sysctl_keys import SYSCTL, Name, SysctlError

from .fake_kernel import FakeKernel

RUN = "prepared"
DROP_IN = "etc/sysctl.d/zz-hostmax.conf"


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path / "state"))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    kernel = FakeKernel(tmp_path / "root")
    kernel.patch(monkeypatch)
    return kernel


def tune(kernel, keys=(), parameters=(), persistent=True, run_id=RUN, check=False):
    keys = [{"key": key, "value": value} for key, value in dict(keys).items()]
    parameters = [dict(zip(("module", "parameter", "value"), each)) for each in parameters]
    wanted = sysctl_profile.want(run_id, keys, parameters, persistent, root=kernel.root)
    work = sysctl_profile.planned if check else sysctl_profile.apply
    return work(wanted, restore.open_journal(run_id), lambda argv: (1, "", ""))


def put_back(run_id=RUN, check=False):
    return sysctl_profile.absent(restore.open_journal(run_id), check)


def statuses(tuning):
    return {each["key"]: each["status"] for each in tuning["keys"]}


def drop_in(kernel):
    with open(os.path.join(kernel.root, DROP_IN)) as handle:
        return [line for line in handle.read().splitlines() if not line.startswith("#")]


# -- what is told of each key -----------------------------------------------------------------------------------------


def test_a_value_is_set_now_and_for_the_next_boot_and_put_back(kernel):
    before = kernel.snapshot()
    tuning = tune(kernel, {"net.core.rmem_max": 16777216})
    [key] = tuning["keys"]
    assert (key["before"], key["wanted"], key["after"], key["status"]) == ("212992", "16777216", "16777216", "set")
    assert kernel.read("net.core.rmem_max") == "16777216"
    assert drop_in(kernel) == ["net.core.rmem_max = 16777216"]
    assert put_back()["left"] == []
    assert kernel.snapshot() == before
    assert not restore.is_prepared()


def test_a_second_time_nothing_changes_and_a_second_restore_neither(kernel):
    keys = {"net.core.rmem_max": 16777216, "net.core.optmem_max": 2**30, "net.ipv4.tcp_rmem": "1 2 3"}
    assert tune(kernel, keys)["changed"]
    after = kernel.snapshot()
    assert not tune(kernel, keys)["changed"]
    assert not tune(kernel, keys, check=True)["changed"]
    assert kernel.snapshot() == after
    assert put_back()["changed"]
    assert not put_back()["changed"]


def test_values_are_compared_by_words_so_blanks_and_tabs_are_the_same(kernel):
    tuning = tune(kernel, {"net.ipv4.tcp_rmem": "4096 131072  33554432"}, persistent=False)
    assert statuses(tuning) == {"net.ipv4.tcp_rmem": "already"}
    assert not tuning["changed"]
    assert not restore.is_prepared()


def test_a_value_the_kernel_makes_smaller_is_told_by_reading_back(kernel):
    [key] = tune(kernel, {"net.core.optmem_max": 2**30})["keys"]
    assert (key["status"], key["after"]) == ("clamped", str(2**22))
    assert "made 4194304 of 1073741824" in key["note"]


def test_a_value_the_kernel_refuses_is_told_and_the_others_are_set(kernel):
    tuning = tune(kernel, {"net.core.rmem_max": 100, "vm.swappiness": 10})
    assert statuses(tuning) == {"net.core.rmem_max": "refused", "vm.swappiness": "set"}
    assert kernel.read("net.core.rmem_max") == "212992"
    assert drop_in(kernel) == ["vm.swappiness = 10"]


def test_numbers_taken_before_a_bad_one_are_put_back(kernel):
    assert statuses(tune(kernel, {"net.ipv4.tcp_rmem": "8192 x 3"}))["net.ipv4.tcp_rmem"] == "refused"
    assert sysctl_keys.tokens(kernel.read("net.ipv4.tcp_rmem")) == ["4096", "131072", "33554432"]


def test_a_missing_key_is_told_with_the_name_that_was_meant(kernel):
    kernel.add(Name(SYSCTL, "net.ipv4.tcp_timestamps"), "1")
    [key] = tune(kernel, {"net.ipv4.tcp_timestmaps": 0})["keys"]
    assert key["status"] == "missing"
    assert "did you mean net.ipv4.tcp_timestamps?" in key["note"]


def test_a_slot_table_key_spelt_as_in_the_documentation_is_told_and_not_written(kernel):
    kernel.add(Name(SYSCTL, "sunrpc.tcp_max_slot_table_entries"), "65536")
    for wrong in ("sunrpc.tpc_max_slot_table_entries", "sunrpc.max_tcp_slot_table_entries"):
        tuning = tune(kernel, {wrong: 128})
        assert statuses(tuning) == {wrong: "missing"}
        assert not os.path.exists(os.path.join(kernel.root, DROP_IN))


def test_the_key_of_a_module_that_is_not_loaded_is_told(tmp_path, kernel):
    [key] = tune(kernel, {"net.bridge.bridge-nf-call-iptables": 0})["keys"]
    assert key["status"] == "module_not_loaded"
    assert "br_netfilter" in key["note"]


def test_in_a_container_the_keys_that_its_namespace_lacks_are_told_as_such(kernel):
    kernel.remove("net.core.netdev_max_backlog")  # the kernel has it in the first namespace only
    kernel.add(Name(SYSCTL, "net.core.rmem_max"), "212992", mode=0o444)
    keys = {"net.core.netdev_max_backlog": 300000, "net.core.rmem_max": 2**24, "net.ipv4.tcp_sack": 0}
    tuning = tune(kernel, keys)
    assert statuses(tuning) == {
        "net.core.netdev_max_backlog": "other_namespace",
        "net.core.rmem_max": "other_namespace",
        "net.ipv4.tcp_sack": "set",
    }
    assert any("network namespace of its own" in warning for warning in tuning["warnings"])


def test_a_read_only_key_of_the_host_is_told(kernel):
    kernel.add(Name(SYSCTL, "kernel.version"), "6", mode=0o444)
    assert statuses(tune(kernel, {"kernel.version": 7})) == {"kernel.version": "read_only"}


def test_route_flush_is_never_written_and_never_a_change(kernel):
    tuning = tune(kernel, {"net.ipv4.route.flush": 1})
    assert statuses(tuning) == {"net.ipv4.route.flush": "write_only"}
    assert not tuning["changed"]


def test_keys_without_an_effect_are_not_set(kernel):
    tuning = tune(kernel, {"net.ipv4.tcp_low_latency": 1, "net.ipv4.tcp_fack": 1})
    assert set(statuses(tuning).values()) == {"legacy"}
    assert kernel.read("net.ipv4.tcp_fack") == "0"


# -- coupled keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["vm.dirty_bytes", "vm.dirty_ratio", "vm.dirty_background_bytes"])
def test_a_key_that_clears_its_partner_is_put_back_with_it(kernel, key):
    before = kernel.snapshot()
    tune(kernel, {key: 31457280})
    tune(kernel, {key: 41943040})
    put_back()
    assert kernel.snapshot() == before


def test_changing_between_two_coupled_keys_keeps_the_first_original(kernel):
    before = kernel.snapshot()
    for keys in ({"vm.dirty_bytes": 2**20}, {"vm.dirty_ratio": 5}, {"vm.dirty_bytes": 2**21}, {"vm.dirty_ratio": 9}):
        tune(kernel, keys)
    put_back()
    assert kernel.snapshot() == before


def test_a_pair_that_was_0_and_0_is_put_back(kernel):
    kernel.add(Name(SYSCTL, "vm.dirty_ratio"), "0")
    before = kernel.snapshot()
    tune(kernel, {"vm.dirty_bytes": 2**20})
    assert put_back()["left"] == []
    assert kernel.snapshot() == before


def test_both_of_a_pair_are_refused_before_anything_is_changed(kernel):
    with pytest.raises(SysctlError, match="exclude one another"):
        tune(kernel, {"vm.dirty_bytes": 2**20, "vm.dirty_ratio": 5})


# -- module parameters ------------------------------------------------------------------------------------------------


def test_slots_are_set_live_and_as_an_option_of_the_module_not_in_sysctl_d(kernel):
    before = kernel.snapshot()
    tuning = tune(kernel, {"sunrpc.tcp_max_slot_table_entries": 128}, [("nfs", "max_session_slots", 180)])
    assert statuses(tuning) == {"sunrpc/tcp_max_slot_table_entries": "set", "nfs/max_session_slots": "set"}
    with open(os.path.join(kernel.root, "etc/modprobe.d/zz-hostmax-sunrpc.conf")) as handle:
        assert handle.read().splitlines()[-1] == "options sunrpc tcp_max_slot_table_entries=128"
    assert not os.path.exists(os.path.join(kernel.root, DROP_IN))
    put_back()
    assert kernel.snapshot() == before


def test_slots_tell_that_connections_in_use_keep_theirs(kernel):
    kernel.file("proc/self/mountinfo", "36 25 0:46 / /mnt rw - nfs 10.0.0.4:/vol1 rw\n")
    tuning = tune(kernel, (), [("sunrpc", "tcp_max_slot_table_entries", 16)])
    assert any("keep what they were made with" in warning for warning in tuning["warnings"])


def test_a_parameter_that_reads_as_a_letter_is_the_number_that_was_asked_for(kernel):
    kernel.add(sysctl_keys.parameter_name("nfs", "enable_ino64"), "Y")
    assert statuses(tune(kernel, (), [("nfs", "enable_ino64", 1)])) == {"nfs/enable_ino64": "already"}


# -- exactly what is wanted now ---------------------------------------------------------------------------------------


def test_what_another_tuning_of_the_run_does_not_name_is_put_back_first(kernel):
    tune(kernel, {"net.core.rmem_max": 2**24, "vm.swappiness": 1})
    tuning = tune(kernel, {"vm.swappiness": 10})
    assert tuning["restored"] == ["sysctl net.core.rmem_max"]
    assert kernel.read("net.core.rmem_max") == "212992"
    assert drop_in(kernel) == ["vm.swappiness = 10"]


def test_an_empty_tuning_puts_everything_back(kernel):
    before = kernel.snapshot()
    tune(kernel, {"vm.swappiness": 10}, [("nfs", "max_session_slots", 180)])
    assert tune(kernel)["changed"]
    assert kernel.snapshot() == before
    assert not restore.is_prepared()


def test_what_is_for_one_run_only_leaves_no_file(kernel):
    tuning = tune(kernel, {"vm.swappiness": 10}, persistent=False, run_id="run1")
    assert tuning["files"] == []
    assert os.listdir(os.path.join(kernel.root, "etc/sysctl.d")) == []


def test_check_mode_changes_nothing_and_says_what_would(kernel):
    before = kernel.snapshot()
    tuning = tune(kernel, {"vm.swappiness": 10}, check=True)
    assert tuning["changed"]
    assert tuning["files_changed"] == [os.path.join(kernel.root, DROP_IN)]
    assert kernel.snapshot() == before
    assert not restore.is_prepared()


# -- putting back -----------------------------------------------------------------------------------------------------


def test_a_value_somebody_else_set_since_is_left_and_told(kernel):
    tune(kernel, {"vm.swappiness": 10}, persistent=False)
    kernel.add(Name(SYSCTL, "vm.swappiness"), "77")
    [left] = put_back()["left"]
    assert "it is 77 now" in left["why"]
    assert "before it was 60" in left["why"]
    assert kernel.read("vm.swappiness") == "77"


def test_a_file_somebody_else_changed_since_is_left_and_told(kernel):
    tune(kernel, {"vm.swappiness": 10})
    kernel.file(DROP_IN, "vm.swappiness = 11\n")
    [left] = put_back()["left"]
    assert left["what"].startswith("system file")
    assert "changed by somebody else" in left["why"]


def test_after_a_restart_a_value_is_put_back_only_where_our_file_has_set_it_again(kernel, monkeypatch):
    tune(kernel, {"vm.swappiness": 10, "net.core.rmem_max": 2**24})
    monkeypatch.setattr(host_state, "boot_id", lambda: "the next boot")
    kernel.add(Name(SYSCTL, "net.core.rmem_max"), "4096")
    assert put_back()["left"] == []
    assert kernel.read("vm.swappiness") == "60"
    assert kernel.read("net.core.rmem_max") == "4096"
    assert not os.path.exists(os.path.join(kernel.root, DROP_IN))


def test_a_value_of_another_network_namespace_is_left_and_told(kernel, monkeypatch):
    tune(kernel, {"net.ipv4.tcp_sack": 0}, persistent=False)
    monkeypatch.setattr(sysctl_keys, "net_namespace", lambda: "net:[1]")
    [left] = put_back()["left"]
    assert "another network namespace" in left["why"]


# -- the files and daemons of others ----------------------------------------------------------------------------------


def test_our_file_is_applied_after_every_usual_name(kernel):
    tune(kernel, {"vm.swappiness": 10})
    names = ["99-sysctl.conf", "99-z.conf", *os.listdir(os.path.join(kernel.root, "etc/sysctl.d"))]
    assert sorted(names)[-1] == "zz-hostmax.conf"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("etc/sysctl.d/99-sysctl.conf", "applied after it and wins"),
        ("usr/lib/sysctl.d/50-default.conf", "applied after it and wins"),
        ("etc/sysctl.d/zzz-site.conf", "wins at the next boot"),
        ("etc/sysctl.conf", "`sysctl --system` applies it after all others"),
    ],
)
def test_other_files_that_set_the_key_are_named_with_who_wins_and_not_touched(kernel, path, says):
    full = kernel.file(path, "# mine\n-vm/swappiness=1\n")
    [warning] = tune(kernel, {"vm.swappiness": 10})["warnings"]
    assert warning.startswith(f"{full} sets vm.swappiness = 1 too; ")
    assert says in warning
    with open(full) as handle:
        assert handle.read() == "# mine\n-vm/swappiness=1\n"


def test_a_pattern_in_another_file_is_seen(kernel):
    kernel.file("etc/sysctl.d/10-all.conf", "net.ipv4.tcp_s* = 1\n")
    assert "10-all.conf" in tune(kernel, {"net.ipv4.tcp_sack": 0})["warnings"][0]


def test_a_file_that_masks_another_is_the_only_one_told(kernel):
    kernel.file("usr/lib/sysctl.d/10-a.conf", "vm.swappiness = 1\n")
    kernel.file("etc/sysctl.d/10-a.conf", "vm.swappiness = 2\n")
    [warning] = tune(kernel, {"vm.swappiness": 10})["warnings"]
    assert "vm.swappiness = 2" in warning


def test_module_options_of_others_are_named(kernel):
    kernel.file("etc/modprobe.d/sunrpc.conf", "options sunrpc tcp_max_slot_table_entries=256\n")
    [warning] = tune(kernel, (), [("sunrpc", "tcp_max_slot_table_entries", 128)])["warnings"]
    assert "sunrpc/tcp_max_slot_table_entries = 256" in warning


def test_a_running_tuned_is_told_with_its_profile_and_left(kernel):
    kernel.file("run/tuned/tuned.pid", "4242\n")
    kernel.file("proc/4242/cmdline", "/usr/bin/python3\0-Es\0/usr/sbin/tuned\0")
    kernel.file("etc/tuned/active_profile", "latency-performance\n")
    [warning] = tune(kernel, {"vm.swappiness": 10})["warnings"]
    assert warning.startswith("tuned is running with the profile latency-performance;")


# -- faults that the stock module has ---------------------------------------------------------------------------------


def test_another_key_set_does_not_drop_a_key_that_stands_twice_in_a_file_of_the_user(kernel):
    path = kernel.file("etc/sysctl.conf", "net.ipv4.tcp_sack = 1\nnet.ipv4.tcp_sack = 0\n")
    tune(kernel, {"vm.swappiness": 10})
    with open(path) as handle:
        assert handle.read() == "net.ipv4.tcp_sack = 1\nnet.ipv4.tcp_sack = 0\n"


def test_of_a_key_given_twice_the_last_counts_and_that_is_told(kernel):
    keys = [{"key": "net.ipv4.tcp_sack", "value": value} for value in (1, 0)]
    wanted = sysctl_profile.want(RUN, keys, root=kernel.root)
    tuning = sysctl_profile.apply(wanted, restore.open_journal(RUN))
    assert [each["after"] for each in tuning["keys"]] == ["0"]
    assert "the last counts" in tuning["warnings"][0]


def test_a_missing_key_is_no_change_and_never_gets_into_our_file(kernel):
    tune(kernel, {"vm.swappiness": 10, "net.ipv4.no_such": 1})
    assert drop_in(kernel) == ["vm.swappiness = 10"]
    assert not tune(kernel, {"vm.swappiness": 10, "net.ipv4.no_such": 1})["changed"]


def test_absent_puts_the_live_value_back_too(kernel):
    tune(kernel, {"net.core.netdev_max_backlog": 2000})
    put_back()
    assert kernel.read("net.core.netdev_max_backlog") == "1000"


def test_a_bad_line_in_a_file_of_the_user_does_not_matter(kernel):
    kernel.file("etc/sysctl.d/10-bad.conf", "this is no setting\nno.such = 1\n= 3\n")
    assert statuses(tune(kernel, {"vm.swappiness": 10})) == {"vm.swappiness": "set"}


@pytest.mark.parametrize(
    ("value", "written"), [(True, "1"), (False, "0"), ([4096, 131072, 2**24], "4096 131072 16777216")]
)
def test_what_yaml_makes_of_a_value_is_written_as_it_was_meant(value, written):
    assert sysctl_keys.clean_value(value, "net.ipv4.tcp_rmem") == written


@pytest.mark.parametrize("value", [None, 1.5, "", "1\nvm.swappiness = 0", {"a": 1}, "ä"])
def test_a_value_that_is_none_is_refused_in_one_sentence(value):
    with pytest.raises(SysctlError, match=r"^The (value|tuning entry) .*\.$"):
        sysctl_profile.want(RUN, [{"key": "vm.swappiness", "value": value}])


@pytest.mark.parametrize(
    "key", ["../../etc/passwd", "net/../../etc", "", "net core", "net..core", "net.core.\n", "a./b/../c"]
)
def test_a_key_that_is_none_is_refused_in_one_sentence(key):
    with pytest.raises(SysctlError, match=r"is not one; write it like net.core.rmem_max\.$"):
        sysctl_profile.want(RUN, [{"key": key, "value": 1}])


def test_a_key_with_a_point_in_an_interface_is_found_as_sysctl_d_writes_it():
    name = sysctl_keys.sysctl_name("net/ipv4/conf/eth0.100/rp_filter")
    assert name == sysctl_keys.sysctl_name("net.ipv4.conf.eth0/100.rp_filter")
    assert name.path() == "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
