"""Every session, judged by its truth.

What gpumem gets wrong stands in ``wrong.txt``. A session that is better than its line there
fails, too: the line has to go.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .score import details, judge, sessions

if TYPE_CHECKING:
    from collections.abc import Callable

LIST = Path(__file__).with_name("wrong.txt")
ASPECTS = {"found", "holder", "bytes", "fix", "clean", "quiet"}


def read_list() -> dict[str, list[str]]:
    """Return the aspects that each session of the list gets wrong."""
    lines = LIST.read_text("utf-8").splitlines()
    entries = [line.split(":") for line in lines if line and not line.startswith("#")]
    return {name: aspects.split() for name, aspects in entries}


WRONG = read_list()


@pytest.mark.parametrize("path", sessions(), ids=lambda path: path.stem)
def test_session(path: Path, record_property: Callable[[str, object], None]) -> None:
    judged = judge(path, fixes=True)
    record_property("row", json.dumps(judged.row))
    if judged.skipped:
        pytest.skip(judged.skipped)
    listed = WRONG.get(path.stem, [])
    always = {aspect for aspect in listed if not aspect.endswith("?")}
    at_times = {aspect.rstrip("?") for aspect in listed} - always
    new = judged.wrong - always - at_times
    assert not new, f"wrong: {', '.join(sorted(new))}\n{judged.row}\n{details(judged)}"
    better = always - judged.wrong
    assert not better, f"right now, take it from {LIST.name}: {', '.join(sorted(better))}"


def test_the_list_names_sessions_and_aspects() -> None:
    assert set(WRONG) <= {path.stem for path in sessions()}
    assert {aspect.rstrip("?") for aspects in WRONG.values() for aspect in aspects} <= ASPECTS
