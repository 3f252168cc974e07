"""Run a notebook in a real kernel, and keep its page and its report's picture.

Writes ``<name>.html`` and ``report.png`` beside the notebook, prints the text
report, and says where both are. A cell that fails ends the run with exit status 1 and its error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

COLOUR = re.compile(r"\x1b\[[\d;]*m")
WIDGET = "application/vnd.jupyter.widget-view+json"

# Runs last, in the notebook's own session, and is not kept in the notebook.
REPORT = """
import gpumem as _gpumem
_report = _gpumem.report()
_report.save("report.png")
print(_report.text())
"""


def run(path: Path) -> int:
    """Run the notebook and return the exit status."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        resources={"metadata": {"path": path.parent}},
        extra_arguments=["--log-level=ERROR"],
    )
    names = [f"cell {number} of {path.name}" for number in range(1, len(notebook.cells) + 1)]
    report = nbformat.v4.new_code_cell(REPORT)
    notebook.cells.append(report)
    with client.setup_kernel():
        for index, name in enumerate([*names, "the report"]):
            if not ran(client, index, name):
                return 1
    notebook.cells.pop()
    html = path.with_suffix(".html")
    html.write_text(page(notebook), encoding="utf-8")
    print("".join(output.get("text", "") for output in report.outputs), end="")
    print(f"\nwrote {html}\nwrote {path.with_name('report.png')}")
    return 0


def ran(client: NotebookClient, index: int, name: str) -> bool:
    """Run one cell and say on standard error where and why it failed."""
    cell = client.nb.cells[index]
    try:
        client.execute_cell(cell, index, store_history=name != "the report")
    except CellExecutionError as error:
        message = str(error) if sys.stderr.isatty() else COLOUR.sub("", str(error))
        print(f"{name} failed: {error.ename}: {error.evalue}\n\n{message}", file=sys.stderr)
        return False
    return True


def drop_widgets(notebook: nbformat.NotebookNode) -> None:
    """Leave out of the outputs what only a running kernel can show."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if WIDGET not in out.get("data", {})]


def page(notebook: nbformat.NotebookNode) -> str:
    """Show the notebook as a page that loads nothing from the network.

    The report's widget is left out there, because a page of nbconvert fetches
    what draws it; the report's picture is in the notebook as well.
    """
    drop_widgets(notebook)
    notebook.metadata.pop("widgets", None)
    exporter = HTMLExporter(
        mathjax_url="", require_js_url="", jquery_url="", mermaid_js_url="", widget_renderer_url=""
    )
    html, _ = exporter.from_notebook_node(notebook)
    return str(html)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]).resolve()))
