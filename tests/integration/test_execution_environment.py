"""The execution environment: ansible-builder makes its context, and finds in the collection what it has to install.

Building the image itself needs a container registry; what its galaxy stage does is done here by hand.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import tomllib
import yaml

from .playbook import ROOT, environment

BIN = pathlib.Path(sys.executable).parent
# the environment brings its own
OF_THE_ENVIRONMENT = {"ansible-core", "ansible-runner"}


def run(*argv: str, cwd: pathlib.Path) -> str:
    command = [str(BIN / argv[0]), *argv[1:]]
    done = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A directory with what the galaxy stage of the image would have in it."""
    work = tmp_path_factory.mktemp("ee")
    run("ansible-galaxy", "collection", "build", "--output-path", str(work / "dist"), str(ROOT), cwd=work)
    shutil.copy(ROOT / "execution-environment.yml", work)
    run("ansible-builder", "create", "--context", "context", cwd=work)
    build = work / "context" / "_build"
    # --force: the checkout is found here as well, and not in an image
    to = ["--force", "-p", str(work / "in_image")]
    run("ansible-galaxy", "collection", "install", "-r", "requirements.yml", *to, cwd=build)
    return work / "in_image"


def names(requirements) -> set[str]:
    return {re.split(r"[<>=!~ ;]", each)[0].lower() for each in requirements}


def test_the_collection_is_in_the_environment_without_what_only_a_checkout_needs(built):
    place = built / "ansible_collections" / "hostmax" / "storage"
    listed = {path.name for path in place.iterdir()}
    assert {"meta", "playbooks", "plugins", "profiles", "roles"} <= listed
    assert listed & {"src", "molecule", "hatch_build.py", "pyproject.toml", ".ci", ".collections"} == set()


def test_the_environment_gets_every_package_the_wheel_depends_on(built):
    found = yaml.safe_load(run("ansible-builder", "introspect", str(built), cwd=built))
    wanted = names(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    assert names(found["python"]) == wanted - OF_THE_ENVIRONMENT
    assert any(line.startswith("openssh-client") for line in found["system"])
