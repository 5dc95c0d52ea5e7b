"""NFS mounts with a real kernel and a real server: what is asked is in effect or told, and everything is put back."""

from __future__ import annotations

import io
import json
import pathlib
import shlex
import tarfile

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
PLACE = "/root/hostmax-test"
STUDY = "hard,tcp,rsize=262144,wsize=262144"
# every option set of the study, on both versions
OPTION_SETS = {
    "baseline": f"{STUDY},vers=3",
    "nocto": f"{STUDY},vers=3,nocto,actimeo=600",
    "nconnect": f"{STUDY},vers=3,nocto,actimeo=600,nconnect=16",
    "rsize64k": "hard,tcp,rsize=65536,wsize=65536,vers=3,nocto,actimeo=600,nconnect=16",
    "rsize1m": "hard,tcp,rsize=1048576,wsize=1048576,vers=3,nocto,actimeo=600,nconnect=16",
    "vers41": f"{STUDY},vers=4.1,nocto,actimeo=600,nconnect=16",
    "vers41-single": f"{STUDY},vers=4.1,nocto,actimeo=600",
}
PROFILES = sorted((ROOT / "profiles" / "mount").glob("*.yml"))


class Refused(Exception):  # noqa: N818 - what the host said no to
    """The sentence the host answered with."""


class Host:
    """A client with the collection's host-side code on it."""

    def __init__(self, guest, server):
        self.guest, self.server = guest, server
        self.took_s = 0.0

    def install(self):
        """Put the code on the guest, as Ansible would for each module."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path in sorted((ROOT / "plugins" / "module_utils").glob("*.py")):
                tar.add(path, f"ansible_collections/hostmax/storage/plugins/module_utils/{path.name}")
            tar.add(pathlib.Path(__file__).with_name("nfs_host.py"), "nfs_host.py")
        self.guest.run(["mkdir", "-p", PLACE])
        self.guest.put(packed.getvalue().hex(), f"{PLACE}/code.hex")
        unpack = "import binascii,sys; sys.stdout.buffer.write(binascii.unhexlify(sys.stdin.read()))"
        self.guest.run(f"cd {PLACE} && python3 -c {shlex.quote(unpack)} <code.hex | tar -xzf -")

    def do(self, what, timeout_s=120.0, **arguments):
        """One request; raises Refused with the host's sentence."""
        request = json.dumps({"do": what, **arguments})
        done = self.guest.ssh(["python3", f"{PLACE}/nfs_host.py"], timeout_s, input_text=request)
        assert done.stdout, done.stderr
        answer = json.loads(done.stdout)
        self.took_s = answer["took_s"]
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["ok"]

    def mounted(self, *mounts, run_id="test", **more):
        return self.do("mounted", run_id=run_id, mounts=list(mounts), **more)

    def refusal(self, *mounts, **more):
        with pytest.raises(Refused) as told:
            self.mounted(*mounts, **more)
        return str(told.value)


@pytest.fixture(scope="module")
def installed(kernel_lab):
    host = Host(kernel_lab.clients[0], kernel_lab.server)
    host.install()
    yield host
    host.guest.run(["rm", "-rf", PLACE])


@pytest.fixture
def host(installed):
    """The client, which has to be as it was after each test once its runs were put back."""
    before = installed.do("snapshot")
    yield installed
    for run_id in ("test", "other"):
        left = installed.do("put_back", run_id=run_id)["left"]
        assert left == []
    assert installed.do("snapshot") == before


@pytest.fixture
def volume(host):
    """The first volume of the server, mounted with options."""

    def wanted(options, path="mounts/vol1", export="vol1", **more):
        return {"source": f"{host.server.address}:/export/{export}", "path": path, "options": options, **more}

    return wanted


