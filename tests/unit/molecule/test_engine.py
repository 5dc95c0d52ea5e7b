"""The hosts of the molecule tests: with a stand-in for the engine, which tells what it was asked for."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

ENGINE = pathlib.Path(__file__).resolve().parents[3] / "molecule" / "engine.py"


class Machine:
    """A machine whose programs are only those that were put on it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.programs = directory / "bin"
        self.programs.mkdir()
        self.log = directory / "asked"
        self.log.touch()

    def install(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.log}\n{script}\n')
        path.chmod(0o755)

    def engine(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ENGINE), *argv],
            env={"PATH": str(self.programs), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def asked(self, start: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(start)]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def names_of(machine: Machine) -> str:
    """How this checkout's containers are called, as far as all of them have it in common."""
    machine.install("podman", "exit 0")
    machine.engine("remove", "x", MOLECULE_SCENARIO_NAME="s")
    return machine.asked("podman rm")[0].split()[-1].removesuffix("s-x")


def test_a_machine_without_an_engine_says_so_in_one_sentence(machine):
    machine.install("docker", "exit 1")
    machine.install("podman", "exit 125")
    done = machine.engine("check")
    assert (done.returncode, done.stderr) == (1, "neither podman nor docker answers.\n")


def test_docker_is_used_where_podman_does_not_answer(machine):
    machine.install("podman", "exit 125")
    machine.install("docker", "exit 0")
    assert machine.engine("remove", "a").returncode == 0
    assert machine.asked("docker rm") != []


def test_the_engine_asked_for_is_used_and_no_other(machine):
    machine.install("podman", "exit 0")
    machine.install("docker", "exit 1")
    done = machine.engine("check", HOSTMAX_CONTAINER_ENGINE="docker")
    assert (done.returncode, done.stderr) == (1, "docker does not answer.\n")
    assert machine.asked("podman") == []


def test_only_containers_of_this_checkout_are_removed(machine):
    ours = names_of(machine)
    listed = f"{ours}fio-instance-1\nhostmax-00000000-fio-instance-1\ndatabase"
    machine.install("podman", f'case "$*" in *--all*) echo "{listed}";; esac')
    machine.log.write_text("")
    assert machine.engine("remove").returncode == 0
    assert [line.split()[-1] for line in machine.asked("podman rm")] == [f"{ours}fio-instance-1"]


def test_a_container_that_cannot_be_removed_is_named(machine):
    machine.install("podman", 'case "$1" in rm) echo "Error: device busy" >&2; exit 1;; esac')
    done = machine.engine("remove", "a")
    assert done.returncode == 1
    assert done.stderr.endswith("-default-a: Error: device busy\n")


def test_limits_are_lowered_only_on_a_machine_that_needs_it(machine):
    machine.install("podman", "exit 0")
    assert machine.engine("create", "a", "b", HOSTMAX_TEST_IMAGE="debian").returncode == 0
    assert [line for line in machine.asked("podman run") if "--ulimit" in line] == []

    machine.install("podman", 'case "$*" in run*--ulimit*) exit 0;; run*) exit 126;; esac')
    machine.log.write_text("")
    assert machine.engine("create", "a", "b", HOSTMAX_TEST_IMAGE="debian").returncode == 0
    assert ["--ulimit" in line for line in machine.asked("podman run")] == [False, True, True]


def test_an_image_of_another_recipe_is_made_anew(machine):
    machine.install("docker", 'case "$1 $2" in "image inspect") echo 0123;; esac')
    assert machine.engine("create", "a").returncode == 0
    (build,) = machine.asked("docker build")
    recipe = build.split("hostmax.recipe=")[1].split()[0]

    machine.install("docker", f'case "$1 $2" in "image inspect") echo {recipe};; esac')
    machine.log.write_text("")
    assert machine.engine("create", "a").returncode == 0
    assert machine.asked("docker build") == []


def test_a_machine_that_can_make_no_image_is_told_why(machine):
    machine.install("docker", 'case "$1" in build|image) echo "no route to the registry" >&2; exit 1;; esac')
    done = machine.engine("create", "a")
    assert done.returncode == 1
    assert "mmdebstrap is not installed: no route to the registry" in done.stderr
