"""What recording adds to a trivial cell, in a real kernel: without a driver, and with two.

Bare and recorded cells take turns in one process, with the pause between them
that a kernel has, so that the sampler falls asleep and has to be woken; garbage is
collected as it comes, and nothing is printed. The line is measured apart, through
the kernel's own display publisher. The drivers, CUDA with a context and NVML, are
those that the tests play, at a cost of some microseconds a call as real ones have.
Writes medians, in microseconds, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

N_PAIRS = 500
N_LINES = 100
GPU = """
gpu0.uuid = GPU-3f1a8c55-0000-4b7e-9d21-000000000000
gpu0.name = a GPU that is played
gpu0.total_mib = 16384
gpu0.used_mib = 1024
gpu0.computing = self:256
"""

# What a framework does before the first cell that uses a GPU.
START_CUDA = """
import ctypes

driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0) == 0
"""

# Runs inside one cell of the kernel.
MEASURE = """
import json
import time
from statistics import median

import gpumem
from IPython import get_ipython

shell = get_ipython()
shell.run_line_magic("load_ext", "gpumem")
shell.run_line_magic("gpumem", "reset")
settings = next(it for it in shell.configurables if type(it).__name__ == "GpuMem")


def cell(code):
    time.sleep(0.002)
    start = time.perf_counter_ns()
    shell.run_cell(code, store_history=True)
    return (time.perf_counter_ns() - start) / 1000


def recorded(code):
    settings.record_all = True
    took = cell(code)
    settings.record_all = False
    return took


def in_turns(n, first, second):
    pairs = [(first(), second()) for _ in range(n)]
    return [median(times) for times in zip(*pairs)]


def measured(n_pairs, n_lines):
    bare, with_run = in_turns(n_pairs, lambda: cell("pass"), lambda: recorded("pass"))
    shell.run_line_magic("gpumem", "reset")
    silent, printed = in_turns(
        n_lines, lambda: cell("%%gpumem --quiet\\npass"), lambda: cell("%%gpumem\\npass")
    )
    return {
        "bare_us": bare,
        "recorded_us": with_run,
        "added_us": with_run - bare,
        "line_us": printed - silent,
        "devices": sorted({row["device"] for row in gpumem.report().runs}),
    }
"""


def main(figures: Path) -> None:
    """Measure and write the figures."""
    figures_of = {"": measured(MEASURE, ["host"])}
    played = os.environ.get("PLAYED_CUDA_LIBRARIES")
    if played is not None:
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder) / "state"
            state.write_text(GPU)
            os.environ |= {"LD_LIBRARY_PATH": played, "PLAYED_CUDA_STATE": str(state)}
            figures_of["driven_"] = measured(START_CUDA + MEASURE, ["cuda:0", "host"])
    named = {
        f"{prefix}{key}": round(value, 1)
        for prefix, medians in figures_of.items()
        for key, value in medians.items()
    }
    figures.write_text(json.dumps(named) + "\n")


def measured(code: str, devices: list[str]) -> dict[str, float]:
    """Run the measurement in a kernel of its own, where these devices must have been read."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "figures.json"
        reply = in_kernel(
            f"{code}\n"
            f"with open({str(result)!r}, 'w') as file:\n"
            f"    json.dump(measured({N_PAIRS}, {N_LINES}), file)"
        )
        if reply["status"] != "ok":
            sys.exit("\n".join(reply["traceback"]))
        medians: dict[str, Any] = json.loads(result.read_text())
    if (read := medians.pop("devices")) != devices:
        sys.exit(f"read {read}, not {devices}")
    return medians


def in_kernel(code: str) -> dict[str, Any]:
    """Run a cell in a kernel of its own and return the reply."""
    # A disk that is busy would make bare cells take milliseconds.
    arguments = ["--log-level=ERROR", "--HistoryManager.hist_file=:memory:"]
    manager, client = start_new_kernel(kernel_name="python3", extra_arguments=arguments)
    try:
        reply = client.execute_interactive(code, timeout=300, output_hook=lambda _: None)
        content: dict[str, Any] = reply["content"]
        return content
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
