"""Work that may hang is ended in its time, and its result or its error comes back."""

from __future__ import annotations

import os
import time

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import bounded, host_state


def test_the_result_comes_back():
    assert bounded.call(lambda: {"a": [1, "x"]}, 30, "work") == {"a": [1, "x"]}


def test_an_error_of_the_system_comes_back_with_its_file():
    with pytest.raises(FileNotFoundError) as told:
        bounded.call(lambda: os.stat("/nowhere/at/all"), 30, "work")
    assert told.value.filename == "/nowhere/at/all"


def test_a_sentence_comes_back():
    def refuse():
        raise host_state.HostError("No.")

    with pytest.raises(host_state.HostError, match=r"^No\.$"):
        bounded.call(refuse, 30, "work")


def test_work_that_hangs_is_ended():
    with pytest.raises(bounded.TimedOut, match=r"^The nap did not end within 0.2 s.$"):
        bounded.call(lambda: time.sleep(600), 0.2, "nap")


def test_work_that_dies_is_told():
    with pytest.raises(host_state.HostError, match="ended without a result"):
        bounded.call(lambda: os._exit(1), 30, "work")


def test_a_child_writes_nothing_where_the_parent_writes(capfd):
    bounded.call(lambda: os.write(1, b"seen"), 30, "work")
    assert capfd.readouterr().out == ""


def test_a_command_gives_its_words_in_plain_english(tmp_path):
    rc, out, err = bounded.command(["sh", "-c", "echo $LC_ALL $MARK; ls /nowhere; exit 3"], 30, {"MARK": "m"})
    assert (rc, out) == (3, "C m\n")
    assert "No such file or directory" in err


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path):
    pid_file = tmp_path / "pid"
    with pytest.raises(bounded.TimedOut, match=r"^sh did not end within"):
        bounded.command(["sh", "-c", f"sleep 600 & echo $! >{pid_file}; wait"], 2.0)
    end_s = time.monotonic() + 30
    while host_state.identity(int(pid_file.read_text())) and time.monotonic() < end_s:
        time.sleep(0.01)
    assert host_state.identity(int(pid_file.read_text())) is None


def test_a_daemon_that_a_command_leaves_behind_is_not_waited_for(tmp_path):
    pid_file = tmp_path / "pid"
    rc, out, _err = bounded.command(["sh", "-c", f"sleep 600 & echo $! >{pid_file}; echo done"], 30)
    os.kill(int(pid_file.read_text()), 9)
    assert (rc, out) == (0, "done\n")
