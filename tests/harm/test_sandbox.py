"""Programs that restrict their own system calls: gpumem makes no thread and no process there."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="a filter for the system calls of Linux on x86-64",
)

# What the kernel does where a thread or a process is made.
ACTIONS = {"refused": 0x00050001, "ended": 0x80000000, "signal": 0x00030000}

# By their numbers: clone, fork, vfork, clone3. The C library takes clone where there is no clone3.
RESTRICTED = """
import ctypes, struct

LOAD, IS_EQUAL, HAS_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOWED, UNKNOWN, CLONE_THREAD = 0x7fff0000, 0x00050026, 0x10000

def restrict(action, may_have_threads):
    steps = [(LOAD, 0, 0, 0)]
    steps += [(IS_EQUAL, 0, 1, 435), (RETURN, 0, 0, UNKNOWN if may_have_threads else action)]
    for number in (57, 58):
        steps += [(IS_EQUAL, 0, 1, number), (RETURN, 0, 0, action)]
    if may_have_threads:
        steps += [(IS_EQUAL, 0, 3, 56), (LOAD, 0, 0, 16), (HAS_BIT, 1, 0, CLONE_THREAD)]
        steps += [(RETURN, 0, 0, action)]
    else:
        steps += [(IS_EQUAL, 0, 1, 56), (RETURN, 0, 0, action)]
    steps += [(RETURN, 0, 0, ALLOWED)]
    program = b"".join(struct.pack("HBBI", *step) for step in steps)
    class Program(ctypes.Structure):
        _fields_ = [("n_steps", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
    steps = ctypes.create_string_buffer(program)
    loaded = Program(len(program) // 8, ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(loaded)) == 0

leak = []
"""

GROWN = "leak.append(sim.tensor(8 << 20))"

HELD = """
import gpumem
results = [it.name for it in gpumem.holders().roots]
"""


@pytest.mark.parametrize("may_have_threads", [True, False], ids=["processes", "threads too"])
@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
def test_a_program_that_restricts_itself(
    notebook: Notebook, action: int, *, may_have_threads: bool
) -> None:
    restricted = f"restrict({action}, {may_have_threads})"
    grown = Step(GROWN, times=3)
    ended = notebook.plays(RESTRICTED, grown, restricted, grown, HELD)
    assert set(ended.errors) == {None}
    assert ended.stopped is None
    assert ended.results == ["leak"]
