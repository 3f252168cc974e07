"""What cards draw of their findings: bars on one scale, lines beside the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
import pytest

from .live import QUIET, SETUP, ReportPage, record, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator

    from .live import Guarded

    Open = Callable[..., Guarded]

LEAK = (
    "%%gpumem --trace\nfor step in gpumem.steps(range(12)):\n    kept.append(sim.tensor(64 << 20))"
)
SESSIONS = {
    "oom": ["weights = sim.tensor(5 << 30)", "x = 1\nbig = sim.tensor(6 << 30)"],
    "doubling": ["table = sim.tensor(1 << 30)"] * 4,
    "retention": ["t = sim.tensor(900 << 20)\nt", "del t"],
    "lines": ["kept = []", LEAK],
    "pieces": [
        "blocks = [sim.tensor(6 << 20) for _ in range(90)]",
        "blocks = blocks[::3]",
    ],
}


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, gpumem.Recording]:
    """Record a session for each kind of body."""
    folder = tmp_path_factory.mktemp("bodies")
    for name, cells in SESSIONS.items():
        record([SETUP, QUIET, "%gpumem on", *cells], folder / name)
    return {name: gpumem.load(folder / name) for name in SESSIONS}


@pytest.fixture
def card(
    sessions: dict[str, gpumem.Recording], open_page: Open, tmp_path: Path
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
    card: Callable[..., Locator], scheme: str
) -> None:
    """Both on one scale, with what would have been enough."""
    found = card("oom", "ran out of memory", color_scheme=scheme)
    bars = _bars(found)
    assert list(bars) == [
        "there was, of 8 GiB: in tensors 5 GiB, free 3 GiB",
        "wanted: one request 6 GiB",
        "held by: weights 5 GiB",
    ]
    there, wanted, held = bars.values()
    assert there == pytest.approx([5 / 8, 3 / 8], abs=0.02)
    assert wanted == pytest.approx([6 / 8], abs=0.02)
    assert held == pytest.approx([5 / 8], abs=0.02)
    ink = "(part) => getComputedStyle(part).backgroundColor"
    inks = {part.evaluate(ink) for part in found.locator(".track i.tensors").all()}
    assert inks == {{"light": "rgb(9, 105, 218)", "dark": "rgb(88, 166, 255)"}[scheme]}
    assert "3 GiB more in one piece would have been enough." in found.inner_text()


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
    assert source.locator("code").all_inner_texts() == ["    kept.append(sim.tensor(64 << 20))"]
    assert source.locator("b").inner_text() == "768 MiB"
    assert found.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_pieces_are_told_as_far_as_they_are_known(card: Callable[..., Locator]) -> None:
    """The levels, and that the blocks themselves are not in the recording."""
    found = card("pieces", "free")
    label = next(iter(_bars(found)))
    assert label.startswith("reserved, ")
    assert "free between them" in label
    assert "is not in this recording" in found.inner_text()
