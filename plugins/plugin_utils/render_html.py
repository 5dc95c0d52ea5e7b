# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""report.html: one file that needs no network; the charts are drawn by plotly, every figure stands in a table too.

Must not know: how a figure was measured, or where the file goes.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes, format_duration, format_rate
from ansible_collections.hostmax.storage.plugins.plugin_utils import render_section, render_timing
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison import Comparison, read_comparison
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_comparison_view import (
    applied_view,
    comparison_view,
    counted_view,
    mixes_views,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_figures import PALETTE
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_mixes import Limits, read_limits, read_mixes
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    SIGNS,
    STATUS_WORDS,
    Section,
    against,
    clean,
    figure,
    percent,
    plural,
    read_sections,
    source_of,
    utc,
    verdict_line,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_trouble import (
    failed_gates,
    failed_hosts,
    run_reasons,
)
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Path(__file__).resolve().parents[2] / "roles" / "report" / "templates"
MOST_VOLUME_ROWS = 200
MOST_JOB_TEXTS = 3


class MissingPlotlyError(RuntimeError):
    """The charting library is not installed; the message is one sentence for the user."""


def render_html(results: dict[str, Any]) -> str:
    """The whole page."""
    sections = read_sections(results)
    comparison, mixes = read_comparison(results), read_mixes(results, sections)
    in_mixes = {section.name for group in mixes for section in group.sections}
    shown = [] if comparison else [section for section in sections if section.name not in in_mixes]
    views = [render_section.view(section, number) for number, section in enumerate(shown)]
    compared = comparison_view(comparison, results, sections) if comparison else None
    groups = mixes_views(mixes)
    drawn = [*(compared["charts"] if compared else ()), *(group["chart"] for group in groups)]
    charts = {
        chart["id"]: chart["drawing"] for chart in [*drawn, *(chart for view in views for chart in view["charts"])]
    }
    scripts = [_plotly(), _source("report.js")]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            policy=_policy(scripts),
            style=Markup(_source("report.css")),
            scripts=[Markup(script) for script in scripts],
            drawings=Markup(embedded({"dark": dict(PALETTE.values()), "charts": charts})),
            **_head(results, sections, comparison or read_limits(mixes), shown),
            comparison=compared,
            mixes=groups,
            applied=applied_view(results),
            counted=counted_view(results),
            sections=views,
            gate_tables=[
                {"title": clean(section.title), "gates": render_section.gate_rows(section)} for section in sections
            ],
            judged=_judged(results),
            trouble=_trouble(results),
            hosts=_hosts(results),
            repeat=_repeat(results),
        )
    )


def embedded(data: Any) -> str:
    """JSON that cannot end the script element it stands in, nor a line of an old JavaScript."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@functools.cache
def _source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


@functools.cache
def _plotly() -> str:
    """plotly's own script, found without importing plotly, which takes a second."""
    spec = importlib.util.find_spec("plotly")
    path = Path(spec.origin).parent / "package_data" / "plotly.min.js" if spec and spec.origin else None
    if path is None or not path.is_file():
        raise MissingPlotlyError(
            "The HTML report needs the Python package plotly on the controller: pip install plotly."
        )
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")


