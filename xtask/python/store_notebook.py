"""Run the quickstart and store it with its outputs, for GitHub's page of it."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from run_notebook import drop_widgets

ABOUT = (
    "*This is [quickstart.ipynb](quickstart.ipynb) with its outputs, from the simulated GPU. "
    "In a running notebook the picture at the end is a live report.*"
)


def main(notebook: Path, stored: Path) -> None:
    """Run a notebook and write it with what shows everywhere: text and the report's picture."""
    ran = nbformat.read(notebook, as_version=4)
    client = NotebookClient(
        ran,
        timeout=300,
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],
    )
    client.execute()
    drop_widgets(ran)
    ran.metadata["language_info"] = {"name": "python"}
    ran.cells.insert(0, nbformat.v4.new_markdown_cell(ABOUT, id="about-outputs"))
    nbformat.write(ran, stored)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