# -- what is asked is in effect ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTION_SETS.values(), ids=OPTION_SETS)
def test_every_option_set_of_the_study_is_in_effect_as_asked(host, volume, options):
    mount = host.mounted(volume(options))["mounts"][0]
    assert mount["differences"] == []
    assert mount["unverified"] == []
    assert mount["changed"]
    asked = 16 if "nconnect=16" in options else 1
    assert (mount["nconnect"], mount["connections"]) == (asked, asked)
    assert mount["vers"] == ("4.1" if "vers=4.1" in options else "3")
    size = next(word.partition("=")[2] for word in options.split(",") if word.startswith("rsize="))
    assert (mount["rsize"], mount["wsize"]) == (int(size), int(size))
    again = host.mounted(volume(options))
    assert not again["changed"]
    assert again["mounts"][0]["effective"] == mount["effective"]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_documented_option_set_is_in_effect_but_for_what_no_kernel_shows(host, volume, path):
    options = yaml.safe_load(path.read_text())["options"]
    mount = host.mounted(volume(options))["mounts"][0]
    assert mount["differences"] == []
    assert set(mount["unverified"]) <= {"intr", "bg", "_netdev"}


def test_what_the_kernel_clamps_and_rounds_is_told(host, volume):
    mount = host.mounted(volume("vers=3,rsize=2097152,wsize=5000"))["mounts"][0]
    assert (mount["rsize"], mount["wsize"]) == (1048576, 4096)
    assert mount["differences"] == [
        "rsize=2097152 was asked, the kernel takes no more than 1 MiB: rsize=1048576.",
        "wsize=5000 was asked, the kernel rounds it down to wsize=4096.",
    ]


def test_a_size_lowered_by_the_server_is_told(host, volume):
    with host.server.serving_blocks_of(65536):
        mount = host.mounted(volume("vers=3,rsize=1048576,wsize=65536"))["mounts"][0]
        host.do("unmounted", run_id="test")
    assert mount["rsize"] == 65536
    assert mount["differences"] == ["rsize=1048576 was asked, the server allows no more than rsize=65536."]


def test_the_slot_limit_of_the_connections_is_the_one_set_before_the_mount(host, volume):
    host.guest.run(["modprobe", "sunrpc"])
    before = host.guest.get("/proc/sys/sunrpc/tcp_max_slot_table_entries").strip()
    set_limit = "echo {} >/proc/sys/sunrpc/tcp_max_slot_table_entries"
    try:
        host.guest.run(set_limit.format(62))
        assert host.mounted(volume("vers=3,nconnect=4"))["mounts"][0]["slots"] == 62
        host.guest.run(set_limit.format(40))
        again = host.mounted(volume("vers=3,nconnect=4"))
    finally:
        host.guest.run(set_limit.format(before))
    assert again["changed"]
    assert again["mounts"][0]["slots"] == 40


def test_the_read_ahead_of_a_mount_is_set_once_and_goes_with_it(host, volume):
    assert host.mounted(volume("vers=3", read_ahead_kib=15360))["mounts"][0]["read_ahead_kib"] == 15360
    assert not host.mounted(volume("vers=3", read_ahead_kib=15360))["changed"]
    mount = host.mounted(volume("vers=3,rsize=65536", read_ahead_kib=512))["mounts"][0]
    assert (mount["changed"], mount["read_ahead_kib"]) == (True, 512)


def test_check_mode_says_what_would_be_mounted_and_mounts_nothing(host, volume):
    before = host.do("snapshot")
    found = host.do("planned", run_id="test", mounts=[volume("vers=3")])
    assert (found["changed"], found["mounts"][0]["effective"]) == (True, None)
    assert host.do("snapshot") == before


# -- who decides ------------------------------------------------------------------------------------------------------


def by_hand(host, export, path, options):
    host.guest.run(f"mkdir -p {path} && mount -t nfs -o {options} {host.server.address}:/export/{export} {path}")


def gone_by_hand(host, path):
    host.guest.run(f"umount {path}; rmdir {path}")


def test_a_mount_of_somebody_else_that_would_decide_is_named_and_nothing_is_changed(host, volume):
    by_hand(host, "vol2", "/mnt/theirs", "vers=3,nconnect=2")
    try:
        before = host.do("snapshot")
        said = host.refusal(volume("vers=3,nconnect=16"))
        host.do("put_back", run_id="test")
        assert host.do("snapshot") == before
        assert "/mnt/theirs is a mount of the same server" in said
        assert "nconnect=2 would hold instead of nconnect=16" in said
        # equal, or of another version, is no conflict
        assert host.mounted(volume("vers=3,nconnect=2"))["mounts"][0]["connections"] == 2
        assert host.mounted(volume("vers=4.1,nconnect=16"))["mounts"][0]["connections"] == 16
    finally:
        host.do("put_back", run_id="test")
        gone_by_hand(host, "/mnt/theirs")


