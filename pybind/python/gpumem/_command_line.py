"""The commands of ``jupyter gpumem``: they parse and delegate, as the magics do."""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpumem import _gpumem
from gpumem._company import who
from gpumem._report import Report
from gpumem._sessions import SHOWN, sessions
from gpumem._verdicts import Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE = 0
WRONG_USE = 2
NOT_THERE = 3
EXISTS = 4

EXIT_CODES = """exit codes:
  0  done
  2  wrong arguments
  3  there is no such session or file, or it cannot be read or written
  4  a file exists: --force replaces it"""

# What `report` writes, by the option; texts are printed if no file is named.
PAGES = ("html", "png", "svg")
TEXTS = ("json", "csv", "markdown")


class _RefusalError(Exception):
    """Why a command is not carried out, and its exit code."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _gpumem._keep_in(options.store or True, None, platform.node(), [])
    try:
        options.act(options)
    except _RefusalError as refusal:
        print(f"jupyter gpumem: {refusal}", file=sys.stderr)
        return refusal.code
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jupyter gpumem",
        description="Which notebook cell grew GPU memory, and does it leak? "
        "Sessions are kept on the disk after %%load_ext gpumem in a notebook.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=_gpumem.__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    listed = _command(commands, "sessions", "list the sessions that are kept", _sessions)
    listed.add_argument("--all", action="store_true", help=f"not only the latest {SHOWN}")
    listed.add_argument("--json", action="store_true", help="print JSON")

    shown = _command(commands, "report", "show the report of a session or a recording", _report)
    shown.add_argument(
        "which",
        nargs="?",
        default="last",
        metavar="FILE|SESSION",
        help="a file of gpumem.recording().save(), the beginning of a session's id, or `last`, "
        "the default",
    )
    for name in PAGES:
        shown.add_argument(f"--{name}", metavar="FILE", help=f"write {name.upper()} to a file")
    for name in TEXTS:
        words = f"write {name if name == 'markdown' else name.upper()} to a file, or print it"
        shown.add_argument(f"--{name}", nargs="?", const="-", metavar="FILE", help=words)
    shown.add_argument("--force", action="store_true", help="replace files that exist")

    compared = _command(
        commands, "compare", "compare two sessions, recordings or baselines", _compare
    )
    compared.add_argument("after", metavar="A", help="a session, file or baseline")
    compared.add_argument("before", metavar="B", help="what it is compared with")
    compared.add_argument("--json", action="store_true", help="print JSON")

    users = _command(commands, "who", "list the processes and notebooks on the GPUs", _who)
    users.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    words: str,
    act: object,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    command.add_argument("--store", metavar="FOLDER", help="where the sessions are kept")
    command.set_defaults(act=act)
    return command


def _sessions(options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps([dataclasses.asdict(session) for session in sessions()]))
        return
    n_shown = sys.maxsize if options.all else SHOWN
    print(_gpumem._sessions_text(n_shown, _width()))


def _report(options: argparse.Namespace) -> None:
    shown = Report(_recording(options.which))
    written = {
        name: path for name in (*PAGES, *TEXTS) if (path := getattr(options, name)) is not None
    }
    if not written:
        print(shown.text(_width()))
    for name, path in written.items():
        content = _content(shown, name)
        if path == "-":
            sys.stdout.write(content.decode())
            continue
        target = Path(path)
        if target.exists() and not options.force:
            message = f"{target} exists: --force replaces it"
            raise _RefusalError(message, EXISTS)
        try:
            _gpumem._write_file(target, content)
        except OSError as error:
            raise _RefusalError(str(error), NOT_THERE) from None


def _content(shown: Report, name: str) -> bytes:
    match name:
        case "html":
            from gpumem import widget

            return widget.html(shown).encode()
        case "png":
            return shown.png()
        case "svg":
            return shown.recording._report_svg(880, dark=False).encode()
        case "json":
            return f"{shown.to_json()}\n".encode()
        case "csv":
            return shown.recording._report_csv().encode()
        case _:
            return shown.recording._report_markdown().encode()


def _compare(options: argparse.Namespace) -> None:
    comparison = Comparison(_recording(options.after), _recording(options.before), options.before)
    if options.json:
        print(json.dumps([dataclasses.asdict(change) for change in comparison.changes]))
    else:
        print(comparison.text(_width()))


def _who(options: argparse.Namespace) -> None:
    found = who()
    if options.json:
        print(json.dumps([dataclasses.asdict(process) for process in found]))
    else:
        print(found.text(_width()))


def _recording(which: str) -> _gpumem.Recording:
    """Return what is in a file, in a baseline or in a session."""
    try:
        if Path(which).is_file():
            return _gpumem.load(which)
        if which in _gpumem._baseline_names():
            return _gpumem._baseline_recording(which)
        return _gpumem._stored_recording(which)
    except KeyError as error:
        raise _RefusalError(str(error.args[0]), NOT_THERE) from None
    except (OSError, _gpumem.GpuMemError) as error:
        raise _RefusalError(str(error), NOT_THERE) from None


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns
