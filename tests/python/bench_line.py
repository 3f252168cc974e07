"""What the line after a run costs as a session grows, and what a session keeps of each cell.

Blocks outside of every cell stand for cells: each is an outermost run of a cell of its own, and
the heap is not searched. The cells leak on a simulated device, the most expensive case. The cost
is CPU time of the thread, which a busy machine changes little: the median of 100 lines, one after
each run. Every size has a process of its own. Writes milliseconds and bytes as JSON.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import gpumem
from gpumem import _gpumem, sim

from tests.support.measure import resident_bytes

MIB = 1 << 20
N_LINES = 100
# Runs, and whether each is of another cell.
SIZES = {"runs_500": (500, False), "runs_1e4": (10_000, False), "cells_1e4": (10_000, True)}
N_CELLS = 100_000


def main(arguments: list[str]) -> None:
    """Measure and write the figures; with `--size`, print those of that size alone."""
    if arguments[0] == "--size":
        print(json.dumps(measured(arguments[1])))
        return
    figures: dict[str, float] = {}
    for size in [*SIZES, "memory"]:
        command = [sys.executable, __file__, "--size", size]
        ran = subprocess.run(command, capture_output=True, check=True, text=True)
        figures |= json.loads(ran.stdout)
    Path(arguments[0]).write_text(json.dumps(figures) + "\n")


def measured(size: str) -> dict[str, float]:
    """Measure one size in this process."""
    sim.use(1 << 50)
    if size == "memory":
        return memory()
    n_runs, are_different = SIZES[size]
    kept = run_cells(n_runs, are_different=are_different)
    _gpumem._testing.latest_line()
    times = []
    for n in range(N_LINES):
        kept += run_cells(1, are_different=are_different, first=n_runs + n)
        start = time.thread_time()
        _gpumem._testing.latest_line()
        times.append(time.thread_time() - start)
    return {f"{size}_ms": round(1000 * median(times), 3)}


def memory() -> dict[str, float]:
    """Measure what a different cell takes, with the line after each of the last."""
    run_cells(100, are_different=True)
    _gpumem._testing.latest_line()
    _gpumem.reset()
    gc.collect()
    bare = resident_bytes()
    run_cells(N_CELLS, are_different=True, n_bytes=1)
    gc.collect()
    kept = resident_bytes()
    _gpumem._testing.latest_line()
    judged = resident_bytes()
    return {
        "recorded_bytes": round((kept - bare) / N_CELLS),
        "cell_bytes": round((judged - bare) / N_CELLS),
    }


def run_cells(
    n: int, *, are_different: bool, first: int = 0, n_bytes: int = MIB
) -> list[sim.Tensor]:
    """Run cells that keep so much each."""
    kept = []
    for idx in range(first, first + n):
        with gpumem.record(f"train({idx})" if are_different else "train()"):
            kept.append(sim.tensor(n_bytes))
    return kept


if __name__ == "__main__":
    main(sys.argv[1:])
