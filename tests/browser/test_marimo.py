"""The live report in marimo, which has no magics and no cells of IPython's."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from .live import ReportPage, screenshot, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .live import Guarded

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    import gpumem
    from gpumem import sim

    sim.use(total_bytes=8 << 30)
    kept = []
    with gpumem.record("training"):
        for _ in gpumem.steps(range(20)):
            kept.append(sim.tensor(64 << 20))
    gpumem.report()
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def marimo(tmp_path: Path) -> Iterator[str]:
    """Serve a marimo notebook, and return its address."""
    notebook = tmp_path / "notebook.py"
    notebook.write_text(NOTEBOOK)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--headless", "--no-token", f"--port={port}"]
    command = [sys.executable, "-m", "marimo", "run", *options, str(notebook)]
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    url = f"http://127.0.0.1:{port}"
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, env={**os.environ, **home}, stdout=log, stderr=log)
        try:
            wait(lambda: _answers(url), f"marimo did not start: {tmp_path / 'log'}")
            yield url
        finally:
            server.terminate()
            server.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:  # noqa: S310 (our own server)
            return bool(reply.status == 200)
    except OSError:
        return False


def test_a_report_is_what_a_cell_shows(marimo: str, open_page: Callable[..., Guarded]) -> None:
    """It is alive in marimo's own elements."""
    view = {"viewport": {"width": 1200, "height": 1000}}
    page = open_page(marimo, host=marimo.removeprefix("http://"), **view).page
    report = ReportPage(page)
    report.assert_crisp()
    assert "training" in report.hover("cells", "training")
    expect(report.card("leaks 64 MiB a step")).to_have_count(1)
    screenshot(page, "marimo")
