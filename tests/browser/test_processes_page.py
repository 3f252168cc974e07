"""The page of processes side by side: ranks of a job, child processes of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from .live import FRAMES, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    Open = Callable[..., Page]

CHARTS = ".multiples canvas"
# Of 22 canvases with 24 charts each, this many may be on the screen at once.
IN_VIEW = 4


def charts(page: Page) -> list[str]:
    """Return the descriptions of the canvases."""
    found: list[str] = page.locator(CHARTS).evaluate_all("all => all.map(it => it.ariaLabel)")
    return found


def rows(page: Page) -> list[str]:
    """Return the names in the table."""
    names: list[str] = page.locator(".rows-of-processes tr[data-row] .operator").all_inner_texts()
    return names


def test_the_rank_that_leaks_comes_first(job: Callable[..., Path], open_file: Open) -> None:
    page = open_file(job(8, leaking=1))
    expect(page.locator("h2")).to_have_text("8 ranks")
    expect(page.locator(".headline")).to_have_text(
        "Rank 7 keeps 24 MiB a step, held by losses; the others keep nothing"
    )
    expect(page.locator(".cause .sign").first).to_have_text("▲")
    expect(page.locator(".command")).to_contain_text("jupyter gpumem report ")
    assert charts(page)[0].startswith("8 charts of one scale: rank 7, ")
    expect(page.locator(".legend")).to_contain_text("since its first step, over ")
    expect(page.locator(".notes")).to_contain_text("imports and loading among it")
    assert rows(page) == [f"rank {n}" for n in (7, 0, 1, 2, 3, 4, 5, 6)]
    expect(page.locator("#still")).to_be_hidden()
    expect(page.locator("#note")).to_be_hidden()


def test_a_cause_shows_its_rows(job: Callable[..., Path], open_file: Open) -> None:
    page = open_file(job(8, leaking=2))
    button = page.get_by_role("button", name="Show all 2")
    expect(page.locator(".headline")).to_contain_text("2 of 8 ranks (6, 7) keep ")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    chosen = page.locator("tr[data-chosen] .operator")
    assert chosen.all_inner_texts() == ["rank 6", "rank 7"]
    page.keyboard.press("Escape")
    expect(page.locator("tr[data-chosen]")).to_have_count(0)


def test_one_instant_is_read_out_of_all(job: Callable[..., Path], open_file: Open) -> None:
    page = open_file(job(8, leaking=1))
    reading, canvas = page.locator(".multiples .reading"), page.locator(CHARTS).first
    expect(reading).to_contain_text("Point at a chart")
    read = []
    for x in range(10, 180, 8):
        canvas.hover(position={"x": x, "y": 50})
        page.evaluate(FRAMES)
        read.append(reading.inner_text())
    assert all(words.startswith("At step ") and ": rank 7 " in words for words in read), read
    assert any(" has +" in words and "middle half" in words for words in read), read
    page.mouse.move(5, 5)
    expect(reading).to_contain_text("Point at a chart")
    canvas.focus()
    for key in ("ArrowRight", "ArrowDown", "Home"):
        page.keyboard.press(key)
    expect(reading).to_contain_text("At step 0: rank 0 ")
    page.keyboard.press("Enter")
    assert page.locator("tr[data-chosen] .operator").all_inner_texts() == ["rank 0"]
    page.keyboard.press("Escape")
    expect(reading).to_contain_text("Point at a chart")


def test_the_table_is_sorted_and_searched(job: Callable[..., Path], open_file: Open) -> None:
    page = open_file(job(32, leaking=1))
    found = page.locator(".rows-of-processes [role=status]")
    expect(found).to_have_text("32 in all · what matters comes first")
    page.get_by_role("button", name="Rank", exact=True).click()
    assert rows(page)[:3] == ["rank 0", "rank 1", "rank 2"]
    page.get_by_role("button", name="Next").click()
    assert rows(page)[-1] == "rank 31"
    page.get_by_role("searchbox").fill("rank 3")
    expect(found).to_have_text("3 of 32 · by rank")
    assert rows(page) == ["rank 3", "rank 30", "rank 31"]
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="What matters first").click()
    assert rows(page)[0] == "rank 31"


def test_of_512_the_six_that_leak_come_first_and_the_rest_opens(
    job: Callable[..., Path], open_file: Open
) -> None:
    page = open_file(job(512, leaking=6))
    leaking = range(506, 512)
    expect(page.locator(".headline")).to_contain_text(
        "6 of 512 ranks (506, 507, 508, 509, 510, 511) keep "
    )
    assert page.locator(".cause").count() == 1, "one cause, one finding"
    assert rows(page)[:7] == [*(f"rank {n}" for n in leaking), "rank 0"]
    assert page.locator(CHARTS).count() == 1
    screenshot(page, "processes-512")
    page.get_by_role("button", name="… and 488 more alike").click()
    assert page.locator(CHARTS).count() > 20
    page.locator(CHARTS).nth(3).scroll_into_view_if_needed()
    painted = page.evaluate(PAINTED_BY_A_MOVE)
    assert 1 <= len(painted) <= IN_VIEW, painted
    page.get_by_role("button", name="Show only the first ones").click()
    assert page.locator(CHARTS).count() == 1


# The canvases that a move of the pointer paints again: each is cleared before.
PAINTED_BY_A_MOVE = """async () => {
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  const painted = new Set();
  CanvasRenderingContext2D.prototype.clearRect = function (...rect) {
    painted.add(this.canvas.dataset.chart);
    return clear.apply(this, rect);
  };
  const canvas = document.querySelectorAll(".multiples canvas")[3];
  const { left, top } = canvas.getBoundingClientRect();
  const place = { clientX: left + 20, clientY: top + 40, bubbles: true };
  canvas.dispatchEvent(new PointerEvent("pointermove", place));
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  await frame();
  CanvasRenderingContext2D.prototype.clearRect = clear;
  return [...painted];
}"""


def test_one_process_has_no_others_behind_it(job: Callable[..., Path], open_file: Open) -> None:
    page = open_file(job(1, leaking=1))
    expect(page.locator(".headline")).to_contain_text("Rank 0 keeps 24 MiB a step")
    expect(page.locator(".legend")).not_to_contain_text("median")
    page.locator(CHARTS).hover(position={"x": 60, "y": 50})
    expect(page.locator(".multiples .reading")).not_to_contain_text("median")
    screenshot(page, "processes-one")


def test_a_session_without_children_says_so(ranks: dict[str, Path], open_file: Open) -> None:
    page = open_file(ranks["steady"], "--processes")
    expect(page.locator(".headline")).to_have_text("Nothing was recorded here.")
    assert not page.locator(".multiples").is_visible()
    assert not page.locator(".rows-of-processes").is_visible()
    screenshot(page, "processes-none")


def test_nothing_found_is_said(job: Callable[..., Path], open_file: Open) -> None:
    page = open_file(job(4))
    expect(page.locator(".headline")).to_have_text(
        "No rank ran out of memory, grows, or differs from the others."
    )
    expect(page.locator(".cause .sign")).to_have_text("✓")
