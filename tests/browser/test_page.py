"""The page that stands alone: from disk, with no network, and with no scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
import pytest

from .live import SETUP, ReportPage, record, saved, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import OpenReport
    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]


@pytest.fixture
def leak_page(recordings: Sessions, tmp_path: Path) -> str:
    """Return the address of the leaking session's page."""
    return saved(recordings["leak"], tmp_path)


def test_it_lives_without_a_network(leak_page: str, open_page: Open) -> None:
    """The charts replace the picture without a request."""
    opened = open_page(leak_page, offline=True)
    report = ReportPage(opened.page)
    assert report.cards() == ["kept leaks 64 MiB a step"]
    report.assert_crisp()
    assert not opened.page.locator("#still").is_visible()
    assert opened.strays == []
    assert opened.errors == []


def test_without_scripts_it_shows_picture_and_text(leak_page: str, open_page: Open) -> None:
    """What a mail program or a strict browser makes of it."""
    page = open_page(leak_page, java_script_enabled=False).page
    picture = page.locator("#still img")
    assert picture.is_visible()
    assert picture.evaluate("(image) => image.naturalWidth") > 0
    assert "GPU memory" in page.locator("#still pre").inner_text()


@pytest.mark.parametrize(("scale", "scheme"), [(1, "light"), (2, "dark")])
def test_it_is_crisp_in_both_themes(
    scale: int, scheme: str, leak_page: str, open_page: Open
) -> None:
    """A chart's pixels are the screen's, on a sheet of the theme's colour."""
    opened = open_page(leak_page, device_scale_factor=scale, color_scheme=scheme)
    report = ReportPage(opened.page)
    report.assert_crisp()
    colours = report.pixels("cells")["colours"]
    sheet = max(colours, key=colours.get)
    assert sheet == {"light": "255,255,255", "dark": "22,27,34"}[scheme]
    screenshot(opened.page, f"page-{scheme}-{scale}x")


def test_nothing_found_says_what_was_checked(open_report: OpenReport) -> None:
    """One run does not show growth; the report says what it kept."""
    report = open_report("one")
    assert "in one run" in report.host.locator(".empty").inner_text()
    report.unfold()
    assert "1 run of 1 cell" in report.host.locator(".checked").inner_text()
    screenshot(report.page, "page-one")


def test_the_minimap_goes_as_far_as_a_run_that_goes_on(
    tmp_path: Path, open_report: OpenReport
) -> None:
    """A recording that is saved in the middle of a cell."""
    path = tmp_path / "running"
    loop = "for step in gpumem.steps(range(9)):\n    kept.append(sim.tensor(64 << 20))"
    stored = f"gpumem.recording().save({str(path)!r})"
    record([SETUP, "%gpumem on", "kept = []", f"{loop}\n{stored}"], tmp_path / "whole")
    report = open_report(gpumem.load(path))
    assert "is running" in report.host.locator("header").inner_text()
    colours = report.canvas("minimap").evaluate(
        """(canvas) => {
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(width * 0.9, 0, 1, height);
            return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    # The sheet and the strip, and on it a line.
    assert colours > 2


def test_one_run_of_a_thousand_is_read_out(open_report: OpenReport) -> None:
    """A bar of less than a pixel is found by the pointer."""
    report = open_report("thousand")
    assert "kept +2 MiB" in report.hover("timeline", "kept.append")
    screenshot(report.page, "page-thousand")


def test_a_panic_brings_the_picture_back(leak_page: str, open_page: Open) -> None:
    """What fails in the module costs the reader the live view only."""
    page = open_page(leak_page).page
    report = ReportPage(page)
    # The page's own prototype is out of reach, the canvas that the module paints is not.
    page.evaluate(
        "() => { CanvasRenderingContext2D.prototype.beginPath = () => { throw new Error('no') } }"
    )
    report.canvas("cells").focus()
    report.canvas("cells").press("k")
    page.locator("#still").wait_for(state="visible")
    assert page.locator(".gpumem-report").count() == 0
    assert "could not be shown" in page.locator("#note").inner_text()


def test_a_card_names_who_holds_it_and_the_line_to_change(
    recordings: Sessions, open_page: Open, tmp_path: Path
) -> None:
    """The name with what it holds below it, and the fix as in a patch, to copy."""
    page = open_page(saved(recordings["thousand"], tmp_path)).page
    card = ReportPage(page).card("leaks 2 MiB a run")
    holder = card.locator(".tree > li").first
    assert holder.inner_text().split("\n")[:2] == ["kept list of 999 tensors", "1.95 GiB"]
    step = holder.locator("li code").first
    assert not step.is_visible()
    holder.locator("summary").first.click()
    assert step.is_visible()
    assert card.locator(".patch del").inner_text() == "kept.append(sim.tensor(2 << 20))"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card.get_by_role("button", name="copy path").first.click()
    page.wait_for_function("() => navigator.clipboard.readText().then((it) => it === 'kept[0]')")
    screenshot(page, "page-holders")
