"""``baseline``: a recording by a name of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpumem.cli import exits, opened, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

ABOUT = """Keep a recording under a name, in place of what has that name. Later sessions are
compared with it: by `compare`, `check --against NAME`, and in a notebook
`%gpumem_report --compare NAME`. Without a name, list the baselines."""

EXAMPLES = """examples:
  jupyter gpumem baseline good
  jupyter gpumem baseline good 3f2a
  jupyter gpumem baseline nightly train.gpumem"""


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="what to call it")
    parser.add_argument(
        "recording",
        nargs="?",
        default="last",
        metavar="RECORDING",
        help=f"{opened.NAMED} (default: last)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(options: Namespace) -> int:
    """Keep it, or list all."""
    from gpumem import _gpumem

    if options.name is None:
        names = _gpumem._baseline_names()
        if options.json:
            print(terminal.json_of(names))
        else:
            print(
                "\n".join(map(terminal.line, names))
                or "no baseline yet: `jupyter gpumem baseline NAME` sets one"
            )
        return exits.OK
    name = _gpumem._printable(options.name)
    if not name.strip():
        message = "a baseline needs a name that can be read"
        raise exits.CommandError(message)
    kept = opened.recording(options.recording)
    n_runs = kept._position()[1]
    if not n_runs:
        message = f"{options.recording} has no runs to compare with"
        raise exits.CommandError(message)
    _gpumem._save_baseline(name, kept)
    if options.json:
        print(terminal.json_of({"baseline": name, "runs": n_runs}))
    else:
        runs = "1 run" if n_runs == 1 else f"{n_runs} runs"
        print(terminal.line(f"baseline {name}: {runs} of {options.recording}"))
    return exits.OK
