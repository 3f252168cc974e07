"""The page of a memory snapshot: its levels, who holds what at a moment, where memory lies."""

from __future__ import annotations

import pickle
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.python.snapshots import segments, with_names, with_native_frames, with_settings

from .live import FRAMES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    Open = Callable[..., Page]


@pytest.fixture
def page_of(open_file: Open, tmp_path: Path) -> Callable[..., Page]:
    """Write a snapshot, and open its page."""

    def page(snapshot: object) -> Page:
        source = tmp_path / "snapshot.pickle"
        source.write_bytes(pickle.dumps(snapshot))
        return open_file(source)

    return page


def test_the_page_opens_with_what_went_wrong(page_of: Callable[..., Page]) -> None:
    page = page_of(with_settings())
    expect(page.locator(".headline")).to_contain_text("Out of memory: 25 MiB wanted")
    expect(page.locator(".headline")).to_contain_text("the largest hole has 20 MiB")
    expect(page.locator("#still")).to_be_hidden()
    expect(page.locator("#note")).to_be_hidden()
    names = page.locator("canvas").evaluate_all("all => all.map(it => it.ariaLabel)")
    assert len(names) == 2
    assert "reserved at most" in names[0]
    assert "by stack" in names[1]
    assert page.locator(".segment").count() > 0
    expect(page.locator(".failures")).to_contain_text("the driver had 4 MiB free")
    expect(page.locator(".failures")).to_contain_text("expandable_segments:True")


def test_a_moment_is_chosen_and_the_stacks_follow(page_of: Callable[..., Page]) -> None:
    page = page_of(with_settings())
    moment, stacks = page.locator("h3", has_text="Who holds what"), page.locator("canvas").nth(1)
    expect(moment).to_have_text("Who holds what, at the peak")
    at_peak = stacks.get_attribute("aria-label")
    assert at_peak is not None
    assert at_peak.startswith("25 MiB in ")
    page.get_by_role("button", name="End").click()
    expect(moment).to_have_text("Who holds what, at the end")
    assert stacks.get_attribute("aria-label") != at_peak
    page.locator("canvas").first.focus()
    page.keyboard.press("Home")
    expect(moment).to_have_text("Who holds what, after event 0")
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 14, box["y"] + 80)
    expect(moment).to_have_text("Who holds what, at the end")
    page.keyboard.press("ArrowLeft")
    expect(moment).to_contain_text("after event")
    page.get_by_role("button", name="after event").last.click()
    expect(moment).to_have_text("Who holds what, at the end")


def test_a_frame_fills_the_chart_and_escape_goes_back(page_of: Callable[..., Page]) -> None:
    page = page_of(with_settings())
    stacks = page.locator("canvas").nth(1)
    whole = stacks.get_attribute("aria-label")
    stacks.click(position={"x": 60, "y": 50})
    page.evaluate(FRAMES)
    part = stacks.get_attribute("aria-label")
    assert part != whole
    expect(page.locator(".icicle + .reading")).to_contain_text("linear")
    stacks.focus()
    page.keyboard.press("Escape")
    assert stacks.get_attribute("aria-label") == whole


def test_a_snapshot_without_a_trace_shows_what_it_has(page_of: Callable[..., Page]) -> None:
    page = page_of({"segments": segments()})
    expect(page.locator(".headline")).to_contain_text("reserved is allocated")
    expect(page.locator("h3", has_text="Who holds what")).to_contain_text("in the snapshot")
    assert not page.locator("canvas").first.is_visible()
    page.get_by_role("button", name="cuda:1").click()
    expect(page.get_by_role("button", name="cuda:1")).to_have_attribute("aria-pressed", "true")


DROP = """async ([name, text]) => {
  const bytes = Uint8Array.from(atob(text), (it) => it.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const options = { bubbles: true, cancelable: true, dataTransfer };
  document.body.dispatchEvent(new DragEvent("drop", options));
}"""


def test_another_snapshot_can_be_dropped_onto_the_page(page_of: Callable[..., Page]) -> None:
    page = page_of(with_settings())
    dropped = b64encode(pickle.dumps({"segments": segments()})).decode()
    page.evaluate(DROP, ["later.pickle", dropped])
    expect(page.locator(".headline")).to_contain_text("reserved is allocated")
    expect(page.locator(".name")).to_contain_text("later.pickle")
    assert page.title() == "later.pickle · PyTorch memory snapshot"
    expect(page.locator("#note")).to_be_hidden()
    page.evaluate(DROP, ["photo.png", b64encode(b"\x89PNG").decode()])
    expect(page.locator("#note")).to_contain_text("photo.png: ")
    expect(page.locator(".headline")).to_contain_text("reserved is allocated")


def test_what_holds_a_block_is_at_the_end_of_its_stack(page_of: Callable[..., Page]) -> None:
    page = page_of(with_names())
    page.get_by_role("button", name="End").click()
    page.get_by_role("searchbox").fill("losses")
    canvas = page.locator("canvas").nth(1)
    box = canvas.bounding_box()
    assert box is not None
    read = []
    for row in range(1, 6):
        page.mouse.move(box["x"] + 20, box["y"] + 20 * row + 10)
        page.evaluate(FRAMES)
        read.append(page.locator(".icicle + .reading").inner_text())
    assert any("held by losses[]" in words for words in read), read


def test_the_page_says_how_long_blocks_lived(page_of: Callable[..., Page]) -> None:
    page = page_of(with_native_frames())
    table = page.locator("section", has_text="How long blocks lived").locator("table")
    assert table.locator("tr").count() > 2
    assert "not freed" in table.locator("tr").first.inner_text()
