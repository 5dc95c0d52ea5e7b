"""The wheel: what `pip install .` puts where Ansible looks for it."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from .playbook import ROOT, play

PLACE = "ansible_collections/hostmax/storage/"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A directory that holds what the wheel holds."""
    directory = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(directory),
    ]
    subprocess.run([*command, str(ROOT)], check=True)
    (wheel,) = directory.glob("hostmax_storage-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


def test_everything_a_playbook_needs_is_in_the_wheel(installed):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    rooms = ("inventories/", "meta/", "playbooks/", "plugins/", "profiles/", "roles/")
    wanted = {name for name in listed if name.startswith(rooms) or name in ("galaxy.yml", "README.md", "LICENSE")}
    assert {name for name in wanted if not (installed / PLACE / name).is_file()} == set()


def test_the_python_package_stands_beside_the_collection_and_not_in_it(installed):
    source = {path.name for path in (ROOT / "src" / "hostmax").iterdir() if path.is_file()}
    assert {path.name for path in (installed / "hostmax").iterdir()} == source
    assert "py.typed" in source
    assert not (installed / PLACE / "src").exists()
    assert not (installed / PLACE / "hostmax").exists()


def test_a_playbook_of_the_wheel_is_found_by_its_full_name_from_any_directory(installed, tmp_path):
    done = play("host_max", {"hostmax_thin_count": 2}, "--check", cwd=tmp_path, ANSIBLE_COLLECTIONS_PATH=str(installed))
    assert done.returncode == 0, done.stdout
    assert "2 points on 1 host" in done.stdout
