# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import shlex

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.command_line import repeatable_command

CASES = [
    (["/opt/venv/bin/ansible-playbook", "host_max.yml", "-i", "my inv"], "ansible-playbook host_max.yml -i 'my inv'"),
    (["ansible-playbook", "x.yml", "-e", "hostmax_seed=7"], "ansible-playbook x.yml -e hostmax_seed=7"),
    (["ansible-playbook", "x.yml", "-e", "@vars.yml"], "ansible-playbook x.yml -e @vars.yml"),
    ([], ""),
]


@pytest.mark.parametrize(("argv", "command"), CASES)
def test_a_command_can_be_repeated_in_a_shell(argv, command):
    assert repeatable_command(argv) == command


SECRETS = [
    ["-e", "password=s3cret hostmax_seed=7"],
    ["-e", "hostmax_seed=7 password='s3cret and more'"],
    ["-epassword=s3cret"],
    ["-e", "s3cret"],
    ["-e", "password='s3cret"],
    ["--extra-vars", "password=s3cret"],
    ["--extra-vars=password=s3cret"],
    ["-e", '{"password": "s3cret", "hostmax_seed": 7}'],
    ["-e", '{"password": "s3cret"'],
    ["-e", "password: s3cret"],
    ["-e", '["s3cret"]'],
    ["--ssh-common-args", "-o ProxyCommand='sshpass -p s3cret'"],
    ["--ssh-extra-args=-o s3cret"],
]


@pytest.mark.parametrize("words", SECRETS)
def test_values_that_are_not_ours_are_left_out(words):
    command = repeatable_command(["ansible-playbook", "x.yml", *words, "-v"])
    assert "s3cret" not in command
    assert shlex.split(command)[-1] == "-v"
    if "hostmax_seed" in words[-1]:
        assert "7" in command


def test_our_own_values_survive_in_json():
    words = ["-e", '{"password": "x", "hostmax_volume_counts": [1, 2]}']
    assert shlex.split(repeatable_command(["ansible-playbook", *words]))[2] == (
        '{"password": "...", "hostmax_volume_counts": [1, 2]}'
    )
