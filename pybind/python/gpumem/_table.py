"""Tables that a notebook shows: HTML without colours, so that they follow its theme."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOTEBOOK_WIDTH = 100


class TextResult:
    """A result whose ``str`` is its text, which IPython prints; a notebook shows a table."""

    def text(self) -> str:
        """Return it as plain text."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the text."""
        return self.text()

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:  # noqa: ANN401, ARG002, FBT001 (IPython's)
        printer.text(self.text())


LEFT = ' style="text-align: left"'


def size(n_bytes: int | None) -> str:
    """Return a number of bytes, which may be negative, as people read it."""
    if n_bytes is None:
        return "not known"
    return f"{'−' if n_bytes < 0 else ''}{_gpumem.bytes_text(abs(n_bytes))}"  # noqa: RUF001 (a minus)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table of texts."""
    lines = [_row("th", heads), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def escaped(text: str) -> str:
    """Return a name as HTML, also for an attribute."""
    return html.escape(_gpumem._printable(text))


def preformatted(text: str) -> str:
    """Return a text whose columns stay aligned."""
    return f"<pre>{html.escape(text)}</pre>"


def _row(tag: str, texts: Sequence[object]) -> str:
    cells = (f"<{tag}{LEFT}>{escaped(str(text))}</{tag}>" for text in texts)
    return f"<tr>{''.join(cells)}</tr>"
