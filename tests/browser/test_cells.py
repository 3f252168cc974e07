"""What each cell kept, and all cells over time: by what is read, pressed and seen."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from .live import FITS, FRAMES, KEPT, screenshot

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from .conftest import OpenReport
    from .live import ReportPage


def _row(page: ReportPage, words: str) -> Locator:
    return page.host.locator(".cell", has_text=words)


def _words(row: Locator) -> str:
    return " ".join(row.inner_text().split())


def test_a_leak_stands_first_with_its_total(open_report: OpenReport) -> None:
    """By a sign, a name, what all of its runs kept, and how many there were."""
    page = open_report("leak")
    first = page.host.locator(".cell").first
    assert _words(first) == f"▲ {KEPT} In [6] +1.25 GiB 20 steps"
    assert page.host.locator(".cell").count() == 4


def test_one_line_goes_through_every_chart(open_report: OpenReport) -> None:
    """The heads of the columns are the reading then, and no canvas is painted for it."""
    page = open_report("leak")
    before = page.pixels("cells")["colours"]
    assert "run by run" in page.host.locator(".heads").inner_text()
    read = page.hover("cells", "model = sim.tensor")
    assert read.startswith("In [7] model = sim.tensor(256 << 20) kept +256 MiB; all cells 1.5 GiB")
    line = page.host.locator(".pointer").bounding_box()
    charts = page.host.locator(".charts").bounding_box()
    assert line is not None
    assert charts is not None
    assert line["height"] > charts["height"] - 40
    assert not page.host.locator(".heads").is_visible()
    assert page.pixels("cells")["colours"] == before


def test_keys_go_from_row_to_row_and_from_run_to_run(open_report: OpenReport) -> None:
    """Enter opens a row in place, Escape closes it."""
    page = open_report("leak")
    names = page.host.locator(".cell .name")
    names.first.focus()
    page.page.keyboard.press("ArrowDown")
    expect(names.nth(1)).to_be_focused()
    page.page.keyboard.press("ArrowRight")
    assert page.tip().startswith("In [7] model")
    page.page.keyboard.press("Enter")
    opened = page.host.locator(".opened:not([hidden])")
    assert "+256 MiB" in opened.inner_text()
    assert names.nth(1).get_attribute("aria-expanded") == "true"
    page.page.keyboard.press("Escape")
    assert opened.count() == 0
    expect(names.nth(1)).to_be_focused()


def test_an_open_row_shows_its_finding_in_full(open_report: OpenReport) -> None:
    """With its charts, what holds it, and what was ruled out; in a narrow page, too."""
    page = open_report("leak")
    page.host.locator(".cell .name").first.click()
    opened = page.host.locator(".opened:not([hidden])")
    expect(opened.locator(".courses canvas")).to_have_count(2)
    for words in ["After each step", "If it goes on", "Held by", "Ruled out", "Figures"]:
        expect(opened).to_contain_text(words)
    page.page.set_viewport_size({"width": 380, "height": 900})
    page.page.wait_for_function(FITS)
    screenshot(page.page, "row-open-380")
    page.page.set_viewport_size({"width": 900, "height": 900})
    screenshot(page.page, "row-open-900")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="loops are counted from Python 3.12 on")
def test_a_long_run_shows_its_level_over_iterations(open_report: OpenReport) -> None:
    """*Evidence* opens the row and closes it; what is pointed at is read in the heads."""
    page = open_report("loop")
    evidence = page.verdict().get_by_role("button", name="Evidence")
    evidence.click()
    opened = page.host.locator(".opened:not([hidden])")
    expect(opened.locator(".long-run h4").first).to_have_text("Level over iterations")
    chart = page.canvas("run")
    expect(chart).to_have_attribute("aria-label", re.compile(r"What In \[\d+\] held over \d+ iter"))
    read = page.hover("run", "iteration 3")
    assert re.search(r"iteration 3\d? of \d+, [\d.]+ m?s: [\d.]+ [GM]iB in use", read)
    assert not page.host.locator(".pointer").is_visible()
    assert "iterations" in _words(page.host.locator(".cell").first)
    screenshot(page.page, "long-run-900")
    page.page.set_viewport_size({"width": 380, "height": 900})
    page.page.wait_for_function(FITS)
    screenshot(page.page, "long-run-380")
    evidence.click()
    assert opened.count() == 0


def test_rows_show_the_total_or_each_run(open_report: OpenReport) -> None:
    """By the buttons, and by a key; the choice outlives the page."""
    page = open_report("thousand")
    row = _row(page, "kept.append")
    assert "+1.95 GiB" in _words(row)
    page.host.get_by_role("button", name="per run").click()
    assert "+2 MiB" in _words(row)
    assert page.state()["measure"] == "run"
    page.canvas("cells").press("k")
    assert "+1.95 GiB" in _words(row)


def test_a_run_that_ran_out_crosses_every_chart(open_report: OpenReport) -> None:
    """By words in its row and in the chart over time, not by a colour alone."""
    page = open_report("oom")
    assert "out of memory" in _words(_row(page, "big = sim.tensor"))
    assert "One run ran out of memory." in (page.canvas("cells").get_attribute("aria-label") or "")


def test_the_table_of_runs_is_sorted_by_its_heads(open_report: OpenReport) -> None:
    """The latest first, then by a column, then the other way round."""
    page = open_report("leak")
    page.unfold("runs")
    table = page.host.locator(".folds table")
    runs = table.locator("tbody th")
    assert runs.all_inner_texts() == ["In [7]", "In [6]", "In [5]", "In [4]"]
    head = table.get_by_role("button", name="kept")
    head.click()
    assert runs.first.inner_text() == "In [6]"
    assert table.locator("th[aria-sort=descending]").inner_text() == "kept"
    head.click()
    assert runs.last.inner_text() == "In [6]"
    expect(head).to_be_focused()


def test_a_click_on_a_finding_s_runs_lights_its_row(open_report: OpenReport) -> None:
    """The row is brought into view; a second click takes that back."""
    page = open_report("leak")
    button = page.card(KEPT).get_by_role("button", name="Show its run")
    button.click()
    page.page.evaluate(FRAMES)
    lit = page.host.locator(".cell[data-lit]")
    assert KEPT in lit.inner_text()
    expect(lit).to_be_in_viewport()
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(lit).to_have_count(0)


def test_the_host_is_a_device_of_its_own(open_report: OpenReport) -> None:
    """Its rows and its words; the choice is kept for the next look."""
    page = open_report("leak")
    page.host.get_by_role("button", name="host", exact=True).click()
    assert "host" in page.host.locator("header .muted").inner_text()
    assert page.host.get_by_role("button", name="host").get_attribute("aria-pressed") == "true"
    page.canvas("cells").press("d")
    assert page.host.locator("header .muted").inner_text().startswith("sim:0, 8 GiB · 4 runs")
