"""What it costs a program that its loops are counted and their levels read.

The same cell runs bare and recorded by turns in one process that has 1e5 live objects; it measures
its own loop, in seconds of a core of its own thread, which a busy machine changes least. Its steps
compute a hash, in which Python lets other threads in. An event is measured in loops that are
counted for a moment, by turns with bare ones. Writes shares in percent, times in nanoseconds, as
JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from statistics import median
from types import FunctionType
from typing import TYPE_CHECKING, Any

import gpumem
from gpumem import _gpumem

from tests.support.shell import open_shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

N_OBJECTS = 100_000
N_EVENTS = 1000
N_EVENT_ROUNDS = 400

EMPTY = """
begun = thread_time()
for _ in range(10_000_000):
    pass
took = thread_time() - begun
"""

STEPS = """
begun = thread_time()
for _ in range({n_steps}):
    sha256(block)
took = thread_time() - begun
"""

# Milliseconds of a step, steps of a cell, pairs of cells.
CELLS = [(1, 1000, 40), (10, 150, 20), (100, 20, 14)]
N_PAIRS_EMPTY = 20


def main(figures: str) -> None:
    """Measure and write the figures."""
    with tempfile.TemporaryDirectory() as folder:
        shell = open_shell(quiet=True, store=folder)
        objects = [{"number": [n]} for n in range(N_OBJECTS // 2)]
        shell.user_ns |= {"thread_time": time.thread_time, "sha256": sha256, "objects": objects}
        measured = slowdown(shell, "empty", EMPTY, N_PAIRS_EMPTY)
        bytes_per_ms = calibrated()
        for millis, n_steps, n_pairs in CELLS:
            shell.user_ns["block"] = bytes(millis * bytes_per_ms)
            cell = STEPS.format(n_steps=n_steps)
            measured |= slowdown(shell, f"step_{millis}_ms", cell, n_pairs)
        measured["event_ns"] = event_nanos()
    rounded = {key: round(value, 3) for key, value in measured.items()}
    Path(figures).write_text(json.dumps(rounded) + "\n")


def calibrated() -> int:
    """Return of how many bytes a hash takes a millisecond."""
    block = bytes(1 << 20)
    took = min(timed(lambda: sha256(block)) for _ in range(20))
    return int(len(block) * 0.001 / took)


def timed(body: Callable[[], object]) -> float:
    """Return the seconds of a core that it takes."""
    begun = time.thread_time()
    body()
    return time.thread_time() - begun


def slowdown(shell: InteractiveShell, name: str, cell: str, n_pairs: int) -> dict[str, float]:
    """Run a cell by turns bare and recorded."""
    settings: Any = next(it for it in shell.configurables if type(it).__name__ == "GpuMem")

    def seconds(*, is_recorded: bool) -> float:
        settings.record_all = is_recorded
        shell.run_cell(cell).raise_error()
        settings.record_all = False
        took: float = shell.user_ns["took"]
        return took

    seconds(is_recorded=True)
    pairs = [(seconds(is_recorded=False), seconds(is_recorded=True)) for _ in range(n_pairs)]
    slowdowns = sorted(100 * (recorded / bare - 1) for bare, recorded in pairs)
    quarter = n_pairs // 4
    return {
        f"{name}_percent": median(slowdowns),
        f"{name}_noise_percent": (slowdowns[-1 - quarter] - slowdowns[quarter]) / 2,
    }


def event_nanos() -> float:
    """Return what an iteration that is counted takes beyond a bare one."""
    look = _gpumem._testing.look_at_loops
    # Code that no look meets.
    code = nanos_after.__code__.replace(co_name="bare")
    bare: Callable[[Callable[[], object]], int] = FunctionType(code, globals())
    with gpumem.record("events"):
        rounds = range(N_EVENT_ROUNDS)
        added = [(nanos_after(look) - bare(time.time)) / N_EVENTS for _ in rounds]
    return median(added)


def nanos_after(call: Callable[[], object]) -> int:
    """Return the nanoseconds that a loop takes after something was called."""
    call()
    begun = time.perf_counter_ns()
    for _ in range(N_EVENTS):
        pass
    return time.perf_counter_ns() - begun


if __name__ == "__main__":
    main(sys.argv[1])
