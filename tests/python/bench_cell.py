"""What recording adds to a trivial cell, in a real kernel.

Bare and recorded cells take turns in one process, with the pause between them
that a kernel has, so that the sampler falls asleep and has to be woken; garbage is
collected as it comes, and nothing is printed. The line is measured apart, through
the kernel's own display publisher. Writes medians, in microseconds, as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

N_PAIRS = 500
N_LINES = 100

# Runs inside one cell of the kernel.
MEASURE = """
import json
import time
from statistics import median

from IPython import get_ipython

shell = get_ipython()
shell.run_line_magic("load_ext", "gpumem")
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
    silent, told = in_turns(
        n_lines, lambda: cell("%%gpumem --quiet\\npass"), lambda: cell("%%gpumem\\npass")
    )
    return {
        "bare_us": bare,
        "recorded_us": with_run,
        "added_us": with_run - bare,
        "line_us": told - silent,
    }
"""


def main(figures: Path) -> None:
    """Measure and write the figures."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "figures.json"
        reply = in_kernel(
            f"{MEASURE}\n"
            f"with open({str(result)!r}, 'w') as file:\n"
            f"    json.dump(measured({N_PAIRS}, {N_LINES}), file)"
        )
        if reply["status"] != "ok":
            sys.exit("\n".join(reply["traceback"]))
        medians = json.loads(result.read_text())
    rounded = {key: round(value, 1) for key, value in medians.items()}
    figures.write_text(json.dumps(rounded) + "\n")


def in_kernel(code: str) -> dict[str, Any]:
    """Run a cell in a kernel of its own and return the reply."""
    manager, client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=ERROR"])
    try:
        reply = client.execute_interactive(code, timeout=300, output_hook=lambda _: None)
        content: dict[str, Any] = reply["content"]
        return content
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
