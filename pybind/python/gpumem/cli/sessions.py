"""``sessions``: those that are kept on the disk."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from gpumem.cli import exits, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

ABOUT = """List the sessions that are kept on the disk, the newest first: which notebook, when, how
it ended, and its worst finding. The ids are for the other commands."""

EXAMPLES = """examples:
  jupyter gpumem sessions
  jupyter gpumem sessions --json"""


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--all", action="store_true", help="not only the latest 20")
    parser.add_argument("--json", action="store_true", help="print all as JSON")


def run(options: Namespace) -> int:
    """Print the list."""
    from gpumem import _gpumem, sessions
    from gpumem._sessions import SHOWN

    if options.json:
        print(terminal.json_of([asdict(session) for session in sessions()]))
        return exits.OK
    text = _gpumem._sessions_text(sys.maxsize if options.all else SHOWN, terminal.width())
    print(text.replace("%gpumem sessions --all", "--all lists them"))
    return exits.OK
