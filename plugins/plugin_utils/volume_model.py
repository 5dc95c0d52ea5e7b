# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How fast volumes and instances may be: the published volume model, instance maxima, and how caps add up on a host.

It must not know settings, plans or what was measured. All figures are in bytes and bytes a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import ProfileError, did_you_mean, load_profile

Json = dict[str, Any]

# A GB of a volume is 2**30 bytes; a KB/s is 1,000 and an MB/s 1,000,000 bytes a second: so every published table fits.
GB_BYTES = 2**30
KB_PER_S = 1_000
MB_PER_S = 1_000_000

# Linux cuts an I/O of more than 128 pages in pieces after the throttle of a cgroup let it pass, and charges the rest
# again (measured: 1 MiB at a cap of 480 MB/s gives 240 to 480); above this size the cap of a thin volume is no truth.
WHOLE_IO_BYTES = 128 * 4096


class ExpectationError(ValueError):
    """An expectation that cannot be used; the message is one sentence for the user."""


@dataclass(frozen=True)
class Caps:
    """The largest rates of a volume or a host; a cap for each direction lets a mix reach more in total.

    `source` says who sets or promises them.
    """

    iops: float | None
    bytes_per_s: float | None
    each_direction: bool = False
    source: str = ""

    def at(self, block_size_bytes: int, read_percent: int) -> tuple[float, str]:
        """The IOPS this allows at a block size and mix, and which cap says so ("IOPS" or "bandwidth")."""
        limits = [(self.iops, "IOPS")] if self.iops is not None else []
        if self.bytes_per_s is not None:
            limits.append((self.bytes_per_s / block_size_bytes, "bandwidth"))
        if not limits:
            return float("inf"), "nothing"
        busier = max(read_percent, 100 - read_percent) / 100 if self.each_direction else 1.0
        value, which = min(limits)
        return value / busier, which


# -- the published model --------------------------------------------------------------------------------------------


def expectation_profile(profile: str) -> Json:
    """An expectation profile's data."""
    try:
        return load_profile("expectations", profile)
    except ProfileError as error:
        raise ExpectationError(f"hostmax_expect: {error}") from error


def level_vpu(level: str, profile: str = "oci_block_volume") -> int:
    """The volume performance units of a named level."""
    levels: Mapping[str, int] = expectation_profile(profile)["model"]["levels"]
    if level not in levels:
        hint = did_you_mean(level, levels)
        there_are = ", ".join(levels)
        raise ExpectationError(f"hostmax_expect: no level is named {level!r}{hint or ';'} there are: {there_are}")
    return levels[level]


def level_figures(vpu: int, profile: str = "oci_block_volume") -> Json:
    """The published columns of a performance level: iops_per_gb, max_iops, kb_per_s_per_gb, max_mb_per_s."""
    model = expectation_profile(profile)["model"]
    if vpu in model["off_formula"]:
        return dict(model["off_formula"][vpu])
    formula = model["formula"]
    allowed = range(formula["vpu"]["min"], formula["vpu"]["max"] + 1, formula["vpu"]["step"])
    if vpu not in allowed:
        known = [*model["off_formula"], *allowed]
        raise ExpectationError(f"hostmax_expect: vpu {vpu!r} is no level; use one of {', '.join(map(str, known))}")
    return {key: line["per_vpu"] * vpu + line["base"] for key, line in formula.items() if key != "vpu"}


def volume_caps(size_bytes: int, vpu: int, profile: str = "oci_block_volume") -> Caps:
    """The caps of one volume: each a rate for every GB up to a maximum of its own."""
    figures = level_figures(vpu, profile)
    size_gb = size_bytes / GB_BYTES
    return Caps(
        iops=min(figures["iops_per_gb"] * size_gb, figures["max_iops"]),
        bytes_per_s=min(figures["kb_per_s_per_gb"] * size_gb * KB_PER_S, figures["max_mb_per_s"] * MB_PER_S),
    )


def shape_caps(
    shape: str, ocpus: float | None = None, network_gbps: float | None = None, profile: str = "oci_block_volume"
) -> Caps:
    """The largest figures of one instance; a flexible shape needs its OCPUs or its network bandwidth in Gbps."""
    shapes = expectation_profile(profile)["shapes"]
    fixed, flexible = shapes["fixed"], shapes["flexible"]
    if shape in fixed:
        return Caps(fixed[shape]["iops"], fixed[shape]["mb_per_s"] * MB_PER_S)
    if shape not in flexible:
        hint = did_you_mean(shape, [*fixed, *flexible]) or f"; there are: {', '.join(sorted([*fixed, *flexible]))}"
        raise ExpectationError(f"hostmax_expect: no shape is named {shape!r}{hint}")
    if ocpus is None and network_gbps is None:
        raise ExpectationError(f"hostmax_expect: the shape {shape} is flexible; give ocpus or network_gbps")
    size = flexible[shape]
    if network_gbps is None:
        network_gbps = (ocpus or 0) * size["gbps_per_ocpu"]
    gbps = min(network_gbps, size["max_gbps"])
    figures = shapes["flexible_figures"]
    return Caps(
        iops=min(figures["iops_per_gbps"] * gbps, figures["max_iops"]),
        bytes_per_s=min(figures["mb_per_s_per_gbps"] * gbps, figures["max_mb_per_s"]) * MB_PER_S,
    )


# -- adding up ------------------------------------------------------------------------------------------------------


def host_limit(
    volumes: Sequence[Caps], host: Caps | None, block_size_bytes: int, read_percent: int
) -> tuple[float, list[Json]]:
    """IOPS one host can reach: the smallest of the sum of its volumes' caps, its own IOPS and its own bandwidth."""
    each = [caps.at(block_size_bytes, read_percent) for caps in volumes]
    kinds = sorted({which for _unused, which in each})
    limits = [(f"the {' and '.join(kinds)} caps of {len(each)} volume(s)", sum(value for value, _unused in each))]
    if host is not None and host.iops is not None:
        limits.append(("the host's IOPS", host.iops))
    if host is not None and host.bytes_per_s is not None:
        limits.append(("the host's bandwidth", host.bytes_per_s / block_size_bytes))
    smallest = min(value for _unused, value in limits)
    return smallest, [{"what": what, "iops": value, "bound": value == smallest} for what, value in limits]


def _in_unit(iops: float, unit: str, block_size_bytes: int) -> float:
    return iops if unit == "iops" else iops * block_size_bytes


def total_limit(
    hosts: Mapping[str, tuple[Sequence[Caps], Caps | None]], workload: Mapping[str, Any], unit: str
) -> tuple[float, tuple[Json, ...]]:
    """The sum over the hosts in the wanted unit, with every part that was looked at."""
    block = workload["block_size_bytes"]
    total, parts = 0.0, []
    for host, (volumes, own) in hosts.items():
        iops, looked_at = host_limit(volumes, own, block, workload["read_percent"])
        total += iops
        for part in looked_at:
            value = _in_unit(part["iops"], unit, block)
            parts.append({"host": host, "what": part["what"], "value": value, "bound": part["bound"]})
    return _in_unit(total, unit, block), tuple(parts)
