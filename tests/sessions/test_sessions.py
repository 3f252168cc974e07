"""Every session, judged by its truth.

What gpumem gets wrong stands in ``wrong.txt``. A session that is better than its line there
fails, too: the line has to go. What is right in some runs only has to be right in one of a few.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from .score import LIST, MAY_BE_MISSED, Listed, details, judge, read_list, sessions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ASPECTS = {"found", "holder", "bytes", "fix", "clean", "quiet"}
WRONG = read_list()
N_TRIES = 5


@pytest.mark.first_try
@pytest.mark.parametrize("path", sessions(), ids=lambda path: path.stem)
def test_session(path: Path, record_property: Callable[[str, object], None]) -> None:
    judged = judge(path, fixes=True)
    record_property("row", json.dumps(judged.row))
    if judged.skipped:
        pytest.skip(judged.skipped)
    listed = WRONG.get(path.stem, Listed())
    new = judged.wrong - listed.always - listed.at_times
    if new and new <= MAY_BE_MISSED:
        new &= judge(path, fixes=True).wrong
    assert not new, f"wrong: {', '.join(sorted(new))}\n{judged.row}\n{details(judged)}"
    never_right = judged.wrong & listed.at_times
    for _ in range(N_TRIES - 1):
        if never_right:
            never_right &= judge(path, fixes=True).wrong
    assert not never_right, f"wrong in {N_TRIES} runs: {', '.join(sorted(never_right))}"
    better = listed.always - judged.wrong
    assert not better, f"right now, take it from {LIST.name}: {', '.join(sorted(better))}"


def test_the_list_names_sessions_and_aspects() -> None:
    assert set(WRONG) <= {path.stem for path in sessions()}
    assert frozenset[str]().union(*(it.always | it.at_times for it in WRONG.values())) <= ASPECTS
