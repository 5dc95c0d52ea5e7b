"""Commands to a host are bounded, tried again while it is lost, and understood with or without a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.hostmax.storage.plugins.plugin_utils import host_link
from ansible_collections.hostmax.storage.plugins.plugin_utils.host_link import HostLink, HostLostError


class Shell:
    """An action plugin whose host is this machine's shell, and is away as often as it is told."""

    def __init__(self, away=0, ends="\n"):
        self.away = away
        self.ends = ends
        self._connection = self

    def reset(self):
        pass

    def _low_level_execute_command(self, command):
        if self.away > 0:
            self.away -= 1
            raise AnsibleConnectionFailure(
                "Failed to connect to the host via ssh: ssh: connect to host h port 22: Connection refused"
            )
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
        return {"rc": done.returncode, "stdout": done.stdout.replace("\n", self.ends), "stderr": done.stderr}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(host_link, "LOST_PAUSE_S", 0.01)


def test_a_lost_connection_is_tried_again():
    assert HostLink(Shell(away=3), "h").ask("echo there", time.time() + 60)["stdout"] == "there\n"


def test_a_host_that_stays_away_is_lost_with_the_words_of_ssh():
    with pytest.raises(HostLostError, match=r"^it cannot be reached \(connect to host h .* refused\)$"):
        HostLink(Shell(away=99), "h").ask("echo there")
    with pytest.raises(HostLostError, match=r"^it cannot be reached since \d\d:\d\d:\d\d UTC \(connect to host h"):
        HostLink(Shell(away=99), "h").ask("echo there", time.time() + 0.1)


def test_a_module_that_could_not_be_sent_says_what_ssh_said():
    class Pipe(Shell):
        def _execute_module(self, **_arguments):
            raise AnsibleConnectionFailure(
                'Data could not be sent to remote host "h". Make sure this host can be reached over ssh: '
                "ssh: connect to host h port 22: Connection refused\r\n"
            )

    with pytest.raises(HostLostError, match=r"^connect to host h port 22: Connection refused$"):
        HostLink(Pipe(), "h").module("hostmax.storage.probe", {}, {})


def test_a_command_that_is_never_answered_is_a_lost_connection(monkeypatch):
    monkeypatch.setattr(host_link, "ANSWER_S", 0.3)
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(HostLostError, match="no answer within"):
        HostLink(Shell(), "h").ask("sleep 60")
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_events_and_the_agents_state_are_read_with_and_without_a_terminal(tmp_path, monkeypatch, ends):
    (tmp_path / "progress.jsonl").write_text('{"event": "ready"}\n{"event": "point", "id": "a"}\n{"event": "cut off')
    agent = subprocess.Popen(["/bin/sleep", "60"])
    try:
        monkeypatch.setattr(host_link, "AGENT", "sleep")
        link = HostLink(Shell(ends=ends), "h", str(tmp_path), agent.pid)
        seen = link.progress(1)
        assert seen.events == [{"event": "point", "id": "a"}]
        assert seen.alive
        assert len(seen.boot_id) == 36
        agent.send_signal(signal.SIGSTOP)
        while link.progress(1).state == "S":
            time.sleep(0.01)
        assert link.progress(1).state == "T"
    finally:
        agent.kill()
        agent.wait()
    assert not link.progress(1).alive


def test_another_process_with_the_agents_number_is_not_the_agent(tmp_path):
    other = subprocess.Popen(["/bin/sleep", "60"])
    try:
        assert not HostLink(Shell(), "h", str(tmp_path), other.pid).progress(0).alive
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_sample_comes_with_its_raw_output_or_without(tmp_path, ends):
    points = tmp_path / "points"
    points.mkdir()
    (points / "a.sample.json").write_text(json.dumps({"point": "a"}))
    link = HostLink(Shell(ends=ends), "h", str(tmp_path))
    assert link.sample("a") == ({"point": "a"}, None)
    raw = bytes(range(256)) * 500
    (points / "a.json.gz").write_bytes(raw)
    assert link.sample("a") == ({"point": "a"}, raw)
    assert link.sample("b") is None


def test_the_clock_is_that_of_the_shortest_exchange_and_its_uncertainty_half_of_it():
    clock, reach_s = HostLink(Shell(), "h").clock(4)
    # the same machine, so what is left is the exchange itself
    assert abs(clock["offset_s"]) <= clock["uncertainty_s"]
    assert 0 < clock["uncertainty_s"] <= reach_s / 2


def test_what_is_told_is_whole_on_the_host_or_a_sentence(tmp_path):
    told = {"round": 1, "t0": 1.5, "points": [{"id": "it's", "offset_s": 0.0}]}
    assert HostLink(Shell(), "h", str(tmp_path)).tell(told) is None
    assert json.loads((tmp_path / "go.json").read_text()) == told
    fault = HostLink(Shell(), "h", str(tmp_path / "gone")).tell(told)
    assert fault.startswith("T0 could not be written on the host: ")


def test_why_an_agent_is_gone(tmp_path):
    link = HostLink(Shell(), "h", str(tmp_path))
    assert "restarted" in link.why_gone("boot-1", "boot-2")
    assert "was it killed" in link.why_gone("boot-1", "boot-1")
    link.work_dir = str(tmp_path / "gone")
    assert "somebody restored the host" in link.why_gone("boot-1", "boot-1")
