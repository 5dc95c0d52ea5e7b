"""Several hosts in one run: one that must not begin stops all of them before the first change."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from .playbook import NEEDS_DEVICES, left_behind, play

pytestmark = NEEDS_DEVICES

SMALL = {"hostmax_thin_count": 1, "hostmax_thin_size": "1GB", "hostmax_runtime_s": 1, "hostmax_ramp_s": 0}


@pytest.fixture
def inventory(tmp_path):
    def write(**pythons):
        hosts = {
            name: {"ansible_connection": "local", "ansible_python_interpreter": str(python)}
            for name, python in pythons.items()
        }
        path = tmp_path / "hosts.json"
        path.write_text(json.dumps({"all": {"hosts": hosts}}))
        return ("-i", str(path))

    return write


def python_of(directory: pathlib.Path, name: str) -> pathlib.Path:
    """A Python whose runs have a state directory of their own, as on another machine."""
    path = directory / f"python_{name}"
    path.write_text(f'#!/bin/sh\nHOSTMAX_STATE={directory}/state_{name} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


def test_two_names_of_one_machine_are_refused_before_anything_changes(tmp_path, inventory):
    settings = {**SMALL, "hostmax_results": str(tmp_path / "results")}
    state = tmp_path / "state"
    done = play(
        "host_max", settings, *inventory(a=sys.executable, b=sys.executable), cwd=tmp_path, HOSTMAX_STATE=str(state)
    )
    assert done.returncode == 2, done.stdout
    assert "The hosts a and b are the same machine" in done.stdout
    assert "Make the thin volumes" not in done.stdout
    assert not state.exists() or list(state.iterdir()) == []


def test_a_host_that_cannot_prepare_stops_the_others_before_they_measure(tmp_path, inventory):
    # both make the cgroup of the run on this kernel, so that the second one fails
    settings = {**SMALL, "hostmax_results": str(tmp_path / "results")}
    done = play("host_max", settings, *inventory(a=python_of(tmp_path, "a"), b=python_of(tmp_path, "b")), cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "Tell the agent when to start" not in done.stdout
    assert "Report: " in done.stdout
    run_id = next((tmp_path / "results").glob("host_max-*")).name
    assert left_behind(tmp_path / "state_a", run_id) == left_behind(tmp_path / "state_b", run_id) == []


def test_the_run_that_was_made_is_reported_whatever_hostmax_run_says(tmp_path):
    settings = {**SMALL, "hostmax_results": str(tmp_path / "results"), "hostmax_run": "/nonexistent"}
    done = play("host_max", settings, cwd=tmp_path, HOSTMAX_STATE=str(tmp_path / "state"))
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "results" / "latest" / "results.json").exists()
