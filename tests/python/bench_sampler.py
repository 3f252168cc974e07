"""What the sampler takes while a run goes on, and between runs; what it sees, and what it keeps.

A pure-Python loop runs bare and sampled by turns in one process, in stretches so
short that a busy machine slows both. The sampler's share of a core is its thread's
own time. Writes shares in percent, memory in MiB, counts as they are, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from statistics import median

import gpumem
from gpumem import _gpumem

N_PAIRS = 150
STRETCH_SECONDS = 0.1
N_SPIKES = 100
SPIKE_BYTES = 300_000_000
SPIKE_SECONDS = 0.02
N_RUNS = 10_000
IDLE_SECONDS = 5
MIB = 1 << 20


def sampler_thread() -> Path:
    """Return the folder of the sampler's thread."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() == "gpumem-sampler":
            return task
    raise SystemExit("no sampler runs")


def thread_seconds(thread: Path) -> float:
    """Return what the thread has spent of a core."""
    nanos = int((thread / "schedstat").read_text().split()[0])
    return nanos / 1e9


def n_wakings(thread: Path) -> int:
    """Return how often the thread has fallen asleep, and so was woken."""
    for line in (thread / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.endswith("voluntary_ctxt_switches") and not name.startswith("non"):
            return int(value)
    raise SystemExit("no count of switches")


def loop(n: int) -> float:
    """Return the seconds that a pure-Python loop takes."""
    start = time.perf_counter()
    total = 0
    for i in range(n):
        total += i & 7
    return time.perf_counter() - start


def sampled(n: int) -> float:
    """Return the seconds that the loop takes inside a run."""
    with gpumem.record("loop"):
        return loop(n)


def share_and_slowdown() -> dict[str, float]:
    """Run the loop by turns bare and sampled."""
    n = int(1_000_000 * STRETCH_SECONDS / loop(1_000_000))
    sampled(n)
    thread = sampler_thread()
    spent, before = 0.0, n_wakings(thread)
    slowdowns = []
    seconds = 0.0
    for turn in range(N_PAIRS):
        start = thread_seconds(thread)
        if turn % 2:
            with_run, bare = sampled(n), loop(n)
        else:
            bare, with_run = loop(n), sampled(n)
        spent += thread_seconds(thread) - start
        slowdowns.append(with_run / bare - 1)
        seconds += with_run
    return {
        "core_percent": 100 * spent / seconds,
        "slowdown_percent": 100 * median(slowdowns),
        "samples_per_second": (n_wakings(thread) - before) / seconds,
    }


def idle() -> dict[str, float]:
    """Let the session rest."""
    thread = sampler_thread()
    time.sleep(0.1)
    spent, wakings = thread_seconds(thread), n_wakings(thread)
    time.sleep(IDLE_SECONDS)
    return {
        "idle_core_percent": 100 * (thread_seconds(thread) - spent) / IDLE_SECONDS,
        "idle_wakings": n_wakings(thread) - wakings,
    }


def spikes() -> dict[str, float]:
    """Count the spikes of 20 ms that a run's peak shows."""
    for _ in range(N_SPIKES):
        with gpumem.record("spike"):
            spike = b"x" * SPIKE_BYTES
            time.sleep(SPIKE_SECONDS)
            del spike
    rows = [row for row in gpumem.report().runs if row["cell"]["label"] == "spike"]
    rises = [row["peak_bytes"] - row["before_bytes"] for row in rows if row["device"] == "host"]
    return {"spikes_seen": sum(rise > 0.9 * SPIKE_BYTES for rise in rises)}


def resident_bytes() -> int:
    """Return what this process holds of the machine's memory."""
    n_pages = int(Path("/proc/self/statm").read_text().split()[1])
    return n_pages * os.sysconf("SC_PAGESIZE")


def memory_of_many_runs() -> dict[str, float]:
    """Record many runs, each with as many marks as a training loop of an hour sets."""
    _gpumem.reset()
    before = resident_bytes()
    for n in range(N_RUNS):
        with gpumem.record("run"):
            for _ in range(1000 if n < N_RUNS // 10 else 1):
                gpumem.mark()
    return {"recorder_mib": (resident_bytes() - before) / MIB}


def main(figures: Path) -> None:
    """Measure and write the figures."""
    measured = {**share_and_slowdown(), **idle(), **spikes(), **memory_of_many_runs()}
    rounded = {key: round(value, 3) for key, value in measured.items()}
    figures.write_text(json.dumps(rounded) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
