# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The door to rendering: one results dict in, the five files of a run directory out, each whole or not at all.

Must not know: what the figures mean, or Ansible.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.render_files import (
    render_csv,
    render_junit,
    render_markdown,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_html import MissingPlotlyError, render_html
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import write_atomic

SCHEMA = "hostmax.results/1"


class RenderError(ValueError):
    """Results that cannot be reported; the message is one sentence for the user."""


def render_json(results: dict[str, Any]) -> str:
    """The results as JSON: keys sorted, one line for each entry of a list, so that runs can be compared by lines."""
    try:
        return _document(results)
    except ValueError:
        results = {**results, "points": [_with_finite_gates(point) for point in results["points"]]}
    try:
        return _document(results)
    except ValueError as exc:
        place = next(_not_finite(results, "results"), "one of them")
        raise RenderError(f"The results cannot be reported: {place} is not a finite number.") from exc


def _document(results: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(results[key])}" for key in sorted(results)) + "\n}\n"


def _with_finite_gates(point: dict[str, Any]) -> dict[str, Any]:
    """A gate may find an infinite ratio (a volume that stood still); JSON has no such number, its text says it."""
    gates = [
        {key: None if any(_not_finite(value, key)) else value for key, value in gate.items()} for gate in point["gates"]
    ]
    return {**point, "gates": gates}


def _lines(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(_compact(entry) for entry in value) + "\n]"
    return _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


RENDERERS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("results.json", render_json),
    ("results.csv", render_csv),
    ("junit.xml", render_junit),
    ("summary.md", render_markdown),
    ("report.html", render_html),
)


def render_all(results: dict[str, Any], directory: Path) -> dict[str, Path]:
    """Write every file into `directory`; the figures first, so that they are there whatever happens to a picture."""
    if results.get("schema") != SCHEMA:
        raise RenderError(f"The results have the schema {results.get('schema')!r}, and only {SCHEMA} can be reported.")
    written = {}
    for name, renderer in RENDERERS:
        try:
            text = renderer(results)
        except MissingPlotlyError as exc:
            raise RenderError(str(exc)) from exc
        written[name] = directory / name
        write_atomic(written[name], text.encode("utf-8", "replace"))
    return written


def _not_finite(value: Any, place: str) -> Iterator[str]:
    """Where a number is infinite or not a number, which JSON cannot say."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield place
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _not_finite(entry, f"{place}.{key}")
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _not_finite(entry, f"{place}[{number}]")
