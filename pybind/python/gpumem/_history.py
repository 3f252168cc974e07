"""Notes when other code calls torch's function that begins and ends a memory history."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

# Tool ids that `sys.monitoring` reserves for no special purpose.
FREE_TOOLS = (3, 4)


class Watch:
    """Notes calls of a function, by events of its code alone; the function stays as it is.

    Python tells of calls from 3.12 on; before, none is noted.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Watch from now on."""
        self.was_called = False
        self._tool: int | None = None
        code = getattr(function, "__code__", None)
        if sys.version_info >= (3, 12) and code is not None:
            self._begin(code)

    def end(self) -> None:
        """Watch no longer."""
        if sys.version_info >= (3, 12) and self._tool is not None:
            tool, self._tool = self._tool, None
            sys.monitoring.set_local_events(tool, self._code, sys.monitoring.events.NO_EVENTS)
            sys.monitoring.register_callback(tool, sys.monitoring.events.PY_START, None)
            sys.monitoring.free_tool_id(tool)

    if sys.version_info >= (3, 12):

        def _begin(self, code: CodeType) -> None:
            monitoring = sys.monitoring
            tool = next((it for it in FREE_TOOLS if monitoring.get_tool(it) is None), None)
            if tool is None:
                return
            monitoring.use_tool_id(tool, "gpumem")
            self._tool, self._code = tool, code
            monitoring.register_callback(tool, monitoring.events.PY_START, self._called)
            monitoring.set_local_events(tool, code, monitoring.events.PY_START)

        def _called(self, _code: CodeType, _offset: int) -> object:
            self.was_called = True
            return sys.monitoring.DISABLE
