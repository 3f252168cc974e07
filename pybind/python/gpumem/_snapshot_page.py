"""A memory snapshot of PyTorch as a page that needs no network."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from gpumem._static import built

if TYPE_CHECKING:
    from pathlib import Path

    from gpumem import TorchSnapshot

# A notebook with larger pages opens and saves slowly.
_MOST_IN_NOTEBOOK = 8 << 20
_HEIGHT = 900


def html(snapshot: TorchSnapshot, path: Path) -> str:
    """Return a page with the snapshot in it, to explore from disk; without scripts its text."""
    content = path.read_bytes()
    packed = gzip.compress(content, compresslevel=6, mtime=0)
    parts = {
        "NAME": escape(path.name),
        "CELLS": escape(snapshot._cells()),
        "SNAPSHOT": b64encode(packed).decode("ascii"),
        "SIZE": str(len(content)),
        "TEXT": escape(snapshot.text()),
    }
    page = built("snapshot.html").read_text(encoding="utf-8")
    # One pass: no part is searched for the placeholder of another.
    return re.sub(r"__GPUMEM_([A-Z]+)__", lambda found: parts[found[1]], page)


def mime_bundle(snapshot: TorchSnapshot, path: Path) -> dict[str, str]:
    """Return what a notebook shows: the page in a frame, and the text."""
    text = snapshot.text()
    page = html(snapshot, path)
    if len(page) > _MOST_IN_NOTEBOOK:
        command = f"jupyter gpumem report {path} --html snapshot.html"
        note = f"{len(page) >> 20} MB are too much for a notebook; `{command}` writes the page"
        return {"text/plain": f"{text}\n\n{note}"}
    frame = (
        f'<iframe title="memory snapshot {escape(path.name)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {_HEIGHT}px; border: 0" srcdoc="{escape(page)}"></iframe>'
    )
    # Where pages are not shown, as on GitHub, the text is.
    below = f"<details><summary>as text</summary><pre>{escape(text)}</pre></details>"
    return {"text/plain": text, "text/html": f"{frame}{below}"}
