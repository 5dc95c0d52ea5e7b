"""hostmax from Python, with real volumes on this machine: what it returns, tells and raises, and what it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import hostmax
from hostmax import ansible_process

from .playbook import NEEDS_DEVICES, ROOT, at_cap, left_behind, play, processes_of

pytestmark = NEEDS_DEVICES

SETTINGS = {
    "hostmax_thin_count": 2,
    "hostmax_thin_size": "50GB",
    "hostmax_thin_cap": {"iops": 3000},
    "hostmax_volume_counts": [1, 2],
    "hostmax_runtime_s": 2,
    "hostmax_ramp_s": 0,
}
# where figures are not what is tested: the machine may be busy
ANY_FIGURES = {**SETTINGS, "hostmax_expect": "none", "hostmax_fail_on": "never"}
LONG = {**SETTINGS, "hostmax_runtime_s": 60, "hostmax_volume_counts": [1]}


class Bench:
    """Runs of one test: with a state directory, results and temporary files of its own."""

    def __init__(self, path: pathlib.Path) -> None:
        self.state, self.results, self.temporary = path / "state", path / "results", path / "temporary"
        self.temporary.mkdir()
        self.events: list[hostmax.Event] = []

    def run(self, playbook="host_max", settings=None, **options):
        if playbook == "host_max":
            options = {"results": self.results, "on_event": self.events.append, **options}
        env = {"HOSTMAX_STATE": str(self.state), **options.pop("env", {})}
        return hostmax.run(playbook, settings=SETTINGS if settings is None else settings, env=env, **options)

    def left(self) -> list[str]:
        """What is left on the host, of every run of this bench, and of private directories."""
        runs = [path.name for path in self.results.glob("host_max-*")]
        state = [str(path) for path in self.state.glob("*/*")]
        return [
            *state,
            *(each for run in runs for each in left_behind(self.state, run)),
            *map(str, self.temporary.iterdir()),
        ]

    def until(self, condition, limit_s=60.0) -> None:
        end_s = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end_s, self.events
            time.sleep(0.05)

    def measuring(self) -> bool:
        """Whether a run's fio is at work."""
        return any(len(processes_of(path.name)) > 1 for path in self.results.glob("host_max-*"))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    bench = Bench(tmp_path)
    monkeypatch.setattr(ansible_process.tempfile, "tempdir", str(bench.temporary))
    monkeypatch.chdir("/")
    yield bench
    for path in bench.results.glob("host_max-*"):
        if left_behind(bench.state, path.name):
            play("stop", {"hostmax_run": str(path)}, HOSTMAX_STATE=str(bench.state))


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


# -- to the end -----------------------------------------------------------------------------------------------------


def test_a_run_returns_typed_results_tells_points_while_it_runs_and_leaves_the_program_alone(bench, capfd):
    told_s = []
    before = handlers()

    def hear(event):
        bench.events.append(event)
        told_s.append(time.time())

    run = bench.run(on_event=hear)
    assert (run.status, run.exit_code, run.reason) == ("passed", 0, None)
    assert run.results["verdicts"][0]["status"] == "pass"
    assert [point["total"]["iops"] for point in run.results["points"]] == [at_cap(3000, 2), at_cap(6000, 2)]
    assert run.directory.parent == bench.results
    assert run.report.is_file()
    # every word came once, in order, and the points before the end of the run
    kinds = [type(each).__name__ for each in bench.events if not isinstance(each, hostmax.TaskStarted)]
    assert kinds == ["Planned", *["PointEnded"] * 4, "Finished"]
    first = next(number for number, each in enumerate(bench.events) if isinstance(each, hostmax.PointEnded))
    assert told_s[first] < bench.events[first + 2].time_s, "the first point was told before the second one ended"
    totals = [each.iops for each in bench.events if isinstance(each, hostmax.PointEnded) and each.host is None]
    assert totals == pytest.approx([3000, 6000], rel=0.05)
    assert handlers() == before
    assert capfd.readouterr() == ("", "")
    assert bench.left() == []


def test_a_missed_expectation_is_a_status_and_not_an_exception(bench):
    settings = {**SETTINGS, "hostmax_volume_counts": [1], "hostmax_runtime_s": 1}
    settings["hostmax_expect"] = {"iops": 50000, "name": "promise", "source": "a test", "date": "2026-11-30"}
    run = bench.run(settings=settings)
    assert (run.status, run.exit_code) == ("failed", 2)
    assert "promise: fail" in run.reason
    assert run.results["verdicts"][0]["status"] == "fail"
    again = bench.run("report", {"hostmax_run": str(run.directory), "hostmax_fail_on": "never"})
    assert (again.status, again.directory, again.results["points"]) == ("passed", run.directory, run.results["points"])


