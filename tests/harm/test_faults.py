"""Looks whose process fails: the cell's line comes, the kernel lives, the next look works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks are copies on Linux alone")

# In the order in which the look's process comes by (`FaultPoint`).
POINTS = [
    "Begun",
    "Isolated",
    "MallocProbed",
    "ReadySent",
    "RootsFound",
    "HeapWalked",
    "AdaptersQueried",
    "AnswerFound",
    "HalfSent",
    "AnswerSent",
]

# A look whose process fails like this has no answer, except after the last byte of one.
UNANSWERED = ["segfault", "kill", "hang", "garbage"]

PRELUDE = """
%gpumem off
import gpumem
from gpumem import _gpumem
leak = []
_gpumem._set_look_patience(60_000)
"""

# The time of a look: one that hangs is given up after what users wait, any other may be slow.
SHORT, LONG = (f"_gpumem._set_look_patience({it})" for it in (250, 60_000))

GROWN = "%%gpumem\nleak.append(sim.tensor(8 << 20))"

HELD = """
recording, results = gpumem.recording(), []
# Run 0 is the cell that turned recording off.
for run in range(1, len(leak) + 1):
    results.append("leak" in recording._held_text(run, 100))
"""


@pytest.mark.parametrize("how", [*UNANSWERED, "full"])
def test_looks_whose_process_fails_at_every_point(notebook: Notebook, how: str) -> None:
    """After each a cell grows whose look does not fail."""
    cells = []
    for point in POINTS:
        cells += [f"{SHORT}; _gpumem._testing.fail_look({point!r}, {how!r})", GROWN, LONG, GROWN]
    ended = notebook.plays(PRELUDE, Step(GROWN, times=2), *cells, HELD)
    assert set(ended.errors) <= {None}
    assert ended.stopped is None
    lines = [line for line in ended.lines if line.startswith("+8 MiB kept")]
    assert len(lines) == 2 + 2 * len(POINTS)
    # Only a look that failed is logged, once.
    assert max(ended.n_logged) <= 1
    assert sum(ended.n_logged) <= len(POINTS)
    before, unharmed, harmed = ended.results[:2], ended.results[3::2], ended.results[2::2]
    assert all(before + unharmed)
    if how in UNANSWERED:
        assert not all(harmed)
