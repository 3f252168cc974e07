"""Mouse, keys and touch, checked by what is then shown or exported."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import gpumem
import pytest
from playwright.sync_api import expect

from .live import FRAMES, KEPT, ReportPage, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from .conftest import OpenReport
    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]


@pytest.fixture
def report(open_report: OpenReport) -> ReportPage:
    """Open the page of a session with a leak."""
    return open_report("leak", permissions=["clipboard-read", "clipboard-write"])


def _whole(report: ReportPage) -> bool:
    return not report.host.get_by_role("button", name="whole session").is_visible()


def _drawn(report: ReportPage, chart: str) -> object:
    return report.pixels(chart)["colours"]


def _usage(report: ReportPage) -> str:
    return " ".join(report.host.locator(".usage").inner_text().split())


def test_the_bar_leads_to_who_holds_it(report: ReportPage) -> None:
    """A name is read out under the pointer; a click goes to it in the map."""
    assert _usage(report).startswith("1.5 GiB of 8 GiB in use")
    report.page.mouse.move(*report.point("now", 0.05, 0.3))
    report.page.evaluate(FRAMES)
    assert _usage(report).startswith("kept 1.25 GiB, your names")
    report.page.mouse.click(*report.point("now", 0.05, 0.3))
    expect(report.canvas("holders")).to_be_focused()
    assert report.host.locator(".held .reading code").first.inner_text() == "kept"


def test_the_bar_leads_to_what_was_found(open_report: OpenReport) -> None:
    """Without holders: arrows move from part to part, Enter goes to the card."""
    report = open_report("unseen")
    canvas = report.canvas("now")
    canvas.press("ArrowRight")
    assert _usage(report).startswith("allocated")
    canvas.press("End")
    assert _usage(report).startswith("free")
    canvas.press("PageUp")
    canvas.press("Enter")
    expect(report.card(KEPT)).to_be_focused()
    assert report.card(KEPT).get_attribute("data-chosen") is not None


def test_a_drag_zooms_and_a_double_click_shows_all(report: ReportPage) -> None:
    """The samples show that part of the time, and the minimap where it is."""
    before = {chart: _drawn(report, chart) for chart in ("timeline",)}
    report.drag("timeline", 0.4, 0.6)
    assert not _whole(report)
    for chart, drawn in before.items():
        assert _drawn(report, chart) != drawn, chart
    brush = report.host.locator("[data-chart=minimap] ~ .brush")
    assert brush.is_visible()
    report.page.mouse.dblclick(*report.point("timeline", 0.5))
    assert _whole(report)
    assert not brush.is_visible()
    report.page.mouse.move(2, 2)
    report.page.evaluate(FRAMES)
    for chart, drawn in before.items():
        report.canvas(chart).press("Escape")
        assert _drawn(report, chart) == drawn, chart


def test_the_wheel_zooms_only_with_ctrl(report: ReportPage) -> None:
    """Without it the page scrolls, as everywhere."""
    report.page.mouse.move(*report.point("timeline", 0.5))
    report.page.mouse.wheel(0, 40)
    assert _whole(report)
    report.page.mouse.move(*report.point("timeline", 0.5))
    report.page.keyboard.down("Control")
    report.page.mouse.wheel(0, -240)
    report.page.keyboard.up("Control")
    expect(report.host.get_by_role("button", name="whole session")).to_be_visible()


def test_the_brush_moves_what_is_in_view(report: ReportPage) -> None:
    """It is drawn on the minimap, moved as a whole, and by its ends."""
    report.drag("minimap", 0.3, 0.5)
    first, last = map(int, report.state()["span"].split("-"))
    report.drag("minimap", 0.4, 0.6)
    moved_first, moved_last = map(int, report.state()["span"].split("-"))
    assert first < moved_first
    assert last < moved_last
    report.drag("minimap", 0.7, 0.9)
    assert int(report.state()["span"].split("-")[1]) > moved_last


def test_a_run_is_found_again_in_the_other_chart(report: ReportPage) -> None:
    """The same run is read out there, and the keyboard is there too."""
    canvas = report.canvas("cells")
    canvas.press("ArrowRight")
    canvas.press(".")
    read = report.tip()
    canvas.press("t")
    expect(report.canvas("timeline")).to_be_focused()
    assert report.tip() == read
    report.canvas("timeline").press("t")
    expect(report.canvas("cells")).to_be_focused()


def test_every_key_of_the_list_does_something(report: ReportPage) -> None:
    """The runs before and after, the first and the last, pace, device, and the whole again."""
    cells, timeline = report.canvas("cells"), report.canvas("timeline")
    cells.press("PageUp")
    first = report.tip()
    cells.press(".")
    second = report.tip()
    cells.press(",")
    assert report.tip() == first != second
    cells.press("PageDown")
    assert "model = sim.tensor" in report.tip()
    cells.press("Escape")
    before = _drawn(report, "timeline")
    timeline.press("c")
    assert _drawn(report, "timeline") != before
    timeline.press("c")
    assert _drawn(report, "timeline") == before
    timeline.press("p")
    assert "all cells 1.5 GiB" in report.tip(), "the peak"
    timeline.press("+")
    timeline.press("+")
    near = report.state()["span"]
    timeline.press("Shift+ArrowRight")
    assert report.state()["span"] != near
    near = report.exported_state()
    timeline.press("-")
    assert report.exported_state() != near
    assert not _whole(report)
    for key in ("0", "Home"):
        timeline.press(key)
        assert _whole(report)
        timeline.press("+")
    timeline.press("d")
    assert "host" in report.host.locator("header .muted").inner_text()


def test_the_pointer_stands_in_both_charts(report: ReportPage) -> None:
    """The run under it has the line of the rows, the instant stands in its own chart."""
    report.hover("timeline", "kept.append")
    assert report.host.locator(".pointer").is_visible()
    assert report.host.locator("[data-chart=timeline] ~ .cursor").is_visible()


def test_cells_are_found_by_their_source(report: ReportPage) -> None:
    """Typing leaves their rows; the key for it works from a chart."""
    rows = report.host.locator(".cell")
    report.canvas("cells").press("/")
    report.page.keyboard.type("MODEL")
    expect(report.host.get_by_text("1 found")).to_be_visible()
    expect(rows).to_have_count(1)
    report.page.keyboard.press("Escape")
    expect(rows).to_have_count(4)
    assert report.host.get_by_label("find cells by their source").input_value() == ""


def test_sizes_are_shown_in_the_units_of_choice(report: ReportPage, tmp_path: Path) -> None:
    """In charts, cards, tables and pictures, also after a reload; Python has its own."""
    assert "64 MiB" in report.cards()[0]
    report.unfold("settings")
    report.host.get_by_role("button", name="GB", exact=True).click()
    assert "67.1 MB" in report.cards()[0]
    assert "MiB" not in report.host.inner_text()
    assert "GB" in (report.canvas("timeline").get_attribute("aria-label") or "")
    drawn = _exported(report, "SVG", tmp_path).decode()
    assert "MB" in drawn
    assert "iB" not in drawn
    assert report.state()["units"] == "GB"
    report.page.reload()
    again = ReportPage(report.page)
    assert "67.1 MB" in again.cards()[0]
    again.host.get_by_role("button", name="bytes", exact=True).click()
    assert "67108864 B" in again.cards()[0]
    again.host.get_by_role("button", name="GiB", exact=True).click()
    assert "64 MiB" in again.cards()[0]


def test_a_layer_can_be_hidden(report: ReportPage) -> None:
    """What is not drawn is not in the legend either."""
    before = _drawn(report, "timeline")
    report.host.get_by_role("checkbox", name="allocated").uncheck()
    assert _drawn(report, "timeline") != before
    report.host.get_by_role("checkbox", name="allocated").check()
    assert _drawn(report, "timeline") == before


def test_a_card_is_dismissed_and_comes_back(report: ReportPage) -> None:
    """The reader is done with it until they want it again."""
    report.card(KEPT).get_by_role("button", name="dismiss").click()
    assert report.cards() == []
    assert report.host.get_by_text("1 finding dismissed").is_visible()
    report.host.get_by_role("button", name="undo").last.click()
    assert report.cards() == ["kept leaks 64 MiB a step"]


def test_what_is_looked_at_survives_a_reload(report: ReportPage) -> None:
    """Zoom, choice, thresholds and what is dismissed are in the page's address."""
    report.drag("timeline", 0.4, 0.6)
    report.host.get_by_role("button", name="per run").click()
    report.card(KEPT).get_by_role("button", name="dismiss").click()
    report.slide("2 MiB")
    state = report.state()
    report.page.reload()
    again = ReportPage(report.page)
    assert again.state() == state
    assert not _whole(again)
    assert again.cards() == []
    assert {"span", "measure", "dismissed", "min_growth"} <= state.keys()


