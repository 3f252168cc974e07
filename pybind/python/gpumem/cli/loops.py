"""Marks the steps of a loop by one of its lines, without a change to the code.

Python reports each line once; all but the wanted one are then switched off, and cost nothing.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpumem import mark
from gpumem.cli.exits import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

OLDEST = (3, 12)


def parsed(text: str) -> tuple[str, int]:
    """Return the file and the line of ``FILE:LINE``."""
    file, _, number = text.rpartition(":")
    if not file or not number.isdecimal() or int(number) < 1:
        raise ValueError(f"{text!r} is not FILE:LINE")
    return file, int(number)


@contextmanager
def marked(place: tuple[str, int] | None) -> Iterator[None]:
    """Inside, mark a step each time that a line is reached."""
    if place is None:
        yield
        return
    if sys.version_info < OLDEST:
        raise CommandError("--loop needs Python 3.12\nhint: use gpumem.steps in the script")
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 (mypy knows Python 3.10)
    tool = monitoring.PROFILER_ID
    try:
        monitoring.use_tool_id(tool, "gpumem")
    except ValueError:
        raise CommandError("--loop cannot be used beside another profiler") from None
    _watch(monitoring, tool, *place)
    try:
        yield
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)


def _watch(monitoring: Any, tool: int, file: str, number: int) -> None:  # noqa: ANN401 (its types are not in Python 3.10)
    wanted, label = Path(file).resolve(), f"{Path(file).name}:{number}"
    events = monitoring.events

    def started(code: CodeType, _offset: int) -> object:
        if Path(code.co_filename).name == wanted.name and _is_same(code, wanted):
            monitoring.set_local_events(tool, code, events.LINE)
        return monitoring.DISABLE

    def reached(_code: CodeType, line: int) -> object:
        if line != number:
            return monitoring.DISABLE
        mark(label)
        return None

    monitoring.register_callback(tool, events.PY_START, started)
    monitoring.register_callback(tool, events.LINE, reached)
    monitoring.set_events(tool, events.PY_START)


def _is_same(code: CodeType, wanted: Path) -> bool:
    return Path(code.co_filename).resolve() == wanted
