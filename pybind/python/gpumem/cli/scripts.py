"""Runs a script or a module as Python does, as one recorded run."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem
from gpumem.cli import loops
from gpumem.cli.exits import CommandError

if TYPE_CHECKING:
    from types import CodeType

NOTEBOOK = "JPY_SESSION_NAME"


@dataclass(frozen=True)
class Program:
    """The program that is run."""

    name: str
    code: CodeType
    source: str
    module: ModuleType
    folder: str
    """The first entry of Python's search path."""
    argv0: str


def of_file(path: str) -> Program:
    """Return the program in a file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from None
    module = ModuleType("__main__")
    module.__file__ = path
    code = _compiled(content, path)
    source = importlib.util.decode_source(content)
    folder = str(Path(path).resolve().parent)
    return Program(Path(path).name, code, source, module, folder, path)


def of_module(name: str) -> Program:
    """Return the program that ``python -m NAME`` runs."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise CommandError(f"cannot run the module {name}: {error}") from None
    finally:
        sys.path.remove(folder)
    loader: Any = None if spec is None else spec.loader
    if spec is None or not hasattr(loader, "get_code"):
        raise CommandError(f"there is no module {name} to run")
    try:
        code = loader.get_code(spec.name)
        source = loader.get_source(spec.name) or ""
    except (ImportError, SyntaxError) as error:
        raise CommandError(f"cannot run the module {name}: {error}") from None
    if code is None:
        raise CommandError(f"the module {name} has no Python code")
    module = ModuleType("__main__")
    module.__spec__, module.__loader__, module.__package__ = spec, loader, spec.parent
    module.__file__ = spec.origin
    return Program(name, code, source, module, folder, spec.origin or name)


def run(
    program: Program, arguments: list[str], loop: tuple[str, int] | None, store: str | None
) -> int:
    """Run a program; return its exit code. An error prints its traceback, as Python does.

    The session is kept in the folder ``store``, by default in Jupyter's.
    """
    with tempfile.TemporaryDirectory(prefix="gpumem-") as profile:
        begin, end = _recorder(program, profile, store)
        sys.argv = [program.argv0, *arguments]
        # What Python put there for gpumem itself.
        sys.path[0] = program.folder
        with loops.marked(loop):
            begin()
            try:
                exec(program.code, program.module.__dict__)  # noqa: S102 (what it is for)
            except SystemExit as leaving:
                code = _code_of(leaving)
                end(leaving if code else None)
                return code
            except BaseException as error:
                end(error)
                _print(error)
                return 130 if isinstance(error, KeyboardInterrupt) else 1
            end(None)
            return 0


def _recorder(program: Program, profile: str, store: str | None) -> tuple[Any, Any]:
    """Return what begins and what ends the run.

    A shell without history or prompt stands for it: its events are what records a cell, with its
    source, the names that hold memory, and who held it when memory ran out.
    """
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        """The script's standard output stays its own. At its end comes the report, and no line."""

        is_over = False

        def publish(self, data: dict[str, Any], *_: object, **__: object) -> None:
            if not self.is_over:
                print(data.get("text/plain", ""), file=sys.stderr)

    config = Config()
    config.HistoryManager.enabled = False
    config.GpuMem.record_all = config.GpuMem.quiet = True
    if store is not None:
        config.GpuMem.store = str(Path(store).absolute())
    hook = sys.excepthook
    shell = InteractiveShell(
        config=config,
        user_module=program.module,
        user_ns=program.module.__dict__,
        ipython_dir=profile,
        display_pub_class=Publisher,
    )
    sys.excepthook = hook
    sys.modules["__main__"] = program.module
    usual = os.environ.get(NOTEBOOK)
    os.environ[NOTEBOOK] = program.argv0
    try:
        _gpumem.load_ipython_extension(shell)
    finally:
        del os.environ[NOTEBOOK]
        if usual is not None:
            os.environ[NOTEBOOK] = usual
    label = program.name.replace('"', "'").replace("\n", " ")
    cell = f'%%gpumem --label "{label}"\n{program.source}'
    info = ExecutionInfo(cell, False, False, True, None)  # noqa: FBT003 (as IPython makes it)
    # The name with its line in a report.
    info.program_file = Path(program.argv0).name  # type: ignore[attr-defined]

    def begin() -> None:
        shell.events.trigger("pre_run_cell", info)

    def end(error: BaseException | None) -> None:
        Publisher.is_over = True
        result = ExecutionResult(info)
        result.error_in_exec = error
        shell.events.trigger("post_run_cell", result)

    return begin, end


def _print(error: BaseException) -> None:
    """Print a traceback without our own frames."""
    shown = error.__traceback__
    while shown is not None and shown.tb_frame.f_code.co_filename == __file__:
        shown = shown.tb_next
    traceback.print_exception(type(error), error, shown)


def _code_of(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    print(leaving.code, file=sys.stderr)
    return 1


def _compiled(content: bytes, path: str) -> CodeType:
    try:
        return compile(content, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CommandError(f"{path} is not a Python program: {error}") from None
