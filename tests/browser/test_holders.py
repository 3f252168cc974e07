"""The map of holders: what mouse and keys show of who holds memory, and what is exported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
import pytest
from playwright.sync_api import expect

from tests.support.reports import recording_in

from .live import FRAMES, QUIET, SETUP, ReportPage, record, screenshot

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator

    from .conftest import OpenReport

MODEL = """class Body:
    def __init__(self):
        self.layers = [sim.tensor(n << 20) for n in (256, 128)]
        self.norm = sim.tensor(64 << 20)
class Net:
    def __init__(self):
        self.body = Body()
        self.head = sim.tensor(96 << 20)
model = Net()"""
MINUS = "\u2212"
CELLS = [
    SETUP,
    QUIET,
    "%gpumem on",
    MODEL,
    "old = sim.tensor(200 << 20)",
    "sim.tensor(300 << 20)",
    "old = None\nlosses = [sim.tensor(512 << 20)]",
]


@pytest.fixture(scope="session")
def held(tmp_path_factory: pytest.TempPathFactory) -> gpumem.types.Recording:
    """Record a session in which names, an attribute and IPython hold memory."""
    path = tmp_path_factory.mktemp("held") / "recording"
    record(CELLS, path)
    return recording_in(path)


@pytest.fixture
def report(held: gpumem.types.Recording, open_report: OpenReport) -> ReportPage:
    """Open its page."""
    report = open_report(held)
    report.unfold("map")
    return report


def _read(report: ReportPage) -> str:
    return " ".join(report.host.locator(".held .reading").inner_text().split())


def _place(report: ReportPage) -> str:
    place = " ".join(report.host.locator(".crumbs").inner_text().split())
    return place.replace("\u203a", ">")


def _moment(report: ReportPage, name: str) -> Locator:
    return report.host.locator(".held").get_by_role("button", name=name, exact=True)


def _fields(report: ReportPage) -> dict[str, tuple[float, float]]:
    """Return what the keyboard reads of each field, with where its frame is."""
    canvas = report.canvas("holders")
    canvas.press("PageUp")
    fields: dict[str, tuple[float, float]] = {}
    while (read := _read(report)) not in fields:
        box = report.host.locator("[data-chart=holders] ~ .band").bounding_box()
        assert box is not None
        fields[read] = (box["width"], box["height"])
        canvas.press("ArrowRight")
    return fields


def test_each_name_is_a_field_as_large_as_what_it_holds(report: ReportPage) -> None:
    """The keyboard goes from the largest to the smallest, and reads each."""
    fields = _fields(report)
    names = [read.split()[0] for read in fields]
    assert names == ["model", "losses", "Out[6]"]
    areas = [width * height for width, height in fields.values()]
    assert areas[0] / areas[2] == pytest.approx(544 / 300, rel=0.1)
    assert "model 544 MiB, 40 % Net of 4 tensors model.body.layers[0]" in next(iter(fields))
    assert report.host.locator("[role=status]").inner_text().startswith("Out[6]")


def test_keys_go_into_a_name_and_out_again(report: ReportPage) -> None:
    """Enter goes in, Escape goes out to where one was."""
    canvas = report.canvas("holders")
    canvas.press("ArrowRight")
    canvas.press("Enter")
    assert _place(report) == "sim:0 > model · 544 MiB"
    assert _read(report).startswith(".body 448 MiB, 82 %")
    canvas.press("Enter")
    assert _place(report) == "sim:0 > model > .body · 448 MiB"
    assert "model.body.layers" in _read(report)
    canvas.press("Escape")
    assert _read(report).startswith(".body")
    canvas.press("Escape")
    assert _place(report).startswith("sim:0 · 1.32 GiB")
    assert _read(report).startswith("model")
    expect(canvas).to_be_focused()


def test_the_mouse_goes_in_and_the_way_back_is_above(report: ReportPage) -> None:
    """A click on a field goes in, one on the way goes back; the address keeps the place."""
    point = report.point("holders", 0.1)
    report.page.mouse.move(*point)
    report.page.evaluate(FRAMES)
    assert _read(report).startswith("model")
    report.page.mouse.click(*point)
    assert _place(report) == "sim:0 > model · 544 MiB"
    assert report.state()["inside"] == "model"
    report.page.reload()
    again = ReportPage(report.page)
    assert _place(again) == "sim:0 > model · 544 MiB"
    again.host.locator(".crumbs").get_by_role("button", name="sim:0").click()
    assert _place(again) == "sim:0 · 1.32 GiB"


def test_a_run_is_seen_by_what_it_changed(report: ReportPage) -> None:
    """Before, after, and what grew and shrank, with its sign and its colour."""
    before = report.pixels("holders")["colours"]
    _moment(report, "change").click()
    assert [read.split()[:4] for read in _fields(report)] == [
        ["losses", "+512", "MiB", "list"],
        ["old", f"{MINUS}200", "MiB", "gone"],
    ]
    assert _place(report) == "sim:0 · +312 MiB"
    colours = report.pixels("holders")["colours"]
    assert "26,127,55" in colours
    assert "26,127,55" not in before
    screenshot(report.page, "holders-change")
    _moment(report, "before").click()
    assert [read.split()[0] for read in _fields(report)] == ["model", "Out[6]", "old"]
    assert report.state()["holders"] == "before"
    _moment(report, "after").click()
    assert report.pixels("holders")["colours"] == before


def test_a_part_of_the_device_leads_to_who_holds_it(report: ReportPage) -> None:
    """Both have one colour."""
    bar = report.canvas("now")
    bar.press("ArrowRight")
    assert report.host.locator(".usage").inner_text().startswith("model")
    bar.press("Enter")
    expect(report.canvas("holders")).to_be_focused()
    assert _read(report).startswith("model")
    shared = report.pixels("now")["colours"].keys() & report.pixels("holders")["colours"]
    assert "22,122,153" in shared


def test_the_same_is_there_as_a_list(report: ReportPage) -> None:
    """With the paths to copy."""
    report.host.locator(".held").get_by_text("as a list").click()
    items = report.host.locator(".held .tree > li")
    assert [text.split()[0] for text in items.all_inner_texts()] == ["model", "losses", "Out[6]"]
    items.first.locator("summary").first.click()
    assert ".head Tensor 96 MiB" in " ".join(items.first.inner_text().split())
    items.first.get_by_role("button", name="copy path").focus()
    expect(items.first.get_by_role("button", name="copy path")).to_be_focused()


def test_a_card_leads_to_the_name_in_the_map(open_report: OpenReport) -> None:
    """And the name under the pointer leads to its cards."""
    report = open_report("thousand")
    report.unfold("map")
    card = report.card("leaks 2 MiB a run")
    card.get_by_role("button", name="show in map").click()
    expect(report.canvas("holders")).to_be_focused()
    assert _read(report).startswith("kept 1.95 GiB, 100 %")
    assert card.get_attribute("data-linked") is not None


def test_what_nobody_looked_at_is_said(open_report: OpenReport, tmp_path: Path) -> None:
    """Where no look was taken there is a sentence, and nothing to choose."""
    off = "%config GpuMem.holders = False"
    record([SETUP, QUIET, off, "%gpumem on", "x = sim.tensor(64 << 20)"], tmp_path / "off")
    report = open_report(gpumem.load(tmp_path / "off"))
    report.unfold("map")
    said = report.canvas("holders").get_attribute("aria-label")
    assert said is not None
    assert said.startswith("who holds sim:0 is not known")
    assert not _moment(report, "change").is_visible()
