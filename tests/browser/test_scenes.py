"""Ten scenes for people to look at, each with what must be seen in it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import gpumem
import pytest
from playwright.sync_api import expect

from .live import saved, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import OpenReport
    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]

VIEW = {"viewport": {"width": 940, "height": 900}, "device_scale_factor": 2}


def test_nothing_recorded(recordings: Sessions, open_page: Open, tmp_path: Path) -> None:
    """It says what to do, with no empty chart."""
    page = open_page(saved(recordings["empty"], tmp_path), **VIEW).page
    words = page.locator(".gpumem-report .empty")
    words.wait_for()
    assert "%%gpumem" in words.inner_text()
    assert not page.locator(".gpumem-report canvas").first.is_visible()
    screenshot(page, "scene-empty")


def test_eight_devices(open_report: OpenReport) -> None:
    """Each has a tile with its bar; the one that is chosen is what the charts show."""
    if "PLAYED_CUDA_LIBRARIES" not in os.environ:
        pytest.skip("no driver is played on this system")
    report = open_report("eight", **VIEW)
    tiles = report.host.get_by_role("group", name="devices").get_by_role("button")
    assert tiles.count() == 8
    tiles.nth(7).click()
    shown = report.host.locator("header .muted")
    shown.filter(has_text="cuda:7, 80 GiB").wait_for()
    assert "cuda:7" in report.host.locator(".cells h2").inner_text()
    screenshot(report.page, "scene-eight")
    tiles.nth(3).press("Enter")
    shown.filter(has_text="cuda:3, ").wait_for()
    assert tiles.nth(3).get_attribute("aria-pressed") == "true"


def test_a_fix_is_seen_beside_its_baseline(recordings: Sessions, open_report: OpenReport) -> None:
    """What grew before and does not any more is fixed; a slider judges both anew."""
    report = open_report(gpumem.compare(recordings["fixed"], recordings["leak"]), **VIEW)
    page = report.page
    section = report.host.get_by_role("region", name="comparison")
    row = section.locator("tr[data-change=fixed]", has_text="64 MiB")
    words = " ".join(row.inner_text().split())
    assert re.search(r"fixed .*each step .*\+64 MiB .*0 B .*64 MiB ±", words), words
    outcome = section.locator(".outcome").inner_text()
    assert "no longer grows: +64 MiB a step before, 0 B now" in " ".join(outcome.split())
    screenshot(page, "scene-compare")


def test_a_comparison_says_what_it_waits_for(
    recordings: Sessions, open_page: Open, tmp_path: Path
) -> None:
    """Directly after the baseline nothing else is shown."""
    path = tmp_path / "waiting.html"
    gpumem.compare(recordings["empty"], recordings["leak"]).save(path)
    page = open_page(path.as_uri(), **VIEW).page
    section = page.get_by_role("region", name="comparison")
    expect(section.locator(".outcome")).to_contain_text("Waiting for")
    assert not page.get_by_role("region", name="verdict").is_visible()
    screenshot(page, "scene-waiting")
