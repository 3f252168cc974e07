"""Real shells, each with nothing in it but what a user's shell has."""

from __future__ import annotations

import atexit
import contextlib
import io
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gpumem
import IPython
import pytest
from gpumem import _gpumem
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.python.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from IPython.core.interactiveshell import ExecutionResult

# Times, addresses and hashes of sources differ from run to run.
VARYING = re.compile(
    r"CPU times:.*|Wall time:.*|\d+(\.\d+)? [nµm]?s ±.*|0x[0-9a-f]+|ipython-input-\d+-[0-9a-f]+"
)


class Shell(InteractiveShell):
    """A shell whose display data can be looked at."""

    display_pub: CapturingDisplayPublisher

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Every display output so far, ours and the user's."""
        outputs: list[dict[str, Any]] = self.display_pub.outputs
        return outputs

    @property
    def lines(self) -> list[str]:
        """The texts of our own outputs."""
        return [
            output["data"]["text/plain"]
            for output in self.shown
            if "gpumem" in (output["metadata"] or {})
        ]

    def run(
        self,
        cell: str,
        *,
        store_history: bool = True,
        silent: bool = False,
        cell_id: str | None = None,
    ) -> Outcome:
        """Run a cell as a frontend does and note all that a user could see of it."""
        n_shown = len(self.shown)
        stdout, stderr = io.StringIO(), io.StringIO()
        for name in ("last_type", "last_value", "last_traceback"):
            with contextlib.suppress(AttributeError):
                delattr(sys, name)
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            result = self.run_cell(cell, store_history, silent, cell_id=cell_id)  # type: ignore[no-untyped-call]
        theirs = [
            output["data"]
            for output in self.shown[n_shown:]
            if "gpumem" not in (output["metadata"] or {})
        ]
        value = getattr(sys, "last_value", None)
        return Outcome(
            stdout=VARYING.sub("…", stdout.getvalue()),
            stderr=VARYING.sub("…", stderr.getvalue()),
            shown=VARYING.sub("…", repr(theirs)),
            result=VARYING.sub("…", repr(result.result)),
            underscore=VARYING.sub("…", repr(self.user_ns.get("_"))),
            out=VARYING.sub("…", repr(self.user_ns["Out"])),
            typed=list(self.user_ns["In"]),
            last_type=None if value is None else type(value).__name__,
            last_args=None if value is None else VARYING.sub("…", repr(value.args)),
            errors=[
                VARYING.sub("…", repr(error))
                for error in (result.error_before_exec, result.error_in_exec)
            ],
            names=sorted(name for name in self.user_ns if not name.startswith("_")),
            raw=result,
        )


@dataclass
class Outcome:
    """All that a user can see of a cell that ran."""

    stdout: str
    stderr: str
    shown: str
    result: str
    underscore: str
    out: str
    typed: list[str]
    last_type: str | None
    last_args: str | None
    errors: list[str]
    names: list[str]
    raw: ExecutionResult = field(compare=False)


@pytest.fixture(autouse=True)
def _own_session() -> None:
    """Begin with nothing recorded, and as if the tests before had asked for nothing."""
    _gpumem.reset()
    _gpumem._testing.look_for(60_000)
    _gpumem.use_sources(["auto"])
    _gpumem.record_blocks(True)  # noqa: FBT003 (as the magic says it)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def new_shell(tmp_path: Path) -> Iterator[Any]:
    """Make shells; each replaces the one before it."""
    main = sys.modules["__main__"]
    made: list[Shell] = []
    config = Config()
    config.HistoryManager.enabled = False
    # A test finds no session and no baseline of another one.
    config.GpuMem.store = str(tmp_path / "sessions")
    config.InteractiveShell.colors = "NoColor" if IPython.version_info < (9,) else "nocolor"

    def make(*, loaded: bool = True) -> Shell:
        Shell.clear_instance()
        shell = Shell.instance(
            config=config,
            display_pub_class=CapturingDisplayPublisher,
            ipython_dir=str(tmp_path),
        )
        made.append(shell)
        if loaded:
            shell.run_line_magic("load_ext", "gpumem")
        return shell

    yield make
    if Shell.initialized():
        gpumem.unload_ipython_extension(Shell.instance())
        Shell.clear_instance()
    # Looks go through all objects of the process: the more shells it keeps, the slower they are.
    # A shell takes the place of `__main__`, and keeps what had it: the shell before.
    sys.modules["__main__"] = main
    for shell in made:
        atexit.unregister(shell.atexit_operations)
        vars(shell.user_module).clear()


@pytest.fixture
def shell(new_shell: Any) -> Shell:
    """Return a shell with gpumem loaded."""
    made: Shell = new_shell()
    return made
