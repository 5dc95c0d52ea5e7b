# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The wheel's second half: the collection goes to ansible_collections/hostmax/storage, beside the Python package.

Hatch's `sources` cannot say "everything but src", and an editable install must have none of it: there the link is used.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "ansible_collections/hostmax/storage"


class CollectionHook(BuildHookInterface):
    """What pyproject.toml lists under this hook goes into the wheel as it is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built; `version` is standard or editable."""
        if version == "standard":
            names = [*self.config["root-files"], *self.config["rooms"]]
            build_data["force_include"].update({name: f"{PLACE}/{name}" for name in names})
