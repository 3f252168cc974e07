"""What the report costs in a real browser, and in a saved notebook.

Sessions longer than a recorder keeps: a million samples, and 10,000 runs of 40 and of 500
cells. Times are
those of the page's script, medians or 95th percentiles in milliseconds; what a frame
takes to reach the screen is the browser's. Memory is the page's JavaScript heap and
the module's memory, before and after 50 runs of a report's cell. Writes JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from base64 import b64encode
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import gpumem
from gpumem import widget
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Page

from tests.browser.host import Host, recorded
from tests.browser.live import ReportPage

N_OPENED = 7
N_RERUNS = 50
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

FIRST_PAINT = "() => performance.getEntriesByName('gpumem:first paint')[0].duration"


def timed(chosen: str, step: str, prepare: str = "") -> str:
    """Return a script that takes the milliseconds of ``n`` steps, each with what is chosen."""
    return f"""(n) => {{
        const root = document.querySelector(".gpumem-report").shadowRoot;
        const chosen = root.querySelectorAll("{chosen}");
        const press = (key, shiftKey) => chosen[0].dispatchEvent(
            new KeyboardEvent("keydown", {{ key, shiftKey, bubbles: true }}));
        {prepare}
        const took = [];
        for (let i = 0; i < n; i++) {{
            const start = performance.now();
            {step}
            took.push(performance.now() - start);
        }}
        return took;
    }}"""


TIMELINE = "canvas[data-chart=timeline]"
WHEEL = timed(
    TIMELINE,
    """
    const options = { ctrlKey: true, bubbles: true, cancelable: true };
    const deltaY = i % 40 < 20 ? -120 : 120;
    const wheel = { deltaY, clientX: 300 + 7 * (i % 60), ...options };
    chosen[0].dispatchEvent(new WheelEvent("wheel", wheel));
    """,
)
PAN = timed(
    TIMELINE,
    'press(i % 40 < 20 ? "ArrowRight" : "ArrowLeft", true);',
    'for (let i = 0; i < 3; i++) press("+", false);',
)
SLIDE = timed(
    "input[data-argument=min_growth]",
    "chosen[0].value = 2 + (i % 30);"
    'chosen[0].dispatchEvent(new Event("input", { bubbles: true }));',
)
READ_OUT = timed("canvas[data-chart=cells]", 'press("ArrowRight", false);')
# Opens the rows one after the other.
OPEN = timed(".cell .name", 'root.querySelectorAll(".cell .name")[i % chosen.length].click();')
SHOW_ALL = """() => {
    const root = document.querySelector(".gpumem-report").shadowRoot;
    const start = performance.now();
    root.querySelector("button[data-action=rows]").click();
    return performance.now() - start;
}"""


def percentile(took: list[float]) -> float:
    """Return the 95th."""
    return quantiles(took, n=20)[-1]


def opened(page: Page, recording: Path) -> ReportPage:
    """Open the page of a recording."""
    # Each time in a page that has compiled nothing.
    page.goto("about:blank")
    page.goto(recording.with_suffix(".html").as_uri())
    return ReportPage(page)


def first_paint(page: Page, recording: Path) -> tuple[float, ReportPage]:
    """Return the median of the first paint, and the report that was opened last."""
    gpumem.report(gpumem.load(recording)).save(recording.with_suffix(".html"))
    paints = []
    for _ in range(N_OPENED):
        report = opened(page, recording)
        paints.append(page.evaluate(FIRST_PAINT))
    return median(paints), report


def of_a_million(page: Page, recording: Path) -> dict[str, float]:
    """Measure first paint, zoom and pan over a million samples."""
    paint, report = first_paint(page, recording)
    # A closed fold is not painted.
    report.unfold("settings")
    return {
        "first_paint_ms": paint,
        "zoom_frame_ms": percentile(page.evaluate(WHEEL, 200)),
        "pan_frame_ms": percentile(page.evaluate(PAN, 200)),
    }


def of_many_runs(page: Page, recording: Path) -> dict[str, float]:
    """Measure a slider that judges 10,000 runs anew, and a step from one of them to the next."""
    gpumem.report(gpumem.load(recording)).save(recording.with_suffix(".html"))
    opened(page, recording)
    return {
        "slider_ms": median(page.evaluate(SLIDE, 30)),
        "readout_ms": percentile(page.evaluate(READ_OUT, 200)),
    }


def of_many_cells(page: Page, recording: Path) -> dict[str, float]:
    """Measure the same of 500 cells: first paint, frames, and the rows."""
    paint, report = first_paint(page, recording)
    figures = {
        "cells_first_paint_ms": paint,
        "cells_point_ms": percentile(page.evaluate(READ_OUT, 200)),
        "cells_open_ms": percentile(page.evaluate(OPEN, 30)),
    }
    report.unfold("settings")
    figures["cells_zoom_ms"] = percentile(page.evaluate(WHEEL, 200))
    return figures | {"cells_all_ms": page.evaluate(SHOW_ALL)}


def of_reruns(page: Page, folder: Path) -> dict[str, float]:
    """Measure what running a report's cell again leaves in the page."""
    host = Host.on(page, recorded(folder), folder)
    session = page.context.new_cdp_session(page)

    def in_use() -> float:
        session.send("HeapProfiler.collectGarbage")
        usage: dict[str, Any] = session.send("Runtime.getHeapUsage")
        return float(usage["usedSize"] + usage.get("backingStorageSize", 0))

    for _ in range(5):
        host.show()
        host.close()
    before = in_use()
    for _ in range(N_RERUNS):
        host.show()
        host.close()
    return {"rerun_kb": (in_use() - before) / N_RERUNS / 1000}


def of_a_notebook(recording: Path) -> dict[str, float]:
    """Measure what a report adds to a saved notebook."""
    report = gpumem.report(gpumem.load(recording))
    shown = widget.ReportWidget(widget._packed(report.recording))
    state = shown.get_state()
    state["recording"] = b64encode(state["recording"]).decode()
    module = Path(widget.__file__).parent / "static" / "provider.js"
    literals = module.read_text(encoding="utf-8").split('"')
    return {
        "picture_kb": len(b64encode(report.png())) / 1000,
        "state_kb": len(json.dumps(state, default=str)) / 1000,
        "module_kb": len(max(literals, key=len)) * 3 / 4 / 1000,
    }


def measured() -> dict[str, float]:
    """Return every figure."""
    names = ("GPUMEM_MILLION", "GPUMEM_MANY_RUNS", "GPUMEM_MANY_CELLS", "GPUMEM_USUAL")
    million, many, cells, usual = (Path(os.environ[name]) for name in names)
    figures = of_a_notebook(usual)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("GPUMEM_CHROMIUM", "/usr/bin/chromium"), args=FLAGS
        )
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        figures |= of_a_million(page, million)
        figures |= of_many_runs(page, many)
        figures |= of_many_cells(page, cells)
        figures |= of_reruns(page, Path(folder))
        browser.close()
    return figures


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(measured(), indent=1))
