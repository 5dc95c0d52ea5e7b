"""docs/embedding.md: what it shows works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from .playbook import NEEDS_DEVICES, ROOT, environment, left_behind, results_of, run_id_of

GUIDE = (ROOT / "docs" / "embedding.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("place", [0, 1])
def test_the_examples_pass_mypy_strict_as_a_users_program_does(tmp_path, place):
    (tmp_path / "program.py").write_text(blocks("python")[place])
    # no configuration: only what the installed package says of itself
    options = ["--strict", "--config-file", os.devnull, "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", *options, "--disable-error-code", "import-untyped", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Success" in done.stdout, done.stdout + done.stderr


def test_mypy_finds_a_key_that_results_do_not_have(tmp_path):
    (tmp_path / "program.py").write_text(blocks("python")[0].replace('ladder["title"]', 'ladder["titel"]'))
    options = ["--strict", "--config-file", os.devnull, "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", *options, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'has no key "titel"' in done.stdout


class TestPrivateDataDirectory:
    pytestmark = NEEDS_DEVICES

    def test_it_works_with_ansible_runner_alone(self, tmp_path):
        directory = tmp_path / "private"
        for block in blocks("yaml"):
            name, _newline, text = block.removeprefix("# file: ").partition("\n")
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text.replace("/var/tmp/hostmax-results", str(tmp_path / "results")))
        (tmp_path / "program.py").write_text(blocks("python")[1])
        env = environment(HOSTMAX_STATE=str(tmp_path / "state"), PATH="/usr/sbin:/usr/bin:/sbin:/bin")
        command = [sys.executable, str(tmp_path / "program.py"), str(directory)]
        done = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=False)
        assert done.stdout == "successful 0\n", done.stdout + done.stderr
        assert results_of(tmp_path / "results")["run"]["points_measured"] == 1
        assert left_behind(tmp_path / "state", run_id_of(tmp_path / "results")) == []
