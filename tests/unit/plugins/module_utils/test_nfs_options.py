"""One form of mount options: what is asked and what the kernel shows compare, whatever way they are written."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.module_utils.nfs_options import (
    canonical,
    differences,
    effective,
    for_mounting,
    merge,
    same,
    unverifiable,
)
from hypothesis import given
from hypothesis import strategies as st

# read from a guest with Linux 6.1: mountstats `opts:`, and the two option fields of mountinfo
V3 = (
    "rw,vers=3,rsize=262144,wsize=262144,namlen=255,acregmin=600,acregmax=600,acdirmin=600,acdirmax=600,hard,nocto,"
    "proto=tcp,nconnect=16,timeo=600,retrans=2,sec=sys,mountaddr=10.99.0.1,mountvers=3,mountport=54283,mountproto=tcp,"
    "local_lock=none"
)
V3_INFO = (
    "rw,vers=3,rsize=262144,wsize=262144,namlen=255,acregmin=600,acregmax=600,acdirmin=600,acdirmax=600,hard,nocto,"
    "proto=tcp,nconnect=16,timeo=600,retrans=2,sec=sys,mountaddr=10.99.0.1,mountvers=3,mountport=54283,mountproto=tcp,"
    "local_lock=none,addr=10.99.0.1"
)
V41 = (
    "rw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,acregmax=60,acdirmin=30,acdirmax=60,hard,proto=tcp,"
    "nconnect=4,timeo=600,retrans=2,sec=sys,clientaddr=10.99.0.11,local_lock=none"
)
STUDY = "rw,nconnect=16,nocto,actimeo=600,hard,intr,rsize=262144,wsize=262144,vers=3,tcp"


def sentences(asked, *shown, **more):
    return [difference.sentence for difference in differences(asked, effective(*shown), **more)]


def test_what_the_kernel_shows_for_the_study_is_what_was_asked():
    assert differences(STUDY, effective(V3, "rw,relatime")) == []


def test_actimeo_is_four_options_of_the_kernel():
    assert canonical("actimeo=600") == canonical("acregmin=600,acregmax=600,acdirmin=600,acdirmax=600")


def test_a_default_that_mountinfo_hides_is_in_effect():
    # actimeo=60 shows only acregmin and acdirmin there
    assert differences("actimeo=60", effective("rw,vers=3,acregmin=60,acdirmin=60,hard,proto=tcp")) == []
    assert [found.name for found in differences("actimeo=60", effective("rw,vers=3,hard,proto=tcp"))] == [
        "acregmin",
        "acdirmin",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tcp", "proto=tcp"),
        ("vers=4,minorversion=1", "vers=4.1"),
        ("v4.2", "vers=4.2"),
        ("v3", "nfsvers=3"),
        ("hard,soft", "soft"),
        ("rsize=0065536", "rsize=65536"),
        ("bg,intr,retry=3,_netdev,nofail,x-systemd.automount,hard", "hard"),
        ("noac", "noac,sync"),
        ("", ","),
    ],
)
def test_two_ways_to_write_the_same(one, other):
    assert same(one, other)


@pytest.mark.parametrize(("one", "other"), [("vers=4.1", "vers=4.2"), ("nocto", ""), ("ro", "rw"), ("hard", "soft")])
def test_what_differs_is_not_the_same(one, other):
    assert not same(one, other)


def test_version_4_without_a_minor_version_is_met_by_each_of_them():
    assert differences("vers=4", effective(V41)) == []
    assert sentences("vers=4.2", V41) == ["vers=4.2 was asked, vers=4.1 is in effect."]


def test_tcp_over_ipv6_is_tcp():
    assert differences("proto=tcp", effective("vers=3,proto=tcp6")) == []


def test_one_of_several_security_flavours_is_enough():
    assert differences("sec=krb5p:sys", effective(V3)) == []


def test_an_ignored_nconnect_is_told_also_where_the_kernel_shows_none():
    said = sentences("nconnect=16", "vers=3,proto=tcp")
    assert said == [
        "nconnect=16 was asked and is ignored, nconnect=1 is in effect: the first mount of a server decides for all "
        "later ones of the same version."
    ]
    assert sentences("nconnect=1", "vers=3,proto=tcp") == []


@pytest.mark.parametrize(
    ("asked", "got", "words"),
    [
        (1048576, 65536, "the server allows no more than rsize=65536"),
        (2097152, 1048576, "the kernel takes no more than 1 MiB: rsize=1048576"),
        (2097152, 262144, "the server allows no more than rsize=262144"),
        (5000, 4096, "the kernel rounds it down to rsize=4096"),
        (3000, 2048, "the kernel rounds it down to rsize=2048"),
        (512, 4096, "the kernel takes rsize=4096 for anything below 1024"),
        (65536, 262144, "rsize=262144 is in effect"),
    ],
)
def test_who_changed_a_size_is_told(asked, got, words):
    assert words in sentences(f"rsize={asked}", f"vers=3,rsize={got}")[0]


def test_a_machine_with_large_pages_rounds_to_them():
    said = sentences("rsize=100000", "rsize=65536", page_bytes=65536)
    assert said == ["rsize=100000 was asked, the kernel rounds it down to rsize=65536."]


def test_what_no_kernel_shows_cannot_be_verified():
    assert unverifiable(STUDY + ",bg,mounthost=nas", effective(V3)) == ["intr", "bg", "mounthost=nas"]
    assert unverifiable("vers=4,minorversion=1,lock,noatime", effective(V41, "rw,noatime")) == []


def test_mount_gets_only_what_is_for_the_kernel_once_and_in_the_foreground():
    assert for_mounting("bg,hard,_netdev,retry=10000,vers=3,hard") == "vers=3,hard,retry=0"


def test_a_condition_is_stacked_on_another():
    base = "hard,vers=3,tcp,rsize=262144,wsize=262144"
    assert merge(base, "nocto,actimeo=600") == base + ",nocto,actimeo=600"
    assert merge(base, "vers=4.1") == "hard,tcp,rsize=262144,wsize=262144,vers=4.1"
    assert merge(base, "rsize=65536,wsize=65536") == "hard,vers=3,tcp,rsize=65536,wsize=65536"
    assert merge("vers=4,minorversion=1,hard", "vers=3") == "hard,vers=3"
    assert merge("acregmin=3,acregmax=60,acdirmin=30,acdirmax=60", "actimeo=600") == "actimeo=600"
    assert merge("nocto", "cto") == "cto"
    assert merge("bg", "fg") == "fg"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("nconnect=17", "use 1 to 16"),
        ("nconnect=0", "use 1 to 16"),
        ("nconnect", "whole number"),
        ("rsize=64k", "whole number"),
        ("actimeo=-1", "whole number"),
        ("hard, vers=3", "holds a blank"),
        ("hard,=3", "has no name"),
        ("a'b", "blank or a quote"),
        ("timeo=60\n", "blank"),
    ],
)
def test_what_no_option_can_be_is_one_sentence(options, words):
    with pytest.raises(nfs_options.OptionError, match=words) as told:
        canonical(options)
    assert "\n" not in str(told.value)


WORDS = st.sampled_from(
    ["hard", "soft", "nocto", "cto", "noac", "ac", "tcp", "proto=tcp", "rw", "ro", "noatime", "bg", "fg", "intr"]
)
NUMBERS = st.builds(
    "{}={}".format,
    st.sampled_from(["rsize", "wsize", "actimeo", "acregmin", "acdirmax", "timeo"]),
    st.integers(0, 2**21),
)
VERSIONS = st.sampled_from(["vers=3", "vers=4", "minorversion=1", "minorversion=2", "v4.1", "nfsvers=4.2"])
TEXTS = st.lists(st.one_of(WORDS, NUMBERS, VERSIONS, st.integers(1, 16).map("nconnect={}".format))).map(",".join)


@given(TEXTS)
def test_joining_loses_nothing_and_joining_again_changes_nothing(text):
    assert canonical(merge(text)) == canonical(text)
    assert merge(merge(text)) == merge(text)


@given(TEXTS, TEXTS)
def test_joining_is_what_mount_would_make_of_both_in_a_row(one, other):
    assert canonical(merge(one, other)) == canonical(f"{one},{other}")


@given(TEXTS)
def test_what_mount_is_given_means_the_same(text):
    assert same(for_mounting(text), text)


@given(TEXTS)
def test_what_is_in_effect_exactly_as_asked_has_no_difference(text):
    assert differences(text, {**nfs_options.DEFAULTS, **canonical(text)}) == []


@given(st.integers(1, 2**31))
def test_a_size_taken_by_the_kernel_is_taken_again(wanted):
    kept = nfs_options.kernel_io_bytes(wanted)
    assert nfs_options.kernel_io_bytes(kept) == kept <= nfs_options.LARGEST_IO_BYTES
