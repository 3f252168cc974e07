"""``report``: what was recorded, in any form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpumem.cli import exits, files, opened, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gpumem._gpumem import OtherFile
    from gpumem.types import Report

ABOUT = """Show the report of a recording: which cells grew memory, whether they leak, and every
run; or of what another program wrote: a memory snapshot of PyTorch, a trace or memory timeline of
its profiler or a folder of traces, a log of nvidia-smi, an export of Nsight Systems or stormlog, a
memory profile of JAX; or of the ranks of a job, or the saved workers of a dask cluster, joined:
which one failed or grew first. Without an option it prints text."""

EXAMPLES = """examples:
  jupyter gpumem report last
  jupyter gpumem report 3f2a --html report.html
  jupyter gpumem report before.gpumem --csv > runs.csv
  jupyter gpumem report last --perfetto last.trace.json
  jupyter gpumem report snapshot.pickle --html snapshot.html
  jupyter gpumem report trace.json.gz --by function --notebook train.ipynb
  jupyter gpumem report trace.json.gz --html trace.html
  jupyter gpumem report nvidia-smi.csv
  jupyter gpumem report job/
  jupyter gpumem report job/ --html job.html
  jupyter gpumem report last --processes --html processes.html"""

FILES = ("html", "png", "svg", "perfetto")
TEXTS = ("text", "json", "csv", "markdown")
GROUPS = ("name", "shapes", "module", "function")


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("recording", metavar="FILE|SESSION", nargs="+", help=opened.NAMED)
    for name, what in (
        ("html", "the report as one page that needs no network"),
        ("png", "a picture"),
        ("svg", "a picture that can be enlarged"),
        ("perfetto", "a trace for ui.perfetto.dev and chrome://tracing"),
    ):
        parser.add_argument(f"--{name}", metavar="FILE", help=f"write {what}")
    texts = parser.add_mutually_exclusive_group()
    for name, what in (
        ("text", "text: the default, if nothing is written"),
        ("json", "everything as JSON"),
        ("csv", "a row for each run and device, for a spreadsheet"),
        ("markdown", "the conclusion as Markdown"),
    ):
        texts.add_argument(
            f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}"
        )
    parser.add_argument(
        "--by",
        choices=GROUPS,
        help="of a trace: group operators by name (the default), shapes of inputs, module, "
        "or Python function",
    )
    parser.add_argument(
        "--processes",
        action="store_true",
        help="of a session: its child processes side by side",
    )
    parser.add_argument(
        "--notebook",
        metavar="FILE",
        help="of a memory snapshot or a trace: the .ipynb whose cells are named in it",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the text to a file instead")
    files.add_force(parser)


def run(options: Namespace) -> int:
    """Show or write a report."""
    from gpumem import report
    from gpumem._report import processes_of
    from gpumem.types import Recording, TorchTrace

    files.check_targets(options, *FILES, "output")
    found = opened.all_of(options.recording, options.notebook)
    if options.by is not None and not isinstance(found, TorchTrace):
        raise exits.CommandError("only a trace of PyTorch's profiler has --by")
    if options.processes:
        found = processes_of(found)
    if not isinstance(found, Recording):
        return _show_other(found, options)
    shown = report(found)
    written = [name for name in FILES if getattr(options, name) is not None]
    for name in written:
        path = getattr(options, name)
        files.write(path, _content(shown, name))
        print(files.wrote(path))
    if written and options.form is None and options.output is None:
        return exits.OK
    files.put(_text(shown, options.form or "text"), options.output)
    return exits.OK


def _show_other(found: OtherFile, options: Namespace) -> int:
    """Show what another program wrote: as text, JSON, or the page that some of it has."""
    from gpumem import _file_page
    from gpumem.types import TorchTrace

    forms = ["--text", "--json"]
    if found._page_title is not None:
        forms.insert(0, "--html")
    chosen = [f"--{name}" for name in FILES if getattr(options, name) is not None]
    chosen += [f"--{options.form}"] if options.form in {"csv", "markdown"} else []
    refused = [name for name in chosen if name not in forms]
    if refused:
        message = f"{found._kind} has no {refused[0]}"
        raise exits.CommandError(f"{message}\nhint: use {', '.join(forms[:-1])} or {forms[-1]}")
    if options.html is not None:
        files.write(options.html, _file_page.html(found, Path(options.recording[0])))
        print(files.wrote(options.html))
        if options.form is None and options.output is None:
            return exits.OK
    if options.form == "json":
        text = found.to_json()
    elif isinstance(found, TorchTrace):
        text = found.text(terminal.width(), options.by or "name")
    else:
        text = found.text(terminal.width())
    files.put(text, options.output)
    return exits.OK


def _content(shown: Report, form: str) -> bytes | str:
    if form == "perfetto":
        return shown.recording._report_chrome_trace()
    if form == "png":
        return shown.png()
    if form == "svg":
        from gpumem._report import PICTURE_WIDTH

        return shown.recording._report_svg(PICTURE_WIDTH, dark=False)
    from gpumem import widget

    return widget.html(shown)


def _text(shown: Report, form: str) -> str:
    match form:
        case "json":
            return shown.to_json()
        case "csv":
            return shown.recording._report_csv().removesuffix("\r\n")
        case "markdown":
            return shown.recording._report_markdown()
        case _:
            return shown.text(terminal.width())
