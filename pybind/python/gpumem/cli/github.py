"""Results of ``check`` as annotations of GitHub Actions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpumem.cli.check import Checked
    from gpumem.cli.gate import Violation


def commands(checked: Checked) -> Iterator[str]:
    """Return one line for each reason to fail, and for each finding that is allowed."""
    for violation in checked.violations:
        line = _line(checked, violation)
        title = _gpumem._printable(f"gpumem: {violation.title}")
        yield _command("error", str(checked.path), line, title, "\n".join(violation.lines()))
    for allowed in checked.allowed:
        line = _line(checked, allowed)
        title = _gpumem._printable(f"gpumem: allowed: {allowed.title}")
        yield _command("notice", str(checked.path), line, title, "\n".join(allowed.lines()))
    if checked.broken is not None:
        yield _command("error", str(checked.path), 1, "gpumem", _gpumem._printable(checked.broken))


def _command(level: str, file: str, line: int, title: str, message: str) -> str:
    file = _gpumem._printable(file)
    about = f"file={_property(file)},line={line},title={_property(title)}"
    return f"::{level} {about}::{_escaped(message)}"


def _line(checked: Checked, violation: Violation) -> int:
    """Return the line of the notebook's file where the cell begins; 1 if it is not found."""
    count = None if violation.cell is None else violation.cell.execution_count
    cell_id = checked.ids.get(count) if count is not None else None
    if cell_id is None:
        return 1
    wanted = f'"id": {json.dumps(cell_id)}'
    text = checked.path.read_text(encoding="utf-8", errors="replace")
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if wanted in line), 1)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