def test_a_mount_that_only_another_namespace_still_has_is_named_with_its_process(host, volume):
    by_hand(host, "vol2", "/mnt/theirs", "vers=3,nconnect=2")
    host.guest.run("setsid unshare -m sleep 300 >/dev/null 2>&1 </dev/null & sleep 1; umount /mnt/theirs")
    try:
        said = host.refusal(volume("vers=3,nconnect=16"))
        assert "in the mount namespace of sleep, pid " in said
    finally:
        pid = said.partition(" pid ")[2].partition(")")[0]
        host.guest.run(f"kill {pid}; sleep 1; rmdir /mnt/theirs")
    assert host.mounted(volume("vers=3,nconnect=16"))["mounts"][0]["connections"] == 16


def test_all_mounts_of_the_run_that_share_connections_are_mounted_again_together(host, volume):
    first = volume("vers=3,nconnect=2"), volume("vers=3,nconnect=2", "mounts/vol2", "vol2")
    host.mounted(*first)
    both = volume("vers=3,nconnect=8"), volume("vers=3,nconnect=8", "mounts/vol2", "vol2")
    said = host.refusal(both[0])
    assert "mounts/vol2 is a mount of the same server" in said
    assert "give it in the same call" in said
    found = host.mounted(*both)
    assert [mount["connections"] for mount in found["mounts"]] == [8, 8]
    assert not host.mounted(*both)["changed"]


def test_mounts_that_share_connections_cannot_ask_for_different_numbers(host, volume):
    said = host.refusal(volume("vers=3,nconnect=2"), volume("vers=3", "mounts/vol2", "vol2"))
    assert "share their connections; ask for the same" in said


def test_two_mounts_of_one_export_are_told_to_share_their_counters(host, volume):
    found = host.mounted(volume("vers=3"), volume("vers=3", "mounts/again"))
    assert any("shares its cache, its counters" in warning for warning in found["warnings"])


# -- what cannot be mounted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("export", "options", "words"),
    [
        ("secret", "vers=3", "The server denies this host"),
        ("secret", "vers=4.2", "The server denies this host|has no such export"),
        ("nowhere", "vers=4.1", "has no such export"),
        ("nowhere", "vers=3", "has no such export|denies this host"),
        ("vol1", "vers=3,wishful=7", "does not know one of the mount options vers=3,wishful=7"),
        ("vol1", "vers=2", "does not support NFS 2"),
    ],
)
def test_what_a_server_or_kernel_refuses_is_one_sentence_and_leaves_nothing(host, volume, export, options, words):
    said = host.refusal(volume(options, export=export))
    assert any(word in said for word in words.split("|")), said
    assert said.count("\n") == 0


def test_an_unreachable_server_is_told_within_seconds(host):
    said = host.refusal({"source": "10.99.0.77:/export/vol1", "path": "mounts/vol1", "options": "vers=3"})
    assert "The NFS server 10.99.0.77 cannot be reached on port 2049" in said or "does not answer" in said
    assert host.took_s < 15


def test_a_failing_mount_takes_the_others_of_its_call_away_again(host, volume):
    before = host.do("snapshot")["mounts"]
    host.refusal(volume("vers=3"), volume("vers=3", "mounts/secret", "secret"))
    assert host.do("snapshot")["mounts"] == before


# -- what the stock modules get wrong ---------------------------------------------------------------------------------


def test_a_live_mount_that_differs_from_what_is_asked_is_not_taken_for_it(host, volume):
    # ansible.posix.mount compares the text of fstab only
    by_hand(host, "vol1", "/mnt/vol1", "vers=3")
    try:
        said = host.refusal(volume("vers=3,nconnect=8", "/mnt/vol1"))
        assert "/mnt/vol1 is a mount point already" in said
    finally:
        gone_by_hand(host, "/mnt/vol1")