def test_every_threshold_has_its_default_marked(report: ReportPage) -> None:
    """What was moved goes back to it."""
    report.unfold("settings")
    slider = report.host.get_by_label("Runs that tell a leak", exact=True)
    slider.focus()
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "30 runs"
    assert report.card("64 MiB in each of 20 steps").count() == 1
    report.host.get_by_role("button", name="default 9 runs").click()
    assert slider.get_attribute("aria-valuetext") == "9 runs"
    assert report.card("leaks 64 MiB a step").count() == 1


def test_a_threshold_goes_back_to_that_of_the_recording(
    recordings: Sessions, open_report: OpenReport
) -> None:
    """Also to one between two positions of the slider; it is called a default only if it is one."""
    rules = gpumem.Rules(min_growth=5 << 20)
    report = open_report(gpumem.report(recordings["leak"], rules=rules))
    report.unfold("settings")
    slider = report.host.get_by_label("Smallest growth that counts", exact=True)
    slider.focus()
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "16 GiB"
    report.host.get_by_role("button", name="recording's 5 MiB").click()
    assert slider.get_attribute("aria-valuetext") == "5 MiB"
    assert report.host.get_by_role("button", name="default 9 runs").count() == 1


def test_the_list_of_keys_is_a_key_away(report: ReportPage) -> None:
    """And another key away from being gone."""
    keys = report.host.get_by_role("region", name="keys")
    report.canvas("cells").press("?")
    assert keys.is_visible()
    screenshot(report.page, "keys")
    report.canvas("cells").press("Escape")
    assert not keys.is_visible()


