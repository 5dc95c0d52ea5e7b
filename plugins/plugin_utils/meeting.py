# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the hosts of a run may measure together: what no host can see by itself, because it sees only its own side.

It must not know how a host was looked at; it compares what was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# identifiers that are given once in the world; serial numbers and paths are alike on virtual machines that have nothing
# to do with each other
WORLDWIDE = ("naa.", "eui.", "uuid.")
# target and LUN, from sysfs or from a link in /dev/disk/by-path; the portal before them may differ between hosts
_ISCSI = re.compile(r"(?:ip-.*?-iscsi-)?((?:iqn\.|eui\.|naa\.)[^/]*-lun-[0-9a-fx]+)(?:-part[0-9]+)?", re.ASCII)
_MOST_NAMED = 5


class _Volume(NamedTuple):
    host: str
    title: str
    worldwide: tuple[str, ...]
    iscsi: tuple[str, ...]
    alike: tuple[str, str, int] | None


def refusals(found: Mapping[str, Mapping[str, Any]], writes: bool, shared_volumes: bool = False) -> list[str]:
    """One sentence for each reason why these hosts must not begin; ``found`` is what the probe returned, by host.

    ``shared_volumes``: two hosts may write the same volume.
    """
    return [*_one_machine(found), *(_written_together(found) if writes and not shared_volumes else [])]


def prepared(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why conditions cannot be compared: what a host was prepared with is in effect in every one of them."""
    hosts = [host for host, seen in found.items() if seen.get("prepared")]
    if not hosts:
        return []
    stand = "was prepared and is" if len(hosts) == 1 else "were prepared and are"
    return [
        f"{_some(hosts)} {stand} not put back since, so that no condition would be a baseline: put "
        f"{'it' if len(hosts) == 1 else 'them'} back first, with ansible-playbook hostmax.storage.restore."
    ]


def notes(found: Mapping[str, Mapping[str, Any]], writes: bool) -> list[str]:
    """What the results must say of volumes that several hosts use together, where that is allowed."""
    what = "read and write" if writes else "read"
    sentences = []
    for identity, group in _shared(found):
        hosts = _some(list(dict.fromkeys(volume.host for volume in group)))
        sentences.append(
            f"The hosts {hosts} {what} one volume together, {group[0].title} on {group[0].host} ({identity}): "
            "it is one volume in the total, and a cap that is counted for each of them is too high."
        )
    return sentences


def doubts(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A warning about volumes that may be one: serial number, model and size are alike, and nothing tells them apart.

    Unrelated virtual machines have such disks, so nothing is refused; the agents' marks tell before the first write.
    """
    groups: dict[tuple[str, str, int], list[_Volume]] = {}
    for volume in _volumes(found):
        if volume.alike and not volume.worldwide and not volume.iscsi:
            groups.setdefault(volume.alike, []).append(volume)
    several = [group for group in groups.values() if len({volume.host for volume in group}) > 1]
    if not several:
        return []
    named = [f"{volume.title} on {volume.host}" for volume in several[0]]
    others = f", and so are {len(several) - 1} other groups" if len(several) > 1 else ""
    return [
        f"Alike in serial number, model and size are {_some(named)}{others}: before the first write each host marks "
        "its volumes for a moment, and the run ends there if two hosts turn out to have the same one."
    ]


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def _one_machine(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    first: dict[str, str] = {}
    sentences = []
    for host, seen in found.items():
        other = first.setdefault(str(seen.get("machine") or f"host {host}"), host)
        if other != host:
            sentences.append(
                f"The hosts {other} and {host} are the same machine, and would measure each other: "
                f"take one of them out of the inventory, or leave it out with --limit '!{host}'."
            )
    return sentences


def _written_together(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    sentences = []
    for identity, group in _shared(found):
        first = group[0]
        sentences += [
            f"The volume {volume.title} of host {volume.host} is the volume {first.title} of host {first.host} "
            f"({identity}), and this run writes: name it for one of them, or set hostmax_shared_volumes: true where "
            "two hosts may write the same volume."
            for volume in group
            if volume.host != first.host
        ]
    return sentences


def _shared(found: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[_Volume]]]:
    """(identity, the volumes that have it) for every volume that several hosts see.

    Worldwide names decide where both sides have one: a target may show every host another volume as its LUN 1.
    """
    worldwide: dict[str, list[_Volume]] = {}
    iscsi: dict[str, list[_Volume]] = {}
    for volume in _volumes(found):
        for identity in volume.worldwide:
            worldwide.setdefault(identity, []).append(volume)
        for identity in volume.iscsi:
            iscsi.setdefault(identity, []).append(volume)
    undecided = {name: group for name, group in iscsi.items() if not all(volume.worldwide for volume in group)}
    groups: dict[tuple[_Volume, ...], str] = {}
    for identity, group in [*worldwide.items(), *undecided.items()]:
        if len({volume.host for volume in group}) > 1:
            groups.setdefault(tuple(group), identity)
    return [(identity, list(group)) for group, identity in groups.items()]


def _volumes(found: Mapping[str, Mapping[str, Any]]) -> Iterator[_Volume]:
    for host, seen in found.items():
        for volume in seen.get("volumes") or ():
            names = [str(identity) for identity in volume.get("identities") or ()]
            serial, model = volume.get("serial"), volume.get("model")
            targets = [match[1] for match in map(_ISCSI.fullmatch, names) if match]
            yield _Volume(
                host,
                f"{volume['name']} ({volume['path']})",
                tuple(name for name in names if name.startswith(WORLDWIDE) and name not in targets),
                tuple(dict.fromkeys(targets)),
                (serial, model, int(volume.get("size_bytes") or 0)) if serial and model else None,
            )
