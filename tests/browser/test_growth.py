"""What the growth chart and the timeline show of runs, by the picture that leaves the page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, NamedTuple

import gpumem
import pytest

from .live import FRAMES, ReportPage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]

UNITS = {"": 1, "B": 1, "MiB": 1 << 20, "GiB": 1 << 30}


@pytest.fixture
def report(recordings: Sessions, open_page: Open, tmp_path: Path) -> Callable[[str], ReportPage]:
    """Open the page of a session."""

    def of(session: str) -> ReportPage:
        path = tmp_path / "report.html"
        gpumem.report(recordings[session]).save(path)
        return ReportPage(open_page(path.as_uri()).page)

    return of


class Word(NamedTuple):
    """A text of the exported picture, and where it stands."""

    text: str
    y: float
    anchor: str


def _words(report: ReportPage) -> list[Word]:
    """Return what is written in the picture that leaves the page, in the order of drawing."""
    svg = report.host.evaluate("(host) => host.exported('svg')")
    texts = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 (our own)
    found = [(text, text.attrib) for text in texts]
    return [
        Word((text.text or "").strip(), float(it["y"]), it["text-anchor"]) for text, it in found
    ]


def _ticks(report: ReportPage) -> list[list[tuple[float, float]]]:
    """Return the bytes and heights of each axis, from the growth chart on."""
    axes: list[list[tuple[float, float]]] = []
    for word in _words(report):
        size = re.fullmatch(r"\+?([\d.]+) ?(\w*)", word.text)
        if word.anchor != "end" or size is None:
            continue
        if word.text == "0":
            axes.append([])
        axes[-1].append((float(size[1]) * UNITS[size[2]], word.y))
    return axes


def _assert_linear(ticks: list[tuple[float, float]]) -> None:
    (zero, foot), *others = ticks
    assert zero == 0
    assert len(others) > 1
    scales = [(foot - y) / n_bytes for n_bytes, y in others]
    assert scales == pytest.approx([scales[0]] * len(scales), rel=0.02)


def test_twice_the_bytes_are_twice_as_high(report: Callable[[str], ReportPage]) -> None:
    """By mouse and by keys: of what was kept, of the level, and of the timeline."""
    page = report("leak")
    labels = [word.text for word in _words(page)]
    assert "+512 MiB" in labels
    for ticks in _ticks(page):
        _assert_linear(ticks)
    page.host.get_by_role("button", name="level", exact=True).click()
    [level, *_] = _ticks(page)
    _assert_linear(level)
    assert "+512 MiB" not in [word.text for word in _words(page)]
    page.canvas("growth").press("k")
    assert [word.text for word in _words(page)] == labels


def test_a_run_that_ran_out_says_so_in_both_charts(report: Callable[[str], ReportPage]) -> None:
    """By a word at its end, not by a colour; also in the table for those who see no chart."""
    page = report("oom")
    words = [word.text for word in _words(page)]
    assert words.count("OOM") == 2
    assert "In [8] · out of memory" in words
    table = page.host.get_by_role("table", name="Cells and what was found in them")
    [row] = [it for it in table.get_by_role("row").all_inner_texts() if "out of memory" in it]
    assert "ended out of memory" in row
    assert "OOM" not in [word.text for word in _words(report("leak"))]


def test_runs_of_a_cell_are_one_series(report: Callable[[str], ReportPage]) -> None:
    """They stand together under the cell's name, with what each keeps and how many there are."""
    page = report("thousand")
    words = [word.text for word in _words(page)]
    assert "+2 MiB in each of 999 runs" in words
    assert any(word.endswith("· 999 runs") for word in words)
    # Once in each of the charts.
    assert words.count("kept.append(sim.tensor(2 << 20))") == 2
    growth = page.canvas("growth")
    growth.press("PageDown")
    assert re.search(r"kept\.append\(.* In \[\d+\] · run 999 ", page.tip())
    growth.press(",")
    assert "· run 998 " in page.tip()


def test_the_host_is_a_device_of_its_own(report: Callable[[str], ReportPage]) -> None:
    """Its charts, its thresholds and its words; the choice is kept for the next look."""
    page = report("leak")
    page.host.get_by_role("button", name="host", exact=True).click()
    words = [word.text for word in _words(page)]
    assert "resident, sampled" in words
    assert "this process, sampled" not in words
    assert page.host.get_by_role("button", name="host").get_attribute("aria-pressed") == "true"
    page.canvas("growth").press("d")
    assert "this process, sampled" in [word.text for word in _words(page)]


def test_a_run_is_shown_where_it_is_in_the_other_chart(
    report: Callable[[str], ReportPage],
) -> None:
    """What is pointed at in one chart has a frame in both, around the same run."""
    page = report("leak")
    page.hover("growth", "model = sim.tensor")
    page.page.evaluate(FRAMES)
    band = page.host.locator("[data-chart=timeline] ~ .band")
    assert band.is_visible()
    there = band.bounding_box()
    assert there is not None
    page.page.mouse.move(there["x"] + there["width"] / 2, there["y"] + there["height"] / 2)
    page.page.evaluate(FRAMES)
    assert "model = sim.tensor" in page.tip()
    assert page.host.locator("[data-chart=growth] ~ .band").is_visible()
