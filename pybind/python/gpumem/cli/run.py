"""``run``: a notebook, a script or a module, recorded."""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

from gpumem.cli import exits, files, loops, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gpumem.cli.notebooks import Choice, Ran
    from gpumem.types import Recording

ABOUT = """Run a notebook, a script or a module, and print the report at its end, also if it fails.
Every cell of a notebook is recorded, and the notebook needs no change. A script is one run:
gpumem.steps, gpumem.mark and gpumem.record in it, or --loop, tell what its steps are."""

EXAMPLES = """examples:
  jupyter gpumem run train.ipynb
  jupyter gpumem run train.ipynb -o executed.ipynb --html report.html
  jupyter gpumem run train.ipynb --repeat 10 --cell 5
  jupyter gpumem run --loop train.py:12 train.py --epochs 3
  jupyter gpumem run -m package.train --epochs 3
  torchrun --nproc-per-node 4 -m gpumem run --store job train.py

Options of gpumem precede the script: what follows it is the script's own. Its report goes to
standard error."""

OF_NOTEBOOKS = {
    "output": "-o",
    "repeat": "--repeat",
    "cell": "--cell",
    "kernel": "--kernel",
    "timeout": "--timeout",
    "allow_errors": "--allow-errors",
}


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("target", metavar="NOTEBOOK|SCRIPT", nargs="?", help="what to run")
    parser.add_argument("arguments", nargs=REMAINDER, metavar="ARGS", help="of the script")
    parser.add_argument("-m", dest="module", nargs=REMAINDER, metavar="MODULE", help="run a module")
    parser.add_argument(
        "--loop",
        metavar="FILE:LINE",
        type=_place,
        help="script: a step ends each time this line is reached (Python 3.12)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="notebook: write it with outputs")
    parser.add_argument("--allow-errors", action="store_true", help="notebook: go on after errors")
    add_kernel(parser)
    parser.add_argument("--html", metavar="FILE", help="write the report as one page")
    parser.add_argument(
        "--store",
        metavar="FOLDER",
        help="script: keep the session in that folder, as one rank of a job (see `report FOLDER`)",
    )
    parser.add_argument("--save", metavar="FILE", help="write the recording, for later commands")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    files.add_force(parser)


def add_kernel(parser: ArgumentParser) -> None:
    """Add the options on how notebooks are run."""
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=_count,
        help="notebook: run cells with the tag `gpumem-repeat`, or of --cell, N times each",
    )
    parser.add_argument(
        "--cell",
        action="append",
        metavar="CELL",
        help="notebook: a cell to repeat: its id, a tag, or its number among the code cells",
    )
    parser.add_argument("--kernel", metavar="NAME", help="notebook: another kernel than its own")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_count, help="notebook: of each cell (default: none)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress")


def choice(options: Namespace) -> Choice:
    """Return how notebooks are run."""
    from gpumem.cli.notebooks import Choice

    if options.cell and options.repeat is None:
        raise exits.CommandError("--cell needs --repeat N")
    return Choice(
        options.repeat or 1,
        tuple(options.cell or ()),
        options.kernel,
        options.timeout,
        getattr(options, "allow_errors", False),
    )


def run(options: Namespace) -> int:
    """Run what is named; return its exit code."""
    if (options.target is None) == (not options.module):
        raise exits.CommandError("run needs a notebook, a script, or -m MODULE")
    files.check_targets(options, "output", "html", "save")
    if options.target is not None and Path(options.target).suffix == ".ipynb":
        return _run_notebook(options)
    return _run_program(options)


def _run_notebook(options: Namespace) -> int:
    from gpumem.cli import notebooks

    if options.loop is not None:
        raise exits.CommandError("--loop is for scripts\nhint: use gpumem.steps in the notebook")
    if options.store is not None:
        raise exits.CommandError("--store is for scripts\nhint: set c.GpuMem.store for notebooks")
    path = Path(options.target)
    ran = notebooks.run(path, choice(options), terminal.Progress(quiet=options.quiet))
    if options.output is not None:
        import nbformat

        files.write(options.output, nbformat.writes(ran.notebook))
    if ran.recording is None:
        print(terminal.line(f"there is no report: {ran.lost}"), file=sys.stderr)
    else:
        _show(options, ran.recording, to_stderr=False)
    return _ended(ran)


def _ended(ran: Ran) -> int:
    if ran.died is not None:
        print(terminal.line(ran.died), file=sys.stderr)
        return exits.KERNEL_DIED
    if ran.failed is not None:
        failed = ran.failed
        print(f"\n{terminal.lines(failed.traceback)}", file=sys.stderr)
    if ran.interrupted:
        print("interrupted by Ctrl-C", file=sys.stderr)
        return exits.INTERRUPTED
    if ran.failed is not None:
        number, reason = failed.execution_count, f"{failed.error}: {failed.message}"
        print(terminal.line(f"In [{number}] failed: {reason}"), file=sys.stderr)
        return exits.CELL_FAILED
    return exits.OK if ran.recording is not None else exits.WRONG


def _run_program(options: Namespace) -> int:
    from gpumem import _gpumem, recording
    from gpumem.cli import scripts

    given = [flag for name, flag in OF_NOTEBOOKS.items() if getattr(options, name)]
    if given:
        raise exits.CommandError(f"{given[0]} is for notebooks")
    if _gpumem._is_disabled():
        raise exits.CommandError("nothing is recorded: GPUMEM_DISABLE is set")
    if options.module:
        name, *arguments = options.module
        program = scripts.of_module(name)
    else:
        program, arguments = scripts.of_file(options.target), options.arguments
    code = scripts.run(program, arguments, options.loop, options.store)
    sys.stdout.flush()
    if options.store is None or options.json:
        _show(options, recording(), to_stderr=True)
    else:
        _write(options, recording())
    return code


def _show(options: Namespace, recording: Recording, *, to_stderr: bool) -> None:
    from gpumem import report

    shown = report(recording)
    if options.json:
        print(shown.to_json())
    else:
        print(shown.text(terminal.width()), file=sys.stderr if to_stderr else sys.stdout)
    _write(options, recording)


def _write(options: Namespace, recording: Recording) -> None:
    if options.save is not None:
        files.write(options.save, recording.to_bytes())
    if options.html is not None:
        from gpumem import report, widget

        files.write(options.html, widget.html(report(recording)))
    for path in (options.output, options.save, options.html):
        if path is not None:
            print(files.wrote(path), file=sys.stderr)


def _place(text: str) -> tuple[str, int]:
    try:
        return loops.parsed(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)
