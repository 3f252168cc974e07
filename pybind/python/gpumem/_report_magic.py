"""What `%gpumem_report` shows: a report, a comparison, a page of processes or a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.display import display, publish_display_data

from gpumem import _gpumem
from gpumem._magic_arguments import refusal
from gpumem._report import Report, processes_of, report
from gpumem._sessions import open_session
from gpumem._table import NOTEBOOK_WIDTH
from gpumem._verdicts import Comparison, compare_with

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from gpumem._gpumem import OtherFile


def show(options: Namespace, say: Callable[[str], object]) -> None:
    """Show what the options name: in the notebook, as a page in a file, or as text by ``say``."""
    shown = _shown(options)
    if isinstance(shown, _gpumem.OtherFile):
        _show_file(shown, options, say)
        return
    if options.html is not None:
        _save_page(shown.save, Path(options.html).expanduser(), say)
    if options.text:
        say(shown.text())
    elif options.html is None:
        display(shown)
        _mention_processes(shown, options, say)


def _shown(options: Namespace) -> Report | Comparison | OtherFile:
    """Return the report, the comparison or the file that the options ask for."""
    if options.named is not None and options.session is not None:
        reason = f"--session cannot be combined with {options.named!r}"
        raise refusal("%gpumem_report", reason)
    if options.compare is not None and options.processes:
        raise refusal("%gpumem_report", "a comparison has no --processes")
    try:
        found = _named(options)
        if options.compare is not None:
            return compare_with(_expanded(options.compare), found)
        if options.processes:
            return processes_of(_gpumem.recording() if found is None else found)
        return found if isinstance(found, _gpumem.OtherFile) else report(found)
    except KeyError as error:
        raise refusal("%gpumem_report", error.args[0]) from None
    except _gpumem.GpuMemError as error:
        raise refusal("%gpumem_report", str(error)) from None
    except OSError as error:
        reason = f"cannot read {error.filename!r}: {error.strerror or error}"
        raise refusal("%gpumem_report", reason) from None


def _named(options: Namespace) -> _gpumem.Recording | OtherFile | None:
    """Return what the options name; None is this session."""
    if options.named is not None:
        found: _gpumem.Recording | OtherFile = _gpumem._open(_expanded(options.named))
        return found
    return None if options.session is None else open_session(options.session)


def _expanded(name: str) -> str:
    return str(Path(name).expanduser()) if name.startswith("~") else name


def _written(page: str, path: Path) -> None:
    _gpumem._write_file(path, page.encode())


def _mention_processes(
    shown: Report | Comparison, options: Namespace, say: Callable[[str], object]
) -> None:
    """Mention child processes below the report: its page does not show them."""
    n = len(shown.recording._processes()) if isinstance(shown, Report) else 0
    if n > 0:
        children = "1 child process" if n == 1 else f"{n} child processes"
        session = f" --session {options.session}" if options.session else ""
        of = f" {options.named}" if options.named else session
        say(f"{children}: `%gpumem_report{of} --processes` shows them")


def _show_file(found: OtherFile, options: Namespace, say: Callable[[str], object]) -> None:
    """Show what is no report: its page if it has one, or else its text."""
    if found._page_title is None and options.html is not None:
        reason = f"{found._kind} has no --html: it is printed as text"
        raise refusal("%gpumem_report", reason)
    is_empty = isinstance(found, _gpumem.SessionProcesses) and not len(found)
    if found._page_title is None or (is_empty and options.html is None):
        say(found.text(NOTEBOOK_WIDTH))
        return
    from gpumem import _file_page

    source = Path(options.named or options.session or "this session").expanduser()
    if options.html is not None:
        page = _file_page.html(found, source)
        save = partial(_written, page)
        _save_page(save, Path(options.html).expanduser(), say)
    if options.text:
        say(found.text(NOTEBOOK_WIDTH))
    elif options.html is None:
        publish_display_data(_file_page.mime_bundle(found, source))


def _save_page(save: Callable[[Path], None], path: Path, say: Callable[[str], object]) -> None:
    if not path.suffix:
        path = path.with_name(f"{path.name}.html")
    if path.suffix.lower() != ".html":
        reason = f"--html writes a page: end {path.name!r} in .html"
        raise refusal("%gpumem_report", reason)
    try:
        save(path)
    except (OSError, _gpumem.GpuMemError) as error:
        raise refusal("%gpumem_report", f"--html: {error}") from None
    except ValueError as error:
        reason = f"--html: {path.name!r} cannot be the name of a file: {error}"
        raise refusal("%gpumem_report", reason) from None
    say(f"wrote {path}")
