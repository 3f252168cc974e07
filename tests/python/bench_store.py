"""What keeping a session costs its cells, and how large a long session is and how fast it opens.

Cells run in a process of their own, with the pause between them that a kernel has, so that the
store's thread falls asleep and has to be woken. Writes medians as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import gpumem
from gpumem import _gpumem, sim

from tests.support.shell import open_shell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

N_CELLS = 500
N_LINES = 100
N_RUNS = 10_000
N_OPENED = 9


def main(figures: Path) -> None:
    """Measure in a fresh process, so that nothing of before is in the way."""
    command = [sys.executable, __file__, "--measure"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "IPYTHONDIR": folder}
        measured = subprocess.run(
            [*command, folder], check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
    figures.write_text(measured.stdout.splitlines()[-1] + "\n")


def measure(folder: Path) -> dict[str, float]:
    """Run cells and open what they left."""
    shell: InteractiveShell = open_shell(store=folder / "kept")
    sim.use(64 << 30)
    shell.user_ns.update(sim=sim, kept=[])
    shell.run_line_magic("gpumem", "use sim host")

    def spent(cell: str, pause: float) -> tuple[float, float]:
        time.sleep(pause)
        handing, waiting = _gpumem._testing.store_nanos()
        shell.run_cell(cell, store_history=True)
        now = _gpumem._testing.store_nanos()
        return (now[0] - handing) / 1000, (now[1] - waiting) / 1000

    spent("%%gpumem -q\n1", 0)
    awake = median(spent("%%gpumem -q\n1", 0.002)[0] for _ in range(N_CELLS))
    asleep = median(spent("%%gpumem -q\n1", 31)[0] for _ in range(3))
    waited = median(spent("%%gpumem\n1", 0.002)[1] for _ in range(N_LINES))

    _gpumem._close_store()
    shell.run_line_magic("gpumem", "reset")
    for n in range(N_RUNS // 10):
        for cell in range(9):
            shell.run_cell(f"%%gpumem -q\nx{cell} = sim.tensor({cell + 1} << 20)")
        if n % 10 == 0:
            shell.run_cell("%%gpumem -q\nkept.append(sim.tensor(1 << 20))")
        else:
            shell.run_cell("%%gpumem -q\npass")
    whole = gpumem.recording().to_bytes()
    _gpumem._close_store()
    shell.run_line_magic("gpumem", "reset")
    session = gpumem.sessions()[0]

    def opened() -> float:
        began = time.perf_counter()
        recording = gpumem.open_session(session.id)
        took = time.perf_counter() - began
        assert recording._counts().startswith(f"{N_RUNS} runs"), recording
        return took * 1000

    return {
        "handed_us": round(awake, 1),
        "handed_asleep_us": round(asleep, 1),
        "waited_us": round(waited, 1),
        "size_mib": round(session.size_bytes / (1 << 20), 2),
        "size_ratio": round(session.size_bytes / len(whole), 2),
        "open_ms": round(median(opened() for _ in range(N_OPENED)), 1),
    }


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        print(json.dumps(measure(Path(sys.argv[2]))))
    else:
        main(Path(sys.argv[1]))
