# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What `hostmax.run` raises: one family, told in sentences for the user, with what was measured where there is any.

It must not know Ansible or how a run goes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostmax.job import Run
    from hostmax.results import Results


class HostmaxError(Exception):
    """Everything this package raises on purpose. `sentences` says what is wrong, where, and what to do."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)
        self.sentences = sentences
        # the last lines of Ansible's output, for a log; empty where Ansible was not started
        self.output = ""

    def __str__(self) -> str:
        return "\n".join(self.sentences)


class BadInput(HostmaxError):  # noqa: N818 - what it says, not that it is an error, is what a reader needs
    """Something you gave cannot be used. Nothing was changed on any host, and nothing was measured."""


class AnsibleMissing(HostmaxError):  # noqa: N818
    """`ansible-playbook` was not found beside this Python nor on PATH."""


class RunFailed(HostmaxError):  # noqa: N818
    """The playbook failed and nothing usable was measured; `sentences` holds one for each host that failed."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)
        self.exit_code: int | None = None
        self.directory: Path | None = None
        self.results: Results | None = None


class RunEnded(HostmaxError):  # noqa: N818
    """The run was ended before its plan was; the hosts were put back."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)
        # the run directory, None where the run was ended before it had one
        self.directory: Path | None = None
        # what was measured until then, None where nothing was
        self.results: Results | None = None
        # what could not be put back on which host, one sentence each; empty where all was
        self.left: tuple[str, ...] = ()


class Cancelled(RunEnded):
    """`cancel` was set."""


class TimedOut(RunEnded):
    """`timeout_s` had passed."""


class EventHandlerFailed(HostmaxError):  # noqa: N818
    """`on_event` or `output` raised (that is `__cause__`); the run went on without it, and is in `run`."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)
        self.run: Run | None = None
