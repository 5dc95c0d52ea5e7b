"""What can happen to one host of several: it is named with its reason, the others go on, and nothing is left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.lab import Host, Lab

from .playbook import NEEDS_LAB, Started, first_screen, play, results_of, run_id_of, soon

pytestmark = NEEDS_LAB

SETTINGS = {
    "hostmax_thin_count": 1,
    "hostmax_thin_size": "32MB",
    "hostmax_thin_cap": {"iops": 300},
    "hostmax_volume_counts": [1],
    "hostmax_workloads": ["4k-randread", "4k-randwrite"],
    "hostmax_runtime_s": 4,
    "hostmax_ramp_s": 0,
}


def statuses(found: dict) -> dict[str, str]:
    return {host["name"]: host["status"] for host in found["hosts"]}


def near(iops: float):
    return pytest.approx(iops, rel=0.05)


# -- several at once, each on a host of its own, in the middle of the last point --------------------------------------


def fill_disk(host: Host, run_id: str) -> None:
    host.run(f"head -c 1G /dev/zero > {host.state.parent}/filler", check=False)


def stop_fio(host: Host, run_id: str) -> None:
    for pid in host.processes_of(run_id):
        host.kill(pid, signal.SIGSTOP)


def kill_fio(host: Host, run_id: str) -> None:
    for pid in host.processes_of(run_id):
        host.kill(pid)


class Blow(NamedTuple):
    """What is done to a host, how it is marked then, and what its reason or its point's error says."""

    strike: Callable[[Host, str], object]
    status: str
    says: str


# each group takes about as long as its slowest: fio that hangs is given up after 30 s, a host that vanishes after 20 s
SLOW = {
    "killed_fio": Blow(kill_fio, "ok", "killed by signal 9"),
    "hung_fio": Blow(stop_fio, "ok", "did not end within"),
    "cut": Blow(lambda host, run_id: host.cut(), "unreachable", "cannot be reached"),
    "refusing": Blow(lambda host, run_id: host.refuse(), "unreachable", "refused"),
}
QUICK = {
    "killed_agent": Blow(lambda host, run_id: host.kill(host.agents()[0]), "failed", "was it killed"),
    "stopped_agent": Blow(
        lambda host, run_id: host.kill(host.agents()[0], signal.SIGSTOP), "failed", "stopped by a signal"
    ),
    "restarted": Blow(lambda host, run_id: host.reboot(), "failed", "restarted during the run"),
    "full": Blow(fill_disk, "failed", "No space left on device"),
}


class Disaster(NamedTuple):
    """A run in which each host but one is struck, and what came of it."""

    lab: Lab
    blows: dict[str, Blow]
    results: dict
    output: str
    code: int
    took_s: float

    @property
    def hosts(self) -> dict[str, dict]:
        return {host["name"]: host for host in self.results["hosts"]}


