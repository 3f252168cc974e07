"""What reading a memory snapshot of PyTorch takes, beside CPython's unpickling of it.

The file has 20,000 events with stacks of ten frames, each frame a dict of its own, as in files from
real GPUs. Writes medians, in milliseconds, as JSON.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

import gpumem

from tests.support.measure import milliseconds

MIB = 1 << 20
N_TURNS = 15
N_EVENTS = 20_000
N_STACKS = 500
DEPTH = 10


def segment(address: int, stack: list[dict[str, Any]]) -> dict[str, Any]:
    block = {"address": address, "size": 2 * MIB, "state": "active_allocated", "frames": stack}
    return {"device": 0, "address": address, "total_size": 2 * MIB, "blocks": [block]}


def snapshot(n_events: int) -> dict[str, Any]:
    stacks = [
        [
            {"name": f"layer_{depth}", "filename": f"/srv/ada/lm/part_{depth}.py", "line": n}
            for depth in range(DEPTH)
        ]
        for n in range(N_STACKS)
    ]
    events = [
        {
            "action": "free_requested" if n % 2 else "alloc",
            "addr": (1 << 40) + n // 2 * MIB,
            "size": MIB + n // 2,
            "stream": 0,
            "time_us": 1_700_000_000_000_000 + n,
            "compile_context": "N/A",
            "user_metadata": "",
            "frames": stacks[n % N_STACKS],
        }
        for n in range(n_events)
    ]
    held = [segment(n << 30, stacks[n]) for n in range(99)]
    return {"segments": held, "device_traces": [events], "allocator_settings": {}}


def report(path: Path) -> str:
    snapshot = gpumem.load(path)
    assert isinstance(snapshot, gpumem.types.TorchSnapshot)
    return snapshot.text()


def main(figures: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        path.write_bytes(pickle.dumps(snapshot(N_EVENTS), 4))
        taken = {
            "file_mb": path.stat().st_size / 1e6,
            "read_ms": milliseconds(lambda: gpumem.load(path), N_TURNS),
            "report_ms": milliseconds(lambda: report(path), N_TURNS),
            "unpickle_ms": milliseconds(lambda: pickle.loads(path.read_bytes()), N_TURNS),  # noqa: S301 (our own)
        }
    figures.write_text(json.dumps(taken) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
