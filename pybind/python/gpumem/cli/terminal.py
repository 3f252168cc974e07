"""Output of commands: results on standard output, progress on standard error."""

from __future__ import annotations

import json
import shutil
import sys

from gpumem import _gpumem

PLAIN_WIDTH = 100


def width() -> int:
    """Return how many columns a line has: those of the terminal, or 100."""
    if not sys.stdout.isatty():
        return PLAIN_WIDTH
    return shutil.get_terminal_size().columns


def plain(text: str) -> str:
    """Return a text as one line that a terminal can show, and that is no command of a CI job."""
    return _gpumem._printable_report(_gpumem._printable(text))


def line(text: str, limit: int | None = None) -> str:
    """Return the same with single blanks, cut to a number of columns."""
    shown = plain(" ".join(text.split()))
    if limit is None or len(shown) <= limit:
        return shown
    return f"{shown[: limit - 1]}…"


def lines(text: str) -> str:
    """Return a text of several lines, such as a traceback."""
    return _gpumem._printable_report(text)


def json_of(content: object) -> str:
    """Return JSON as commands print it."""
    return json.dumps(content, indent=2, ensure_ascii=False)


class Progress:
    """One line for each cell; in a terminal, one that is rewritten."""

    def __init__(self, *, quiet: bool) -> None:
        """Print nothing if ``quiet``."""
        self._quiet = quiet
        self._rewrites = sys.stderr.isatty()
        self._columns = shutil.get_terminal_size().columns if self._rewrites else PLAIN_WIDTH

    def begins(self, text: str) -> None:
        """Show what runs now."""
        if self._rewrites and not self._quiet:
            self._rewrite(text)

    def ended(self, text: str) -> None:
        """Show what has run."""
        if self._quiet:
            return
        if self._rewrites:
            self._rewrite(text)
        else:
            print(line(text, self._columns), file=sys.stderr, flush=True)

    def done(self) -> None:
        """Leave the line clear for what follows."""
        if self._rewrites and not self._quiet:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _rewrite(self, text: str) -> None:
        shown = line(text, self._columns - 1)
        print(f"\r\x1b[K{shown}", end="", file=sys.stderr, flush=True)
