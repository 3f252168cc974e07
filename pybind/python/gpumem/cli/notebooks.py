"""Runs a notebook in a kernel of its own and returns what was recorded.

gpumem is loaded into the kernel, not into the notebook: the notebook stays as it is.
"""

from __future__ import annotations

import ast
import asyncio
import os
import re
import signal
import tempfile
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

from gpumem import GpuMemError, _gpumem
from gpumem.cli.exits import CommandError
from gpumem.cli.scripts import NOTEBOOK
from gpumem.types import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpumem.cli.terminal import Progress

INSTALL = "pip install nbclient ipykernel"
REPEAT_TAG = "gpumem-repeat"

# Of a session's name, so much is its id.
ID_LENGTH = 8

# Timeout of requests to the kernel between cells.
PATIENCE_SECONDS = 120

# If the notebook loads gpumem as well, IPython must not print that it is already loaded. Nobody
# sits before these kernels: a look may take its time, also on a busy machine.
LOAD = """
def _gpumem_load():
    __import__("gpumem")._gpumem._set_look_patience(2_000)
    shell = get_ipython()
    shell.run_line_magic("load_ext", "gpumem")
    shell.extension_manager.loaded.discard("gpumem")
    for settings in shell.configurables:
        if type(settings).__name__ == "GpuMem":
            settings.quiet = settings.record_all = True
_gpumem_load()
del _gpumem_load
"""
LEVELS = "__import__('gpumem')._gpumem.device_levels()"
SESSION = "__import__('gpumem').recording()._position()[0]"
DISABLED = "__import__('gpumem')._gpumem._is_disabled()"
SAVE = "__import__('gpumem').recording().save({path!r})"

COLOUR = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Choice:
    """How a notebook is run."""

    n_repeats: int = 1
    cells: tuple[str, ...] = ()
    """Cells to repeat: ids, tags, or numbers as in ``In [5]``."""
    kernel: str | None = None
    timeout_seconds: int | None = None
    allow_errors: bool = False


@dataclass(frozen=True)
class Failed:
    """A cell that raised an error."""

    execution_count: int | None
    cell_id: str | None
    error: str
    """The error's type."""
    message: str
    traceback: str


