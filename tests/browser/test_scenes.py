"""Ten scenes, for people to look at, each with what must be seen in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import gpumem
import pytest

from .live import ReportPage, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .live import Guarded

    Open = Callable[..., Guarded]
    Recordings = dict[str, gpumem.Recording]

VIEW = {"viewport": {"width": 940, "height": 900}, "device_scale_factor": 2}


def _saved(recording: gpumem.Recording, folder: Path) -> str:
    path = folder / "report.html"
    gpumem.report(recording).save(path)
    return path.as_uri()


@pytest.mark.parametrize("name", ["one", "thousand", "leak", "cells"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_session(
    name: str, scheme: str, recordings: Recordings, open_page: Open, tmp_path: Path
) -> None:
    """One run, a thousand, a leak in a loop, and many cells."""
    page = open_page(_saved(recordings[name], tmp_path), color_scheme=scheme, **VIEW).page
    ReportPage(page).assert_crisp()
    screenshot(page, f"scene-{name}-{scheme}")


def test_memory_that_ran_out(recordings: Recordings, open_page: Open, tmp_path: Path) -> None:
    """The run is marked, and the worst card says what was wanted."""
    page = open_page(_saved(recordings["oom"], tmp_path), **VIEW).page
    report = ReportPage(page)
    assert "9 GiB" in report.host.locator("[data-finding^=out_of_memory]").inner_text()
    assert "out of memory" in report.hover("growth", "out of memory")
    page.mouse.move(2, 2)
    screenshot(page, "scene-oom")


def test_a_fix_is_seen_beside_its_baseline(
    recordings: Recordings, open_page: Open, tmp_path: Path
) -> None:
    """What grew before and does not any more is fixed; a slider judges both anew."""
    path = tmp_path / "compared.html"
    gpumem.compare(recordings["fixed"], recordings["leak"]).save(path)
    page = open_page(path.as_uri(), **VIEW).page
    report = ReportPage(page)
    section = report.host.get_by_role("region", name="comparison")
    row = section.locator("tr[data-change=fixed]", has_text="64 MiB")
    words = " ".join(row.inner_text().split())
    assert re.search(r"fixed .*\+64 MiB .*0 B .*64 MiB ±", words), words
    screenshot(page, "scene-compare")


def test_it_fits_a_phone(recordings: Recordings, open_page: Open, tmp_path: Path) -> None:
    """At 360 px everything is still there."""
    view = {"viewport": {"width": 360, "height": 780}, "device_scale_factor": 2}
    page = open_page(_saved(recordings["leak"], tmp_path), **view).page
    ReportPage(page).assert_crisp()
    screenshot(page, "scene-narrow")
