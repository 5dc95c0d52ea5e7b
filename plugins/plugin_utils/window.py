# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The time that all hosts of a point share, and the I/Os of a host inside it; everything on the controller's clock.

Must not know: latency, gates, or how the hosts' clocks were compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

Json = dict[str, Any]

# histograms cannot be cut to a window: with less overlap than this, percentiles are of another time than the rates
WHOLE_OVERLAP = 0.95
# share of a step
EDGE = 1e-5


@dataclass(frozen=True, slots=True)
class HostTime:
    """First I/O of a host, the end of its first process, and its last I/O; seconds of the controller's clock."""

    start_s: float
    end_s: float
    last_s: float


@dataclass(frozen=True, slots=True)
class Window:
    """The common window; `overlap` is its share of the longest host's time, `skew_s` the spread of the first I/Os."""

    start_s: float
    end_s: float
    overlap: float
    skew_s: float
    uncertainty_s: float

    @property
    def length_s(self) -> float:
        """Seconds; zero or less where the hosts never did I/O together."""
        return self.end_s - self.start_s

    def to_mapping(self) -> Json:
        """Plain data, as a point carries it."""
        return {
            "start_s": self.start_s,
            "end_s": self.end_s,
            "overlap": self.overlap,
            "skew_s": self.skew_s,
            "uncertainty_s": self.uncertainty_s,
        }


def common_window(times: Sequence[HostTime], uncertainty_s: float) -> Window | None:
    """From the last first I/O to the first end, narrower by the clocks' uncertainty on both sides.

    One host needs no clock: its own processes share one.
    """
    if not times:
        return None
    doubt_s = uncertainty_s if len(times) > 1 else 0.0
    first_s, last_s = min(time.start_s for time in times), max(time.start_s for time in times)
    start_s, end_s = last_s + doubt_s, min(time.end_s for time in times) - doubt_s
    longest_s = max(time.end_s - time.start_s for time in times)
    overlap = max(0.0, end_s - start_s) / longest_s if longest_s > 0 else 0.0
    return Window(start_s, end_s, overlap, last_s - first_s, doubt_s)


class Places(NamedTuple):
    """Where a window begins and ends in a host's steps, and the steps whose rate holds at these two edges.

    At an edge that another host made, by beginning or ending, the rate changes within the step: what holds inside is
    the rate of the next whole step inside. At the host's own edges it is the rate of the step itself.
    """

    first: int
    first_share: float
    after: int
    last: int
    last_share: float
    before: int


class Steps:
    """A host's I/Os over time: step k begins `interval_s` after step k - 1, and the last ends with the last I/O."""

    def __init__(self, start_s: float, interval_s: float, last_s: float, count: int) -> None:
        self.start_s, self.interval_s, self.last_s, self.count = start_s, interval_s, last_s, count
        self._rest_s = max(last_s - start_s - (count - 1) * interval_s, 1e-9)

    def place(self, at_s: float) -> tuple[int, float]:
        """(step, share of it that has passed) of an instant; before the first and after the last I/O their ends."""
        if at_s >= self.last_s:
            return self.count, 0.0
        passed = max(0.0, at_s - self.start_s) / self.interval_s
        # an instant is not known better than a few microseconds of an epoch: at the edge of a step is at its edge
        step = round(passed)
        if abs(passed - step) < EDGE and step < self.count:
            return step, 0.0
        step = min(int(passed), self.count - 1)
        length = self._rest_s / self.interval_s if step == self.count - 1 else 1.0
        return step, min(1.0, (passed - step) / length)

    def between(self, window: Window, own: HostTime) -> Places:
        """The places of a window's two ends in the steps of a host whose own time is `own`."""
        first, first_share = self.place(window.start_s)
        last, last_share = self.place(window.end_s)
        whole = range(first + 1 if first_share else first, min(last, self.count - 1))
        doubt_s = window.uncertainty_s + 1e-6
        after = first + 1 if first_share and window.start_s - own.start_s > doubt_s else first
        before = last - 1 if last_share and own.end_s - window.end_s > doubt_s else last
        length = self._rest_s / self.interval_s if last == self.count - 1 else 1.0
        return Places(
            first,
            first_share,
            after if after in whole else first,
            last,
            last_share * (length if before in whole and before != last else 1.0),
            before if before in whole else last,
        )

    def on_grid(self, counts: Sequence[Sequence[int]], start_s: float, interval_s: float, steps: int) -> list[float]:
        """I/Os of all lists together in each step of another grid."""
        together = [sum(column) for column in zip(*counts, strict=True)]
        reached = [0, *accumulate(together)]
        together.append(0)
        edges = []
        for number in range(steps + 1):
            step, share = self.place(start_s + number * interval_s)
            edges.append(reached[step] + share * together[step])
        return [after - before for before, after in zip(edges, edges[1:], strict=False)]


def ios_between(counts: Sequence[int], places: Places) -> float:
    """The I/Os of a list of steps between two places.

    A step that the window cuts counts by the share inside, at the rate that `Places` says.
    """
    ios: float = sum(counts[places.first : places.last])
    if places.first_share:
        ios += counts[places.after] * (1 - places.first_share) - counts[places.first]
    if places.last_share:
        ios += counts[places.before] * places.last_share
    return ios


def skews(times: Mapping[str, HostTime]) -> dict[str, float]:
    """How long after the first host each one did its first I/O, in seconds."""
    first_s = min((time.start_s for time in times.values()), default=0.0)
    return {host: time.start_s - first_s for host, time in times.items()}
