"""The shell of a test that runs in a process of its own."""

from __future__ import annotations

import functools
import gc
from typing import Any

import gpumem
from gpumem import _gpumem

from tests.support import shell as support


@functools.cache
def shell() -> support.Shell:
    """Return the shell, with gpumem loaded."""
    opened = support.open_shell()
    # The machine may be busy with other tests: no search is cut short.
    _gpumem._set_look_patience(60_000)
    gc.disable()
    return opened


def run(*cells: str) -> None:
    """Run cells as a frontend does."""
    support.run(shell(), *cells)


def oom() -> tuple[str, str, int | None]:
    """Return what the report says of the latest run out of memory."""
    row: dict[str, Any] = [row for row in gpumem.report().runs if row["oom"]][-1]
    return row["status"], row["oom"]["framework"], row["oom"]["wanted_bytes"]
