"""A short session of the simulated GPU, with a leak: for the README's picture and the site."""

from __future__ import annotations

import sys
from pathlib import Path

import gpumem
from IPython.core.interactiveshell import InteractiveShell

SETUP = [
    "%load_ext gpumem\nimport gpumem, time\nfrom gpumem import sim\nsim.use(total_bytes=8 << 30)",
    "%config GpuMem.quiet = True",
    "%config GpuMem.store = False",
    "%gpumem on",
]
MODEL = "model = [sim.tensor(96 << 20, requires_grad=True) for _ in range(12)]"
LOSSES = "losses, cache = [], []\nbatch = lambda: sim.tensor(105 << 20, requires_grad=True)"
LEAK = "losses.append((batch() * batch()).sum())\ntime.sleep(0.04)"
VALIDATE = "outputs = [sim.tensor(60 << 20) for _ in range(14)]\ntime.sleep(0.05)\ndel outputs"
WARM = "if len(cache) < 2: cache.append(sim.tensor(500 << 20 if not cache else 120 << 20))"
CELLS = [MODEL, LOSSES]
for round_ in range(10):
    CELLS += [LEAK]
    CELLS += [VALIDATE] if round_ % 3 == 0 else []
    CELLS += [WARM] if round_ % 2 == 0 else []


def write_report(path: Path) -> None:
    """Run the session in this process and write its report as a page."""
    shell = InteractiveShell.instance(history_manager=None)
    for cell in [*SETUP, *CELLS]:
        shell.run_cell(cell, store_history=True).raise_error()
    gpumem.report().save(path)


if __name__ == "__main__":
    write_report(Path(sys.argv[1]))
