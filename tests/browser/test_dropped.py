"""Files dropped onto a report: recordings are shown, of others it says what opens them."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from .host import Host

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from .conftest import OpenReport
    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]

DROP = """async ([selector, name, text]) => {
  const bytes = Uint8Array.from(atob(text), (it) => it.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const options = { bubbles: true, composed: true, cancelable: true, dataTransfer };
  const drop = new DragEvent("drop", options);
  document.querySelector(selector).dispatchEvent(drop);
  return drop.defaultPrevented;
}"""
LEAKS = ".verdict .card"


def drop(page: Page, selector: str, name: str, content: bytes) -> None:
    """Drop a file onto an element, which takes it."""
    assert page.evaluate(DROP, [selector, name, b64encode(content).decode()])


def test_a_recording_is_shown_in_place_of_the_page(
    recordings: Sessions, open_report: OpenReport
) -> None:
    page = open_report("fixed").page
    before = page.locator(".gpumem-report header .muted").first.inner_text()
    drop(page, "main", "other.gpumem", recordings["leak"].to_bytes())
    expect(page.locator("#note")).to_contain_text("This is other.gpumem, which was dropped here")
    expect(page.locator(".gpumem-report:visible")).to_have_count(1)
    expect(page.locator(LEAKS).last).to_be_visible()
    # A second one takes the place of the first.
    drop(page, "main", "third.gpumem", recordings["leak"].to_bytes())
    expect(page.locator("#note")).to_contain_text("third.gpumem")
    expect(page.locator(".gpumem-report")).to_have_count(2)
    page.get_by_role("button", name="Back", exact=True).click()
    expect(page.locator(".gpumem-report")).to_have_count(1)
    expect(page.locator(".gpumem-report header .muted").first).to_have_text(before)
    expect(page.locator("#note")).to_be_empty()


def test_of_other_files_it_says_how_they_are_opened(
    recordings: Sessions, open_report: OpenReport
) -> None:
    page = open_report("leak").page
    drop(page, "main", "snapshot.pickle", b"\x80\x04}.")
    expect(page.locator("#note")).to_contain_text("jupyter gpumem report snapshot.pickle")
    damaged = recordings["leak"].to_bytes()[:40] + b"?" * 40
    drop(page, "main", "damaged.gpumem", damaged)
    expect(page.locator("#note")).to_contain_text("damaged.gpumem could not be shown: ")
    expect(page.locator(".gpumem-report:visible")).to_have_count(1)
    expect(page.locator("#still")).to_be_hidden()


def test_a_notebook_takes_recordings_too(
    open_page: Open, recordings: Sessions, tmp_path: Path
) -> None:
    page = open_page("about:blank").page
    host = Host.on(page, recordings["fixed"], tmp_path)
    host.show()
    drop(page, ".gpumem-report", "other.gpumem", recordings["leak"].to_bytes())
    expect(page.get_by_role("status").filter(has_text="dropped here")).to_be_visible()
    expect(page.locator(".gpumem-report:visible")).to_have_count(1)
    drop(page, ".gpumem-report", "trace.json", b"{}")
    expect(page.get_by_role("status").filter(has_text="%gpumem_report trace.json")).to_be_visible()
    host.close()
    expect(page.locator(".gpumem-report")).to_have_count(0)
