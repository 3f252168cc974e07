"""The names of a notebook's cells, derived from their text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.getipython import get_ipython

from gpumem._gpumem import GpuMemError

if TYPE_CHECKING:
    import os


def cell_names(notebook: str | os.PathLike[str] | None) -> list[tuple[str, str]]:
    """Return the text and the name of each cell that was typed, or that a notebook's file has."""
    if notebook is not None:
        return _of_file(Path(notebook))
    history = getattr(get_ipython(), "history_manager", None)
    typed = getattr(history, "input_hist_raw", [])
    # The history leaves out newlines at a text's end.
    return [
        (f"{text}{end}", f"In [{number}]")
        for number, text in enumerate(typed)
        if text
        for end in ("", "\n")
    ]


def _of_file(notebook: Path) -> list[tuple[str, str]]:
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        texts = ["".join(cell["source"]) for cell in code]
        counts = [cell.get("execution_count") for cell in code]
    except (ValueError, KeyError, TypeError):
        message = (
            f"{notebook} is no notebook\nhint: name the .ipynb file in which the cells were run"
        )
        raise GpuMemError(message) from None
    # What was not run, or whose outputs were cleared, is counted.
    return [
        (text, f"cell {position}" if count is None else f"In [{count}]")
        for position, (text, count) in enumerate(zip(texts, counts, strict=True), start=1)
    ]
