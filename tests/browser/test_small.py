"""What menus and folds lead to: the exports, the list of keys, thresholds, a page to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
import pytest
from playwright.sync_api import expect

from .host import Host
from .live import ReportPage, saved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from .conftest import OpenReport
    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]


def test_one_menu_where_there_is_little_room(open_report: OpenReport) -> None:
    """It has the exports and the list of keys; the title and the menu share a line."""
    view = {"viewport": {"width": 380, "height": 800}}
    report = open_report("leak", **view)
    header = report.host.locator("header")
    assert not header.get_by_role("button", name="keys").is_visible()
    menu, title = (header.locator(it).bounding_box() for it in ("summary", "h2"))
    assert menu is not None
    assert title is not None
    assert menu["y"] < title["y"] + title["height"]
    header.locator("summary").click()
    header.get_by_role("button", name="Keys", exact=True).click()
    expect(header.get_by_role("region", name="keys")).to_be_visible()
    assert not header.locator(".menu").is_visible()


def test_three_thresholds_are_settings(open_report: OpenReport) -> None:
    """Size, runs and share: each judges anew, is kept and goes back. The others are Python's."""
    report = open_report("thousand")
    report.unfold("settings")
    sliders = report.host.locator(".sliders")
    assert sliders.locator(".setting:visible .name").all_inner_texts() == [
        "Smallest growth that counts",
        "Runs that tell a leak",
        "Free cache that is looked into",
    ]
    slider = sliders.get_by_label("Free cache that is looked into")
    row = sliders.locator(".setting", has_text="Free cache that is looked into")
    before = row.locator("output").inner_text()
    slider.focus()
    slider.press("ArrowRight")
    expect(row.locator("output")).not_to_have_text(before)
    assert "fragmentation_ratio" in report.state()
    row.get_by_role("button", name=f"default {before}").click()
    assert "fragmentation_ratio" not in report.state()


@pytest.mark.parametrize(("name", "has_samples"), [("loop", True), ("one", False)])
def test_samples_are_shown_if_they_are_inside_a_run(
    name: str, open_report: OpenReport, *, has_samples: bool
) -> None:
    """What a run's start and end tell, the rows show."""
    report = open_report(name)
    report.unfold("settings")
    expect(report.host.get_by_text("Sizes in")).to_be_visible()
    over_time = report.host.get_by_text("Samples over time", exact=True)
    expect(over_time).to_be_visible(visible=has_samples)
    expect(report.canvas("timeline")).to_be_visible(visible=has_samples)


def _kept(page: Page, path: Path) -> str:
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Page (HTML)").click()
    download.value.save_as(path)
    return path.as_uri()


def test_a_page_keeps_itself(recordings: Sessions, open_page: Open, tmp_path: Path) -> None:
    """What it exports is a page that lives, has the same findings, and can do so again."""
    address = saved(recordings["leak"], tmp_path)
    for name in ("first.html", "second.html"):
        guarded = open_page(address)
        report = ReportPage(guarded.page)
        assert report.verdict().locator("h3").inner_text() == "kept leaks 64 MiB a step"
        assert guarded.errors == []
        address = _kept(guarded.page, tmp_path / name)


def test_a_notebook_s_report_becomes_a_page(
    recordings: Sessions, open_page: Open, tmp_path: Path
) -> None:
    """It needs no kernel: the module is read where it was loaded from."""
    page = open_page("about:blank").page
    host = Host.on(page, recordings["leak"], tmp_path)
    host.show()
    address = _kept(page, tmp_path / "kept.html")
    report = ReportPage(open_page(address).page)
    assert report.cards() == [
        finding.title for finding in gpumem.report(recordings["leak"]).findings
    ]


@pytest.mark.parametrize("width", [1000, 380])
def test_what_is_as_before_is_folded(
    recordings: Sessions, open_page: Open, tmp_path: Path, width: int
) -> None:
    """Before and now stand in the row of their cell."""
    path = tmp_path / "compared.html"
    gpumem.compare(recordings["oom"], recordings["leak"]).save(path)
    page = open_page(path.as_uri(), viewport={"width": width, "height": 800}).page
    section = ReportPage(page).host.get_by_role("region", name="comparison")
    expect(section).to_contain_text("each pair has its own length")
    expect(section.locator("xpath=..").locator(".cells .key span.before")).to_be_visible()
    same = section.locator("tr[data-change=same]")
    assert same.count() > 0
    assert not same.first.is_visible()
    section.get_by_role("button", name="as before").click()
    expect(same.first).to_be_visible()
    assert {"before", "now"} <= set(
        same.first.locator("td > div").evaluate_all("(bars) => bars.map((bar) => bar.className)")
    )
