"""Import, record and report with an installed wheel: what must work on every system."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import gpumem
from example_session import write_report


def main() -> None:
    """Record a session with a leak on the simulated device, and check what is reported."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write_report(page)
        n_bytes = page.stat().st_size
    report = gpumem.report()
    leaks = [it for it in report.findings if it.kind == "leak" and it.device == "sim:0"]
    if [leak.holders[0].name for leak in leaks] != ["losses"]:
        sys.exit(f"no leak of `losses` is reported:\n{report}")
    print(f"{report!r}: {leaks[0].title}; a page of {n_bytes:,} bytes")


if __name__ == "__main__":
    main()
