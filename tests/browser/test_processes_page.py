"""The page of processes side by side: ranks of a job, child processes of a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _file_page
from playwright.sync_api import expect

from .live import FITS, FRAMES, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from .live import Guarded

    Open = Callable[..., Guarded]
    Make = Callable[..., Page]

SCRIPT = """
    import sys, time
    import gpumem
    from gpumem import sim

    sim.use(total_bytes=1 << 30)
    with gpumem.record("start"):
        model, losses = sim.tensor(100 << 20), []
    print("began", flush=True)
    sys.stdin.readline()
    with gpumem.record("train"):
        for step in gpumem.steps(range(30)):
            batch = sim.tensor((60 + step % 7) << 20)
            if sys.argv[1] == "leaking":
                losses.append(sim.tensor(24 << 20))
            time.sleep(0.01)
            del batch
    gpumem.recording().save(sys.argv[2])
"""
CHARTS = ".multiples canvas"
# Of 22 canvases with 24 charts each, so many may be on the screen at once.
IN_VIEW = 4


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a recording of a rank that leaks, and of one that does not."""
    folder = tmp_path_factory.mktemp("ranks")
    script = folder / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    around = {name: it for name, it in os.environ.items() if name != "GPUMEM_PROCESSES"}
    saved = {kind: folder / f"{kind}.gpumem" for kind in ("leaking", "steady")}
    started = []
    for kind, path in saved.items():
        process = subprocess.Popen(
            [sys.executable, str(script), kind, str(path)],
            env=around,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        # The one that leaks begins first, and both train at the same time.
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("train\n")
        process.stdin.flush()
    for process in started:
        process.communicate(timeout=60)
        assert process.returncode == 0
    return saved


@pytest.fixture
def job(ranks: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """Return a folder with so many ranks, of which so many leak: the last ones.

    Ranks without a number are numbered by when they began, the latest first.
    """

    def folder(n: int, leaking: int = 0) -> Path:
        made = tmp_path / "job"
        made.mkdir()
        for rank in range(n):
            kind = "leaking" if rank >= n - leaking else "steady"
            shutil.copy(ranks[kind], made / f"{rank:03}.gpumem")
        return made

    return folder


@pytest.fixture
def page_of(open_page: Open, tmp_path: Path) -> Make:
    """Write the page of a folder by the command, and open it."""

    def page(*named: object, **view: object) -> Page:
        target = tmp_path / "job.html"
        command = [sys.executable, "-m", "gpumem", "report", *named, "--html", target]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        opened = open_page(target.as_uri(), **view)
        opened.page.locator(".headline").wait_for()
        return opened.page

    return page


def charts(page: Page) -> list[str]:
    """Return the descriptions of the canvases."""
    found: list[str] = page.locator(CHARTS).evaluate_all("all => all.map(it => it.ariaLabel)")
    return found


def rows(page: Page) -> list[str]:
    """Return the names in the table."""
    names: list[str] = page.locator(".rows-of-processes tr[data-row] .operator").all_inner_texts()
    return names


def test_the_page_begins_with_the_rank_that_leaks(job: Callable[..., Path], page_of: Make) -> None:
    page = page_of(job(8, leaking=1))
    expect(page.locator("h2")).to_have_text("8 ranks")
    expect(page.locator(".headline")).to_have_text(
        "Rank 7 keeps 24 MiB a step; the others keep nothing"
    )
    expect(page.locator(".cause .sign").first).to_have_text("▲")
    expect(page.locator(".command")).to_contain_text("jupyter gpumem report ")
    assert charts(page)[0].startswith("8 charts of one scale: rank 7, ")
    assert rows(page) == [f"rank {n}" for n in (7, 0, 1, 2, 3, 4, 5, 6)]
    expect(page.locator("#still")).to_be_hidden()
    expect(page.locator("#note")).to_be_hidden()


def test_a_cause_shows_its_rows(job: Callable[..., Path], page_of: Make) -> None:
    page = page_of(job(8, leaking=2))
    button = page.get_by_role("button", name="Show all 2")
    expect(page.locator(".headline")).to_contain_text("2 of 8 ranks (6, 7) keep ")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    chosen = page.locator("tr[data-chosen] .operator")
    assert chosen.all_inner_texts() == ["rank 6", "rank 7"]
    page.keyboard.press("Escape")
    expect(page.locator("tr[data-chosen]")).to_have_count(0)


def test_one_instant_is_read_out_of_all(job: Callable[..., Path], page_of: Make) -> None:
    page = page_of(job(8, leaking=1))
    reading, canvas = page.locator(".multiples .reading"), page.locator(CHARTS).first
    expect(reading).to_contain_text("Point at a chart")
    read = []
    for x in range(10, 180, 8):
        canvas.hover(position={"x": x, "y": 50})
        page.evaluate(FRAMES)
        read.append(reading.inner_text())
    assert all(" ms: rank 7 " in words or " s: rank 7 " in words for words in read), read
    # All eight are there for a while only: two began earlier.
    assert any(" holds " in words and "middle half" in words for words in read), read
    page.mouse.move(5, 5)
    expect(reading).to_contain_text("Point at a chart")
    canvas.focus()
    for key in ("ArrowRight", "ArrowDown", "Home"):
        page.keyboard.press(key)
    expect(reading).to_contain_text("At 0 ns: rank 0 ")
    page.keyboard.press("Enter")
    assert page.locator("tr[data-chosen] .operator").all_inner_texts() == ["rank 0"]
    page.keyboard.press("Escape")
    expect(reading).to_contain_text("Point at a chart")


def test_the_table_is_sorted_and_searched(job: Callable[..., Path], page_of: Make) -> None:
    page = page_of(job(32, leaking=1))
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
    job: Callable[..., Path], page_of: Make
) -> None:
    page = page_of(job(512, leaking=6))
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


def test_one_process_alone_has_no_others_behind_it(job: Callable[..., Path], page_of: Make) -> None:
    page = page_of(job(1, leaking=1))
    expect(page.locator(".headline")).to_contain_text("Rank 0 keeps 24 MiB a step")
    expect(page.locator(".legend")).not_to_contain_text("median")
    page.locator(CHARTS).hover(position={"x": 60, "y": 50})
    expect(page.locator(".multiples .reading")).not_to_contain_text("median")
    screenshot(page, "processes-one")


def test_a_session_without_children_says_so(ranks: dict[str, Path], page_of: Make) -> None:
    page = page_of(ranks["steady"], "--processes")
    expect(page.locator(".headline")).to_have_text("Nothing was recorded here.")
    assert not page.locator(".multiples").is_visible()
    assert not page.locator(".rows-of-processes").is_visible()
    screenshot(page, "processes-none")


def test_nothing_found_is_said(job: Callable[..., Path], page_of: Make) -> None:
    page = page_of(job(4))
    expect(page.locator(".headline")).to_have_text(
        "No rank ran out of memory, grows, or differs from the others."
    )
    expect(page.locator(".cause .sign")).to_have_text("✓")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_on_any_screen(job: Callable[..., Path], page_of: Make, scheme: str) -> None:
    page = page_of(job(8, leaking=1), color_scheme=scheme)
    for width in (1200, 640, 380):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FITS)
        page.evaluate(FRAMES)
        screenshot(page, f"processes-{scheme}-{width}")


def test_a_notebook_shows_the_page_in_a_frame(
    job: Callable[..., Path], open_page: Open, tmp_path: Path
) -> None:
    source, target = job(3, leaking=1), tmp_path / "output.html"
    found = gpumem.load(source)
    assert isinstance(found, gpumem.JobRanks)
    shown = _file_page.mime_bundle(found, source)
    target.write_text(f"<!doctype html><meta charset=utf-8>{shown['text/html']}")
    page = open_page(target.as_uri()).page
    headline = page.frame_locator("iframe").locator(".headline")
    expect(headline).to_contain_text("Rank 2 keeps 24 MiB a step")


def test_the_module_is_small(page_of: Make, job: Callable[..., Path]) -> None:
    page = page_of(job(1))
    packed = page.evaluate(
        """() => [...document.querySelectorAll("script[type=module]")]
             .map((it) => it.textContent.match(/MODULE = "([^"]+)"/)[1].length * 3 / 4)[0]"""
    )
    assert packed <= 400_000, f"{packed} bytes"
