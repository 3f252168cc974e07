"""What `%load_ext gpumem` and the first recorded cell take, with the drivers that there can be.

Each measurement is an interpreter of its own, the kinds by turns: a machine without
a driver, a library that is no library, a driver that does not start, one that hangs
when it starts, and one that answers. Writes medians, in milliseconds, as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

N_TURNS = 9
GPU = """
gpu0.uuid = GPU-3f1a8c55-0000-4b7e-9d21-000000000000
gpu0.total_mib = 16384
gpu0.used_mib = 1024
"""
KINDS = {
    "no_driver": None,
    "no_library": "",
    "broken": "nvmlInit_v2 = driver_not_loaded",
    "hanging": "nvmlInit_v2 = hang",
    "working": GPU,
}
MEASURE = """
import time
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
start = time.perf_counter()
shell.run_line_magic("load_ext", "gpumem")
loaded = time.perf_counter()
shell.run_cell("%%gpumem --quiet\\npass")
print(1000 * (loaded - start), 1000 * (time.perf_counter() - loaded))
"""


def took(libraries: Path | None, state: Path) -> tuple[float, float]:
    """Return the milliseconds of the load and of the first cell."""
    environment = {**os.environ, "PLAYED_CUDA_STATE": str(state)}
    if libraries is not None:
        environment["LD_LIBRARY_PATH"] = str(libraries)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", MEASURE]
    ran = subprocess.run(command, capture_output=True, check=True, env=environment, text=True)
    load, cell = ran.stdout.splitlines()[-1].split()
    return float(load), float(cell)


def machine(folder: Path, kind: str, played: str | None) -> tuple[Path | None, Path] | None:
    """Set up a machine of that kind; `None` where no driver can be played."""
    state = folder / f"{kind}.state"
    text = KINDS[kind]
    state.write_text(text or "")
    if text is None:
        return None, state
    if played is None:
        return None
    libraries = folder / kind
    if text:
        shutil.copytree(played, libraries)
    else:
        libraries.mkdir()
        (libraries / "libnvidia-ml.so.1").write_bytes(b"no library at all")
    return libraries, state


def main(figures: Path) -> None:
    """Measure and write the figures."""
    played = os.environ.get("PLAYED_CUDA_LIBRARIES")
    with tempfile.TemporaryDirectory() as name:
        machines = {kind: machine(Path(name), kind, played) for kind in KINDS}
        times: dict[str, list[tuple[float, float]]] = {}
        for _ in range(N_TURNS):
            for kind, found in machines.items():
                if found is not None:
                    times.setdefault(kind, []).append(took(*found))
    loads = {kind: median(load for load, _ in of_kind) for kind, of_kind in times.items()}
    cells = {kind: median(cell for _, cell in of_kind) for kind, of_kind in times.items()}
    measured = {"load_ms": loads["no_driver"], "first_cell_ms": cells["no_driver"]}
    for kind in times.keys() - {"no_driver"}:
        measured[f"{kind}_more_ms"] = loads[kind] - loads["no_driver"]
        measured[f"{kind}_cell_more_ms"] = cells[kind] - cells["no_driver"]
    rounded = {key: round(value, 2) for key, value in measured.items()}
    figures.write_text(json.dumps(rounded) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
