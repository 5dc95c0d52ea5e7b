# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROLES = sorted(path for path in (Path(__file__).parents[3] / "roles").iterdir() if (path / "meta").is_dir())


def options(role):
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    return {name: spec for entry in specs.values() for name, spec in entry["options"].items()}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_defaults_of_a_role_are_those_its_argument_specs_promise(role):
    promised = {name: spec["default"] for name, spec in options(role).items() if "default" in spec}
    assert yaml.safe_load((role / "defaults" / "main.yml").read_text()) == promised


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_setting_of_a_role_is_named_ours_typed_and_described(role):
    for name, spec in options(role).items():
        assert name.startswith("hostmax_")
        assert {"type", "description"} <= set(spec)


def test_a_setting_that_two_roles_share_means_the_same_in_both():
    seen = {}
    for role in ROLES:
        for name, spec in options(role).items():
            assert seen.setdefault(name, spec) == spec