def test_a_mount_of_ours_that_somebody_remounted_is_put_right(host, volume):
    host.mounted(volume("vers=3", "/mnt/vol1"))
    host.guest.run("mount -o remount,ro /mnt/vol1")
    found = host.mounted(volume("vers=3", "/mnt/vol1"))
    assert found["changed"]
    assert found["mounts"][0]["effective"]["write"] == "yes"


def test_a_changed_nconnect_is_really_changed_and_not_remounted(host, volume):
    # mount -o remount takes it with success and does nothing
    host.mounted(volume("vers=3,nconnect=2", "/mnt/vol1"))
    host.guest.run("mount -o remount,nconnect=8 /mnt/vol1")
    assert host.mounted(volume("vers=3,nconnect=2", "/mnt/vol1"))["changed"] is False
    assert host.mounted(volume("vers=3,nconnect=8", "/mnt/vol1"))["mounts"][0]["connections"] == 8


def test_unmounting_needs_no_line_in_fstab_and_leaves_the_lines_of_others(host, volume):
    # a line of four fields, and one with a comment behind it, stop ansible.posix.mount
    before = host.guest.get("/etc/fstab")
    host.guest.put(before + "10.0.0.9:/x /mnt/x nfs noauto # mine\n/dev/zz /mnt/zz ext4 noauto", "/etc/fstab")
    try:
        lines = host.guest.get("/etc/fstab")
        host.mounted(volume("vers=3", "/mnt/vol1", persistent=True))
        held = host.guest.get("/etc/fstab")
        assert held.startswith(lines + "\n")
        assert "nofail,_netdev,x-hostmax.run=test 0 0" in held
        host.guest.run("umount /mnt/vol1 && mount /mnt/vol1")
        host.do("put_back", run_id="test")
        assert host.guest.get("/etc/fstab") == lines
    finally:
        host.guest.put(before, "/etc/fstab")


def test_a_busy_mount_stays_with_the_name_of_who_uses_it_and_goes_later(host, volume):
    host.mounted(volume("vers=3", "/mnt/vol1"))
    host.guest.run("(cd /mnt/vol1 && exec sleep 300) >/dev/null 2>&1 </dev/null & echo $! >/root/sleeper")
    try:
        with pytest.raises(Refused, match=r"/mnt/vol1 is busy: sleep \(pid \d+\) uses it"):
            host.do("unmounted", run_id="test")
        with pytest.raises(Refused, match="is busy"):
            host.mounted(volume("vers=3,rsize=65536", "/mnt/vol1"))
    finally:
        host.guest.run("kill $(cat /root/sleeper); rm /root/sleeper")
    assert host.do("unmounted", run_id="test")["changed"]
    assert not host.do("unmounted", run_id="test")["changed"]


def test_test_mounts_are_not_in_fstab(host, volume):
    before = host.guest.get("/etc/fstab")
    host.mounted(volume("vers=3"))
    assert host.guest.get("/etc/fstab") == before


def test_a_directory_that_was_there_before_stays(host, volume):
    host.guest.run("mkdir /mnt/before")
    try:
        host.mounted(volume("vers=3", "/mnt/before"))
        host.do("put_back", run_id="test")
        assert host.guest.run("ls -d /mnt/before").strip() == "/mnt/before"
    finally:
        host.guest.run("rmdir /mnt/before")


# -- put back ---------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_crash_between_any_two_steps_of_mounting_leaves_nothing_once_restored(host, volume):
    mounts = [
        volume("vers=3,nconnect=2", "/mnt/a/vol1", persistent=True, read_ahead_kib=512),
        volume("vers=4.1", "mounts/vol2", "vol2"),
    ]
    found = host.do("crashed", run_id="test", mounts=mounts, timeout_s=1500)
    assert found["bad"] == []
    assert found["steps"] > 20


@pytest.mark.thorough
def test_a_crash_between_any_two_steps_of_putting_back_leaves_nothing_once_restored_again(host, volume):
    mounts = [volume("vers=3,nconnect=2", "/mnt/a/vol1", persistent=True, read_ahead_kib=512)]
    found = host.do("crashed", run_id="test", mounts=mounts, undo=True, timeout_s=900)
    assert found["bad"] == []
    assert found["steps"] >= 8


