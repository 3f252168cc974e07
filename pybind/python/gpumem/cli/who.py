"""``who``: processes on the GPUs, and the notebooks whose kernels they are."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from gpumem.cli import exits, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

ABOUT = """Show which processes use the GPUs, whose they are, which notebooks they belong to, and
which nobody seems to use any more. It ends no process."""

EXAMPLES = """examples:
  jupyter gpumem who
  jupyter gpumem who --json"""


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: Namespace) -> int:
    """Print the table."""
    from gpumem import who

    found = who()
    if options.json:
        print(terminal.json_of([asdict(process) for process in found]))
    else:
        print(found.text(terminal.width()).replace("%gpumem", "jupyter gpumem"))
    return exits.OK
