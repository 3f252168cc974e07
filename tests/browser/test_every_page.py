"""Invariants of every page: nothing is cut at any width, and a notebook shows it in a frame."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _file_page
from playwright.sync_api import expect

from tests.python.snapshots import with_settings

from .live import FITS, FRAMES, ReportPage, saved, screenshot
from .test_trace_page import steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from .live import Guarded
    from .sessions import Sessions

WIDTHS = (1200, 640, 360)
HEADLINES = {
    "processes": "Rank 7 keeps 24 MiB a step",
    "snapshot": "Out of memory: 25 MiB wanted",
    "trace": "cuda:0 peak: 3 MiB",
}
CHART_FOLLOWS = """(width) => {
    const { shadowRoot } = document.querySelector(".gpumem-report");
    const chart = shadowRoot.querySelector("canvas[data-chart=cells]").getBoundingClientRect();
    return chart.width > 0.8 * width && chart.width <= width;
}"""


@pytest.fixture(params=HEADLINES)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write a file, or a folder, of each kind that has a page."""
    path = tmp_path / str(request.param)
    if request.param == "processes":
        folder: Path = request.getfixturevalue("job")(8, leaking=1)
        return folder.rename(path)
    content = pickle.dumps(with_settings()) if request.param == "snapshot" else steps()
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def test_nothing_of_a_files_page_is_cut(file: Path, open_file: Callable[..., Page]) -> None:
    page = open_file(file)
    for operator in page.get_by_role("button", name="aten::mm").all():
        # Its calls are marked in the chart.
        operator.click()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FITS)
        page.evaluate(FRAMES)
        screenshot(page, f"{file.name}-{width}")


def test_nothing_of_a_report_is_cut(
    recordings: Sessions, open_page: Callable[..., Guarded], tmp_path: Path
) -> None:
    """With every fold open; a window of 720 px at 200 % has 360 px for the page."""
    address = saved(recordings["quickstart"], tmp_path)
    report = ReportPage(open_page(address, device_scale_factor=2).page)
    report.open_all()
    for width in WIDTHS:
        report.page.set_viewport_size({"width": width, "height": 900})
        report.page.wait_for_function(FITS)
        report.page.wait_for_function(CHART_FOLLOWS, arg=width)
        report.assert_crisp()
        screenshot(report.page, f"page-quickstart-{width}")


def test_a_notebook_shows_a_files_page_in_a_frame(
    file: Path, open_page: Callable[..., Guarded], tmp_path: Path
) -> None:
    shown = _file_page.mime_bundle(gpumem.load(file), file)
    output = tmp_path / "output.html"
    output.write_text(f"<!doctype html><meta charset=utf-8>{shown['text/html']}")
    page = open_page(output.as_uri()).page
    headline = page.frame_locator("iframe").locator(".headline")
    expect(headline).to_contain_text(HEADLINES[file.name])
    page.get_by_text("as text").click()
    expect(page.locator("pre")).not_to_be_empty()
