"""What no host can see by itself: two names of one machine, and one volume seen by two hosts."""

from __future__ import annotations

from ansible_collections.hostmax.storage.plugins.plugin_utils import meeting


def host(machine, *volumes):
    return {"machine": machine, "volumes": list(volumes)}


def volume(name, *identities):
    return {"name": name, "path": f"/dev/{name}", "identities": list(identities)}


def test_hosts_of_their_own_may_measure_together():
    assert (
        meeting.refusals({"a": host("m1", volume("v1", "naa.1")), "b": host("m2", volume("v1", "naa.2"))}, True) == []
    )


def test_two_names_of_one_machine_are_refused_in_one_sentence():
    (sentence,) = meeting.refusals({"a": host("m1"), "b": host("m2"), "c": host("m1")}, False)
    assert "a and c are the same machine" in sentence


def test_one_volume_of_two_hosts_is_refused_where_the_run_writes():
    found = {"a": host("m1", volume("v1", "naa.1")), "b": host("m2", volume("v7", "naa.1"))}
    (sentence,) = meeting.refusals(found, True)
    assert "v7 (/dev/v7) of host b is the volume v1 (/dev/v1) of host a (naa.1)" in sentence
    assert meeting.refusals(found, False) == []


def test_serials_and_paths_that_virtual_machines_share_are_not_taken_for_one_volume():
    same = ("QM00001", "pci-0000:00:1f.2-ata-1", "/var/lib/disk.img")
    assert meeting.refusals({"a": host("m1", volume("v1", *same)), "b": host("m2", volume("v1", *same))}, True) == []


# -- volumes of several hosts -----------------------------------------------------------------------------------------

TARGET = "iqn.2015-12.com.oracleiaas:1111"


def by_path(portal, target=TARGET, lun=2, part=""):
    return f"ip-{portal}:3260-iscsi-{target}-lun-{lun}{part}"


def two(*identities_of_a, b, **more):
    return {
        "a": host("m1", {**volume("v1", *identities_of_a), **more}),
        "b": host("m2", {**volume("v7", *b), **more}),
    }


def test_one_lun_of_one_target_is_one_volume_whatever_the_portal_or_the_place_it_was_read_from():
    for theirs in (by_path("169.254.2.3"), f"{TARGET}-lun-2", by_path("169.254.2.2", part="-part1")):
        (sentence,) = meeting.refusals(two(by_path("169.254.2.2"), b=[theirs]), True)
        assert f"({TARGET}-lun-2), and this run writes" in sentence
        assert "hostmax_shared_volumes: true" in sentence


def test_other_luns_or_targets_and_a_target_alone_are_not_taken_for_one_volume():
    for theirs in (by_path("169.254.2.2", lun=3), by_path("169.254.2.2", target=TARGET + "2"), TARGET):
        assert meeting.refusals(two(by_path("169.254.2.2"), TARGET, b=[theirs]), True) == []


def test_a_target_that_shows_every_host_another_volume_as_its_lun_is_told_by_the_worldwide_names():
    lun = by_path("10.0.0.1")
    assert meeting.refusals(two("naa.1", lun, b=["naa.2", lun]), True) == []
    assert len(meeting.refusals(two("naa.1", lun, b=["naa.1", lun]), True)) == 1
    assert len(meeting.refusals(two("naa.1", lun, b=[lun]), True)) == 1


def test_hosts_may_write_one_volume_where_the_user_says_so_and_then_the_results_say_it():
    found = two("naa.1", b=["naa.1"])
    assert meeting.refusals(found, True, shared_volumes=True) == []
    (note,) = meeting.notes(found, True)
    assert "The hosts a, b read and write one volume together, v1 (/dev/v1) on a (naa.1)" in note


def test_reading_one_volume_together_is_allowed_and_the_results_say_that_it_is_one():
    found = two("naa.1", b=["naa.1"])
    assert meeting.refusals(found, False) == []
    (note,) = meeting.notes(found, False)
    assert "a, b read one volume together" in note
    assert "it is one volume in the total" in note
    assert meeting.notes(two("naa.1", b=["naa.2"]), False) == []


def test_disks_that_only_look_alike_are_a_doubt_and_no_refusal():
    alike = {"serial": "QM00001", "model": "QEMU HARDDISK", "size_bytes": 10}
    found = two("QM00001", b=["QM00001"], **alike)
    assert meeting.refusals(found, True) == meeting.notes(found, True) == []
    (doubt,) = meeting.doubts(found)
    assert "v1 (/dev/v1) on a, v7 (/dev/v7) on b" in doubt
    assert "before the first write" in doubt


def test_there_is_no_doubt_where_size_or_model_differ_or_a_worldwide_name_tells():
    alike = {"serial": "QM00001", "model": "QEMU HARDDISK", "size_bytes": 10}
    for change in ({"size_bytes": 11}, {"model": "OTHER"}, {"serial": None}):
        found = two(b=[], **alike)
        found["b"]["volumes"][0].update(change)
        assert meeting.doubts(found) == []
    assert meeting.doubts(two("naa.1", b=["naa.2"], **alike)) == []