@dataclass
class Ran:
    """The outcome."""

    notebook: Any
    """The notebook with its outputs."""
    recording: Recording | None = None
    failed: Failed | None = None
    died: str | None = None
    """How the kernel died, and in which cell."""
    lost: str | None = None
    """Why there is no recording."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""


def run(path: Path, choice: Choice, progress: Progress) -> Ran:
    """Run a notebook from its folder.

    Raises:
        CommandError: it cannot be run at all.
    """
    try:
        import nbformat
        from nbclient import NotebookClient
    except ImportError as error:
        message = f"running notebooks needs {error.name}\nhint: {INSTALL}"
        raise CommandError(message) from None
    try:
        notebook = nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise CommandError(f"there is no notebook {path}") from None
    except (OSError, ValueError, nbformat.ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise CommandError(f"{path} is not a notebook: {reason}") from None
    options = {} if choice.kernel is None else {"kernel_name": choice.kernel}
    client = NotebookClient(
        notebook,
        timeout=choice.timeout_seconds,
        interrupt_on_timeout=True,
        allow_errors=choice.allow_errors,
        resources={"metadata": {"path": str(path.parent.resolve())}},
        extra_arguments=["--log-level=ERROR"],
        **options,
    )
    return _Runner(client, path, choice, progress).run()


class _Runner:
    def __init__(self, client: Any, path: Path, choice: Choice, progress: Progress) -> None:
        self._client = client
        self._path = path
        self._choice = choice
        self._progress = progress
        self._ran = Ran(client.nb)
        self._is_in_cell = False
        self._interrupting: asyncio.Task[None] | None = None
        cells = enumerate(client.nb.cells)
        self._cells = [(idx, it) for idx, it in cells if it.cell_type == "code"]

    def run(self) -> Ran:
        repeated = self._repeated()
        try:
            with ExitStack() as kernel:
                self._start(kernel)
                self._load()
                session = self._answer(SESSION)
                with self._interruptible():
                    self._run_cells(repeated)
                if self._ran.died is None:
                    self._client.set_widgets_metadata()
                    self._save()
        finally:
            self._progress.done()
        if self._ran.recording is None and isinstance(session, str):
            self._recover(session)
        return self._ran

    def _start(self, kernel: ExitStack) -> None:
        # Jupyter's servers name the notebook so; the session is kept under it.
        environment = os.environ | {NOTEBOOK: str(self._path.resolve())}
        try:
            kernel.enter_context(self._client.setup_kernel(env=environment))
        except Exception as error:
            hint = "hint: `jupyter kernelspec list` lists the kernels, --kernel names another one"
            name = self._client.kernel_name
            raise CommandError(f"the kernel {name} cannot start: {error}\n{hint}") from None

    def _load(self) -> None:
        reply = self._execute(LOAD)
        kernel = self._client.kernel_name
        if reply["status"] != "ok":
            reason = f"{reply.get('ename')}: {reply.get('evalue')}"
            hint = f"hint: install jupyter-gpumem in the environment of the kernel {kernel}"
            raise CommandError(f"gpumem cannot be loaded in the kernel: {reason}\n{hint}")
        if self._answer(DISABLED) is True:
            raise CommandError("nothing is recorded: GPUMEM_DISABLE is set")

    def _run_cells(self, repeated: dict[int, int]) -> None:
        n_cells = len(self._cells)
        for number, (idx, cell) in enumerate(self._cells, 1):
            for nth in range(repeated.get(idx, 1)):
                again = f" run {nth + 1}" if nth else ""
                name = f"[{number}/{n_cells}]{again} {_gpumem._telling_line(cell.source)}"
                self._progress.begins(name)
                # What the notebook keeps is the first run.
                run = cell if nth == 0 else type(cell)(cell)
                if not self._ran_cell(run, idx) or self._ran.interrupted:
                    return
                self._client.nb.cells[idx] = cell
                self._progress.ended(f"{name} · {self._levels()}")

    def _ran_cell(self, cell: Any, idx: int) -> bool:
        from nbclient.exceptions import CellExecutionError

        self._is_in_cell = True
        try:
            self._client.execute_cell(cell, idx)
        except CellExecutionError as error:
            failed, message = error.ename, error.evalue
            # nbclient interrupts a cell that takes too long.
            is_late = self._choice.timeout_seconds is not None and not self._ran.interrupted
            if failed == "KeyboardInterrupt" and is_late:
                seconds = self._choice.timeout_seconds
                failed, message = "Timeout", f"the cell took longer than {seconds} s"
            self._fail(cell, failed, message, COLOUR.sub("", str(error)))
        except RuntimeError as error:
            self._die(cell, idx, error)
        else:
            return True
        finally:
            self._is_in_cell = False
        return False

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let Ctrl-C interrupt the cell, as in a notebook, so that the kernel still answers.

        A second one ends the command.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        usual = signal.getsignal(signal.SIGINT)

        def interrupt(*_: object) -> None:
            signal.signal(signal.SIGINT, usual)
            self._ran.interrupted = True
            # Between cells no loop runs, and there is no cell to interrupt.
            with suppress(RuntimeError):
                loop = asyncio.get_running_loop()
                loop.call_soon_threadsafe(self._interrupt, loop)

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)

    def _interrupt(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._is_in_cell:
            self._interrupting = loop.create_task(self._client.km.interrupt_kernel())

    def _fail(self, cell: Any, error: str, message: str, traceback: str) -> None:
        count = cell.get("execution_count")
        self._ran.failed = Failed(count, cell.get("id"), error, message, traceback)

    def _die(self, cell: Any, idx: int, error: Exception) -> None:
        number = next(n for n, (own, _) in enumerate(self._cells, 1) if own == idx)
        process = getattr(getattr(self._client.km, "provisioner", None), "process", None)
        code = None if process is None else process.poll()
        how = str(error) if code is None else _ending(code)
        self._ran.died = f"{how}, in cell {number}: {_gpumem._telling_line(cell.source)}"

    def _save(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumem-") as folder:
            path = Path(folder) / "recording"
            try:
                reply = self._execute(SAVE.format(path=str(path)))
                if reply["status"] == "ok":
                    self._ran.recording = Recording.from_bytes(path.read_bytes())
                else:
                    self._ran.lost = f"{reply.get('ename')}: {reply.get('evalue')}"
            except (OSError, RuntimeError, GpuMemError, Empty) as error:
                self._ran.lost = str(error) or "the kernel does not answer"

    def _recover(self, session: str) -> None:
        """Read what the kernel kept on the disk before it died."""
        try:
            self._ran.recording = _gpumem._stored_recording(session[:ID_LENGTH])
        except (KeyError, GpuMemError) as error:
            self._ran.lost = str(error.args[0]).partition(": %gpumem")[0]

    def _levels(self) -> str:
        """Return what the kernel holds of each accelerator, or of the host if there is none."""
        levels = self._answer(LEVELS)
        if not isinstance(levels, list):
            return "levels are not known"
        on_devices = [it for it in levels if not it[1]] or levels
        known = [(label, allocated or used) for label, _, allocated, _, used in on_devices]
        shown = [f"{label} {_gpumem.bytes_text(n)}" for label, n in known if n is not None]
        return ", ".join(shown) or "levels are not known"

    def _answer(self, expression: str) -> object:
        """Return the value of an expression in the kernel; None if there is no answer."""
        with suppress(Exception):
            reply = self._execute("", {"it": expression})
            return ast.literal_eval(reply["user_expressions"]["it"]["data"]["text/plain"])
        return None

    def _execute(self, code: str, expressions: dict[str, str] | None = None) -> Any:
        """Execute code that is no cell: silent code triggers no events, and is not recorded."""
        from nbclient.util import run_sync

        interactive = run_sync(self._client.kc.execute_interactive)
        reply = interactive(
            code,
            silent=True,
            store_history=False,
            user_expressions=expressions,
            allow_stdin=False,
            timeout=PATIENCE_SECONDS,
            output_hook=lambda _message: None,
        )
        return reply["content"]

    def _repeated(self) -> dict[int, int]:
        """Return how often cells run, by their index."""
        n_repeats, named = self._choice.n_repeats, set(self._choice.cells)
        found, chosen = set(), {}
        for number, (idx, cell) in enumerate(self._cells, 1):
            tags = cell.metadata.get("tags", [])
            names = {str(number), cell.get("id"), *tags} & {*named, REPEAT_TAG}
            if names:
                found |= names
                chosen[idx] = n_repeats
        if missing := sorted(named - found):
            message = f"{self._path} has no cell {', '.join(missing)}"
            hint = "hint: --cell takes a cell's id, a tag, or its number among the code cells"
            raise CommandError(f"{message}\n{hint}")
        if n_repeats > 1 and not chosen:
            hint = f"hint: tag cells with `{REPEAT_TAG}`, or name them: --cell 5"
            raise CommandError(f"--repeat: {self._path} has no cell to repeat\n{hint}")
        return chosen


def _ending(code: int) -> str:
    if code >= 0:
        return f"the kernel ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    reason = ", perhaps by the system because memory ran out" if name == "SIGKILL" else ""
    return f"the kernel was killed by {name}{reason}"
