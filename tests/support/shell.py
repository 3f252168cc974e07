"""A shell as users have it: in the process of a test, or in one of its own."""

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
from gpumem import _gpumem
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from IPython.core.interactiveshell import ExecutionResult

# Times, addresses and hashes of sources differ from run to run.
VARYING = re.compile(
    r"CPU times:.*|Wall time:.*|\d+(\.\d+)? [nµm]?s ±.*|0x[0-9a-f]+|ipython-input-\d+-[0-9a-f]+"
)


class Printing(CapturingDisplayPublisher):
    """Notes what is displayed, and prints its text as a terminal does."""

    def publish(self, data: dict[str, Any], *arguments: Any, **options: Any) -> None:
        super().publish(data, *arguments, **options)  # type: ignore[no-untyped-call]
        print(data.get("text/plain", ""))


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


def run(shell: Shell, *cells: str) -> None:
    """Run cells as a frontend does, without what they print, and keep nothing of them here."""
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            shell.run_cell(cell, store_history=True)  # type: ignore[no-untyped-call]


def said(shell: Shell, line: str) -> list[str]:
    """Run a magic, and return the lines of what it says."""
    run(shell, line)
    return shell.lines[-1].splitlines()


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


def open_shell(
    *,
    folder: Path | None = None,
    store: Path | str | bool | None = None,
    loaded: bool = True,
    prints: bool = False,
    **of_ours: Any,
) -> Shell:
    """Return a new shell in the place of the one before, by default with gpumem loaded.

    IPython keeps its own files in `folder`, gpumem its sessions in `store`; other settings are
    those of `%config GpuMem`.
    """
    config = Config()
    config.GpuMem.update(of_ours)
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor" if IPython.version_info < (9,) else "nocolor"
    if store is not None:
        config.GpuMem.store = store if isinstance(store, bool) else str(store)
    options = {} if folder is None else {"ipython_dir": str(folder)}
    Shell.clear_instance()
    publisher = Printing if prints else CapturingDisplayPublisher
    shell = Shell.instance(config=config, display_pub_class=publisher, **options)
    if loaded:
        shell.run_line_magic("load_ext", "gpumem")
    return shell


def new_session() -> None:
    """Begin with nothing recorded and with default settings."""
    _gpumem.reset()
    _gpumem._set_look_patience(60_000)
    _gpumem.use_sources(["auto"])
    _gpumem.record_blocks(True)  # noqa: FBT003 (as the magic says it)


@contextlib.contextmanager
def shells(folder: Path) -> Iterator[Callable[..., Shell]]:
    """Open shells that find no session of another test, and leave nothing of them.

    Looks go through all objects of the process: the more shells it keeps, the slower they are.
    """
    main = sys.modules["__main__"]
    made: list[Shell] = []

    def new(*, loaded: bool = True, **of_ours: Any) -> Shell:
        own = {"folder": folder, "store": folder / "sessions"}
        made.append(open_shell(**own, loaded=loaded, **of_ours))
        return made[-1]

    yield new
    if Shell.initialized():
        gpumem.unload_ipython_extension(Shell.instance())
        Shell.clear_instance()
    # A shell takes the place of `__main__`, and keeps what had it: the shell before.
    sys.modules["__main__"] = main
    for shell in made:
        atexit.unregister(shell.atexit_operations)
        vars(shell.user_module).clear()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        with contextlib.suppress(AttributeError):
            delattr(sys, name)
