"""The child processes of a session, as what other files have: text, JSON, a page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from gpumem._gpumem import Recording


class SessionProcesses:
    """The child processes that a session recorded."""

    _KIND: ClassVar[str] = "a session's child processes"

    def __init__(self, recording: Recording) -> None:
        """Show the children that are kept beside ``recording``, as they are at each call."""
        self._recording = recording

    def text(self, width: int = 100) -> str:
        """Return what is found and a row for each; lines are at most ``width`` columns long."""
        return self._recording._processes_text(width)

    def is_empty(self) -> bool:
        """Return whether there is none."""
        return self._recording._processes_page()[0] == 0

    def to_json(self) -> str:
        """Return them as the report's JSON has them."""
        content = json.loads(self._recording._report_json())
        return json.dumps({name: content[name] for name in ("processes", "process_findings")})

    def _page(self) -> bytes:
        return self._recording._processes_page()[1]
