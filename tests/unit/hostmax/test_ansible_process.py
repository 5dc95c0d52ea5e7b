"""The environment Ansible gets, and what of a play is written where."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import sys

import pytest

from hostmax import ansible_process
from hostmax.ansible_process import Play, environment, private_directory
from hostmax.errors import AnsibleMissing


@pytest.fixture
def python(tmp_path, monkeypatch):
    """A Python in a virtual environment of links, as venv makes it, with ansible-playbook beside it."""
    directory = tmp_path / "venv" / "bin"
    directory.mkdir(parents=True)
    (directory / "python").symlink_to(sys.executable)
    program(directory)
    monkeypatch.setattr(sys, "executable", str(directory / "python"))
    monkeypatch.setattr(ansible_process.sysconfig, "get_path", lambda _name: str(directory))
    return directory


def program(directory: pathlib.Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "ansible-playbook").write_text("#!/bin/sh\n")
    (directory / "ansible-playbook").chmod(0o755)


def test_the_directory_of_this_python_comes_first_on_path_and_is_not_resolved(python, tmp_path):
    path = environment({"PATH": "/usr/bin"}, {}, tmp_path)["PATH"]
    assert path.split(os.pathsep) == [str(python), "/usr/bin"]


def test_without_ansible_playbook_the_sentence_says_how_to_get_it(python, tmp_path):
    (python / "ansible-playbook").unlink()
    with pytest.raises(AnsibleMissing, match=r"pip install ansible-core"):
        environment({"PATH": "/nonexistent"}, {}, tmp_path)


def test_the_users_own_configuration_stays_and_what_must_be_set_wins(python, tmp_path):
    own = {"PATH": "", "ANSIBLE_FORKS": "7", "ANSIBLE_STDOUT_CALLBACK": "json"}
    changes = environment(own, {"ANSIBLE_TIMEOUT": "3"}, tmp_path)
    assert "ANSIBLE_FORKS" not in changes
    assert changes["ANSIBLE_TIMEOUT"] == "3"
    assert changes["ANSIBLE_STDOUT_CALLBACK"] == "default"
    assert changes["ANSIBLE_LOCAL_TEMP"].startswith(str(tmp_path))


def test_the_collection_comes_before_paths_the_user_set_and_otherwise_nothing_is_set(python, tmp_path):
    assert "ANSIBLE_COLLECTIONS_PATH" not in environment({"PATH": ""}, {}, tmp_path)
    first, second = environment({"PATH": "", "ANSIBLE_COLLECTIONS_PATH": "/own"}, {}, tmp_path)[
        "ANSIBLE_COLLECTIONS_PATH"
    ].split(os.pathsep)
    assert (pathlib.Path(first) / "ansible_collections/hostmax/storage/galaxy.yml").is_file()
    assert second == "/own"


def test_another_pythons_ansible_is_told_where_the_collection_is(python, tmp_path):
    (python / "ansible-playbook").unlink()
    program(tmp_path / "elsewhere")
    changes = environment({"PATH": str(tmp_path / "elsewhere")}, {}, tmp_path)
    first = changes["ANSIBLE_COLLECTIONS_PATH"].split(os.pathsep)[0]
    assert (pathlib.Path(first) / "ansible_collections/hostmax/storage/galaxy.yml").is_file()


def test_a_private_directory_is_for_this_user_only_and_goes_with_all_in_it():
    with private_directory() as first, private_directory() as second:
        assert first != second
        assert stat.S_IMODE(first.stat().st_mode) == 0o700
        (first / "secret").write_text("sesame")
    assert not first.exists()


def test_variables_go_into_a_private_file_and_never_into_arguments(tmp_path):
    play = Play("host_max", {"all": {}}, {"hostmax_seed": 1}, {"ansible_password": "sesame"}, check=True)
    arguments = ansible_process._runner_arguments(play, tmp_path, {})
    assert "sesame" not in json.dumps({**arguments, "private_data_dir": ""})
    (holding,) = [path for path in tmp_path.rglob("*") if path.is_file() and "sesame" in path.read_text()]
    assert stat.S_IMODE(holding.stat().st_mode) == 0o600
    assert f"@{holding}" in arguments["cmdline"]
    assert "--check" in arguments["cmdline"]


def test_ansible_runner_reads_how_often_to_look_for_a_cancel(tmp_path):
    from ansible_runner.config.runner import RunnerConfig

    config = RunnerConfig(**ansible_process._runner_arguments(Play("host_max", {}), tmp_path, {}))
    config.prepare_env()
    assert config.pexpect_timeout < 1
    assert config.suppress_output_file
