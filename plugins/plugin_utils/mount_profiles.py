# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Mount profiles: documented NFS options by name, what is odd about them, and which endpoint a host takes.

It must not know how anything is mounted; options are compared and joined by module_utils/nfs_options.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ansible_collections.hostmax.storage.plugins.module_utils import nfs_options
from ansible_collections.hostmax.storage.plugins.plugin_utils.profiles import (
    Json,
    ProfileError,
    load_profile,
    profile_names,
)

KIND = "mount"


@cache
def mount_profile(name: str) -> Json:
    """One profile, checked: name, title, source, options, notes, and ``remarks`` on its options."""
    profile = load_profile(KIND, name)
    try:
        said = remarks(str(profile["options"]))
    except nfs_options.OptionError as error:
        raise ProfileError(f"the mount profile {name} is not usable: {error}") from error
    return {**profile, "remarks": said}


def mount_profiles() -> list[str]:
    """The names of the mount profiles this collection ships."""
    return profile_names(KIND)


def resolve(profile: str | None, options: str = "") -> str:
    """The option string meant by a profile with options merged over it; raises ProfileError for what cannot be."""
    base = str(mount_profile(profile)["options"]) if profile else ""
    try:
        return nfs_options.merge(base, options)
    except nfs_options.OptionError as error:
        raise ProfileError(str(error)) from error


def remarks(options: str) -> list[str]:
    """What a user should know of options before they are used: without effect, out of date, or bad together."""
    said = [
        f"The mount option {word} {nfs_options.LEGACY[word]}."
        for word, _value in nfs_options.parse(options)
        if word in nfs_options.LEGACY
    ]
    asked = nfs_options.canonical(options)
    if int(asked.get("nconnect", "1")) > 1 and asked.get("sec", "").startswith("krb5"):
        said.append(
            f"nconnect={asked['nconnect']} with sec={asked['sec']} makes servers drop requests that arrive out of "
            "order over several connections (Azure NetApp Files advises against it); use one of them."
        )
    return said


def endpoint(source: str, servers: Sequence[str], host_number: int) -> str:
    """The source with the endpoint of host number ``host_number``, counted from 0; the source itself without servers.

    The same host takes the same endpoint in every play over the same hosts, and neighbours take different ones.
    """
    if not servers:
        return source
    server = str(servers[host_number % len(servers)])
    export = source[source.index(":/") + 1 :] if ":/" in source else source
    return f"[{server}]:{export}" if ":" in server and not server.startswith("[") else f"{server}:{export}"
