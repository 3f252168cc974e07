"""The report opens with its conclusion: what leaks, how fast, until when, where, and the fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.support.reports import recording_in

from .live import FRAMES, SETUP, ReportPage, record, saved, screenshot, wait, write_notebook
from .test_states import WRONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import gpumem
    from playwright.sync_api import Page

    from .conftest import OpenReport
    from .live import Guarded, Lab
    from .sessions import Sessions

    Open = Callable[..., Guarded]

APPEND = "losses.append((sim.tensor(420 << 20) * weights).sum())"
IN_LOOP = "losses.append((sim.tensor(128 << 20) * weights).sum())"
README = [
    f"{SETUP}\nimport time\nweights = sim.tensor(128 << 20, requires_grad=True)\nlosses = []",
    f"%%gpumem\nfor step in range(20):\n    {IN_LOOP}\n    time.sleep(0.05)",
    "%gpumem_report",
]
# A leak, what it led to, and what is only good to know.
FULL = [
    SETUP,
    "%gpumem on",
    "weights = sim.tensor(64 << 20, requires_grad=True)\nlosses = []",
    *["if 'warm' not in globals():\n    warm = sim.tensor(128 << 20)"] * 10,
    *["model = sim.tensor(512 << 20)"] * 2,
    "sim.tensor(256 << 20)",
    *[APPEND] * 12,
    "first = sim.tensor(3 << 30)",
    "second = sim.tensor(3 << 30)",
]
# The first screen of what a new user sees.
FIRST_PIXELS = 250


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> gpumem.types.Recording:
    """Record a session that a leak ended."""
    path = tmp_path_factory.mktemp("verdict") / "full"
    record(FULL, path)
    return recording_in(path)


def test_ten_seconds_tell_what_leaks_and_what_to_change(lab: Lab, open_page: Open) -> None:
    """Name, rate, forecast, cell and fix are inside the first pixels of the report."""
    name = "readme.ipynb"
    write_notebook(lab.folder / name, README)
    try:
        view = {"viewport": {"width": 1440, "height": 900}}
        page = open_page(f"{lab.url}/lab/workspaces/readme/tree/{name}", host=lab.host, **view).page
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        wait(lambda: _is_idle(lab), "the kernel never became idle")
        page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
        for _cell in README:
            page.keyboard.press("Shift+Enter")
        report = ReportPage(page)
        panel = report.verdict()
        expect(panel.locator("h3")).to_have_text("losses leaks 128 MiB an iteration of line 2")
        # Of a loop that is counted late the first iteration may be missing.
        outlook = r"2\.(?:5|38) GiB so far; the device is full in about 41 iterations"
        expect(panel.locator(".outlook")).to_have_text(re.compile(outlook))
        expect(panel.locator(".at")).to_have_text("In [2]line 3")
        expect(panel.locator("ins mark")).to_have_text(".detach()")
        top = report.host.bounding_box()
        assert top is not None
        for part in ("h3", ".outlook", ".at", "ins", ".primary"):
            box = panel.locator(part).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] - top["y"] <= FIRST_PIXELS, part
        screenshot(page, "verdict-lab")
        _goes_to_its_cell(page, report)
    finally:
        for session in lab.ask("api/sessions"):
            lab.ask(f"api/sessions/{session['id']}", "DELETE")


def _is_idle(lab: Lab) -> bool:
    kernels = [session["kernel"] for session in lab.ask("api/sessions")]
    return [kernel["execution_state"] for kernel in kernels] == ["idle"]


def _goes_to_its_cell(page: Page, report: ReportPage) -> None:
    """Follow the way from the finding to the cell that ran last."""
    report.verdict().get_by_role("button", name="Go to the cell").click()
    cell = page.locator(".jp-CodeCell", has=page.get_by_text("[2]:", exact=True))
    wait(
        lambda: (cell.bounding_box() or {"y": -1})["y"] > 0,
        "the cell was not brought into view",
    )


@pytest.mark.parametrize(
    ("width", "scheme"), [(1440, "light"), (900, "dark"), (640, "light"), (380, "dark")]
)
def test_nothing_is_cut_or_overlaps(
    full: gpumem.types.Recording, open_page: Open, tmp_path: Path, width: int, scheme: str
) -> None:
    """At every width, closed and with each finding opened in full."""
    view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = open_page(saved(full, tmp_path), **view).page
    report = ReportPage(page)
    panel = report.verdict()
    screenshot(page, f"verdict-{width}-{scheme}")
    n_rows = panel.locator(".entry").count()
    for row in range(n_rows + 1):
        assert report.host.evaluate(WRONG) == []
        if row == n_rows:
            break
        panel.locator(".entry").nth(row).click()
        page.evaluate(FRAMES)
        if panel.get_by_role("button", name="Evidence").get_attribute("aria-expanded") == "false":
            panel.get_by_role("button", name="Evidence").click()
        screenshot(page, f"verdict-{width}-{scheme}-open-{row}")


def test_a_cause_stands_before_what_it_led_to(
    full: gpumem.types.Recording, open_report: OpenReport
) -> None:
    """Runs that ran out for one cause are one line, which opens in place."""
    report = open_report(full)
    panel = report.verdict()
    assert panel.locator("h3").inner_text() == "losses leaks 420 MiB a run"
    row = panel.locator(".entry").first
    assert "2 runs of 2 cells ran out of memory, first In [29]" in row.inner_text()
    row.click()
    assert panel.locator("h3").inner_text().startswith("2 runs of 2 cells ran out")
    assert "losses leaks 420 MiB a run" in panel.locator(".entry").first.inner_text()
    assert report.state()["full"] == "yes"


def test_a_fix_is_copied_and_says_so(recordings: Sessions, open_page: Open, tmp_path: Path) -> None:
    page = open_page(saved(recordings["thousand"], tmp_path)).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = ReportPage(page).verdict().locator(".primary")
    fix = button.get_attribute("data-argument")
    button.click()
    expect(button).to_have_text("Copied ✓")
    page.wait_for_function(
        "(fix) => navigator.clipboard.readText().then((it) => it === fix)", arg=fix
    )
    expect(button).to_have_text("Copy fix")


def test_what_is_dismissed_comes_back_in_its_place(
    full: gpumem.types.Recording, open_report: OpenReport
) -> None:
    report = open_report(full)
    panel = report.verdict()
    title = panel.locator("h3").inner_text()
    panel.get_by_role("button", name="Dismiss").click()
    assert panel.locator("> *").first.inner_text().startswith(f"Dismissed: {title}")
    assert panel.locator("h3").inner_text() != title
    panel.get_by_role("button", name="Undo").click()
    assert panel.locator("h3").inner_text() == title


def test_the_tally_lists_the_rest(full: gpumem.types.Recording, open_report: OpenReport) -> None:
    report = open_report(full)
    panel = report.verdict()
    n_rows = panel.locator(".entry").count()
    chip = panel.locator(".chip").last
    n_more = int(chip.inner_text().split()[1])
    chip.click()
    assert panel.locator(".entry").count() == n_rows + n_more
    chip.click()
    assert panel.locator(".entry").count() == n_rows


def test_a_name_that_no_cell_reads_is_listed_below_the_bar(
    full: gpumem.types.Recording, open_report: OpenReport
) -> None:
    report = open_report(full)
    row = report.host.locator(".now .idle li")
    said = r"model\s*made in In \[\d+\], \d+ runs ago, and not read since\s*512 MiB"
    expect(row).to_have_text(re.compile(said))
    expect(row.get_by_role("button", name="copy del model")).to_be_visible()
    expect(report.verdict().locator(".tally")).to_contain_text("1 name not read for a while")


def test_it_leaves_the_page_as_markdown(
    full: gpumem.types.Recording, open_report: OpenReport
) -> None:
    """For an issue: the conclusion, the fix, and what each cell kept."""
    report = open_report(full)
    text = report.host.evaluate("(host) => host.exported('markdown')")
    assert text.startswith("### ▲ `losses` leaks 420 MiB a run\n")
    assert f"```diff\n- {APPEND}\n+ {APPEND[:-1]}.detach())\n```" in text
    assert "| | cell | In | kept | state |" in text
