"""Machines with little memory left, and what a look itself takes of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")

MANY_OBJECTS = """
import gpumem
import resource
from pathlib import Path

rows = [{"row": [i]} for i in range(600_000)]
leak = [sim.tensor(4 << 20)]
"""

# What shows an error has then been imported.
SHOWN = "too_large = bytearray(1 << 40)"

LIMITED = """
in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = in_use + {headroom_mib} * (1 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
"""

UNLIMITED = "resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)"

GROWN = "leak.append(sim.tensor(4 << 20))"

# What people do about memory that runs out, and what they raise.
CELLS = {
    "a list grows": GROWN,
    "an error is caught": f"""
try:
    too_large = bytearray(1 << 40)
except MemoryError:
    {GROWN}
""",
    "an error is raised": f"""
{GROWN}
too_large = bytearray(1 << 40)
""",
    "a report": """
text = gpumem.report().text()
""",
    "memory is filled": f"""
filled = []
try:
    while True:
        filled.append(bytearray(4 << 20))
except MemoryError:
    pass
{GROWN}
""",
}

# Every object is looked at: the tensor is held by what no name leads to.
MANY_TENSORS = """
from pathlib import Path

leak = []
tensors = [sim.tensor(512) for _ in range(500_000)]

def peak_mib():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

def resident_mib():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024

def forget_the_peak():
    Path("/proc/self/clear_refs").write_text("5")
"""


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS.keys())
def test_little_address_space_is_left(notebook: Notebook, cell: str) -> None:
    limited = [LIMITED.format(headroom_mib=headroom_mib) for headroom_mib in (100, 10, 1)]
    in_turn = [it for limit in limited for it in (limit, Step(cell, times=3), UNLIMITED, GROWN)]
    ended = notebook.plays(MANY_OBJECTS, SHOWN, Step(GROWN, times=2), *in_turn)
    assert ended.stopped is None
    # What does not fit is the program's own affair, with gpumem and without.
    assert set(ended.errors) <= {None, "MemoryError"}
    # Six cells in turn, of which the last two have room.
    assert {ended.errors[-6 * n + end] for n in range(3) for end in (-1, -2)} == {None}


def test_a_look_at_many_tensors_takes_no_memory(notebook: Notebook) -> None:
    grown = "leak.append(sim.tensor(4 << 20))"
    before = "forget_the_peak(); before = resident_mib()\n" + grown
    after = "results = peak_mib() - before"
    ended = notebook.survives(MANY_TENSORS, Step(grown, times=2), before, after)
    assert ended.results < 4
