"""The live report in a real JupyterLab."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from .live import CELLS, KEPT, SETUP, ReportPage, screenshot, wait, write_notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from .live import Guarded, Lab

    Open = Callable[..., Guarded]

VIEW = {"viewport": {"width": 1200, "height": 1000}}


@pytest.fixture(scope="module")
def notebook(lab: Lab) -> Iterator[str]:
    """Name a notebook that ends in a report; its session is deleted afterwards."""
    name = "report.ipynb"
    write_notebook(lab.folder / name, [SETUP, *CELLS, "%gpumem_report"])
    yield name
    for session in lab.ask("api/sessions"):
        lab.ask(f"api/sessions/{session['id']}", "DELETE")


@pytest.fixture
def opened(lab: Lab, notebook: str, open_page: Open) -> Callable[..., Guarded]:
    """Open the notebook in a window of its own; the first to do so runs it."""

    def open_notebook(**options: object) -> Guarded:
        url = f"{lab.url}/lab/workspaces/lab/tree/{notebook}"
        opened = open_page(url, host=lab.host, **VIEW, **options)
        opened.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        wait(lambda: _kernel_state(lab) == "idle", "the kernel never became idle")
        if '"image/png"' not in (lab.folder / notebook).read_text():
            _run_by_keyboard(opened.page, lab, notebook)
        return opened

    return open_notebook


def _kernel_state(lab: Lab) -> str | None:
    sessions = lab.ask("api/sessions")
    return sessions[0]["kernel"]["execution_state"] if sessions else None


def _run_by_keyboard(page: Page, lab: Lab, notebook: str) -> None:
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    for _ in range(len(CELLS) + 2):
        page.keyboard.press("Shift+Enter")
    page.locator(".gpumem-report").wait_for(timeout=60_000)
    page.keyboard.press("Control+s")
    path = lab.folder / notebook
    wait(lambda: '"image/png"' in path.read_text(), "the notebook was not saved")


def test_a_notebook_run_by_keyboard_shows_a_live_report(opened: Open) -> None:
    """Charts are drawn, the picture has made room, and nothing leaves the machine."""
    seen = opened()
    report = ReportPage(seen.page)
    report.assert_crisp()
    assert "▲" in report.card(KEPT).inner_text()
    assert len(report.cards()) == 1
    assert not seen.page.locator(".jp-OutputArea-output img").is_visible()
    assert seen.strays == []
    screenshot(seen.page, "lab-light-1x")


def test_arrows_move_between_runs_and_not_between_cells(opened: Open) -> None:
    """The report takes the keys that it answers to, and no other."""
    seen = opened()
    report = ReportPage(seen.page)
    canvas = report.canvas("cells")
    canvas.focus()
    active = seen.page.locator(".jp-Notebook .jp-Cell.jp-mod-active")
    before = active.count() and active.inner_text()
    canvas.press("PageUp")
    first = report.tip()
    canvas.press("ArrowRight")
    second = report.tip()
    assert first
    assert second
    assert first != second
    canvas.press("Escape")
    assert report.tip() == ""
    assert (active.count() and active.inner_text()) == before


def test_a_notebook_saved_from_the_report_keeps_its_cells(
    opened: Open, lab: Lab, notebook: str
) -> None:
    """Ctrl+S saves, and the single keys that delete a cell do not reach the notebook."""
    seen = opened()
    report = ReportPage(seen.page)
    canvas = report.canvas("cells")
    path = lab.folder / notebook
    n_cells = n_cells_in(path)
    canvas.focus()
    canvas.press("d")
    canvas.press("d")
    before = path.stat().st_mtime_ns
    canvas.press("Control+s")
    # Lab takes cells out of the page that are not in view.
    wait(
        lambda: path.stat().st_mtime_ns > before and n_cells_in(path) is not None,
        "the notebook was not saved",
    )
    assert n_cells_in(path) == n_cells


def n_cells_in(notebook: Path) -> int | None:
    """Count them; None while the file is being written."""
    with contextlib.suppress(ValueError):
        return len(json.loads(notebook.read_text("utf-8"))["cells"])
    return None


def test_it_is_crisp_and_dark_where_the_notebook_is(opened: Open, lab: Lab) -> None:
    """Two device pixels for each pixel, and Lab's own theme."""
    lab.set_theme("JupyterLab Dark")
    try:
        seen = opened(device_scale_factor=2)
        report = ReportPage(seen.page)
        report.assert_crisp()
        colours = report.pixels("cells")["colours"]
        assert max(colours, key=colours.get) == "22,27,34"
        screenshot(seen.page, "lab-dark-2x")
    finally:
        lab.set_theme("JupyterLab Light")


def test_the_slider_judges_anew_with_the_kernel_stopped(opened: Open, lab: Lab) -> None:
    """Thresholds belong to the page and need no kernel."""
    seen = opened()
    report = ReportPage(seen.page)
    assert report.card(KEPT).count() == 1
    for kernel in lab.ask("api/kernels"):
        lab.ask(f"api/kernels/{kernel['id']}", "DELETE")
    wait(lambda: lab.ask("api/kernels") == [], "the kernel did not stop")
    before = report.pixels("cells")["colours"]
    report.slide("16 GiB")
    assert report.card(KEPT).count() == 0
    assert "Nothing grows" in report.host.locator(".empty").inner_text()
    assert report.pixels("cells")["colours"] != before
    report.slide("1 MiB")
    assert report.card(KEPT).count() == 1


def test_a_reopened_notebook_shows_the_picture_and_no_error(opened: Open, lab: Lab) -> None:
    """The kernel that knew the view is gone."""
    opened()
    for session in lab.ask("api/sessions"):
        lab.ask(f"api/sessions/{session['id']}", "DELETE")
    page = opened().page
    error = page.get_by_text("Error displaying widget")
    error.wait_for(state="attached", timeout=60_000)
    assert not error.is_visible()
    assert page.locator(".jp-OutputArea-output img").last.is_visible()
    screenshot(page, "lab-reopened")
