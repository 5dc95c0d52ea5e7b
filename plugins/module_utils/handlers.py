# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How every kind of change in a journal is put back: the handlers of all parts that change a host, in one table.

Must not know: what any of them does, or when a run is restored.
"""

from __future__ import annotations

from ansible_collections.hostmax.storage.plugins.module_utils import (
    nfs_unmount,
    sysctl_profile,
    test_file_removal,
    thin_volumes,
)
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Handler

HANDLERS: dict[str, Handler] = {
    **thin_volumes.HANDLERS,
    **nfs_unmount.HANDLERS,
    **sysctl_profile.HANDLERS,
    **test_file_removal.HANDLERS,
}
