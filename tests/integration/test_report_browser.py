"""The report in a real browser: charts drawn, nothing on the console, nothing asked of the network."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_html import render_html

from ..unit.plugins.plugin_utils import results_example as examples

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--disable-default-apps", "--no-pings", "--virtual-time-budget=10000", "--window-size=1400,3000"),
    # whatever slips through is answered by nobody and still stands in the network log
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


class Visit:
    """What a browser made of a page: its document, its console, its requests."""

    def __init__(self, directory, page, *options):
        (directory / "report.html").write_text(page, encoding="utf-8", errors="replace")
        address = (directory / "report.html").as_uri()
        log = directory / "network.json"
        command = [CHROMIUM, *OPTIONS, *options, f"--user-data-dir={directory / 'profile'}", f"--log-net-log={log}"]
        command += ["--enable-logging=stderr", "--v=0", "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        self.document = done.stdout
        self.console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        self.requests = requests_in(log)

    def drawn(self):
        """How many charts the page itself counted after drawing them."""
        return int(self.document.split('data-drawn="')[1].split('"')[0])


def requests_in(log):
    """Every address the page asked for, except files; the browser's own errands have no origin and do not count."""
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    asked = [event.get("params", {}) for event in events if "initiator" in event.get("params", {})]
    addresses = {str(request.get("url", "")) for request in asked if request["initiator"] != "not an origin"}
    return sorted(address for address in addresses if not address.startswith(("file:", "data:", "blob:")))


@pytest.mark.parametrize(
    ("variant", "charts"),
    [("example", 5), ("partial", 5), ("hostile", 5), ("three_workloads", 15), ("many", 6)],
)
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_the_report_draws_its_charts_and_keeps_to_itself(tmp_path, variant, charts, scheme):
    page = render_html(getattr(examples, variant)())
    visit = Visit(tmp_path, page, f"--blink-settings=preferredColorScheme={scheme}")
    assert visit.console == []
    assert visit.requests == []
    assert visit.document.count('class="plot js-plotly-plot"') == charts
    assert visit.drawn() >= charts


def test_dark_readers_get_dark_charts(tmp_path):
    page = render_html(examples.example())
    (tmp_path / "dark").mkdir()
    (tmp_path / "light").mkdir()
    dark = Visit(tmp_path / "dark", page, "--blink-settings=preferredColorScheme=0").document
    light = Visit(tmp_path / "light", page, "--blink-settings=preferredColorScheme=1").document
    assert "stroke: rgb(98, 176, 255)" in dark
    assert "stroke: rgb(98, 176, 255)" not in light
    assert "stroke: rgb(11, 95, 192)" in light


def test_a_script_from_a_name_would_not_even_run_if_it_were_not_escaped(tmp_path):
    """The second line of defence: the policy knows the page's own scripts by their hash."""
    page = render_html(examples.example(rungs=(1, 2)))
    broken = page.replace("</h1>", "</h1><script>document.title = 'taken'</script>", 1)
    visit = Visit(tmp_path, broken)
    assert "<title>taken" not in visit.document
    assert any("Content Security Policy" in line for line in visit.console)


def test_the_proof_of_no_request_would_see_one(tmp_path):
    """Without the policy, a picture from elsewhere is asked for, and the log shows it."""
    page = '<!DOCTYPE html><title>x</title><img src="http://picture.invalid/a.png">'
    assert Visit(tmp_path, page).requests == ["http://picture.invalid/a.png"]
