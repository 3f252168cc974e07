"""What gpumem costs beside the real torch, on a played card: kernels do nothing.

Bare and recorded cells take turns beside 100,000 live tensors on the card. The search for their
holders and a trace are measured likewise: the same loop of allocations takes turns untraced and
traced, and with the flight recorder. Writes medians as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import gpumem
import torch
from gpumem import _gpumem

from tests.support.measure import milliseconds, resident_bytes
from tests.support.shell import open_shell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

N_TENSORS = 100_000
N_CELLS = 300
N_ALLOCATIONS = 5_000
N_ROUNDS = 7
DEPTH = 10


def cells(shell: InteractiveShell) -> dict[str, float]:
    """Return what recording adds to a trivial cell, in microseconds."""
    settings: Any = next(it for it in shell.configurables if type(it).__name__ == "GpuMem")
    settings.quiet = True
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(N_CELLS):
        for is_recorded, figures in found.items():
            settings.record_all = is_recorded
            # The pause that a kernel has between cells.
            time.sleep(0.002)
            run = partial(shell.run_cell, "x = 1", store_history=True)
            figures.append(1000 * milliseconds(run, 1))
    settings.record_all = False
    bare, recorded = (median(figures) for figures in found.values())
    return {"bare_us": bare, "recorded_us": recorded, "added_us": recorded - bare}


def allocate(depth: int = DEPTH) -> float:
    """Return the microseconds of an allocation with its free: two events, or three."""
    if depth > 0:
        return allocate(depth - 1)
    start = time.perf_counter()
    for _ in range(N_ALLOCATIONS):
        torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    return (time.perf_counter() - start) / N_ALLOCATIONS * 1e6


def traces(shell: InteractiveShell) -> dict[str, float]:
    """Return what a trace adds to an event of the allocator, and to the end of its run."""
    found: dict[str, list[float]] = {"": [], "--trace": []}
    ends: dict[str, list[float]] = {"": [], "--trace": []}
    shell.user_ns["allocate"] = allocate
    for _ in range(N_ROUNDS):
        for option, figures in found.items():
            shell.user_ns["found"] = figures
            cell = f"%%gpumem -q --no-holders {option}\nfound.append(allocate())"
            took = milliseconds(partial(shell.run_cell, cell), 1)
            ends[option].append(took - figures[-1] * N_ALLOCATIONS / 1e3)
    report = gpumem.report()
    n_events = [it["n_events"] for it in report.traces][-1]
    plain, traced = (median(figures) for figures in found.values())
    return {
        "plain_us": plain,
        "traced_us": traced,
        "event_us": (traced - plain) * N_ALLOCATIONS / n_events,
        "end_ms": median(ends["--trace"]) - median(ends[""]),
    }


def flights(shell: InteractiveShell) -> dict[str, float]:
    """Return what the flight recorder adds to an event of the allocator, and its memory."""
    settings: Any = next(it for it in shell.configurables if type(it).__name__ == "GpuMem")
    found: dict[str, list[float]] = {"": [], "64MiB": []}
    shell.user_ns |= {"allocate": allocate, "resident_bytes": resident_bytes, "grown": []}
    for _ in range(N_ROUNDS):
        for size, figures in found.items():
            settings.flight_recorder = size
            shell.user_ns["found"] = figures
            shell.run_cell("%%gpumem -q --no-holders\nfound.append(allocate())")
    settings.flight_recorder = "64MiB"
    shell.run_cell(
        "%%gpumem -q --no-holders\n"
        "before = resident_bytes()\n"
        "for _ in range(8): allocate()\n"
        "grown.append(resident_bytes() - before)"
    )
    settings.flight_recorder = ""
    plain, recorded = (median(figures) for figures in found.values())
    # Each allocation is one event, and its free two.
    return {
        "flight_event_us": (recorded - plain) / 3,
        "flight_mib": shell.user_ns["grown"][0] / (1 << 20),
    }


def snapshots() -> float:
    """Return the milliseconds of a snapshot with the names of all live tensors."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "named.pickle"
        took = milliseconds(lambda: gpumem.snapshot(path), 3)
        saved = gpumem.snapshot(path)
    if saved.n_named < N_TENSORS - 1:
        raise SystemExit(f"blocks without a name: {saved}")
    return took


def play() -> None:
    """Play a machine with one card of 16 GiB, unless one is played already."""
    if "PLAYED_CUDA_STATE" not in os.environ:
        state = Path(tempfile.mkdtemp(prefix="bench-torch-")) / "state"
        state.write_text("n_gpus = 1\ngpu0.total_mib = 16384\n", encoding="utf-8")
        os.environ["PLAYED_CUDA_STATE"] = str(state)


def main() -> None:
    play()
    if not torch.cuda.is_available():
        raise SystemExit("torch sees no card")
    shell = open_shell()
    _gpumem.use_sources(["auto"])
    torch.empty(1, device="cuda")
    figures = traces(shell) | flights(shell)
    shell.user_ns["kept"] = [
        {"step": n, "out": torch.empty(256, device="cuda")} for n in range(N_TENSORS)
    ]
    figures |= cells(shell)
    figures["holders_ms"] = milliseconds(gpumem.holders, N_ROUNDS)
    figures["named_ms"] = snapshots()
    held = [it.n_bytes for it in gpumem.holders().roots if it.name == "kept"]
    if held != [N_TENSORS * 1024]:
        raise SystemExit(f"holders are wrong: {held}")
    Path(sys.argv[1]).write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
