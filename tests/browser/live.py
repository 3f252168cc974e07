"""Shared by the tests of the page: the report as a reader finds it, and its hosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem

from tests.support.forked import with_root

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

SCREENSHOTS = Path(__file__).parents[2] / "target" / "screenshots"
FITS = "() => document.documentElement.scrollWidth <= innerWidth"
# The page's address tells what is looked at: it is written a moment after it changed.
WRITTEN = "(host) => new URL('#' + host.exported('state'), location).hash === location.hash"
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
SETUP = "%load_ext gpumem\nimport gpumem\nfrom gpumem import sim\nsim.use(total_bytes=8 << 30)"
QUIET = "%config GpuMem.quiet = True"
# The line that a card names.
KEPT = "kept.append(sim.tensor(64 << 20))"
CELLS = [
    "%gpumem on",
    "kept = []",
    "x = sim.tensor(512 << 20)\ndel x",
    f"for batch in gpumem.steps(range(20)):\n    {KEPT}",
    "model = sim.tensor(256 << 20)",
]


class ReportPage:
    """One live report."""

    def __init__(self, page: Page) -> None:
        """Wait until the report of this page is alive."""
        self.page = page
        self.host = page.locator(".gpumem-report").first
        self.canvas("cells").wait_for()

    def canvas(self, chart: str) -> Locator:
        """Return the canvas of a chart, in a fold that is open."""
        self._unfold_around(chart)
        return self.host.locator(f"canvas[data-chart={chart}]")

    def open_all(self) -> None:
        """Open every fold."""
        for summary in self.host.locator("details > summary").all():
            if summary.is_visible() and summary.locator("xpath=..").get_attribute("open") is None:
                summary.click()

    def cards(self) -> list[str]:
        """Return the titles of the cards that stand."""
        self.unfold()
        titles: list[str] = self.host.locator(".findings .card h3").all_inner_texts()
        return titles

    def details(self) -> list[str]:
        """Return what each card says below its title, and what that rests on."""
        self.unfold()
        cards = self.host.locator(".findings .card").all()
        return [" · ".join(card.locator(".outlook, .detail").all_inner_texts()) for card in cards]

    def card(self, words: str) -> Locator:
        """Return the card whose text holds these words."""
        self.unfold()
        return self.host.locator(".findings .card", has_text=words)

    def verdict(self) -> Locator:
        """Return the panel with the conclusion."""
        return self.host.locator(".verdict")

    def tip(self) -> str:
        """Return what is read out of what is pointed at, in one line; empty when nothing is."""
        places = ".read:not([hidden])", ".samples .reading", ".held .reading:has(code)"
        for place in places:
            read = self.host.locator(place)
            words = " ".join(read.first.inner_text().split()) if read.count() else ""
            if words:
                return words
        return ""

    def unfold(self, name: str = "findings") -> None:
        """Open the list of all findings, or another of the folds below the charts."""
        summary = self.host.locator(f"summary[data-argument={name}]")
        fold = summary.locator("xpath=..")

        def is_open() -> bool:
            found = fold.get_attribute("open") is not None
            if not found:
                summary.click()
            return found

        # On a busy machine one click may not open it.
        wait(is_open, f"{name} does not open")

    def hover(self, chart: str, words: str) -> str:
        """Move along a chart until the words are read out, and return all that is."""
        canvas = self.canvas(chart)
        box = canvas.bounding_box()
        assert box is not None
        seen = set()
        width = int(box["width"])
        # Most of what is read out is wide: looked for in large steps first.
        for x in [*range(70, width, 48), *range(70, width, 6)]:
            # What is read out above it may have moved the chart.
            self.page.mouse.move(*self.point(chart, x / box["width"]))
            self.page.evaluate(FRAMES)
            tip = self.tip()
            if words in tip:
                return tip
            seen.add(tip)
        raise AssertionError(f"{words!r} is read out nowhere on the {chart} chart, only {seen}")

    def _unfold_around(self, chart: str) -> None:
        folds = {"timeline": "settings", "minimap": "settings", "holders": "map"}
        if chart in folds:
            self.unfold(folds[chart])

    def slide(self, size: str) -> None:
        """Move the slider of growth by its keys until it shows this size."""
        self.unfold("settings")
        slider = self.host.locator("input[data-argument=min_growth]")
        slider.focus()
        slider.press("Home")
        while slider.get_attribute("aria-valuetext") != size:
            before = slider.input_value()
            slider.press("ArrowRight")
            assert slider.input_value() != before, f"the slider never shows {size}"

    def point(self, chart: str, x: float, y: float = 0.5) -> tuple[float, float]:
        """Return a place on the page: shares of a chart's width and height."""
        canvas = self.canvas(chart)
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        assert box is not None
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def drag(self, chart: str, start: float, end: float) -> None:
        """Hold the pointer down from one share of a chart's width to another."""
        mouse = self.page.mouse
        mouse.move(*self.point(chart, start))
        mouse.down()
        for share in (0.3, 0.7, 1):
            mouse.move(*self.point(chart, start + share * (end - start)))
        mouse.up()
        self.page.evaluate(FRAMES)

    def state(self) -> dict[str, str]:
        """Return what the page's address tells of what is looked at, once it is written."""
        self.page.wait_for_function(WRITTEN, arg=self.host.element_handle())
        line = self.page.evaluate("() => location.hash.slice(1)")
        return dict(part.split("=", 1) for part in line.split("&") if part)

    def exported_state(self) -> str:
        """Return what is looked at, as the page would keep it."""
        line: str = self.host.evaluate("(host) => host.exported('state')")
        return line

    def pixels(self, chart: str) -> dict[str, Any]:
        """Return the sizes of a canvas and how often each colour is in it."""
        result: dict[str, Any] = self.canvas(chart).evaluate(
            """(canvas) => {
                const { width, height } = canvas;
                const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
                const colours = {};
                for (let i = 0; i < data.length; i += 4) {
                    const colour = `${data[i]},${data[i + 1]},${data[i + 2]}`;
                    colours[colour] = (colours[colour] ?? 0) + 1;
                }
                const box = canvas.getBoundingClientRect();
                const css = [box.width, box.height];
                return { width, height, colours, css, dpr: devicePixelRatio };
            }"""
        )
        return result

    def figures(self) -> list[float]:
        """Return every figure that the page's findings rest on."""
        figures: list[float] = self.host.evaluate("(host) => [...host.exported('figures')]")
        return figures

    def assert_crisp(self) -> None:
        """Each chart has one pixel of its own for each pixel of the screen."""
        for chart in ("now", "cells"):
            seen = self.pixels(chart)
            for own, css in zip((seen["width"], seen["height"]), seen["css"], strict=True):
                assert abs(own - css * seen["dpr"]) < 1, (chart, seen["css"], own)
            assert len(seen["colours"]) > 3, f"the {chart} chart is empty"


