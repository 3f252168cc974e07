"""The drawings of cards: bars on one scale, lines beside the source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import gpumem
import pytest

from tests.support.reports import recording_in

from .live import FITS, QUIET, SETUP, ReportPage, record, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator

    from .conftest import OpenReport
    from .live import Guarded

    Open = Callable[..., Guarded]

LEAK = (
    "%%gpumem --trace\nfor step in gpumem.steps(range(12)):\n    kept.append(sim.tensor(64 << 20))"
)
SESSIONS = {
    "oom": ["weights = sim.tensor(5 << 30)", "x = 1\nbig = sim.tensor(6 << 30)"],
    "enough": [
        "checkpoint = sim.tensor(3 << 30)",
        "corpus = sim.tensor(2 << 30)",
        *(f"step = {n}" for n in range(9)),
        "big = sim.tensor(7 << 30)",
    ],
    "outlived": [
        "corpus = sim.tensor(700 << 20)",
        "model = [sim.tensor(900 << 20)]\nkept = {'m': model}",
        "del corpus",
        "del model",
    ],
    "doubling": ["table = sim.tensor(1 << 30)"] * 4,
    "retention": ["t = sim.tensor(900 << 20)\nt", "del t"],
    "lines": ["kept = []", LEAK],
    "pieces": [
        "blocks = [sim.tensor(6 << 20) for _ in range(90)]",
        "blocks = blocks[::3]",
    ],
    "shortage": [
        "sim.use(total_bytes=1 << 30)",
        "blocks = [sim.tensor((6 if n % 4 else 40) << 20) for n in range(44)]",
        "blocks = blocks[::3]",
        "batch = sim.tensor(700 << 20)",
    ],
}


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, gpumem.types.Recording]:
    """Record a session for each kind of body."""
    folder = tmp_path_factory.mktemp("bodies")
    for name, cells in SESSIONS.items():
        # Without a line after the cell, nothing asks for the look that tells what is idle.
        quiet = [] if name == "enough" else [QUIET]
        record([SETUP, *quiet, "%gpumem on", *cells], folder / name)
    return {name: recording_in(folder / name) for name in SESSIONS}


@pytest.fixture
def card(
    sessions: dict[str, gpumem.types.Recording], open_page: Open, tmp_path: Path
) -> Callable[..., Locator]:
    """Open the page of a session and return its first card that holds these words."""

    def of(name: str, words: str, **options: object) -> Locator:
        path = tmp_path / "report.html"
        gpumem.report(sessions[name]).save(path)
        report = ReportPage(open_page(path.as_uri(), **options).page)
        found = report.card(words).first
        found.wait_for()
        screenshot(report.page, f"card-{name}-{options.get('color_scheme', 'light')}")
        return found

    return of


COLOURS = """(canvas) => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const colours = {};
    for (let i = 0; i < data.length; i += 4) {
        const colour = [data[i], data[i + 1], data[i + 2]].join();
        colours[colour] = (colours[colour] ?? 0) + 1;
    }
    return colours;
}"""


def _bars(card: Locator) -> dict[str, list[float]]:
    """Return the shares of each bar's parts of its track, as they are seen."""
    bars = card.locator(".measured")
    widths = """(bar) => {
        const whole = bar.querySelector(".track").getBoundingClientRect().width;
        return [...bar.querySelectorAll(".track i")].map((part) =>
            part.getBoundingClientRect().width / whole);
    }"""
    return {
        bar.locator(".track").get_attribute("aria-label") or "": bar.evaluate(widths)
        for bar in bars.all()
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_memory_that_ran_out_is_a_bar_against_the_request(
    sessions: dict[str, gpumem.types.Recording], scheme: str, open_report: OpenReport
) -> None:
    """Who held it by name, and in the colour of leaks what was wanted beyond its end."""
    report = open_report(sessions["oom"], color_scheme=scheme)
    if not report.verdict().locator(".courses canvas").count():
        report.verdict().get_by_role("button", name="Evidence").click()
    chart = report.verdict().locator(".courses canvas")
    words = chart.get_attribute("aria-label") or ""
    assert words == "Who held 8 GiB when it ran out: weights 5 GiB, free 3 GiB."
    colours = chart.evaluate(COLOURS)
    leak = {"light": "196,67,43", "dark": "255,123,99"}[scheme]
    names = {"light": "22,122,153", "dark": "75,172,208"}[scheme]
    assert colours[names] > colours[leak] > 100


def test_each_cure_reaches_towards_what_was_missing(card: Callable[..., Locator]) -> None:
    """With those above it, in a bar of three times that; the statement can be copied."""
    rows = card("enough", "ran out of memory").locator(".cures li")
    fits = [row.locator(".fit").inner_text().strip() for row in rows.all()]
    assert fits == ["leaves 1 GiB missing", "✓\nenough together"]
    copied = rows.get_by_role("button", name="copy")
    commands = [it.get_attribute("data-argument") for it in copied.all()]
    assert commands == ["del checkpoint", "del corpus"]
    shares = """(track) => [...track.querySelectorAll("i")].map((part) =>
        part.getBoundingClientRect().width / track.getBoundingClientRect().width)"""
    reached = [row.locator(".reach").evaluate(shares) for row in rows.all()]
    near = [pytest.approx(it, abs=1e-3) for it in ([0, 3 / 12], [3 / 12, 2 / 12])]
    assert reached == near


def test_what_lives_on_has_a_path(card: Callable[..., Locator]) -> None:
    """From the name that is gone, by the one that keeps it, to its bytes."""
    steps = card("outlived", "keeps its 900 MiB").locator(".path li > :first-child")
    assert steps.all_inner_texts() == ["model", "kept", "['m']", "900 MiB"]


def test_what_lives_on_has_a_lane_for_each_who_held_it(card: Callable[..., Locator]) -> None:
    """Over the runs; and what else was deleted gave its memory back."""
    found = card("outlived", "keeps its 900 MiB")
    lanes = found.locator(".box", has_text="Who held these 900 MiB").locator(".track")
    parts = [
        lane.locator("i").evaluate_all("all => all.map(it => it.className)") for lane in lanes.all()
    ]
    assert parts == [["none", "tensors"], ["none", "over"]]
    assert re.search(
        r"gone since In \[\d+\]\s+kept\['m'\]\s+alone since In \[\d+\]", found.inner_text()
    )
    assert re.search(r"corpus gave back 700 MiB in In \[\d+\]", found.inner_text())


def test_two_copies_are_seen_before_during_and_after(card: Callable[..., Locator]) -> None:
    """The bar in the middle is twice as long."""
    bars = list(_bars(card("doubling", "at once")).values())
    assert bars == [
        pytest.approx([0.5], abs=0.02),
        pytest.approx([0.5, 0.5], abs=0.02),
        pytest.approx([0.5], abs=0.02),
    ]


def test_what_ipython_keeps_comes_with_the_line_to_type(card: Callable[..., Locator]) -> None:
    """How much of the device, since when, and what gives it back."""
    found = card("retention", "displayed result")
    assert "kept, of 8 GiB: displayed result 900 MiB" in _bars(found)
    assert "left there by t = sim.tensor(900 << 20) · In [4]" in found.inner_text()
    assert "%gpumem release outputs" in found.locator(".command").inner_text()
    assert found.locator(".command").get_by_role("button", name="copy").is_visible()


@pytest.mark.parametrize("width", [360, 1000])
def test_bytes_stand_beside_the_line_that_kept_them(
    card: Callable[..., Locator], width: int
) -> None:
    """Where the run was traced."""
    found = card("lines", "more", viewport={"width": width, "height": 800})
    source = found.locator(".source")
    assert source.locator("code").all_inner_texts() == ["kept.append(sim.tensor(64 << 20))"]
    assert source.locator("b").inner_text() == "768 MiB"
    assert found.page.evaluate(FITS)


def _widths(blocks: Locator) -> list[float]:
    return [block.bounding_box()["width"] for block in blocks.all()]


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1000, "dark")])
def test_what_is_free_in_pieces_is_a_map_to_scale(
    card: Callable[..., Locator], width: int, scheme: str
) -> None:
    """Segments of 20 MiB, with three blocks of 6 MiB each; two of the three were let go of."""
    viewport = {"width": width, "height": 800}
    found = card("pieces", "is free, but in pieces", viewport=viewport, color_scheme=scheme)
    shelves = found.get_by_role("listbox")
    assert "30 segments with 60 blocks, 600 MiB reserved: 180 MiB in use, 420 MiB free" in (
        shelves.get_attribute("aria-label") or ""
    )
    segments = shelves.get_by_role("group")
    assert segments.count() == 30
    first = segments.first.get_by_role("option")
    held, hole = _widths(first)
    assert hole / held == pytest.approx(14 / 6, rel=0.15)
    # What is free differs by more than its colour: it is hatched and has an outline.
    style = (
        "(block) => [getComputedStyle(block).backgroundImage, getComputedStyle(block).boxShadow]"
    )
    hatched, outlined = first.nth(1).evaluate(style)
    assert hatched.startswith("repeating-linear-gradient")
    assert outlined != "none"
    assert first.first.evaluate(style)[0] == "none"
    assert shelves.locator(".largest").count() == 1
    assert found.page.evaluate(FITS)


