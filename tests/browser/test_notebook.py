"""The live report in Notebook 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .live import CELLS, KEPT, SETUP, ReportPage, screenshot, write_notebook

if TYPE_CHECKING:
    from collections.abc import Callable

    from .live import Guarded, Lab


def test_a_notebook_run_by_keyboard_shows_a_live_report(
    lab: Lab, open_page: Callable[..., Guarded]
) -> None:
    """Charts are drawn and answer, the picture has made room, nothing leaves the machine."""
    name = "seven.ipynb"
    write_notebook(lab.folder / name, [SETUP, *CELLS, "%gpumem_report"])
    view = {"viewport": {"width": 1200, "height": 1000}}
    opened = open_page(f"{lab.url}/notebooks/{name}", host=lab.host, **view)
    page = opened.page
    try:
        page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
        page.locator(".jp-NotebookKernelStatus", has_text="Idle").or_(
            page.locator("[data-status=idle]")
        ).first.wait_for()
        for _ in range(len(CELLS) + 2):
            page.keyboard.press("Shift+Enter")
        screenshot(page, "notebook-7")
        report = ReportPage(page)
        report.assert_crisp()
        assert "kept +256 MiB" in report.hover("cells", "model = sim.tensor")
        report.canvas("cells").press("ArrowLeft")
        assert KEPT in report.tip()
        assert not page.locator(".jp-OutputArea-output img").is_visible()
        assert opened.strays == []
        screenshot(page, "notebook-7")
    finally:
        for session in lab.ask("api/sessions"):
            lab.ask(f"api/sessions/{session['id']}", "DELETE")
