"""How long a look's copy of the process stops the user's threads, by what is in memory.

Each case has a process of its own, with memory of which nobody knows what is in it: pages of 4 KiB
and of 2 MiB, pages that are pinned as DMA pins them, many small mappings. Cells that grow on a
simulated device take turns with the same cells without a look. The main thread's cost is its own
CPU time, which a busy machine changes little. That of another thread is the longest gap between two
of its steps, each of which maps and unmaps a page. Writes milliseconds as JSON; a case that does
not fit into the free memory of the machine is left out.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.support.shell import open_shell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

PAGE, MIB, GIB = 4096, 1 << 20, 1 << 30
N_CELLS = 10
# What a case needs besides, and what it has: bytes, huge pages, pinned pages, small mappings.
ROOM = 2 * GIB
CASES = {
    "1_gib": (1 * GIB, "private", 0),
    "5_gib": (5 * GIB, "private", 0),
    "20_gib": (20 * GIB, "private", 0),
    "1_gib_huge": (1 * GIB, "huge", 0),
    "5_gib_huge": (5 * GIB, "huge", 0),
    "20_gib_huge": (20 * GIB, "huge", 0),
    "2_gib_pinned": (2 * GIB, "pinned", 0),
    "6e4_mappings": (0, "private", 60_000),
}
IO_URING_SETUP, IO_URING_REGISTER = 425, 427

libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class IoVector(ctypes.Structure):
    """A piece of memory, as the kernel takes it."""

    _fields_ = (("base", ctypes.c_void_p), ("n_bytes", ctypes.c_size_t))


class Memory:
    """Bytes that are all in memory."""

    def __init__(self, n_bytes: int, advice: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.map = mmap.mmap(-1, n_bytes, flags=flags)
        self.map.madvise(advice)
        self.view = (ctypes.c_char * n_bytes).from_buffer(self.map)
        self.address, self.n_bytes = ctypes.addressof(self.view), n_bytes
        ctypes.memset(self.address, 1, n_bytes)

    def pin(self) -> bool:
        """Pin all of it for as long as this process lives."""
        ring = libc.syscall(IO_URING_SETUP, 1, (ctypes.c_char * 120)())
        starts = range(0, self.n_bytes, GIB)
        vectors = [
            IoVector(self.address + start, min(GIB, self.n_bytes - start)) for start in starts
        ]
        array = (IoVector * len(vectors))(*vectors)
        registered: int = libc.syscall(IO_URING_REGISTER, ring, 0, array, len(vectors))
        return ring >= 0 and registered == 0

    def split(self) -> None:
        """Make each page a mapping of its own."""
        for start in range(0, self.n_bytes, 2 * PAGE):
            libc.mprotect(self.address + start, PAGE, mmap.PROT_READ)


class Steps:
    """A thread that maps and unmaps a page, and the longest gap between two steps."""

    def __init__(self) -> None:
        self.longest, self.is_over = 0.0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        """Go on until it is over."""
        latest = time.perf_counter()
        while not self.is_over:
            mmap.mmap(-1, PAGE).close()
            now = time.perf_counter()
            self.longest = max(self.longest, now - latest)
            latest = now
            time.sleep(0.0005)

    def end(self) -> None:
        """Wait for the thread's end."""
        self.is_over = True
        self.thread.join()


def main(arguments: list[str]) -> None:
    """Measure all cases and write the figures; with `--case`, print those of that case alone."""
    if arguments[0] == "--case":
        print("\n" + json.dumps(measured(arguments[1])))
        return
    figures: dict[str, float] = {}
    for case, (n_bytes, *_) in CASES.items():
        if free_bytes() < n_bytes + ROOM:
            continue
        command = [sys.executable, __file__, "--case", case]
        ran = subprocess.run(command, capture_output=True, check=True, text=True)
        figures |= json.loads(ran.stdout.splitlines()[-1])
    Path(arguments[0]).write_text(json.dumps(figures, indent=1) + "\n")


def measured(case: str) -> dict[str, float]:
    """Measure one case in this process."""
    n_bytes, kind, n_mappings = CASES[case]
    kept = []
    if n_bytes:
        advice = mmap.MADV_HUGEPAGE if kind == "huge" else mmap.MADV_NOHUGEPAGE
        kept.append(Memory(n_bytes, advice))
        if kind == "pinned" and not kept[0].pin():
            return {}
    if n_mappings:
        kept.append(Memory(n_mappings * PAGE, mmap.MADV_NOHUGEPAGE))
        kept[-1].split()
    figures = in_a_shell()
    return {f"{case}_{name}_ms": round(value * 1e3, 1) for name, value in figures.items()}


def in_a_shell() -> dict[str, float]:
    """Return the seconds that looks add to cells, in the median, and at most."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = folder
        shell: InteractiveShell = open_shell(store=False)
        shell.run_cell("from gpumem import sim; sim.use(8 << 30); leak = []")
        cells = {"with": "%%gpumem --quiet\n", "without": "%%gpumem --quiet --no-holders\n"}
        main_seconds: dict[str, list[float]] = {"with": [], "without": []}
        gaps: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(N_CELLS):
            for name, options in cells.items():
                time.sleep(0.5)
                steps = Steps()
                began = time.thread_time()
                shell.run_cell(options + "leak.append(sim.tensor(20 << 20))")
                main_seconds[name].append(time.thread_time() - began)
                steps.end()
                gaps[name].append(steps.longest)
    added = [took - median(main_seconds["without"]) for took in main_seconds["with"]]
    stood = [gap - median(gaps["without"]) for gap in gaps["with"]]
    return {
        "main": max(0.0, median(added)),
        "main_longest": max(0.0, *added),
        "other": max(0.0, median(stood)),
        "other_longest": max(0.0, *stood),
    }


def free_bytes() -> int:
    """Return what the machine has left."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(line for line in lines if line.startswith("MemAvailable"))
    return int(available.split()[1]) << 10


if __name__ == "__main__":
    main(sys.argv[1:])