def _exported(report: ReportPage, words: str, folder: Path) -> bytes:
    report.host.get_by_text("Export", exact=True).click()
    with report.page.expect_download() as started:
        report.host.get_by_role("button", name=words).click()
    path = folder / started.value.suggested_filename
    started.value.save_as(path)
    content: bytes = path.read_bytes()
    return content


def test_the_report_leaves_the_page(report: ReportPage, tmp_path: Path) -> None:
    """As pictures, and as the recording that it was made from."""
    assert _exported(report, "PNG", tmp_path).startswith(b"\x89PNG")
    slide = _exported(report, "Picture 16:9", tmp_path)
    assert struct.unpack(">II", slide[16:24]) == (1600, 900)
    assert _exported(report, "SVG", tmp_path).startswith(b"<svg ")
    _exported(report, "Recording", tmp_path)
    loaded = gpumem.load(tmp_path / "gpumem.recording")
    assert report.cards() == [finding.title for finding in gpumem.report(loaded).findings]


def test_what_is_picked_goes_on_in_python(report: ReportPage) -> None:
    """The code names the finding and its runs."""
    report.card(KEPT).get_by_role("button", name="Show its run").click()
    report.page.evaluate("() => navigator.clipboard.writeText('')")
    report.host.get_by_text("Export", exact=True).click()
    report.host.get_by_role("button", name="Copy as Python").click()
    report.page.wait_for_function("() => navigator.clipboard.readText()")
    code = report.page.evaluate("() => navigator.clipboard.readText()")
    compile(code, "cell", "exec")
    assert "report.findings" in code
    assert "finding.runs" in code


def _spread(page: Page, left: float, right: float, y: float) -> None:
    """Put two fingers down and move them apart."""
    session = page.context.new_cdp_session(page)
    for step in range(7):
        kind = "touchStart" if step == 0 else "touchMove"
        fingers = [
            {"x": x, "y": y, "id": idx}
            for idx, x in enumerate((left - 20 * step, right + 20 * step))
        ]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_fingers_read_out_and_zoom(open_report: OpenReport) -> None:
    """A tap reads a run out, two fingers that spread show less time."""
    report = open_report("leak", has_touch=True)
    page = report.page
    page.touchscreen.tap(*report.point("cells", 0.5))
    page.evaluate(FRAMES)
    assert report.tip()
    (left, y), (right, _) = report.point("timeline", 0.45), report.point("timeline", 0.55)
    _spread(page, left, right, y)
    expect(report.host.get_by_role("button", name="whole session")).to_be_visible()
