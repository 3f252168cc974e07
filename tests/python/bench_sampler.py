"""What the sampler takes while a run goes on, and between runs; what it sees, and what it keeps.

A pure-Python loop runs bare and sampled by turns in one process, in stretches so
short that a busy machine slows both; the noise is half the 95 % interval of the
median. A share of a core is what gpumem's own threads have spent, which a busy
machine does not change. Once more with CUDA and NVML, played by the libraries of
the tests. Writes shares in percent, memory in MiB, counts as they are, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import gpumem
from gpumem import _gpumem
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.support.measure import resident_bytes

N_PAIRS = 150
STRETCH_SECONDS = 0.1
N_SPIKES = 100
SPIKE_BYTES = 300_000_000
SPIKE_SECONDS = 0.02
N_CELLS = 10_000
N_MARKS = 1_000_000
IDLE_SECONDS = 5
DAY_SECONDS = 24 * 60 * 60
MIB = 1 << 20
GPU = """
gpu0.uuid = GPU-3f1a8c55-0000-4b7e-9d21-000000000000
gpu0.total_mib = 16384
gpu0.used_mib = 1024
gpu0.computing = self:256
"""


def own_threads() -> list[Path]:
    """Return the folders of gpumem's threads."""
    tasks = Path("/proc/self/task").iterdir()
    return [task for task in tasks if (task / "comm").read_text().startswith("gpumem-")]


def seconds_of_threads() -> float:
    """Return what gpumem's threads have spent of a core."""
    nanos = (int((task / "schedstat").read_text().split()[0]) for task in own_threads())
    return sum(nanos) / 1e9


def n_wakings(name: str = "") -> int:
    """Return how often a thread of gpumem's has fallen asleep, and so was woken; or all of them."""
    n = 0
    for task in own_threads():
        if name in (task / "comm").read_text():
            switches = (task / "status").read_text().split("voluntary_ctxt_switches:")[1]
            n += int(switches.split()[0])
    return n


def loop(n: int) -> tuple[float, float]:
    """Return the seconds that a pure-Python loop takes, and those of a core that it takes."""
    start, spent = time.perf_counter(), time.thread_time()
    total = 0
    for i in range(n):
        total += i & 7
    return time.perf_counter() - start, time.thread_time() - spent


def sampled(n: int) -> tuple[float, float]:
    """Return the same of the loop inside a run."""
    with gpumem.record("loop"):
        return loop(n)