def _policy(scripts: list[str]) -> str:
    """A Content-Security-Policy: nothing from the network, and no script but these, whatever a name may contain."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _head(
    results: dict[str, Any], sections: list[Section], study: Comparison | Limits | None, shown: list[Section]
) -> dict[str, Any]:
    run = results["run"]
    status, sentence = verdict_line(results)
    story = study or (sections[0] if sections else None)
    ok_hosts = sum(1 for host in results["hosts"] if host["status"] == "ok")
    return {
        "title": f"{clean(run['playbook'])}: {story.key_figure if story else 'no result'}",
        "run": {
            "id": clean(run["id"]),
            "playbook": clean(run["playbook"]),
            "started": utc(run["started_utc"]),
            "ended": utc(run["ended_utc"]),
            "hosts": f"{ok_hosts:,} of {plural(len(results['hosts']), 'host')}",
            "points": f"{run['points_measured']:,} of {plural(run['points_planned'], 'point')}",
            "planned": format_duration(run["planned_s"]) if run["planned_s"] is not None else "-",
            "command": clean(run["command"]),
            "seed": run["seed"],
        },
        "verdict": {
            "status": status,
            "sign": SIGNS.get(status, "·"),
            "sentence": sentence,
            "word": STATUS_WORDS.get(status, "not judged"),
        },
        "banner": _banner(results),
        "lead": _lead(story) if story else None,
        "cards": study.cards() if study else render_section.cards(sections[0]) if sections else [],
        "overview": [render_section.summary_row(section, number) for number, section in enumerate(shown)]
        if len(shown) > 1
        else [],
    }


def _lead(story: Section | Comparison | Limits) -> dict[str, str]:
    none = isinstance(story, Section) and story.headline_row is None
    figure_text = "no valid figure" if none else story.key_figure
    return {"label": story.label, "figure": figure_text, "circumstances": story.circumstances}


def _banner(results: dict[str, Any]) -> dict[str, Any] | None:
    status = results["run"]["status"]
    titles = {
        "partial": "Partial run: not everything that was planned was measured",
        "invalid": "Invalid run: these figures may not be quoted",
    }
    if status in titles:
        return {"status": status, "title": titles[status], "reasons": [*run_reasons(results), *failed_gates(results)]}
    dropped = sum(1 for point in results["points"] if not point["counted"])
    if not dropped:
        return None
    verb = "is" if dropped == 1 else "are"
    return {
        "status": "partial",
        "title": f"{plural(dropped, 'point')} {verb} shown but not counted",
        "reasons": failed_gates(results),
    }


def _judged(results: dict[str, Any]) -> dict[str, Any]:
    return {
        "verdicts": [
            {
                "status": verdict["status"],
                "sign": SIGNS[verdict["status"]],
                "word": STATUS_WORDS[verdict["status"]],
                "name": clean(verdict["name"]),
                "measured": figure(verdict["measured"], verdict["unit"]),
                "expected": figure(verdict["expected"], verdict["unit"]),
                "against": against(verdict) or "-",
                "reason": clean(verdict["reason"]),
                "source": source_of(verdict),
            }
            for verdict in results["verdicts"]
        ],
        "references": [
            {
                "name": clean(item["name"]),
                "measured": figure(item["measured"], item["unit"]),
                "value": figure(item["value"], item["unit"]),
                "ratio": percent(item["ratio"]),
                "source": source_of(item),
            }
            for item in results["references"]
        ],
    }


def _trouble(results: dict[str, Any]) -> dict[str, Any]:
    gates = [gate["passed"] for point in results["points"] for gate in point["gates"]]
    words = {True: "passed", None: "not judged", False: "failed"}
    counted = [f"{gates.count(outcome):,} {word}" for outcome, word in words.items() if gates.count(outcome)]
    return {
        "gates": failed_gates(results),
        "summary": f"{plural(len(gates), 'gate')}: {', '.join(counted)}." if gates else "No point was judged.",
        "hosts": failed_hosts(results),
        "warnings": [clean(warning) for warning in results["warnings"]],
    }


def _hosts(results: dict[str, Any]) -> dict[str, Any]:
    hosts = results["hosts"]
    count = sum(len(host["volumes"]) for host in hosts)
    volumes = (
        [_volume(host, volume) for host in hosts for volume in host["volumes"]] if count <= MOST_VOLUME_ROWS else []
    )
    return {
        "rows": [_host(host) for host in hosts],
        "together": render_timing.together(results),
        "points": render_timing.point_rows(results),
        "point_heads": render_timing.POINT_HEADS,
        "volumes": volumes,
        "volume_count": plural(count, "volume"),
    }


def _host(host: dict[str, Any]) -> list[str]:
    cpus = "-" if host["cpus"] is None else str(host["cpus"])
    return [
        clean(host["name"]),
        clean(host["status"]) + (f": {clean(host['reason'])}" if host["reason"] else ""),
        f"{cpus} × {clean(host['cpu_model'])}" if host["cpu_model"] else cpus,
        "-" if host["memory_bytes"] is None else format_bytes(host["memory_bytes"]),
        clean(host["kernel"] or "-"),
        clean(host["fio_version"] or "-"),
        render_timing.clock(host),
        f"{len(host['volumes']):,}" + (f", capped by {clean(host['cap_by'])}" if host["cap_by"] else ""),
    ]


def _volume(host: dict[str, Any], volume: dict[str, Any]) -> list[str]:
    cap = volume["cap"] or {}
    caps = [figure(cap["iops"], "iops")] if cap.get("iops") else []
    caps += [format_rate(cap["bytes_per_s"])] if cap.get("bytes_per_s") else []
    return [
        clean(host["name"]),
        clean(volume["name"]),
        clean(volume["path"]),
        clean(volume["kind"]),
        "-" if volume["size_bytes"] is None else format_bytes(volume["size_bytes"]),
        clean(volume["identity"] or "-"),
        " and ".join(caps) or "-",
        clean(volume["backing"] or "-"),
    ]


def _repeat(results: dict[str, Any]) -> dict[str, Any]:
    run = results["run"]
    names = {"hostmax": "hostmax.storage", "fio": "fio", "ansible_core": "ansible-core", "python": "Python"}
    return {
        "versions": [
            f"{names[key]} {clean(run['versions'][key] or 'not known').removeprefix('fio-')}" for key in names
        ],
        "settings": [
            (clean(key), clean(json.dumps(value, default=str))) for key, value in sorted(run["settings"].items())
        ],
        "jobs": [_job(point) for point in results["points"]],
    }


def _job(point: dict[str, Any]) -> dict[str, Any]:
    """The job files of one point, equal ones once."""
    texts: dict[str, list[str]] = {}
    for host, text in point["job"].items():
        texts.setdefault(text, []).append(clean(host))
    shown = list(texts.items())[:MOST_JOB_TEXTS]
    rest = len(point["job"]) - sum(len(hosts) for _text, hosts in shown)
    files = [{"hosts": _few(hosts), "text": text} for text, hosts in shown]
    return {
        "id": clean(point["id"]),
        "volumes": plural(point["volumes"], "volume"),
        "files": files,
        "rest": f"{plural(rest, 'further host')}: see plan.json." if rest else "",
    }


def _few(hosts: list[str]) -> str:
    return ", ".join(hosts[:4]) + (f" and {len(hosts) - 4:,} more" if len(hosts) > 4 else "")
