"""The same recording, judged by the extension and by the page's module."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import gpumem
import pytest

if TYPE_CHECKING:
    from .conftest import OpenReport
    from .sessions import Sessions

TOLERANCE = 1e-9


@pytest.mark.parametrize("name", ["leak", "one", "thousand"])
def test_both_come_to_the_same_report(
    name: str, recordings: Sessions, open_report: OpenReport
) -> None:
    """Figures agree within 1e-9 of their size, all else to the letter."""
    report = gpumem.report(recordings[name])
    page = open_report(report)
    native = json.loads(report.to_json())
    findings = native["findings"]
    assert page.cards() == [finding["title"] for finding in findings]
    details = [finding["detail"].replace("`", "").lower() for finding in findings]
    assert [words.lower() for words in page.details()] == details
    figures = [float(figure["value"]) for finding in findings for figure in finding["evidence"]]
    differences = [
        f"{ours!r} natively, {its!r} in the page"
        for ours, its in zip(figures, page.figures(), strict=True)
        if not math.isclose(ours, its, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    ]
    assert differences == []
