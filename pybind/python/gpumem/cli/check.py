"""``check``: the gate for CI. Runs notebooks and fails if one leaks."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpumem._sizes import size_bytes
from gpumem.cli import exits, files, opened, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gpumem.cli.gate import Limits, Violation
    from gpumem.cli.notebooks import Ran
    from gpumem.types import Recording, Report

ABOUT = """Run notebooks, each in a kernel of its own, and exit with 1 if one leaks or runs out of
memory. The notebooks are not changed. For each finding it prints the cell, the name that holds the
memory, and the line to change."""

EXAMPLES = """examples:
  jupyter gpumem check train.ipynb
  jupyter gpumem check *.ipynb --fail-on leak --peak 6GiB --github
  jupyter gpumem check train.ipynb --allow 3f9a01c2
  jupyter gpumem run train.ipynb --save before.gpumem
  jupyter gpumem check train.ipynb --against before.gpumem"""

# How many earlier sessions of a notebook are searched for a finding.
N_EARLIER = 10


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
    """The names of the cells that ran, by Jupyter's number."""
    ids: dict[int | None, str] = field(default_factory=dict)
    """The id of each cell, by Jupyter's number."""
    allowed: list[Violation] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        return {
            "notebook": str(self.path),
            "exit_code": self.exit_code,
            "violations": [it.to_dict() for it in self.violations],
            "allowed": [it.to_dict() for it in self.allowed],
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
    parser.add_argument(
        "--allow",
        metavar="FINGERPRINT",
        type=fingerprint,
        action="append",
        default=[],
        help="""accept a leak by its id, which stands below it; may be given several times""",
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
    limits = Limits(options.fail_on, options.peak, against, frozenset(options.allow))
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
    matched = {found.fingerprint for it in checked for found in it.allowed}
    unmatched = [it for it in dict.fromkeys(options.allow) if it not in matched]
    if unmatched and not options.json:
        print(f"--allow {', '.join(unmatched)}: no finding has this id", flush=True)
    code = max(it.exit_code for it in checked)
    if options.junit is not None:
        files.write(options.junit, junit.document(checked))
    if options.json:
        content = [it.to_dict() for it in checked]
        result = {"exit_code": code, "notebooks": content, "unmatched_allow": unmatched}
        print(terminal.json_of(result))
    return code


def size(text: str) -> int:
    """Return a size in bytes, for argparse."""
    try:
        return size_bytes(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def fingerprint(text: str) -> str:
    """Return the id of a finding, for argparse."""
    from gpumem.cli.gate import FINGERPRINT

    if FINGERPRINT.fullmatch(text) is None:
        message = f"{text!r} is no id of a finding: it has 8 digits from 0 to f, as 3f9a01c2"
        raise ArgumentTypeError(message)
    return text


def _kinds(text: str) -> frozenset[str]:
    from gpumem.cli.gate import KINDS

    kinds = frozenset(text.replace(",", " ").split())
    if unknown := sorted(kinds - KINDS.keys()):
        raise ArgumentTypeError(f"unknown {', '.join(unknown)}: there is {', '.join(KINDS)}")
    return kinds


def _checked(path: Path, ran: Ran, limits: Limits) -> Checked:
    from gpumem import _gpumem, report
    from gpumem.cli.gate import Judged, dated, judged

    found = Judged() if ran.recording is None else judged(report(ran.recording), limits)
    if found.violations and ran.recording is not None:
        earlier = _earlier(path, ran.recording, limits)
        found.violations = [dated(it, earlier) for it in found.violations]
    code = exits.FOUND if found.violations else exits.OK
    checked = Checked(path, code, found.violations, allowed=found.allowed)
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


def _earlier(path: Path, recording: Recording, limits: Limits) -> list[Report]:
    """Return the reports of the baseline and of the notebook's last sessions that are kept."""
    from gpumem import GpuMemError, open_session, report, sessions

    earlier = [] if limits.against is None else [limits.against]
    own, notebook = recording._position()[0], str(path.resolve())
    kept = [it for it in sessions() if it.notebook == notebook and not own.startswith(it.id)]
    for session in kept[:N_EARLIER]:
        # It may be damaged, or deleted meanwhile.
        with suppress(GpuMemError, KeyError):
            earlier.append(open_session(session.id))
    return [report(it) for it in earlier]


def _lines(checked: Checked) -> list[str]:
    n_found, path = len(checked.violations), terminal.plain(str(checked.path))
    allowed = [f"  allowed  {it.fingerprint}: {it.title} ({it.place})" for it in checked.allowed]
    allowed = [terminal.plain(text) for text in allowed]
    if checked.exit_code == exits.OK:
        return [f"✓ {path}: nothing {'else ' if allowed else ''}found", *allowed]
    found = "1 finding" if n_found == 1 else f"{n_found} findings"
    lines = [f"▲ {path}: {found if n_found else 'not run to its end'}"]
    for violation in checked.violations:
        lines += [f"  {text}" for text in violation.lines()]
    lines += allowed
    if checked.broken is not None:
        lines.append(f"  {terminal.line(checked.broken)}")
        if checked.traceback:
            print(terminal.lines(checked.traceback), file=sys.stderr)
    return lines
