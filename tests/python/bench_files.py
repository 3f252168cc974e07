"""What reading files of PyTorch takes, beside reading them in Python.

The snapshot has 20,000 events with stacks of ten frames, each frame a dict of its own, as in files
from real GPUs. The profiler's trace has 100,000 events: operators with shapes, allocations and
frees in them, calls of the runtime, and kernels, in steps. Writes medians as JSON.
"""

from __future__ import annotations

import gzip
import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem

from tests.support.measure import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
KIB = 1 << 10
N_TURNS = 15
N_TURNS_OF_TRACE = 7
N_EVENTS = 20_000
N_STACKS = 500
DEPTH = 10
N_CALLS = 20_000
CALLS_PER_STEP = 1000


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
    content = gpumem.load(path)
    assert isinstance(content, gpumem.types.TorchSnapshot | gpumem.types.TorchTrace)
    return content.text()


def of_snapshot(folder: Path) -> dict[str, float]:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot(N_EVENTS), 4))
    return {
        "file_mb": path.stat().st_size / 1e6,
        "read_ms": milliseconds(lambda: gpumem.load(path), N_TURNS),
        "report_ms": milliseconds(lambda: report(path), N_TURNS),
        "python_ms": milliseconds(lambda: pickle.loads(path.read_bytes()), N_TURNS),  # noqa: S301 (our own)
    }


def of_trace(folder: Path) -> dict[str, float]:
    path, packed = folder / "trace.json", folder / "trace.json.gz"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}, indent=1))
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return {
        "file_mb": path.stat().st_size / 1e6,
        "read_ms": milliseconds(lambda: gpumem.load(path), N_TURNS_OF_TRACE),
        "read_packed_ms": milliseconds(lambda: gpumem.load(packed), N_TURNS_OF_TRACE),
        "report_ms": milliseconds(lambda: report(path), N_TURNS_OF_TRACE),
        "python_ms": milliseconds(lambda: json.loads(path.read_text()), N_TURNS_OF_TRACE),
    }


def main(figures: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        of_files = {"snapshot": of_snapshot(Path(folder)), "trace": of_trace(Path(folder))}
    taken = {f"{file}_{key}": it for file, of in of_files.items() for key, it in of.items()}
    figures.write_text(json.dumps(taken) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
