# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How the hosts' clocks stand to the controller's: instants carried over, and what a reader must be told of them.

Must not know: I/Os, windows, or how a clock was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# further from the controller's clock than this is a wrong clock, worth a word although every time is corrected
WRONG_OFFSET_S = 1.0
# a clock may wander this far during a run before a reader is told
MOST_DRIFT_S = 0.05
# more sentences of one kind than this are summed up in one
MOST_SENTENCES = 5

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """A host's clock minus the controller's, how surely, and when (controller's clock)."""

    offset_s: float
    uncertainty_s: float
    at_s: float


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's clock as read before the run and, where it could be, after it.

    `stepped_s` is how far the clock was set during the run: it is no drift, and each sample carries its own share.
    """

    before: Reading | None = None
    after: Reading | None = None
    stepped_s: float = 0.0

    @property
    def uncertainty_s(self) -> float:
        """How far an instant may be wrong once carried over."""
        return max((reading.uncertainty_s for reading in (self.before, self.after) if reading), default=0.0)

    @property
    def drift_s(self) -> float | None:
        """How far the clock wandered from the controller's between the two readings; None without a second one."""
        if self.before is None or self.after is None:
            return None
        return self.after.offset_s - self.stepped_s - self.before.offset_s

    def to_controller(self, host_s: float, shift_s: float = 0.0) -> float:
        """A host's instant on the controller's clock; `shift_s` is how far the host's had been set by then.

        The offset goes in a straight line from the first reading to the second, and stays beyond them.
        """
        if self.before is None:
            return host_s - shift_s
        plain_s = host_s - shift_s - self.before.offset_s
        if self.after is None or plain_s <= self.before.at_s:
            return plain_s
        drift_s, passed_s = self.drift_s or 0.0, self.after.at_s - self.before.at_s
        if passed_s <= 0 or plain_s - drift_s >= self.after.at_s:
            return plain_s - drift_s
        return self.before.at_s + (plain_s - self.before.at_s) / (1 + drift_s / passed_s)


def clock_of_host(facts: Mapping[str, Any], stepped_s: float = 0.0) -> Clock:
    """From a host's facts (`clock`, or one reading alone); `stepped_s` is the clock_shift_s of its last sample."""
    found = facts.get("clock") or {}
    if not found.get("before"):
        offset_s = facts.get("clock_offset_s")
        if offset_s is None:
            return Clock()
        return Clock(Reading(offset_s, facts.get("clock_uncertainty_s") or 0.0, 0.0))
    after = found.get("after")
    return Clock(_reading(found["before"]), _reading(after) if after else None, stepped_s)


def clocks_of_run(facts: Mapping[str, Json], last: Mapping[str, Json]) -> dict[str, Clock]:
    """Every host's clock, from its facts; whether it was set during the run its last sample knows.

    One that was taken over from an earlier run (it has a `clock`) knows nothing of this one.
    """
    clocks = {}
    for host, found in facts.items():
        sample = last.get(host, {})
        clocks[host] = clock_of_host(found, 0.0 if sample.get("clock") else sample.get("clock_shift_s") or 0.0)
    return clocks


def clock_of_sample(kept: Mapping[str, Any]) -> Clock:
    """From the `clock` of a sample that was taken over from an earlier run."""
    return Clock(Reading(kept["offset_s"], kept["uncertainty_s"], 0.0))


def _reading(found: Mapping[str, Any]) -> Reading:
    return Reading(found["offset_s"], found["uncertainty_s"], found.get("at_s") or 0.0)


def clock_warnings(clocks: Mapping[str, Clock]) -> list[str]:
    """A sentence for every host whose clock was wrong, wandered or was set; of many hosts, for the worst."""
    return (
        _some(clocks, _wrong, "have clocks more than 1 s off; all times were corrected")
        + _some(clocks, _drifted, "have clocks that wandered during the run")
        + _some(clocks, _stepped, "had their clocks set during the run")
    )


Worst = tuple[float, str]


def _some(clocks: Mapping[str, Clock], judge: Callable[[str, Clock], Worst | None], many: str) -> list[str]:
    found = sorted(filter(None, (judge(host, clock) for host, clock in clocks.items())), reverse=True)
    words = [text for _size, text in found[:MOST_SENTENCES]]
    more = len(found) - MOST_SENTENCES
    return words + ([f"{more:,} more host(s) {many}."] if more > 0 else [])


def _wrong(host: str, clock: Clock) -> Worst | None:
    offset_s = clock.before.offset_s if clock.before else 0.0
    if abs(offset_s) <= WRONG_OFFSET_S:
        return None
    way = "ahead of" if offset_s > 0 else "behind"
    return abs(offset_s), (
        f"{host}: its clock is {abs(offset_s):,.1f} s {way} the controller's; all its times were corrected, "
        "so no figure is affected. Set the clock (chrony or another NTP client)."
    )


def _drifted(host: str, clock: Clock) -> Worst | None:
    drift_s = clock.drift_s
    known_s = sum(reading.uncertainty_s for reading in (clock.before, clock.after) if reading)
    if drift_s is None or abs(drift_s) <= max(MOST_DRIFT_S, known_s):
        return None
    return abs(drift_s), (
        f"{host}: its clock drifted by {1e3 * drift_s:+,.0f} ms against the controller's during the run; times between "
        "the two readings were corrected in a straight line."
    )


def _stepped(host: str, clock: Clock) -> Worst | None:
    if abs(clock.stepped_s) <= MOST_DRIFT_S:
        return None
    return abs(clock.stepped_s), (
        f"{host}: its clock was set by {clock.stepped_s:+,.2f} s during the run; its times were corrected by its "
        "monotonic clock."
    )
