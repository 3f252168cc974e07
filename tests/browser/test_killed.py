"""A kernel that is killed in the middle of a cell, and the one that comes after it."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from .live import CELLS, SETUP, ReportPage, screenshot, wait, write_notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from .live import Guarded, Lab

NAME = "killed.ipynb"
MARKED = "import os, pathlib; pathlib.Path('pid').write_text(str(os.getpid()))"
GROWING = """import pathlib, time
from gpumem import sim
grown = []
while True:
    if len(grown) < 6:
        grown.append(sim.tensor(1 << 30))
    else:
        pathlib.Path('grown').touch()
    time.sleep(0.3)"""
LAST = "%load_ext gpumem\n%gpumem_report --session last"


@pytest.fixture
def notebook(lab: Lab) -> Iterator[Path]:
    path = lab.folder / NAME
    write_notebook(path, [f"{MARKED}\n{SETUP}", *CELLS, GROWING, LAST])
    yield path
    for session in lab.ask("api/sessions"):
        lab.ask(f"api/sessions/{session['id']}", "DELETE")


def is_idle(lab: Lab) -> bool:
    own = [it for it in lab.ask("api/sessions") if it["path"] == NAME]
    return [it["kernel"]["execution_state"] for it in own] == ["idle"]


def press(page: Page, n_times: int) -> None:
    for _ in range(n_times):
        page.keyboard.press("Shift+Enter")


def printed(path: Path) -> str:
    """Return what the last cell of the notebook, as it is saved, has printed."""
    try:
        cells = json.loads(path.read_text())["cells"]
    except json.JSONDecodeError:
        # JupyterLab is writing it.
        return ""
    # A new cell stands behind it.
    outputs = cells[-2]["outputs"]
    texts = [output.get("data", {}).get("text/plain") or output.get("text") for output in outputs]
    return "".join("".join(text) for text in texts if text)


def test_the_next_kernel_shows_the_killed_session(
    lab: Lab, notebook: Path, open_page: Callable[..., Guarded]
) -> None:
    view = {"viewport": {"width": 1200, "height": 1000}}
    seen = open_page(f"{lab.url}/lab/workspaces/killed/tree/{NAME}", host=lab.host, **view)
    page = seen.page
    first = page.locator(".jp-Notebook .jp-CodeCell .cm-content:visible").first
    first.wait_for()
    wait(lambda: is_idle(lab), "the kernel never became idle")
    first.click()
    press(page, len(CELLS) + 2)
    wait((lab.folder / "grown").exists, "the last cell did not get so far")
    kept = lab.folder.parent / "data" / "gpumem"
    grown = time.time()
    wait(
        # Levels are written every second, with other frames of the run between them. On a busy
        # machine the iterations follow some seconds later.
        lambda: any(file.stat().st_mtime > grown + 6 for file in kept.iterdir()),
        "what is sampled in the run does not reach the disk",
    )
    os.kill(int((lab.folder / "pid").read_text()), signal.SIGKILL)
    dialog = page.locator(".jp-Dialog", has_text="restart")
    dialog.wait_for(timeout=60_000)
    dialog.locator("button").last.click()
    page.locator(".jp-Notebook .jp-CodeCell").last.click()
    press(page, 1)
    report = ReportPage(page)
    screenshot(page, "killed-light-1x")
    page.keyboard.press("Control+s")
    wait(lambda: "died" in printed(notebook), "the next kernel says nothing")
    said = printed(notebook)
    assert f"the last session of {NAME}" in said
    assert "in In [7], 7.5 of 8 GiB of sim:0" in said
    assert "%gpumem_report --session last" in said
    # The cell that was killed, with the level that it had reached, and the leak before it.
    assert "leaks 64 MiB" in report.verdict().inner_text()
    words = r"In \[7\] was running when the kernel died: iteration \d+, \+6 GiB so far"
    going_on = report.host.get_by_text(re.compile(words))
    expect(going_on).to_be_visible()
    assert seen.strays == []