@pytest.fixture(scope="module", params=[SLOW, QUICK], ids=["slow", "quick"])
def disaster(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("disaster")
    results = directory / "results"
    with Lab() as lab:
        for name in ("well", *request.param):
            lab.host(name, disk_bytes=2**26 if name == "full" else None)
        settings = {**SETTINGS, "hostmax_results": str(results), "hostmax_patience_s": 5}
        begun_s = time.monotonic()
        run = Started("host_max", settings, directory / "log", *lab.inventory(), "--forks", "5")
        run.wait_until(results, 2, 1.5)
        for name, blow in request.param.items():
            blow.strike(lab.hosts[name], run_id_of(results))
        code = run.end()
        took_s = time.monotonic() - begun_s
        yield Disaster(lab, request.param, results_of(results), run.output(), code, took_s)


def test_the_run_ends_by_itself_partial_and_in_failure(disaster):
    assert disaster.code == 2
    assert disaster.results["run"]["status"] == "partial"
    # fio may take 30 s longer than asked before it is ended
    assert disaster.took_s < 120


def test_each_host_is_marked_for_what_happened_to_it(disaster):
    assert statuses(disaster.results) == {"well": "ok", **{name: blow.status for name, blow in disaster.blows.items()}}
    for name, blow in disaster.blows.items():
        if blow.status != "ok":
            assert blow.says in disaster.hosts[name]["reason"]


def test_a_point_whose_fio_failed_says_so(disaster):
    last = disaster.results["points"][1]
    errors = next(gate for gate in last["gates"] if gate["name"] == "errors")
    for name, blow in disaster.blows.items():
        assert (f"{name}: " in errors["text"] and blow.says in errors["text"]) == (blow.status == "ok"), name


def test_what_all_hosts_measured_before_counts(disaster):
    first = disaster.results["points"][0]
    assert first["counted"]
    assert first["hosts_measured"] == sorted(disaster.lab.hosts)
    assert first["total"]["iops"] == near(300 * len(disaster.lab.hosts))


def test_the_figures_of_the_host_that_was_well_are_kept_and_not_called_whole(disaster):
    last = disaster.results["points"][1]
    assert not last["counted"]
    assert last["repeat"] == 0
    assert last["hosts_measured"] == ["well"]
    assert last["per_host"]["well"]["total"]["iops"] == near(300)
    assert last["status"] == "partial"


def test_the_first_screen_names_lost_hosts(disaster):
    screen = first_screen(disaster.output)
    assert "PARTIAL RUN" in screen
    for name, blow in disaster.blows.items():
        assert f"Host {name} " in screen or blow.status == "ok", screen


def test_nothing_is_left_on_hosts_that_can_be_reached(disaster):
    for host in disaster.lab.hosts.values():
        (host.state.parent / "filler").unlink(missing_ok=True)
    left = disaster.lab.left_behind(disaster.results["run"]["id"])
    assert {name: what for name, what in left.items() if disaster.hosts[name]["status"] != "unreachable"} == {}


def test_a_host_that_nobody_reaches_ends_by_itself_and_is_restored_later(disaster):
    run_id = disaster.results["run"]["id"]
    lost = {name: host for name, host in disaster.lab.hosts.items() if disaster.hosts[name]["status"] == "unreachable"}
    if not lost:
        pytest.skip("every host of this group can be reached")

    def left() -> list[str]:
        """Without the results, which wait to be taken."""
        return [what for host in lost.values() for what in host.left_behind(run_id) if str(host.state) not in what]

    assert soon(lambda: left() == [], limit_s=120), left()
    for host in lost.values():
        host.heal()
        host.accept()
    done = play("restore", {"hostmax_run": run_id}, *disaster.lab.inventory())
    assert done.returncode == 0, done.stdout
    assert disaster.lab.left_behind(run_id) == {}


# -- one thing at a time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fail_on", "code"), [(["fail", "invalid"], 2), (["never"], 0)])
def test_a_host_that_refuses_from_the_start_is_left_out_and_named(lab, tmp_path, fail_on, code):
    lab.host("a")
    lab.host("b").refuse()
    settings = {
        **SETTINGS,
        "hostmax_results": str(tmp_path),
        "hostmax_workloads": ["4k-randread"],
        "hostmax_runtime_s": 2,
        "hostmax_fail_on": fail_on,
    }
    done = play("host_max", settings, *lab.inventory())
    assert done.returncode == code, done.stdout
    found = results_of(tmp_path)
    assert found["run"]["status"] == "partial"
    assert statuses(found) == {"a": "ok", "b": "unreachable"}
    assert "refused" in next(host["reason"] for host in found["hosts"] if host["name"] == "b")
    (point,) = found["points"]
    assert point["status"] == "partial"
    assert not point["counted"]
    assert point["hosts_measured"] == ["a"]
    assert point["per_host"]["a"]["total"]["iops"] == near(300)
    screen = first_screen(done.stdout)
    assert "PARTIAL RUN" in screen
    assert "Host b is unreachable: connect to host " in screen
    assert "Connection refused" in screen
    assert lab.left_behind(run_id_of(tmp_path)) == {}


def test_connections_that_break_and_come_back_cost_nothing(lab, tmp_path):
    lab.host("a")
    cut, refusing = lab.host("cut"), lab.host("refusing")
    settings = {**SETTINGS, "hostmax_results": str(tmp_path / "results")}
    run = Started("host_max", settings, tmp_path / "log", *lab.inventory())
    run.wait_until(tmp_path / "results", 1, 2.0)
    # over the end of the first point, when its sample should come home
    cut.cut()
    refusing.refuse()
    run.wait_until(tmp_path / "results", 2, 2.0)
    cut.heal()
    refusing.accept()
    assert run.end() == 0, run.output()
    found = results_of(tmp_path / "results")
    assert found["run"]["status"] == "complete"
    assert [point["counted"] for point in found["points"]] == [True, True]
    assert "refusing: connection lost" in run.output()
    assert "refusing: connected again" in run.output()
    assert lab.left_behind(run_id_of(tmp_path / "results")) == {}


@pytest.fixture
def measuring(lab, tmp_path):
    """(run, results, inventory) of two hosts in the middle of their second point."""
    lab.host("a")
    lab.host("b")
    results, inventory = tmp_path / "results", lab.inventory()
    run = Started("host_max", {**SETTINGS, "hostmax_results": str(results)}, tmp_path / "log", *inventory)
    run.wait_until(results, 2, 1.0)
    yield run, results, inventory
    if run.process.poll() is None:
        run.kill_all()


def assert_first_point_kept(results) -> None:
    found = results_of(results)
    assert found["run"]["status"] == "partial"
    assert [point["counted"] for point in found["points"]] == [True, False]
    assert found["points"][0]["total"]["iops"] == near(600)
    assert set(statuses(found).values()) == {"failed"}


def test_an_interrupted_controller_leaves_nothing_on_any_host(lab, measuring):
    run, results, _inventory = measuring
    run.send(signal.SIGINT)
    assert run.end() != 0
    assert soon(lambda: lab.left_behind(run_id_of(results)) == {}), lab.left_behind(run_id_of(results))
    again = play("report", {"hostmax_run": str(results / "latest")})
    assert again.returncode == 2, again.stdout
    assert_first_point_kept(results)


def test_a_run_is_stopped_from_a_second_terminal(lab, measuring):
    run, results, inventory = measuring
    done = play("stop", {"hostmax_run": str(results / "latest")}, *inventory)
    assert done.returncode == 0, done.stdout
    assert run.end() == 2
    assert "the run was stopped" in first_screen(run.output())
    assert_first_point_kept(results)
    assert lab.left_behind(run_id_of(results)) == {}


def test_after_a_killed_controller_stop_brings_home_what_was_measured(lab, measuring):
    run, results, inventory = measuring
    run.kill_all()
    assert lab.left_behind(run_id_of(results)) != {}
    done = play("stop", {"hostmax_run": str(results / "latest")}, *inventory)
    assert done.returncode == 0, done.stdout
    assert_first_point_kept(results)
    assert lab.left_behind(run_id_of(results)) == {}
    again = play("stop", {"hostmax_run": str(results / "latest")}, *inventory)
    assert "changed=0" in again.stdout
