"""``check``: the gate for CI. Runs notebooks and fails if one leaks."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpumem._sizes import size_bytes
from gpumem.cli import exits, files, opened, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gpumem.cli.gate import Limits, Violation
    from gpumem.cli.notebooks import Ran

ABOUT = """Run notebooks, each in a kernel of its own, and exit with 1 if one leaks or runs out of
memory. The notebooks are not changed. For each finding it prints the cell, the name that holds the
memory, and the line to change."""

EXAMPLES = """examples:
  jupyter gpumem check train.ipynb
  jupyter gpumem check *.ipynb --fail-on leak --peak 6GiB --github
  jupyter gpumem run train.ipynb --save before.gpumem
  jupyter gpumem check train.ipynb --against before.gpumem"""

KINDS = ("leak", "growing", "oom")


@dataclass
class Checked:
    """One notebook and what came of it."""

    path: Path
    exit_code: int
    violations: list[Violation] = field(default_factory=list)
    broken: str | None = None
    """Why it did not run to its end."""
    traceback: str = ""
    failed: int | None = None
    """Jupyter's number of the cell that raised."""
    cells: dict[int, str] = field(default_factory=dict)
    """What the cells that were run are called, by Jupyter's number."""
    ids: dict[int | None, str] = field(default_factory=dict)
    """The id of each cell, by Jupyter's number."""

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        return {
            "notebook": str(self.path),
            "exit_code": self.exit_code,
            "violations": [it.to_dict() for it in self.violations],
            "broken": self.broken,
        }


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    from gpumem.cli.run import add_kernel

    parser.add_argument("notebooks", metavar="NOTEBOOK", nargs="+", help="the notebooks to run")
    parser.add_argument(
        "--fail-on",
        metavar="KINDS",
        type=_kinds,
        default="leak,oom",
        help="""what fails: leak; growing (leaks, and growth that may be one); oom (memory ran out
        and no later run had room). Separate several with commas (default leak,oom)""",
    )
    parser.add_argument(
        "--peak",
        metavar="SIZE",
        type=size,
        help="fail if a device's memory rises above this, such as 6GiB; without a GPU, the host's",
    )
    parser.add_argument(
        "--against",
        metavar="BASELINE",
        help=f"fail if a cell grows more than in a baseline, or does so newly: {opened.NAMED}",
    )
    add_kernel(parser)
    parser.add_argument("--github", action="store_true", help="also print GitHub's annotations")
    parser.add_argument("--junit", metavar="FILE", help="also write the results as JUnit's XML")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    files.add_force(parser)


def run(options: Namespace) -> int:
    """Check every notebook; return the most severe exit code."""
    from gpumem.cli import github, junit, notebooks
    from gpumem.cli.gate import Limits
    from gpumem.cli.run import choice

    if options.github and options.json:
        raise exits.CommandError("--github and --json cannot be used together")
    files.check_targets(options, "junit")
    against = None if options.against is None else opened.recording(options.against)
    limits = Limits(options.fail_on, options.peak, against)
    progress = terminal.Progress(quiet=options.quiet)
    checked = []
    for path in map(Path, options.notebooks):
        ran = notebooks.run(path, choice(options), progress)
        checked.append(_checked(path, ran, limits))
        if not options.json:
            print("\n".join(_lines(checked[-1])), flush=True)
        if options.github:
            print("\n".join(github.commands(checked[-1])), flush=True)
        if ran.interrupted:
            break
    code = max(it.exit_code for it in checked)
    if options.junit is not None:
        files.write(options.junit, junit.document(checked))
    if options.json:
        content = [it.to_dict() for it in checked]
        print(terminal.json_of({"exit_code": code, "notebooks": content}))
    return code


def size(text: str) -> int:
    """Return a size in bytes, for argparse."""
    try:
        return size_bytes(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _kinds(text: str) -> frozenset[str]:
    kinds = frozenset(text.replace(",", " ").split())
    if unknown := sorted(kinds - set(KINDS)):
        raise ArgumentTypeError(f"unknown {', '.join(unknown)}: there is {', '.join(KINDS)}")
    return kinds


def _checked(path: Path, ran: Ran, limits: Limits) -> Checked:
    from gpumem import _gpumem, report
    from gpumem.cli.gate import violations

    found = [] if ran.recording is None else violations(report(ran.recording), limits)
    checked = Checked(path, exits.FOUND if found else exits.OK, found)
    for cell in ran.notebook.cells:
        if cell.cell_type == "code" and (count := cell.get("execution_count")):
            checked.cells[count] = f"In [{count}] {_gpumem._telling_line(cell.source)}"
            checked.ids[count] = cell.get("id")
    if ran.died is not None:
        checked.broken, checked.exit_code = ran.died, exits.KERNEL_DIED
    elif ran.interrupted:
        checked.broken, checked.exit_code = "interrupted by Ctrl-C", exits.INTERRUPTED
        checked.failed = None if ran.failed is None else ran.failed.execution_count
    elif ran.failed is not None:
        failed = ran.failed
        checked.failed = failed.execution_count
        checked.broken = f"In [{failed.execution_count}] failed: {failed.error}: {failed.message}"
        checked.traceback = failed.traceback
        checked.exit_code = exits.CELL_FAILED
    elif ran.recording is None:
        checked.broken, checked.exit_code = f"nothing is known: {ran.lost}", exits.WRONG
    return checked


def _lines(checked: Checked) -> list[str]:
    n_found, path = len(checked.violations), terminal.plain(str(checked.path))
    if checked.exit_code == exits.OK:
        return [f"✓ {path}: nothing found"]
    found = "1 finding" if n_found == 1 else f"{n_found} findings"
    lines = [f"▲ {path}: {found if n_found else 'not run to its end'}"]
    for violation in checked.violations:
        lines += [f"  {text}" for text in violation.lines()]
    if checked.broken is not None:
        lines.append(f"  {terminal.line(checked.broken)}")
        if checked.traceback:
            print(terminal.lines(checked.traceback), file=sys.stderr)
    return lines
