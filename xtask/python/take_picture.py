"""Take a picture of the live report of a short session, for the README."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import gpumem
from IPython.core.interactiveshell import InteractiveShell
from playwright.sync_api import sync_playwright

SETUP = [
    "%load_ext gpumem\nimport gpumem, time\nfrom gpumem import sim\nsim.use(total_bytes=8 << 30)",
    "%config GpuMem.quiet = True",
    "%gpumem on",
]
MODEL = "model = [sim.tensor(96 << 20, requires_grad=True) for _ in range(12)]"
LOSSES = "losses, cache = [], []\nbatch = lambda: sim.tensor(105 << 20, requires_grad=True)"
LEAK = "losses.append((batch() * batch()).sum())\ntime.sleep(0.04)"
VALIDATE = "outputs = [sim.tensor(60 << 20) for _ in range(14)]\ntime.sleep(0.05)\ndel outputs"
WARM = "if len(cache) < 2: cache.append(sim.tensor(500 << 20 if not cache else 120 << 20))"
CELLS = [MODEL, LOSSES]
for round_ in range(10):
    CELLS += [LEAK]
    CELLS += [VALIDATE] if round_ % 3 == 0 else []
    CELLS += [WARM] if round_ % 2 == 0 else []


def main(picture: Path) -> None:
    """Record the session, open its page, and take the report's picture."""
    shell = InteractiveShell.instance(history_manager=None)
    for cell in [*SETUP, *CELLS]:
        shell.run_cell(cell, store_history=True).raise_error()
    names = ["chromium", "chromium-browser", "google-chrome"]
    found = os.environ.get("GPUMEM_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        sys.exit("no Chromium: name it in GPUMEM_CHROMIUM")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder) / "report.html"
        gpumem.report().save(page_path)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 920, "height": 900}, device_scale_factor=2)
        page.goto(page_path.as_uri())
        report = page.locator(".gpumem-report")
        report.locator("canvas[data-chart=cells]").wait_for()
        report.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
