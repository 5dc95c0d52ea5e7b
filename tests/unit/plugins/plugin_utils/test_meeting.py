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