def test_check_mode_returns_the_plan_and_changes_nothing(bench):
    run = bench.run(check=True)
    assert run.status == "planned"
    assert [point["volumes"] for point in run.plan["points"]] == [1, 2]
    assert run.results is run.directory is None
    assert not bench.results.exists()
    assert bench.left() == []


def test_a_broken_callback_is_told_after_the_run_which_goes_on(bench):
    def fail(event):
        raise RuntimeError("display broken")

    with pytest.raises(hostmax.EventHandlerFailed) as caught:
        bench.run(settings={**SETTINGS, "hostmax_volume_counts": [1]}, on_event=fail)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.run.results["run"]["points_measured"] == 1
    assert bench.left() == []


# -- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"settings": {**SETTINGS, "hostmax_ramp_s": 9}}, "the ramp must be shorter than the runtime"),
        ({"settings": {"hostmax_volumes": [{"path": "/dev/not-there"}]}}, "volume vol01 (/dev/not-there)"),
        ({"limit": "nobody"}, "no hosts to target"),
        ({"inventory": pathlib.Path("/etc/passwd")}, "/etc/passwd"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_before_anything_changes(bench, options, sentence):
    with pytest.raises(hostmax.BadInput) as caught:
        bench.run(**options)
    assert sentence in str(caught.value)
    assert "Traceback" not in str(caught.value) + caught.value.output
    assert bench.left() == []


def test_a_host_that_cannot_be_reached_fails_the_run_by_name(bench):
    far = {"ansible_host": "127.0.0.1", "ansible_port": 1, "hostmax_volumes": [{"path": "/dev/disk/by-id/x"}]}
    with pytest.raises(hostmax.RunFailed) as caught:
        bench.run(inventory={"all": {"hosts": {"far": far}}}, settings={})
    assert "far" in str(caught.value)
    assert "Connection refused" in str(caught.value)
    assert [each.host for each in bench.events if isinstance(each, hostmax.HostLost)] == ["far"]


def test_nothing_of_a_secret_is_on_disk_or_in_arguments_while_it_runs_but_in_the_private_directory_or_afterwards(bench):
    secret = "sesame-" + os.urandom(8).hex()
    seen = []

    def look(event):
        if isinstance(event, hostmax.TaskStarted):
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.append(secret.encode() in path.read_bytes())

    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_password": secret}
    variables = {"ansible_become_password": secret}
    settings = {**ANY_FIGURES, "hostmax_volume_counts": [1], "hostmax_runtime_s": 1}
    inventory = {"all": {"hosts": {"localhost": host}}}
    run = bench.run(settings=settings, inventory=inventory, variables=variables, on_event=look)
    assert run.status == "passed"
    assert seen
    assert not any(seen)
    search = ["grep", "-rlF", secret, str(bench.results.parent), str(pathlib.Path.home() / ".ansible")]
    assert subprocess.run(search, capture_output=True, text=True, check=False).stdout == ""


# -- ended early ----------------------------------------------------------------------------------------------------


def test_cancel_from_another_thread_ends_the_run_and_leaves_nothing(bench):
    cancel = threading.Event()
    first = threading.Event()
    settings = {**SETTINGS, "hostmax_volume_counts": [1], "hostmax_runtime_s": 2}
    settings["hostmax_workloads"] = ["4k-randread", "8k-randread"]

    def hear(event):
        if isinstance(event, hostmax.PointEnded):
            first.set()

    def end():
        first.wait(60)
        cancel.set()

    threading.Thread(target=end).start()
    with pytest.raises(hostmax.Cancelled) as caught:
        bench.run(settings=settings, on_event=hear, cancel=cancel)
    assert caught.value.left == ()
    assert caught.value.results["run"]["points_measured"] == 1
    assert caught.value.results["points"][0]["counted"]
    assert caught.value.directory.parent == bench.results
    assert bench.left() == []


def test_an_ansible_that_does_not_end_when_asked_is_killed_with_its_workers_and_the_hosts_are_put_back(
    bench, monkeypatch
):
    monkeypatch.setattr(ansible_process, "GRACE_S", 0.0)
    cancel = threading.Event()
    threading.Thread(target=lambda: (bench.until(bench.measuring), cancel.set())).start()
    with pytest.raises(hostmax.Cancelled) as caught:
        bench.run(settings=LONG, cancel=cancel)
    assert caught.value.left == ()
    assert bench.left() == []
    assert playing(bench) == []


def test_a_run_that_takes_too_long_is_ended_in_the_same_way(bench):
    with pytest.raises(hostmax.TimedOut) as caught:
        bench.run(settings=LONG, timeout_s=7.5)
    assert caught.value.left == ()
    assert bench.left() == []
    assert playing(bench) == []


def playing(bench) -> list[str]:
    """Ansible's processes of this bench that are still there."""
    mark = f"HOSTMAX_STATE={bench.state}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0") and path.parent.name != str(os.getpid()):
                found.append((path.parent / "cmdline").read_text().replace("\0", " "))
    return found


