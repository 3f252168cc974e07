"""``compare``: what changed between two recordings."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from gpumem.cli import exits, files, opened, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gpumem.types import OtherFile

ABOUT = """Compare two recordings: for each growing cell, whether it is fixed, better, the same,
worse or new; or two memory snapshots of PyTorch: which stacks grew and which shrank; or two of its
profiler's traces, two logs, two memory profiles of JAX: which levels and owners are other."""

EXAMPLES = """examples:
  jupyter gpumem compare before.gpumem last
  jupyter gpumem compare 3f2a 91bc --html comparison.html
  jupyter gpumem compare epoch1.pickle epoch2.pickle"""


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("before", metavar="BEFORE", help=opened.NAMED)
    parser.add_argument("after", metavar="AFTER", help="likewise")
    parser.add_argument("--html", metavar="FILE", help="write one page")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    files.add_force(parser)


def run(options: Namespace) -> int:
    """Compare, and print or write it."""
    from gpumem import report
    from gpumem._verdicts import compared
    from gpumem.types import OtherFile

    files.check_targets(options, "html")
    before, after = opened.opened(options.before), opened.opened(options.after)
    shown = compared(after, before, options.before)
    if isinstance(shown, OtherFile):
        return _show_change(shown, options)
    if options.json:
        print(terminal.json_of([asdict(change) for change in shown.changes]))
    elif options.html is None:
        print(shown.text(terminal.width()))
    if options.html is not None:
        from gpumem import widget

        files.write(options.html, widget.html(report(shown.recording), shown))
        if not options.json:
            print(files.wrote(options.html))
    return exits.OK


def _show_change(change: OtherFile, options: Namespace) -> int:
    if options.html is not None:
        message = f"{change._kind} has no --html"
        raise exits.CommandError(f"{message}\nhint: use --json, or no option for text")
    print(change.to_json() if options.json else change.text(terminal.width()))
    return exits.OK
