"""``jupyter gpumem``: one file for each command."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "run": "run a notebook or a script and print its report",
    "check": "run notebooks and fail if one leaks: for CI",
    "report": "show the report of a recording or of a session that is kept",
    "sessions": "list the sessions that are kept on the disk",
    "compare": "compare two recordings or sessions",
    "baseline": "name a recording or a session, to compare later ones with it",
    "who": "show which processes and notebooks use the GPUs",
    "status": "show which sources are read, and where sessions are kept",
    "completion": "print the completion of bash, zsh or fish",
    "issue": "print a session as Markdown for a bug report, without your source",
}
"""Each command and what it does; it is the module of that name."""

READERS = {"report", "sessions", "compare", "baseline", "status", "issue"}
"""Commands that may look for sessions in another folder."""

ABOUT = "Which notebook cell grew GPU memory, is it a leak, and what holds it?"


def main(argv: Sequence[str] | None = None, name: str = "jupyter gpumem") -> int:
    """Run a command; return its exit code."""
    from gpumem.cli import exits

    parser, commands = parsers(name)
    options = parser.parse_args(argv)
    # Options of a notebook may follow its name; those after a script are the script's.
    rest = getattr(options, "arguments", None)
    if rest and options.target.endswith(".ipynb"):
        target, options.target, options.arguments = options.target, None, []
        commands["run"].parse_args([*rest, target], options)
    if options.command is None:
        parser.print_help()
        return exits.OK
    return _run(options, f"{name} {options.command}")


def _run(options: Namespace, name: str) -> int:
    """Run a command; return its exit code, whatever happens."""
    from gpumem import GpuMemError, _gpumem
    from gpumem.cli import exits

    code: int = exits.WRONG
    try:
        _gpumem._keep_in(getattr(options, "store", None) or True, None, platform.node(), [])
        code = importlib.import_module(f"gpumem.cli.{options.command}").run(options)
        sys.stdout.flush()
    except (exits.CommandError, GpuMemError) as error:
        print(f"{name}: {exits.error_text(error)}", file=sys.stderr)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        # What read the output, such as `head`, has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except Exception:
        # Python's own code for it is 1, which is for findings.
        traceback.print_exc()
    return code


def parsers(name: str) -> tuple[ArgumentParser, dict[str, ArgumentParser]]:
    """Return the parser of the whole, and that of each command."""
    from gpumem import __version__
    from gpumem.cli import exits

    kind: Any = RawDescriptionHelpFormatter
    parser = ArgumentParser(name, description=ABOUT, epilog=exits.EXPLAINED, formatter_class=kind)
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(command=None)
    subparsers = parser.add_subparsers(metavar="COMMAND", dest="command", title="commands")
    commands = {}
    for command, purpose in COMMANDS.items():
        module = importlib.import_module(f"gpumem.cli.{command}")
        added = subparsers.add_parser(
            command,
            help=purpose,
            description=module.ABOUT,
            epilog=module.EXAMPLES,
            formatter_class=kind,
        )
        module.add(added)
        if command in READERS:
            added.add_argument("--store", metavar="FOLDER", help="where sessions are kept")
        commands[command] = added
    return parser, commands


__all__ = ["COMMANDS", "main", "parsers"]