def test_mounted_twice_and_put_back_twice_is_as_once(host, volume):
    before = host.do("snapshot")
    wanted = volume("vers=4.1,nconnect=4", "/mnt/a/b/vol1", persistent=True, read_ahead_kib=512)
    host.mounted(wanted)
    host.mounted(wanted)
    assert host.do("put_back", run_id="test")["left"] == []
    assert host.do("snapshot") == before
    assert not host.do("put_back", run_id="test")["changed"]


def test_a_work_directory_with_a_mount_in_it_is_never_removed(host, volume):
    host.mounted(volume("vers=3"))
    host.guest.run("touch /var/lib/hostmax/test/mounts/vol1/precious")
    with pytest.raises(Refused, match="is still mounted"):
        host.do("remove_work_dir", run_id="test")
    assert host.guest.run("rm /var/lib/hostmax/test/mounts/vol1/precious && echo there").strip() == "there"


def test_what_somebody_mounted_over_ours_is_left_and_named(host, volume):
    host.mounted(volume("vers=3", "/mnt/vol1"))
    host.guest.run("mount -t tmpfs theirs /mnt/vol1")
    left = host.do("put_back", run_id="test")["left"]
    host.guest.run("umount /mnt/vol1")
    assert "theirs is mounted there now" in left[0]["why"]


def test_a_temporary_mount_is_there_for_a_moment_only(host, volume):
    wanted = volume("vers=4.1,nconnect=2")
    found = host.do("temporary", source=wanted["source"], options=wanted["options"], name="hostmax-test")
    assert found["sources"] == [wanted["source"]]
    assert found["there"] is False


# -- a dead server ----------------------------------------------------------------------------------------------------


@pytest.fixture
def silence(host):
    """The server says nothing to this client any more."""
    route = f"blackhole {host.server.address}"

    def begin():
        host.guest.run(f"ip route add {route}")

    yield begin
    host.guest.run(f"ip route del {route}", check=False)


@pytest.mark.thorough
@pytest.mark.parametrize("options", ["vers=3", "vers=4.1"])
def test_unmounting_from_a_dead_server_is_bounded_and_said(host, volume, silence, options):
    host.mounted(volume(options, "/mnt/vol1"))
    host.guest.run("dd if=/dev/zero of=/mnt/vol1/hostmax-test bs=64k count=4 status=none; rm /mnt/vol1/hostmax-test")
    silence()
    found = host.do("unmounted", run_id="test", timeout_s=180)
    assert host.took_s < 90
    assert found["changed"]
    assert host.do("snapshot")["mounts"] is not None
    assert "did not answer" in host.refusal(volume(options)) or "reached" in host.refusal(volume(options))


@pytest.mark.thorough
def test_looking_at_a_mount_of_a_dead_server_does_not_hang(host, volume, silence):
    host.mounted(volume("vers=3", "/mnt/vol1"))
    silence()
    found = host.mounted(volume("vers=3", "/mnt/vol1"))
    assert host.took_s < 10
    assert not found["changed"]
    host.do("unmounted", run_id="test", timeout_s=180)


# -- over a restart ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_persistent_mount_comes_again_after_a_restart_and_is_still_put_back(host, volume):
    wanted = volume("vers=3,nconnect=2", "/mnt/vol1", persistent=True, read_ahead_kib=512)
    before = host.do("snapshot")
    host.mounted(wanted, run_id="prepared")
    host.guest.reboot()
    found = host.mounted(wanted, run_id="prepared")
    # the read-ahead is of the mount, and went with it
    assert (found["mounts"][0]["connections"], found["mounts"][0]["read_ahead_kib"]) == (2, 512)
    assert not host.mounted(wanted, run_id="prepared")["changed"]
    assert host.do("put_back", run_id="prepared")["left"] == []
    assert host.do("snapshot") == before


@pytest.mark.thorough
def test_after_a_restart_nothing_is_mounted_and_what_is_left_of_the_run_goes(host, volume):
    before = host.do("snapshot")
    host.mounted(volume("vers=4.1", "/mnt/a/vol1", read_ahead_kib=512))
    host.guest.reboot(clean=False)
    assert host.do("put_back", run_id="test")["left"] == []
    assert host.do("snapshot") == before
