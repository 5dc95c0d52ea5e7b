"""The live line beside Ansible's own output, on a terminal and in a log."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import subprocess

import pytest

from .playbook import NEEDS_DEVICES, arguments, environment, left_behind, play, run_id_of

pytestmark = NEEDS_DEVICES

ERASE = "\r\x1b[K"
LIVE_LINE = re.compile(r"\[\d/2\] (\d+ %|starts in|getting ready) ")
SETTINGS = {
    "hostmax_thin_count": 2,
    "hostmax_thin_size": "1GB",
    "hostmax_thin_cap": {"iops": 500},
    "hostmax_volume_counts": [1, 2],
    "hostmax_runtime_s": 4,
    "hostmax_ramp_s": 0,
}
LIVE = {"ANSIBLE_CALLBACKS_ENABLED": "hostmax.storage.live", "HOSTMAX_LIVE_INTERVAL_S": "2"}
OF_ANSIBLE = ("PLAY [", "TASK [", "ok: [", "changed: [", "skipping: [", "localhost ")


def on_a_terminal(settings: dict, **env: str) -> tuple[int, str]:
    """Run as on a terminal of a hundred columns; the exit code and everything that reached it."""
    controller, terminal = pty.openpty()
    os.set_blocking(controller, True)
    subprocess.run(["stty", "cols", "100", "rows", "40"], stdin=terminal, check=True)
    process = subprocess.Popen(
        arguments("host_max", settings),
        cwd="/",
        env=environment(TERM="xterm", **env),
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    written = b""
    while True:
        try:
            data = os.read(controller, 65536)
        except OSError:
            break
        if not data:
            break
        written += data
    os.close(controller)
    return process.wait(timeout=60), written.decode()


def what_stays(written: str) -> str:
    """What is on the screen at the end: a line that was erased is gone."""
    return "\n".join(line.rpartition(ERASE)[2] for line in written.replace("\r\n", "\n").split("\n"))


def words_of_ansible(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if line.startswith(OF_ANSIBLE))
    # a banner is as wide as the terminal
    return [re.sub(r"\d+", "N", line).rstrip(" *") for line in lines]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What a run says without the callback."""
    where = tmp_path_factory.mktemp("plain")
    done = play("host_max", {**SETTINGS, "hostmax_results": str(where / "results")}, HOSTMAX_STATE=str(where / "state"))
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_on_a_terminal_the_line_is_rewritten_and_nothing_of_it_stays(tmp_path, plain):
    settings = {**SETTINGS, "hostmax_results": str(tmp_path / "results")}
    code, written = on_a_terminal(settings, HOSTMAX_STATE=str(tmp_path / "state"), **LIVE)
    assert code == 0, written
    drawn = [part for part in re.split(r"\r\x1b\[K|\r\n", written) if LIVE_LINE.search(part)]
    assert len(drawn) > 4
    assert any("[1/2]" in line and "IOPS" in line for line in drawn)
    assert all(len(line) < 100 for line in drawn)
    stays = what_stays(written)
    assert not LIVE_LINE.search(stays)
    assert "\x1b" not in stays
    assert words_of_ansible(stays) == words_of_ansible(plain)
    assert "  [2/2]    2 volumes  4k-randread" in stays
    assert "Expected figures" in stays
    assert left_behind(tmp_path / "state", run_id_of(tmp_path / "results")) == []


def test_in_a_log_there_are_plain_lines_and_no_control_characters(tmp_path, plain):
    settings = {**SETTINGS, "hostmax_results": str(tmp_path / "results")}
    done = play("host_max", settings, HOSTMAX_STATE=str(tmp_path / "state"), TERM="xterm", **LIVE)
    assert done.returncode == 0, done.stdout
    assert not [letter for letter in done.stdout if not letter.isprintable() and letter != "\n"]
    assert len([line for line in done.stdout.splitlines() if LIVE_LINE.search(line)]) > 2
    assert words_of_ansible(done.stdout) == words_of_ansible(plain)


def test_a_line_that_cannot_be_shown_breaks_no_play(tmp_path, plain):
    settings = {**SETTINGS, "hostmax_results": str(tmp_path / "results")}
    done = play(
        "host_max", settings, HOSTMAX_STATE=str(tmp_path / "state"), **{**LIVE, "HOSTMAX_LIVE_INTERVAL_S": "often"}
    )
    assert done.returncode == 0, done.stdout
    assert not LIVE_LINE.search(done.stdout)
    assert words_of_ansible(done.stdout) == words_of_ansible(plain)


def test_the_line_is_shown_only_to_those_who_asked_for_it(plain):
    assert not LIVE_LINE.search(plain)


def test_the_documentation_says_how_to_enable_it():
    done = subprocess.run(
        [str(pathlib.Path(arguments("x", {})[0]).parent / "ansible-doc"), "-t", "callback", "hostmax.storage.live"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ANSIBLE_CALLBACKS_ENABLED=hostmax.storage.live" in done.stdout
