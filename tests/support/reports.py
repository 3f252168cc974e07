"""What tests read of the session's report, of a source, and of another program's file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import gpumem
from gpumem import _gpumem

if TYPE_CHECKING:
    from pathlib import Path


def last_row(device: str) -> dict[str, Any]:
    """Return the row of the latest run on a device."""
    return [row for row in gpumem.report().runs if row["device"] == device][-1]


def state(source: str) -> tuple[bool, str]:
    """Return whether a source is read, and why or why not."""
    states = {name: (used, reason) for name, used, reason in _gpumem.source_states()}
    return states[source]


def read_file(path: Path) -> dict[str, Any]:
    """Return a file's JSON; its text must fit 80 columns."""
    found = gpumem.load(path)
    assert not isinstance(found, gpumem.types.Recording)
    text = found.text(80)
    assert all(len(line) <= 80 for line in text.splitlines()), text
    made: dict[str, Any] = json.loads(found.to_json())
    return made


def recording_in(path: Path) -> gpumem.types.Recording:
    found = gpumem.load(path)
    assert isinstance(found, gpumem.types.Recording)
    return found