def test_a_block_is_read_by_pointer_and_keys(card: Callable[..., Locator]) -> None:
    """One stop of the Tab key, arrows from block to block."""
    found = card("pieces", "is free, but in pieces")
    reading = found.locator(".shelves + .reading")
    hint = reading.inner_text()
    assert "arrow keys" in hint
    blocks = found.get_by_role("option")
    blocks.nth(4).hover()
    assert reading.inner_text() == ("6 MiB held · segment of 20 MiB for requests over 1 MiB")
    # The keyboard comes in at the largest free piece.
    page = found.page
    assert [blocks.nth(idx).get_attribute("tabindex") for idx in range(3)] == ["-1", "0", "-1"]
    blocks.nth(1).focus()
    assert reading.inner_text().startswith(
        "14 MiB free between blocks in use, the largest free piece"
    )
    page.keyboard.press("ArrowRight")
    assert reading.inner_text().startswith("6 MiB held")
    page.keyboard.press("End")
    assert page.evaluate("() => document.activeElement.shadowRoot.activeElement.ariaLabel") == (
        "14 MiB free between blocks in use · segment of 20 MiB for requests over 1 MiB"
    )
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    assert reading.inner_text().startswith("6 MiB held")
    assert found.locator("[role=option][tabindex='0']").count() == 1
    assert found.locator("[role=option][aria-selected='true']").count() == 1
