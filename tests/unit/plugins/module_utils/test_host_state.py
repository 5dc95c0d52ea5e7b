"""Where runs live on a host, and which processes are theirs."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import host_state
from ansible_collections.hostmax.storage.plugins.module_utils.host_state import HostError

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTMAX_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def start():
    started = []

    def _start(argv, run_id=None):
        environment = dict(os.environ, **({"HOSTMAX_RUN": run_id} if run_id else {}))
        process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE)
        started.append(process)
        process.stdout.readline()
        return process

    yield _start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_root_keeps_its_runs_in_var_lib_and_others_in_their_home(monkeypatch):
    monkeypatch.delenv("HOSTMAX_STATE")
    monkeypatch.setattr(host_state, "is_root", lambda: True)
    assert host_state.state_root() == "/var/lib/hostmax"
    monkeypatch.setattr(host_state, "is_root", lambda: False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert host_state.state_root() == "/home/someone/.local/state/hostmax"


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "/etc", "a b", "a\n", "ä", ".hidden", "x" * 201, None, 7])
def test_a_run_id_that_is_no_plain_name_is_refused(run_id):
    with pytest.raises(HostError, match="is not one"):
        host_state.work_dir(run_id)


def test_a_work_directory_is_private_and_may_be_made_again(state):
    path = host_state.make_work_dir("host_max-20261130T101112Z-ab12")
    assert path == host_state.make_work_dir("host_max-20261130T101112Z-ab12")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(state).st_mode) == 0o700
    assert host_state.list_runs() == ["host_max-20261130T101112Z-ab12"]


def test_a_work_directory_that_is_a_link_is_refused(state, tmp_path):
    state.mkdir()
    os.symlink(tmp_path, state / "run1")
    with pytest.raises(HostError, match="not a directory of this user"):
        host_state.make_work_dir("run1")
    with pytest.raises(HostError, match="not a directory of this user"):
        host_state.remove_work_dir("run1")


def test_a_state_directory_that_cannot_be_made_is_one_sentence(state):
    state.write_text("a file is in the way")
    with pytest.raises(HostError, match=r"^The work directory .*run1 cannot be made .*\.$"):
        host_state.make_work_dir("run1")


def test_removing_a_work_directory_twice_is_no_error_and_spares_the_neighbours(state):
    for run_id in ("run1", "run2"):
        host_state.make_work_dir(run_id)
    host_state.remove_work_dir("run1")
    host_state.remove_work_dir("run1")
    assert host_state.list_runs() == ["run2"]


def test_without_a_state_directory_there_are_no_runs():
    assert host_state.list_runs() == []


def test_a_process_is_alive_until_it_ends_also_while_nobody_reaps_it(start):
    process = start(SLEEP)
    who = host_state.identity(process.pid)
    assert host_state.is_alive(who)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not host_state.is_alive(who)
    assert host_state.identity(process.pid) is None


def test_a_number_used_again_or_one_from_before_the_reboot_is_not_the_same_process():
    who = host_state.identity(os.getpid())
    assert host_state.is_alive(who)
    assert not host_state.is_alive(dict(who, start_ticks=who["start_ticks"] - 1))
    assert not host_state.is_alive(dict(who, boot_id="another"))
    assert not host_state.is_alive(None)
    assert not host_state.is_alive({"pid": "1"})


def test_the_processes_of_a_run_are_those_with_exactly_its_mark(start):
    ours = start(SLEEP, "run1")
    start(SLEEP, "run11")
    start(SLEEP)
    assert [who["pid"] for who in host_state.processes_of_run("run1")] == [ours.pid]


def test_the_agent_belongs_to_its_run_without_the_mark_but_a_stale_number_does_not(start):
    agent = start(SLEEP)
    path = os.path.join(host_state.make_work_dir("run1"), "agent.json")
    who = host_state.identity(agent.pid)
    with open(path, "w") as handle:
        json.dump(who, handle)
    assert host_state.processes_of_run("run1") == [who]
    with open(path, "w") as handle:
        json.dump(dict(who, start_ticks=who["start_ticks"] + 1), handle)
    assert host_state.processes_of_run("run1") == []


def test_half_an_agent_file_is_no_agent():
    path = os.path.join(host_state.make_work_dir("run1"), "agent.json")
    with open(path, "w") as handle:
        handle.write('{"pid": 1, "sta')
    assert host_state.read_agent("run1") is None
    assert host_state.processes_of_run("run1") == []


def test_the_caller_and_its_ancestors_are_never_among_them():
    code = (
        "from ansible_collections.hostmax.storage.plugins.module_utils import host_state;"
        "import os; print(os.getpid(), os.getppid(), [who['pid'] for who in host_state.processes_of_run('run1')])"
    )
    shell = f'{sys.executable} -c "{code}"; true'
    environment = dict(os.environ, HOSTMAX_RUN="run1", PYTHONPATH=os.pathsep.join(sys.path))
    out = subprocess.run(["sh", "-c", shell], env=environment, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert out.split()[2:] == ["[]"]


def test_ending_a_run_asks_first_then_kills_and_touches_nobody_else(start):
    polite, stubborn, other = start(SLEEP, "run1"), start(STUBBORN, "run1"), start(SLEEP, "run2")
    assert host_state.end_processes("run1", grace_s=0.2) == []
    assert (polite.wait(), stubborn.wait()) == (-signal.SIGTERM, -signal.SIGKILL)
    assert other.poll() is None


def test_a_process_that_was_stopped_ends_as_politely_as_any(start):
    stopped = start(SLEEP, "run1")
    stopped.send_signal(signal.SIGSTOP)
    assert host_state.end_processes("run1", grace_s=30) == []
    assert stopped.wait() == -signal.SIGTERM


def test_a_process_whose_number_was_given_away_is_not_signalled(start, monkeypatch):
    innocent = start(SLEEP)
    gone = dict(host_state.identity(innocent.pid), start_ticks=1)
    monkeypatch.setattr(host_state, "processes_of_run", lambda run_id: [gone])
    monkeypatch.setattr(host_state, "_KILL_WAIT_S", 0)
    assert host_state.end_processes("run1", grace_s=0) == [gone]
    assert innocent.poll() is None


# -- a state directory that hosts share -------------------------------------------------------------------------------


def test_the_work_directory_of_another_host_is_refused(monkeypatch):
    host_state.make_work_dir("run1")
    host_state.make_work_dir("run1")
    monkeypatch.setattr(host_state, "boot_id", lambda: "another")
    with pytest.raises(HostError, match=r"run1 was made by another host, .* HOSTMAX_STATE in its environment"):
        host_state.make_work_dir("run1")
    host_state.remove_work_dir("run1")
    assert host_state.list_runs() == []


def test_a_work_directory_names_its_machine_and_holds_nothing_else(state):
    path = host_state.make_work_dir("run1")
    assert os.listdir(path) == [".machine"]
    with open(os.path.join(path, ".machine")) as handle:
        assert handle.read().split()[0] == host_state.boot_id()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a mount")
def test_a_work_directory_with_something_mounted_in_it_stays(state, request):
    path = os.path.join(host_state.make_work_dir("run1"), "mounts")
    os.mkdir(path)
    subprocess.run(["mount", "-t", "tmpfs", "hostmax-test", path], check=True)
    request.addfinalizer(lambda: subprocess.run(["umount", path], check=False))
    with open(os.path.join(path, "user.txt"), "w") as handle:
        handle.write("mine")
    with pytest.raises(HostError, match="is still mounted; unmount it"):
        host_state.remove_work_dir("run1")
    assert os.listdir(path) == ["user.txt"]
    subprocess.run(["umount", path], check=True)
    host_state.remove_work_dir("run1")
    assert not (state / "run1").exists()
