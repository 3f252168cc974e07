"""What reading a trace of PyTorch's profiler takes, beside reading its JSON in Python.

The trace has 100,000 events: operators with shapes, allocations and frees in them, calls of the
runtime, and kernels, in steps. Writes medians, in milliseconds, as JSON.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem

from tests.support.measure import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB = 1 << 10
N_TURNS = 7
N_CALLS = 20_000
CALLS_PER_STEP = 1000


def event(phase: str, name: str, at: float, **fields: Any) -> dict[str, Any]:
    return {"ph": phase, "name": name, "pid": 4211, "tid": 4211, "ts": 1.6e9 + at} | fields


def events() -> Iterator[dict[str, Any]]:
    for n in range(N_CALLS):
        at = 40.0 * n
        name = f"aten::op_{n % 60}"
        dims = [[n % 50, 128], [128, 64], []]
        args = {"External id": n, "Input Dims": dims, "Input type": ["float", "float", ""]}
        yield event("X", name, at, cat="cpu_op", dur=30.5, args=args)
        memory = {"Device Type": 1, "Device Id": 0, "Addr": n // 2 * KIB, "Total Reserved": 1 << 30}
        n_bytes = -KIB if n % 2 else KIB
        level = {"Bytes": n_bytes, "Total Allocated": (1 << 20) + (0 if n % 2 else KIB)}
        yield event("i", "[memory]", at + 5, cat="cpu_instant_event", args=memory | level)
        launch = {"cbid": 211, "correlation": n}
        yield event("X", "cudaLaunchKernel", at + 8, cat="cuda_runtime", dur=4.25, args=launch)
        kernel = {"device": 0, "stream": 7, "correlation": n, "grid": [24, 1, 1]}
        yield event(
            "X", f"void kernel_{n % 40}<float>", at + 20, cat="kernel", dur=12.5, args=kernel
        )
        yield event("s", "ac2g", at + 8, cat="ac2g", id=n)
        if n % CALLS_PER_STEP == 0:
            step = f"ProfilerStep#{n // CALLS_PER_STEP}"
            yield event("X", step, at, cat="user_annotation", dur=39.0 * CALLS_PER_STEP, args={})


def report(path: Path) -> str:
    trace = gpumem.load(path)
    assert isinstance(trace, gpumem.types.TorchTrace)
    return trace.text()


def main(figures: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, packed = Path(folder) / "trace.json", Path(folder) / "trace.json.gz"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}, indent=1))
        packed.write_bytes(gzip.compress(path.read_bytes()))
        taken = {
            "file_mb": path.stat().st_size / 1e6,
            "read_ms": milliseconds(lambda: gpumem.load(path), N_TURNS),
            "read_packed_ms": milliseconds(lambda: gpumem.load(packed), N_TURNS),
            "report_ms": milliseconds(lambda: report(path), N_TURNS),
            "json_ms": milliseconds(lambda: json.loads(path.read_text()), N_TURNS),
        }
    figures.write_text(json.dumps(taken) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
