"""The sessions that the tests show, each recorded once in a shell of its own."""

from __future__ import annotations

import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.reports import recording_in

from .live import CELLS, QUIET, SETUP, record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import gpumem

STEPS = "for batch in gpumem.steps(range(20)):\n    "
SIMULATED: dict[str, list[str]] = {
    "leak": CELLS[1:],
    "unseen": ["%config GpuMem.holders = False", *CELLS[1:]],
    "fixed": [*CELLS[1:2], f"{STEPS}sim.tensor(64 << 20)"],
    "empty": [],
    "one": CELLS[4:],
    "thousand": ["kept = []", *["kept.append(sim.tensor(2 << 20))"] * 999],
    "loop": [
        "import time\nweights = sim.tensor(64 << 20, requires_grad=True)\nlosses = []",
        (
            "for n in range(80):\n    losses.append((sim.tensor(64 << 20) * weights).sum())\n"
            "    time.sleep(0.02)\nprint(len(losses))"
        ),
    ],
    "oom": [*CELLS[1:], "try:\n    big = sim.tensor(9 << 30)\nfinally:\n    step = 1"],
}
QUICKSTART = Path(__file__).parents[2] / "notebooks" / "quickstart.ipynb"
AGAIN = "predictions.append("

# Eight cards whose driver is played from a file: what they hold is what is written there.
CARDS = """
import os, time

def fill(*used_gib):
    lines = []
    for idx, gib in enumerate(used_gib):
        card = {
            "uuid": f"GPU-3f1a8c55-0000-4b7e-9d21-00000000000{idx}",
            "name": "NVIDIA A100-SXM4-80GB",
            "total_mib": 81920,
            "used_mib": gib * 1024 + 512,
            "computing": f"self:{gib * 1024}",
        }
        lines += [f"gpu{idx}.{key} = {value}" for key, value in card.items()]
    # Replaced in one step: it is read at any time.
    state = os.environ["PLAYED_CUDA_STATE"]
    with open(f"{state}.new", "w") as new:
        new.write("\\n".join(lines))
    os.replace(f"{state}.new", state)
    time.sleep(0.02)

fill(*[0] * 8)
"""
EIGHT = [
    CARDS,
    "%load_ext gpumem\nimport gpumem\n%gpumem on",
    "shards = fill(*[20] * 8)",
    *[f"fill(*[20 + idx + 2 * {n} for idx in range(8)])" for n in range(6)],
    "spare = fill(*[31 + idx for idx in range(7)], 76)",
]


class Sessions:
    """Recordings by name; whoever asks for one waits until it is there."""

    def __init__(self, recorded: Mapping[str, Future[gpumem.types.Recording]]) -> None:
        """Hand out what is being recorded."""
        self._recorded = recorded

    def __getitem__(self, name: str) -> gpumem.types.Recording:
        """Return the recording of this name."""
        return self._recorded[name].result()


@contextmanager
def recording(folder: Path) -> Iterator[Sessions]:
    """Record every session, two at a time, while the browser starts."""
    sessions = {name: [SETUP, QUIET, "%gpumem on", *cells] for name, cells in SIMULATED.items()}
    sessions["quickstart"] = _quickstart()
    sessions["eight"] = EIGHT
    state = folder / "state"
    state.touch()
    played = {
        "LD_LIBRARY_PATH": os.environ.get("PLAYED_CUDA_LIBRARIES", ""),
        "PLAYED_CUDA_STATE": str(state),
    }

    def record_one(name: str) -> gpumem.types.Recording:
        record(sessions[name], folder / name, **(played if name == "eight" else {}))
        return recording_in(folder / name)

    pool = ThreadPoolExecutor(2)
    try:
        yield Sessions({name: pool.submit(record_one, name) for name in sessions})
    finally:
        pool.shutdown(cancel_futures=True)


def _quickstart() -> list[str]:
    """Return the cells of the notebook, one of them run nine times as it asks for."""
    cells = json.loads(QUICKSTART.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    repeated = [[source] * (9 if AGAIN in source else 1) for source in sources]
    return [source for sources in repeated for source in sources if "report" not in source]
