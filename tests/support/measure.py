"""What benchmarks measure with."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def milliseconds(work: Callable[[], object], n_repeats: int = 7) -> float:
    """Return what the work takes: the median of some calls."""
    times = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * median(times)


def resident_bytes() -> int:
    """Return what this process holds of the machine's memory."""
    n_pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return n_pages * os.sysconf("SC_PAGESIZE")
