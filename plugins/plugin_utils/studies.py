# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Studies: the settings one playbook starts from, which the user's own come before.

It must not know what the settings mean.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError, load_profile, profile_names

Json = dict[str, Any]


def settings_of_study(playbook: str) -> Json:
    """{setting: value} of a playbook's study; nothing where it has none. Raises ProfileError."""
    if playbook not in profile_names("studies"):
        return {}
    settings = load_profile("studies", playbook)["settings"]
    wrong = [str(name) for name in settings if not str(name).startswith("hostmax_")]
    if wrong:
        raise ProfileError(f"the study {playbook} sets {wrong[0]}, which is no setting")
    return dict(settings)
