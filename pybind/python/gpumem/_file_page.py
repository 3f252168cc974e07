"""A snapshot or a trace of PyTorch, or processes side by side, as a page that needs no network."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from gpumem import _gpumem
from gpumem._static import built
from gpumem._table import escaped

if TYPE_CHECKING:
    from pathlib import Path

    from gpumem._gpumem import OtherFile

# A notebook with larger pages opens and saves slowly.
_MOST_IN_NOTEBOOK = 8 << 20
_HEIGHT = 900


def html(found: OtherFile, path: Path) -> str:
    """Return a page with the file in it, to explore from disk; without scripts its text.

    Of a folder of traces, all of them are in the page.
    """
    parts = {
        "NAME": escaped(_name(path)),
        "KIND": str(found._page_title),
        "FILES": "\n".join(_files(found, path)),
        "TEXT": escape(found.text()),
    }
    page = built("files.html").read_text(encoding="utf-8")
    # One pass: no part is searched for the placeholder of another.
    return re.sub(r"__GPUMEM_([A-Z]+)__", lambda found: parts[found[1]], page)


def _name(path: Path) -> str:
    """Return the last part of a path; that of the folder where it is `.`."""
    return path.name or path.resolve().name


def _files(found: OtherFile, path: Path) -> list[str]:
    content = found._page()
    if content is not None:
        return [_packed(content, _name(path))]
    cells = found._page_cells()
    files = enumerate(found._page_files())
    return [_packed(found._page_file(idx), name, label, cells) for idx, (name, label) in files]


def _packed(content: bytes, name: str, label: str = "", cells: str = "") -> str:
    # What is packed is only wrapped.
    level = 0 if content.startswith(b"\x1f\x8b") else 6
    packed = gzip.compress(content, compresslevel=level, mtime=0)
    names = {
        "name": escaped(name),
        "label": escaped(label),
        "cells": escape(cells),
        "size": len(content),
    }
    attributes = "".join(f' data-{key}="{value}"' for key, value in names.items())
    text = b64encode(packed).decode("ascii")
    return f'<script type="text/plain" class="file"{attributes}>{text}</script>'


def mime_bundle(found: OtherFile, path: Path) -> dict[str, str]:
    """Return what a notebook shows: the page in a frame, and the text."""
    text = found.text()
    page = html(found, path)
    if len(page) > _MOST_IN_NOTEBOOK:
        command = _gpumem._printable(f"jupyter gpumem report {path} --html {path.stem}.html")
        note = f"{len(page) >> 20} MB are too much for a notebook; `{command}` writes the page"
        return {"text/plain": f"{text}\n\n{note}"}
    frame = (
        f'<iframe title="{found._page_title} {escaped(_name(path))}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {_HEIGHT}px; border: 0" srcdoc="{escape(page)}"></iframe>'
    )
    # Where pages are not shown, as on GitHub, the text is.
    below = f"<details><summary>as text</summary><pre>{escape(text)}</pre></details>"
    return {"text/plain": text, "text/html": f"{frame}{below}"}
