"""What `--trace` costs: on each allocation of the simulated device, and at the end of a run.

The same loop of allocations takes turns untraced and traced, ten calls deep. At the end of a
run torch's snapshot is read: here one of 100,000 events, as many as are kept, in the shape in
which torch gives it. Writes medians as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem, sim

from tests.support.measure import milliseconds
from tests.support.shell import open_shell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

N_ALLOCATIONS = 5_000
N_EVENTS = 100_000
N_ROUNDS = 7
DEPTH = 10


def allocate(depth: int = DEPTH) -> float:
    """Return the microseconds of an allocation with its free."""
    if depth > 0:
        return allocate(depth - 1)
    start = time.perf_counter()
    for _ in range(N_ALLOCATIONS):
        sim.tensor(1 << 20)
    return (time.perf_counter() - start) / N_ALLOCATIONS * 1e6


def per_allocation(shell: InteractiveShell) -> dict[str, float]:
    sim.use()
    _gpumem.use_sources(["sim"])
    found: dict[str, list[float]] = {"plain_us": [], "traced_us": []}
    shell.user_ns["allocate"] = allocate
    for _ in range(N_ROUNDS):
        for key, options in [("plain_us", ""), ("traced_us", "--trace")]:
            shell.user_ns["found"] = found[key]
            shell.run_cell(f"%%gpumem -q {options}\nfound.append(allocate())")
    medians = {key: median(figures) for key, figures in found.items()}
    return {**medians, "added_us": medians["traced_us"] - medians["plain_us"]}


class Torch(ModuleType):
    """As much of torch as a trace asks, with a history that is there at once."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.is_enabled = False
        self.snapshots: list[dict[str, Any]] = [{"segments": [], "device_traces": []}]
        figures = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
        pools = {"all": figures}
        stats = {"allocated_bytes": pools, "reserved_bytes": pools}
        self._C = SimpleNamespace(
            _cuda_isHistoryEnabled=lambda: self.is_enabled, _cuda_memoryStats=lambda _ordinal: stats
        )
        properties = SimpleNamespace(name="T4", uuid="0", total_memory=16 << 30)
        self.cuda = SimpleNamespace(
            is_initialized=lambda: True,
            device_count=lambda: 1,
            get_device_properties=lambda _ordinal: properties,
            get_allocator_backend=lambda: "native",
            memory=SimpleNamespace(
                _snapshot=lambda: self.snapshots[self.is_enabled],
                _record_memory_history=self.record,
            ),
        )

    def record(self, enabled: str | None, **_options: Any) -> None:
        self.is_enabled = enabled is not None


def long_history() -> dict[str, Any]:
    frames = [
        {"name": f"f{n}", "filename": f"/lib/site-packages/p/m{n % 40}.py", "line": n}
        for n in range(2_000)
    ]
    stacks = [[frames[(7 * n + at) % 2_000] for at in range(30)] for n in range(3_000)]
    now = time.time_ns() // 1000
    events = []
    for n in range(N_EVENTS // 2):
        event = {"addr": n << 21, "size": 1 << 20, "stream": 0, "time_us": now}
        events.append({**event, "action": "alloc", "frames": stacks[n % 3_000]})
        events.append({**event, "action": "free_requested", "frames": stacks[n % 3_000]})
    return {"segments": [], "device_traces": [events], "allocator_settings": {}}


def reading(shell: InteractiveShell) -> float:
    """Return the milliseconds that a run of 100,000 events takes longer at its end."""
    torch = Torch()
    torch.snapshots.append(long_history())
    sys.modules["torch"] = torch
    _gpumem.use_sources(["torch"])
    taken = milliseconds(partial(shell.run_cell, "%%gpumem -q --trace\npass"), N_ROUNDS)
    del sys.modules["torch"]
    return taken


def main() -> None:
    shell = open_shell()
    figures = per_allocation(shell)
    figures["read_1e5_ms"] = reading(shell)
    Path(sys.argv[1]).write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
