"""A report that is open while the session goes on, in a real JupyterLab."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from .live import SETUP, ReportPage, screenshot, wait, write_notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Locator, Page

    from .live import Guarded, Lab

    Open = Callable[..., Guarded]

KEEPS = "kept.append(sim.tensor(2 << 20))"
CELLS = [
    f"{SETUP}\nimport time\nkept = []",
    "%gpumem on",
    "first = sim.tensor(512 << 20)",
    "%gpumem_report",
    f"for batch in gpumem.steps(range(10**9)):\n    {KEEPS}\n    time.sleep(0.02)",
]
N_BEFORE_LOOP = len(CELLS) - 1
# The minimum time between paints of a live report, without a frame's rounding.
LEAST_REST_MILLIS = 90
N_PAINTED = 6
SLOW_CLICK_MILLIS = 400


@pytest.fixture
def page(lab: Lab, open_page: Open) -> Iterator[Page]:
    """Return a notebook in which a long cell runs below an open report."""
    name = "live.ipynb"
    write_notebook(lab.folder / name, CELLS)
    view = {"viewport": {"width": 1200, "height": 1400}}
    page = open_page(f"{lab.url}/lab/workspaces/live/tree/{name}", host=lab.host, **view).page
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    wait(lambda: _state(lab) == "idle", "the kernel never became idle")
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    for _ in range(N_BEFORE_LOOP):
        page.keyboard.press("Shift+Enter")
    ReportPage(page)
    page.keyboard.press("Shift+Enter")
    yield page
    for session in lab.ask("api/sessions"):
        lab.ask(f"api/sessions/{session['id']}", "DELETE")


def _state(lab: Lab) -> str | None:
    sessions = lab.ask("api/sessions")
    return sessions[0]["kernel"]["execution_state"] if sessions else None


def _interrupt(lab: Lab) -> None:
    [session] = lab.ask("api/sessions")
    lab.ask(f"api/kernels/{session['kernel']['id']}/interrupt", "POST")
    wait(lambda: _state(lab) == "idle", "the cell was not interrupted")


def test_a_long_cell_is_seen_while_it_runs(page: Page, lab: Lab) -> None:
    """Steps and samples come in; zoom, choice and keyboard stay where the reader put them."""
    report = ReportPage(page)
    card = report.card(KEEPS)
    card.wait_for()
    assert _state(lab) == "busy"
    report.drag("timeline", 0.5, 0.9)
    # A slow finger: levels come in while it is down.
    card.get_by_role("button", name="Show its run").click(delay=SLOW_CLICK_MILLIS)
    state = report.exported_state()
    before = card.inner_text()
    drawn = report.pixels("cells")["colours"]
    expect(card).not_to_have_text(before)
    assert _state(lab) == "busy"
    assert report.exported_state() == state
    assert card.get_attribute("data-chosen") is not None
    page.keyboard.press(" ", delay=SLOW_CLICK_MILLIS)
    assert card.get_attribute("data-chosen") is None
    expect(card.get_by_role("button", name="Show its run")).to_be_focused()
    screenshot(page, "lab-live")
    _interrupt(lab)
    report.unfold("runs")
    expect(_row(report)).to_contain_text("interrupted")
    assert report.pixels("cells")["colours"] != drawn
    assert "interrupted" in report.hover("cells", "interrupted")


def _row(report: ReportPage) -> Locator:
    return report.host.get_by_role("row").filter(has_text="kept.append")


PAINTED = """() => {
    window.painted = [];
    const root = document.querySelector(".gpumem-report").shadowRoot;
    const growth = root.querySelector("canvas[data-chart=cells]");
    const said = { attributeFilter: ["aria-label"] };
    new MutationObserver(() => window.painted.push(performance.now())).observe(growth, said);
}"""


def test_an_open_run_is_shown_up_to_now(page: Page, lab: Lab) -> None:
    """In the bar, in what fills the device, in the table, and to those who hear it."""
    report = ReportPage(page)
    filled, growth = report.canvas("now"), report.canvas("cells")
    report.card(KEEPS).wait_for(timeout=60_000)
    report.unfold("runs")
    row = _row(report)
    expect(row).to_contain_text(re.compile(r"[\d.]+ [MG]iB.*not yet"))
    expect(filled).to_have_attribute("aria-label", re.compile(r"first 512 MiB, this run"))
    said = filled.get_attribute("aria-label")
    expect(growth).to_have_attribute("aria-label", re.compile(r"Now: leaks \d+ MiB"))
    page.evaluate(PAINTED)
    page.wait_for_function(f"() => window.painted.length >= {N_PAINTED}")
    painted: list[float] = page.evaluate("() => window.painted")
    assert painted[-1] - painted[0] >= (len(painted) - 1) * LEAST_REST_MILLIS
    assert filled.get_attribute("aria-label") != said
    assert _state(lab) == "busy"
    assert "it goes on" in report.hover("cells", "kept.append")
    svg = report.host.evaluate("(host) => host.exported('svg')")
    assert "running" in svg
    screenshot(page, "lab-running")
    _interrupt(lab)
    expect(row).to_contain_text("interrupted")
    expect(filled).not_to_have_attribute("aria-label", re.compile("this run"))


def test_a_second_view_shows_the_same_frames(page: Page, lab: Lab) -> None:
    """As JupyterLab's *Create New View for Cell Output* makes one, with the kernel busy."""
    first = ReportPage(page)
    first.card(KEEPS).wait_for()
    page.locator(".jp-OutputArea-output:has(.gpumem-report)").click(
        button="right", position={"x": 5, "y": 5}
    )
    page.get_by_text("Create New View for Cell Output").click()
    second = page.locator(".jp-LinkedOutputView .gpumem-report")
    expect(second.locator(".verdict .card", has_text=KEEPS)).to_have_count(1)
    assert _state(lab) == "busy"
    _interrupt(lab)
    subtitle = second.locator("header .muted")
    expect(subtitle).to_have_text(first.host.locator("header .muted").inner_text())
    screenshot(page, "lab-second-view")
