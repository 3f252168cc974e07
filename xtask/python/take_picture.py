"""Take a picture of the live report of a short session, for the README."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from example_session import write_report
from playwright.sync_api import sync_playwright


def main(picture: Path) -> None:
    """Record the session, open its page, and take the report's picture."""
    names = ["chromium", "chromium-browser", "google-chrome"]
    found = os.environ.get("GPUMEM_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        sys.exit("no Chromium: name it in GPUMEM_CHROMIUM")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder) / "report.html"
        write_report(page_path)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 920, "height": 900}, device_scale_factor=2)
        page.goto(page_path.as_uri())
        report = page.locator(".gpumem-report")
        report.locator("canvas[data-chart=cells]").wait_for()
        report.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
