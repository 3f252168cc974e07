"""A notebook for each case: a shell with gpumem and the prelude of one world."""

from __future__ import annotations

import contextlib
import gc
import io
import sys
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _gpumem

from tests.support.shell import shells

from .cases import DEVICES, PRELUDES, WORLDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpumem.types import Finding
    from IPython.core.interactiveshell import InteractiveShell

ALARMS = {"leak", "suspected"}


class Notebook:
    """Cells that are run one after the other, and what gpumem says of them."""

    def __init__(self, shell: InteractiveShell, world: str) -> None:
        self.shell = shell
        self.world = world
        self.device = DEVICES[world]

    def run(self, cell: str, times: int = 1) -> None:
        """Run a cell as a frontend does; what it prints and raises stays in it."""
        for _ in range(times):
            with contextlib.redirect_stdout(io.StringIO()):
                self.shell.run_cell(cell, store_history=True)

    @property
    def alarms(self) -> list[Finding]:
        """The findings that accuse a cell on the device of this world."""
        found = gpumem.report().findings
        findings = [it for it in found if it.device == self.device and it.withdrawn is None]
        return [it for it in findings if it.state is None or it.state in ALARMS]


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> str:
    """Name the world: simulated tensors, or real ones of torch, on the CPU or a GPU."""
    return str(request.param)


@pytest.fixture
def notebook(world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """Open a notebook in which everything is recorded."""
    monkeypatch.chdir(tmp_path)
    # A case may put its own there, for the debugger.
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    _gpumem.reset()
    # Of libraries alone a test's process may have a million objects, and others beside it.
    # A wheel that was released gives them the time that users have.
    if hasattr(_gpumem, "_testing"):
        _gpumem._set_look_patience(60_000)
    # A simulated device stays: where the host is all there is, it must not be looked at.
    _gpumem.use_sources(["torch", "host"] if world == "torch" else ["auto"])
    with shells(tmp_path) as new:
        made = Notebook(new(), world)
        made.run(PRELUDES[world])
        made.shell.run_line_magic("gpumem", "on")
        yield made
        # Some library may hold on to the shell, or to the module that it ran the cells in.
        made.shell.reset(new_session=False)
    gc.enable()
    del made
    gc.collect()
