"""Prints the score of the sessions that ran, whichever process ran them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .score import summary

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


def rows(reporter: TerminalReporter) -> list[dict[str, Any]]:
    """Return the rows that the tests recorded."""
    reports = [
        report
        for kind in ("passed", "failed", "skipped")
        for report in reporter.stats.get(kind, [])
    ]
    found = [dict(getattr(report, "user_properties", [])).get("row") for report in reports]
    return [json.loads(row) for row in found if row]


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print the score below the tests."""
    if found := rows(terminalreporter):
        terminalreporter.write_line(summary(found))