def share_and_slowdown(n_pairs: int) -> dict[str, float]:
    """Run the loop by turns bare and sampled."""
    n = int(1_000_000 * STRETCH_SECONDS / loop(1_000_000)[0])
    sampled(n)
    spent, before = 0.0, n_wakings("sampler")
    pairs = []
    for turn in range(n_pairs):
        start = seconds_of_threads()
        if turn % 2:
            with_run, bare = sampled(n), loop(n)
        else:
            bare, with_run = loop(n), sampled(n)
        spent += seconds_of_threads() - start
        pairs.append((bare, with_run))
    seconds = sum(with_run for _, (with_run, _) in pairs)
    slowdowns = sorted(100 * (with_run / bare - 1) for (bare, _), (with_run, _) in pairs)
    # The order statistics that hold the median with 95 % confidence.
    reach = round(0.98 * n_pairs**0.5)
    low, high = slowdowns[n_pairs // 2 - reach], slowdowns[n_pairs // 2 + reach]
    return {
        "core_percent": 100 * spent / seconds,
        "slowdown_percent": median(slowdowns),
        "slowdown_noise_percent": (high - low) / 2,
        "loop_core_percent": median(
            100 * (with_run / bare - 1) for (_, bare), (_, with_run) in pairs
        ),
        "samples_per_second": (n_wakings("sampler") - before) / seconds,
    }


def idle() -> dict[str, float]:
    """Let the session rest."""
    # The thread that looks at loops finds no run any more.
    time.sleep(0.5)
    spent, wakings, resident = seconds_of_threads(), n_wakings(), resident_bytes()
    time.sleep(IDLE_SECONDS)
    return {
        "idle_core_percent": 100 * (seconds_of_threads() - spent) / IDLE_SECONDS,
        "idle_wakings": n_wakings() - wakings,
        "idle_mib": (resident_bytes() - resident) / MIB,
    }


def spikes() -> dict[str, float]:
    """Count the spikes of 20 ms that a run's peak shows, in a heap that is dear to read."""
    # What `malloc` says of a heap full of holes takes milliseconds to read.
    blocks = [bytes(5000) for _ in range(400_000)]
    del blocks[::2]
    for _ in range(N_SPIKES):
        with gpumem.record("spike"):
            spike = b"x" * SPIKE_BYTES
            time.sleep(SPIKE_SECONDS)
            del spike
    rows = [row for row in gpumem.report().runs if row["cell"]["label"] == "spike"]
    rises = [row["peak_bytes"] - row["before_bytes"] for row in rows if row["device"] == "host"]
    return {"spikes_seen": sum(rise > 0.9 * SPIKE_BYTES for rise in rises)}


def memory_of_many_cells() -> dict[str, float]:
    """Record many cells, a tenth of them with as many marks as a training loop sets."""
    config = Config()
    config.HistoryManager.enabled = False
    config.GpuMem.record_all = config.GpuMem.quiet = True
    shell = InteractiveShell.instance(config=config)
    shell.user_ns["mark"] = gpumem.mark

    def run_cells(n_cells: int) -> None:
        for n in range(n_cells):
            n_marks = 10 * N_MARKS // N_CELLS if n % 10 == 0 else 0
            shell.run_cell(f"for _ in range({n_marks}):\n    mark()\nx = {n % 100}", silent=False)

    # IPython's own history of the cells does not count.
    run_cells(N_CELLS)
    bare = resident_bytes()
    shell.run_line_magic("load_ext", "gpumem")
    _gpumem.reset()
    run_cells(N_CELLS)
    return {
        "recorder_mib": (resident_bytes() - bare) / MIB,
        "cells_recorded": len(gpumem.report().runs) // len(_gpumem.device_labels()),
    }


def day() -> dict[str, float]:
    """Let a run last a day, by a clock that is played."""
    n_readings, n_points = _gpumem._testing.simulated_run(DAY_SECONDS)
    return {"readings_of_a_day": n_readings, "points_of_a_day": n_points}


def with_drivers(played: str) -> dict[str, float]:
    """Measure share and slowdown in a process of its own, which has drivers."""
    with tempfile.TemporaryDirectory() as folder:
        state, figures = Path(folder) / "state", Path(folder) / "figures.json"
        state.write_text(GPU)
        environment = {**os.environ, "LD_LIBRARY_PATH": played, "PLAYED_CUDA_STATE": str(state)}
        subprocess.run(
            [sys.executable, __file__, "--driven", str(figures)], check=True, env=environment
        )
        measured: dict[str, float] = json.loads(figures.read_text())
        return {f"driven_{key}": value for key, value in measured.items()}


def driven() -> dict[str, float]:
    """Measure share and slowdown after a framework has started CUDA."""
    driver = ctypes.CDLL("libcuda.so.1")
    if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0):
        raise SystemExit("CUDA was not started")
    measured = share_and_slowdown(N_PAIRS // 2)
    if "cuda:0" not in _gpumem.device_labels():
        raise SystemExit("the GPU was not read")
    return measured


def main(arguments: list[str]) -> None:
    """Measure and write the figures."""
    *options, figures = arguments
    if options == ["--driven"]:
        measured = driven()
    else:
        measured = {**share_and_slowdown(N_PAIRS), **idle(), **spikes(), **day()}
        measured |= memory_of_many_cells()
        played = os.environ.get("PLAYED_CUDA_LIBRARIES")
        measured |= with_drivers(played) if played is not None else {}
    rounded = {key: round(value, 3) for key, value in measured.items()}
    Path(figures).write_text(json.dumps(rounded) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
