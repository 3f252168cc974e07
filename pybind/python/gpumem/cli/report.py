"""``report``: what was recorded, in any form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpumem.cli import exits, files, opened, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gpumem import Report, TorchSnapshot

ABOUT = """Show the report of a recording: which cells grew memory, whether they leak, and every
run; or of a memory snapshot of PyTorch: who holds what. Without an option it prints text."""

EXAMPLES = """examples:
  jupyter gpumem report last
  jupyter gpumem report 3f2a --html report.html
  jupyter gpumem report before.gpumem --csv > runs.csv
  jupyter gpumem report last --perfetto last.trace.json
  jupyter gpumem report snapshot.pickle --json"""

FILES = ("html", "png", "svg", "perfetto")
TEXTS = ("text", "json", "csv", "markdown")


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("recording", metavar="FILE|SESSION", help=opened.NAMED)
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
    parser.add_argument("-o", "--output", metavar="FILE", help="write the text to a file instead")
    files.add_force(parser)


def run(options: Namespace) -> int:
    """Show or write a report."""
    from gpumem import TorchSnapshot, report

    files.check_targets(options, *FILES, "output")
    found = opened.recording_or_snapshot(options.recording)
    if isinstance(found, TorchSnapshot):
        return _show_snapshot(found, options)
    shown = report(found)
    written = [name for name in FILES if getattr(options, name) is not None]
    for name in written:
        path = getattr(options, name)
        files.write(path, _content(shown, name))
        print(files.wrote(path))
    if written and options.form is None and options.output is None:
        return exits.OK
    _put(_text(shown, options.form or "text"), options)
    return exits.OK


def _show_snapshot(snapshot: TorchSnapshot, options: Namespace) -> int:
    """Show a memory snapshot of PyTorch: it has two of the forms."""
    asked = [name for name in FILES if getattr(options, name) is not None]
    asked += [options.form] if options.form in {"csv", "markdown"} else []
    if asked:
        message = f"a memory snapshot of PyTorch has no --{asked[0]}"
        raise exits.CommandError(f"{message}\nhint: use --text or --json")
    is_json = options.form == "json"
    _put(snapshot.to_json() if is_json else snapshot.text(terminal.width()), options)
    return exits.OK


def _put(text: str, options: Namespace) -> None:
    if options.output is None:
        print(text)
    else:
        files.write(options.output, f"{text}\n")
        print(files.wrote(options.output))


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
