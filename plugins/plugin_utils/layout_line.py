# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lines that are shown while a host lays out its test files: at once, and then now and then.

It must not know how the host is asked; it takes the agent's events.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ansible.utils.display import Display
from ansible_collections.hostmax.storage.plugins.module_utils.units import format_bytes, format_rate

SHOW_S = 30.0
ASK_S = 1.0


class LayoutLine:
    """One host's layout; ``seen`` counts the events taken so far."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._shown_s: float | None = None
        self._began: tuple[float, int] | None = None
        self.seen = 0

    def note(self, event: Mapping[str, Any]) -> None:
        """Take an event of the agent, and show it where it is time to."""
        self.seen += 1
        said_s, done, total = float(event["time_s"]), int(event["done_bytes"]), int(event["total_bytes"])
        self._began = self._began or (said_s, done)
        whole = done >= total and self._shown_s is not None
        if self._shown_s is None or said_s - self._shown_s >= SHOW_S or whole:
            self._shown_s = said_s
            Display().display("  " + self._words(said_s, done, total))

    def _words(self, now_s: float, done: int, total: int) -> str:
        text = f"{self._host}: test files laid out, {format_bytes(done)} of {format_bytes(total)}"
        since_s, had = self._began or (now_s, done)
        return f"{text}, {format_rate((done - had) / (now_s - since_s))}" if now_s > since_s else text

    def pause_s(self, shortest_s: float) -> float:
        """How long to wait before the next question: a layout takes its time."""
        return shortest_s if self._began is None else max(shortest_s, min(ASK_S, time.time() - self._began[0]))
