# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command a run was started with, so that it can be repeated; values that may be secrets are left out.

It must not know plans or settings; only names that begin with hostmax_ are ours to show.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from typing import Any

import yaml
from ansible_collections.hostmax.storage.plugins.plugin_utils.argument_specs import PREFIX

HIDDEN = "..."
_EXTRA_VARS = ("-e", "--extra-vars")
_HIDDEN_OPTIONS = ("--ssh-common-args", "--ssh-extra-args", "--sftp-extra-args", "--scp-extra-args")


def repeatable_command(argv: Sequence[str]) -> str:
    """The command line for a shell: the program without its directory, foreign extra variables without their values."""
    words = [os.path.basename(argv[0])] if argv else []
    rest = iter(argv[1:])
    for word in rest:
        option, equals, value = word.partition("=")
        if word in _EXTRA_VARS:
            words += [word, _extra_vars(next(rest, ""))]
        elif option == "--extra-vars" and equals:
            words.append(f"{option}={_extra_vars(value)}")
        elif word.startswith("-e") and not word.startswith("--"):
            words += ["-e", _extra_vars(word[2:])]
        elif word in _HIDDEN_OPTIONS:
            next(rest, "")
            words += [word, HIDDEN]
        elif option in _HIDDEN_OPTIONS:
            words.append(f"{option}={HIDDEN}")
        else:
            words.append(word)
    return shlex.join(words)


def _extra_vars(text: str) -> str:
    """One value of -e: `@file` as it is, `key=value …` and JSON or YAML with only our own values."""
    stripped = text.strip()
    if stripped.startswith("@"):
        return text
    if stripped.startswith(("{", "[")) or stripped.endswith(":") or ": " in stripped.split("=", 1)[0]:
        return _mapping(stripped)
    try:
        pairs = shlex.split(stripped)
    except ValueError:
        return HIDDEN
    return " ".join(_pair(pair) for pair in pairs)


def _pair(pair: str) -> str:
    key, equals, value = pair.partition("=")
    if not equals:
        return HIDDEN
    return f"{key}={shlex.quote(value) if key.startswith(PREFIX) else HIDDEN}"


def _mapping(text: str) -> str:
    try:
        found: Any = yaml.safe_load(text)
    except yaml.YAMLError:
        return HIDDEN
    if not isinstance(found, dict):
        return HIDDEN
    ours = {str(key): value if str(key).startswith(PREFIX) else HIDDEN for key, value in found.items()}
    return json.dumps(ours, default=str)
