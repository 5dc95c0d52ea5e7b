"""A limit that was imposed on a real NFS client is the one that is named, with figures that fit it."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import fio_job
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import pack_sample
from ansible_collections.hostmax.storage.plugins.plugin_utils import gates, limits, merge

pytestmark = [pytest.mark.root, pytest.mark.guests, pytest.mark.thorough]

PLUGINS = pathlib.Path(__file__).resolve().parents[2] / "plugins"
MOUNT = "/mnt/limits"
FILE = f"{MOUNT}/limits.0"
FILE_BYTES = 16 * 1024 * 1024
PLACE = "/root/limits"
RUNTIME_S, RAMP_S = 10, 2
# so far away that an emulated CPU has time to spare, whatever it does between two answers
DELAY_MS = 250
SLOTS = "/proc/sys/sunrpc/tcp_max_slot_table_entries"
SCRIPT = """
import json, os, sys
sys.path.insert(0, "/root/limits/py")
from ansible_collections.hostmax.storage.plugins.module_utils import fio_run
point = json.load(sys.stdin)
place = "/root/limits/run"
os.makedirs(place + "/points")
host = fio_run.Host("limits", place, "fio", None, {}, {"v1": "/mnt/limits"})
print(json.dumps(fio_run.measure(host, point, lambda: False)))
"""


class Client:
    """A guest that can measure one point on an NFS mount of its own."""

    def __init__(self, guest, lab):
        self.guest, self.lab = guest, lab

    def prepare(self):
        archive = f"{PLACE}/py/ansible_collections/hostmax/storage/plugins"
        self.guest.run(f"mkdir -p {archive} {MOUNT}")
        packed = subprocess.run(["tar", "-C", PLUGINS, "-cf", "-", "module_utils"], capture_output=True, check=True)
        self.guest.put(packed.stdout.hex(), f"{PLACE}/plugins.hex")
        unpack = f"bytes.fromhex(open('{PLACE}/plugins.hex').read())"
        self.guest.run(["python3", "-c", f"open('{PLACE}/plugins.tar', 'wb').write({unpack})"])
        self.guest.run(["tar", "-C", archive, "-xf", f"{PLACE}/plugins.tar"])
        self.guest.put(SCRIPT, f"{PLACE}/measure.py")

    @contextlib.contextmanager
    def mounted(self, options):
        # slots and connections are those of the first mount of a server
        assert not self.guest.run("grep '^v' /proc/fs/nfsfs/servers || true")
        self.guest.run(["mount", "-t", "nfs", "-o", options, self.lab.source("vol1"), MOUNT])
        try:
            if self.guest.run(f"stat -c %s {FILE} 2>/dev/null || echo 0").strip() != str(FILE_BYTES):
                self.guest.run(f"head -c {FILE_BYTES} /dev/urandom >{FILE}", 120)
            yield
        finally:
            self.guest.run(f"umount {MOUNT}", 120)

    @contextlib.contextmanager
    def slots(self, count):
        before = self.guest.run(["cat", SLOTS]).strip()
        self.guest.run(f"echo {count} >{SLOTS}")
        try:
            yield
        finally:
            self.guest.run(f"echo {before} >{SLOTS}")

    def clean(self):
        self.guest.run(f"umount -f {MOUNT} 2>/dev/null; rmdir {MOUNT}; rm -rf {PLACE}", 120, check=False)
        self.lab.server.run(["rm", "-f", f"{self.lab.exports['vol1']}/limits.0"])

    def measure(self, settings=None, **workload):
        """(the point merged and judged by its transport, its limit)."""
        given = {"name": "w", "rw": "randread", "block_size": "8k", "io_depth": 32, "engine": "libaio"}
        shape = fio_job.Workload.from_mapping({**given, "working_set": FILE_BYTES, **workload})
        target = fio_job.Target("v1", FILE, 7, False, FILE_BYTES)
        job = fio_job.render_job(shape, [target], RUNTIME_S, RAMP_S, 500, "points/p01.logs/fio")
        common = {"id": "p01", "hash": "0" * 16, "ramp_s": RAMP_S, "runtime_s": RUNTIME_S, "log_interval_ms": 500}
        point = {**common, "reads": shape.reads, "writes": shape.writes, "num_jobs": 1, "volumes": ["v1"], "job": job}
        self.guest.put(json.dumps(point), f"{PLACE}/point.json")
        self.guest.run(f"rm -rf {PLACE}/run")
        sample = json.loads(self.guest.run(f"python3 {PLACE}/measure.py <{PLACE}/point.json", 120))
        assert sample["faults"] == []
        planned = {**common, "volumes": 1, "workload": shape.to_mapping(), "jobs": {"c": job}}
        samples = {"c": pack_sample(sample)}
        merged = merge.merge_point(planned, samples)
        gate = gates.transport(gates.Context(planned, merged, merge.read_heads(planned, samples), {}))
        assert gate is not None
        assert gate.passed, gate.text
        context = limits.Context(merged, planned["workload"], {"c": {"cpus": 2}}, {}, None, settings or {})
        return merged, limits.find_limit(context)


@pytest.fixture(scope="module")
def client(kernel_lab):
    guest = Client(kernel_lab.clients[1], kernel_lab)
    guest.prepare()
    yield guest
    guest.clean()


def counters_of(merged):
    (mount,) = merged["counters"]["c"]["nfs"].values()
    return mount


def test_two_slots_for_32_ios_are_named(client):
    with client.slots(2), client.lab.server.shaped(delay_ms=DELAY_MS), client.mounted("vers=3,nconnect=1"):
        merged, limit = client.measure()
    assert limit["kind"] == "nfs_slots", limit
    mount = counters_of(merged)
    assert mount["slots_limit"] == mount["xprt"]["max_slots"] == 2
    # 32 asked for, 2 under way, and a few that fio has not sent again yet
    waiting = mount["xprt"]["bklog_u"] / mount["xprt"]["sends"]
    assert waiting == pytest.approx(27, abs=4)
    assert merged["total"]["iops"] < 2 / (DELAY_MS / 1e3)


def test_nconnect_multiplies_the_slots(client):
    with client.slots(2), client.lab.server.shaped(delay_ms=DELAY_MS), client.mounted("vers=3,nconnect=8"):
        merged, limit = client.measure()
    assert limit["kind"] == "nfs_slots", limit
    assert counters_of(merged)["xprt"]["connections"] == 8
    assert 2 / (DELAY_MS / 1e3) < merged["total"]["iops"] < 16 / (DELAY_MS / 1e3)


def test_a_far_server_is_named_with_its_distance(client):
    with client.lab.server.shaped(delay_ms=DELAY_MS), client.mounted("vers=3,nconnect=4"):
        merged, limit = client.measure(io_depth=4)
    assert limit["kind"] == "nfs_server", limit
    reads = counters_of(merged)["ops"]["READ"]
    assert reads["rtt_ms"] / reads["ops"] >= DELAY_MS
    assert reads["ops"] == reads["transmissions"]


def test_session_slots_are_named_where_41_asks_for_fewer_than_the_ios(client):
    parameter = "/sys/module/nfs/parameters/max_session_slots"
    before = client.guest.run(f"modprobe nfs; cat {parameter}").strip()
    client.guest.run(f"echo 4 >{parameter}")
    try:
        with client.lab.server.shaped(delay_ms=DELAY_MS), client.mounted("vers=4.1,nconnect=4"):
            merged, limit = client.measure()
    finally:
        client.guest.run(f"echo {before} >{parameter}")
    assert limit["kind"] == "nfs_session_slots", limit
    mount = counters_of(merged)
    assert (mount["session_slots"], mount["xprt"]["bklog_u"]) == (4, 0)
    assert merged["total"]["iops"] < 4 / (DELAY_MS / 1e3)


@pytest.mark.parametrize("way", ["sent", "received"])
def test_a_slow_network_is_named_where_its_rate_is_known(client, way):
    sender = client.guest if way == "sent" else client.lab.server
    with sender.shaped(rate="4mbit"), client.mounted("vers=3,nconnect=1"):
        _merged, limit = client.measure(
            settings={"hostmax_nic_bytes_per_s": 500_000},
            rw="randwrite" if way == "sent" else "randread",
            block_size="64k",
            io_depth=4,
        )
    assert limit["kind"] == "network", limit
    assert f"eth1 {way} " in limit["evidence"][0]


def test_the_bytes_of_the_kernel_are_those_of_fio(client):
    with client.mounted("vers=3,nconnect=4,nocto,actimeo=600"):
        merged, _limit = client.measure(io_depth=4)
    mount = counters_of(merged)
    rate = mount["bytes"]["direct_read"] / mount["seconds"]
    assert rate == pytest.approx(merged["total"]["bytes_per_s"], rel=0.1)
    assert mount["ops"]["READ"]["ops"] * 8192 == pytest.approx(mount["bytes"]["server_read"], rel=0.05)
