"""Import, record and report with an installed wheel: what must work on every system."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import gpumem
from example_session import write_report
from gpumem import _gpumem


def main() -> None:
    """Record a session with a leak on the simulated device, and check what is reported."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write_report(page)
        n_bytes = page.stat().st_size
    report = gpumem.report()
    leaks = [it for it in report.findings if it.kind == "leak" and it.device == "sim:0"]
    # A free-threaded Python gives levels and verdicts, and no names.
    names = ["losses"] if _gpumem._why_no_looks() is None else []  # noqa: SLF001 (as tests do)
    if len(leaks) != 1 or [it.name for it in leaks[0].holders[:1]] != names:
        sys.exit(f"no leak of {names} is reported:\n{report}")
    print(f"{report!r}: {leaks[0].title}; a page of {n_bytes:,} bytes")


if __name__ == "__main__":
    main()