@dataclass
class Guarded:
    """A page that may reach nothing but its own server, and what it tried."""

    page: Page
    strays: list[str]
    errors: list[str]


@dataclass
class Lab:
    """A running JupyterLab and the folder that it serves."""

    url: str
    folder: Path

    @property
    def host(self) -> str:
        """Return the host with its port."""
        return self.url.removeprefix("http://")

    def ask(self, path: str, method: str = "GET", content: object = None) -> Any:
        """Ask the server's REST interface."""
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.url}/{path}", method=method, data=body)  # noqa: S310 (our own server)
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 (our own server)
            text = reply.read()
        return json.loads(text) if text else None

    def set_theme(self, name: str) -> None:
        """Choose the theme for pages that are opened from now on."""
        self.ask(
            "lab/api/settings/@jupyterlab/apputils-extension:themes",
            "PUT",
            {"raw": json.dumps({"theme": name})},
        )


def saved(what: gpumem.types.Recording | gpumem.types.Report, folder: Path) -> str:
    """Save the page of a recording or a report, and return its address."""
    path = folder / "report.html"
    report = gpumem.report(what) if isinstance(what, gpumem.types.Recording) else what
    report.save(path)
    return path.as_uri()


def record(cells: list[str], path: Path, **environment: str) -> None:
    """Run cells in a shell of their own and save what was recorded."""
    script = (
        "import sys, gpumem\n"
        "from gpumem import _gpumem\n"
        "from tests.support.shell import open_shell\n"
        # On a busy machine, a look that nobody waits for may be missed.
        "_gpumem._set_look_patience(60_000)\n"
        "shell = open_shell(loaded=False)\n"
        "for cell in sys.stdin.read().split('\\0'):\n"
        "    outcome = shell.run_cell(cell, store_history=True)\n"
        "    if 'OutOfMemory' not in type(outcome.error_in_exec).__name__:\n"
        "        outcome.raise_error()\n"
        "gpumem.recording().save(sys.argv[1])\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(path)],
        input="\0".join(cells),
        text=True,
        check=True,
        capture_output=True,
        env={
            **os.environ,
            **with_root(),
            "IPYTHONDIR": str(path.parent / "ipython"),
            **environment,
        },
    )


def wait(condition: Callable[[], object], otherwise: str, seconds: float = 120) -> None:
    """Wait until a condition outside the page holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def write_notebook(path: Path, sources: list[str]) -> None:
    """Write a notebook without outputs."""
    cells: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{idx}",
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for idx, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content))


def screenshot(page: Page, name: str) -> None:
    """Keep a picture of the page for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