def test_ctrl_c_in_the_program_puts_the_hosts_back_and_is_handed_on(bench):
    script = bench.temporary.parent / "program.py"
    settings = json.dumps(LONG)
    script.write_text(
        # where these tests run in the background of a shell, SIGINT is ignored by all that they start
        "import signal, hostmax\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"hostmax.run(settings={settings}, results={str(bench.results)!r}, output=print)\n"
    )
    env = {**os.environ, "HOSTMAX_STATE": str(bench.state), "TMPDIR": str(bench.temporary)}
    program = subprocess.Popen([sys.executable, str(script)], cwd="/", env=env, stderr=subprocess.PIPE, text=True)
    bench.until(bench.measuring)
    program.send_signal(signal.SIGINT)
    _out, errors = program.communicate(timeout=120)
    assert errors.strip().endswith("KeyboardInterrupt")
    assert bench.left() == []
    assert playing(bench) == []


# -- side by side ---------------------------------------------------------------------------------------------------


def together(*calls):
    """What each call returned or raised, all made at once in threads of their own."""
    found = [None] * len(calls)

    def keep(place, call):
        try:
            found[place] = call()
        except hostmax.HostmaxError as error:
            found[place] = error

    threads = [threading.Thread(target=keep, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_two_runs_that_would_measure_each_other_and_one_is_refused_by_name(bench, tmp_path):
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")

    def second():
        bench.until(bench.measuring)
        return other.run(env={"HOSTMAX_STATE": str(bench.state)})

    # long enough for the second one to come, also on a busy machine
    long = {**ANY_FIGURES, "hostmax_volume_counts": [1], "hostmax_runtime_s": 20}
    first, refused = together(lambda: bench.run(settings=long), second)
    assert first.status == "passed"
    assert isinstance(refused, hostmax.HostmaxError)
    assert "two runs at once would measure each other" in str(refused)


def test_runs_with_state_directories_of_their_own_do_not_meet(bench, tmp_path):
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")
    # the caps are files of one kernel, so that only the time of measuring is shared
    settings = {**ANY_FIGURES, "hostmax_thin_cap": None, "hostmax_volume_counts": [1]}
    runs = together(lambda: bench.run(settings=settings), lambda: other.run(settings=settings))
    assert [run.status for run in runs] == ["passed", "passed"]
    assert runs[0].directory.parent == bench.results
    assert runs[1].directory.parent == other.results
    for one, events in ((runs[0], bench.events), (runs[1], other.events)):
        assert {each.directory for each in events if isinstance(each, hostmax.Planned)} == {one.directory}
        assert one.results["run"]["id"] == one.directory.name
    assert bench.left() == other.left() == []


def test_two_reports_at_once_are_each_of_their_own_run(bench):
    settings = {**ANY_FIGURES, "hostmax_volume_counts": [1], "hostmax_runtime_s": 1}
    run = bench.run(settings=settings)
    copy = bench.results / "copy"
    shutil.copytree(run.directory, copy)
    plan = json.loads((copy / "plan.json").read_text())
    (copy / "plan.json").write_text(json.dumps({**plan, "run_id": "copy"}))
    found = together(
        *(lambda path=path: bench.run("report", {"hostmax_run": str(path)}) for path in (run.directory, copy))
    )
    assert [each.results["run"]["id"] for each in found] == [run.directory.name, "copy"]


# -- installed ------------------------------------------------------------------------------------------------------


def test_a_script_in_a_fresh_environment_with_nothing_but_the_wheel(bench, tmp_path):
    wheel = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(wheel, check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    (found,) = tmp_path.glob("*.whl")
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "-c",
        str(ROOT / "constraints.txt"),
    ]
    subprocess.run([*install, str(found)], check=True)
    script = tmp_path / "program.py"
    script.write_text(
        "import hostmax, json, sys\n"
        "run = hostmax.run('host_max', settings=json.loads(sys.argv[1]), results='results')\n"
        "print(run.status, run.results['run']['points_measured'], hostmax.__file__, run.directory)\n"
    )
    # as a service starts it: no environment on PATH, no configuration
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.environ["HOME"], "HOSTMAX_STATE": str(bench.state)}
    settings = json.dumps({**ANY_FIGURES, "hostmax_runtime_s": 1, "hostmax_volume_counts": [1]})
    done = subprocess.run(
        [str(python), str(script), settings], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    status, points, where, directory = done.stdout.split()
    assert (status, points) == ("passed", "1"), done.stderr
    assert where.startswith(str(tmp_path / "venv"))
    assert directory.startswith(str(tmp_path / "results"))
    assert bench.left() == []
