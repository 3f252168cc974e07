"""What analysing costs: the classic rules on 1,000 to 1,000,000 results, in one process.

Each size is judged three times over, as code that was written for these names does:
patterns, insights, report. Where gpu-memory-profiler is installed it judges the same
results, as records of its own, in the same run; 100,000 of them, which take it seconds.
The evidence rule judges one series of 1,000,000 levels. Writes medians as JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import random
import resource
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import gpumem

from tests.support.measure import milliseconds

MIB = 1 << 20
N_FUNCTIONS = 20
SIZES = {"1e3": 1_000, "1e4": 10_000, "1e5": 100_000, "1e6": 1_000_000}
N_PEER = "1e5"


def main(figures: Path) -> None:
    """Measure and write the figures."""
    measured: dict[str, float] = {}
    for name, n in SIZES.items():
        made = results(gpumem, n)
        before = peak_bytes()
        measured[f"classic_{name}_ms"] = milliseconds(partial(classic, gpumem, made), repeats(n))
        if n == max(SIZES.values()):
            measured["extra_mib"] = (peak_bytes() - before) / MIB
        del made
    measured |= evidence() | peer(measured[f"classic_{N_PEER}_ms"])
    rounded = {key: round(value, 3) for key, value in measured.items()}
    figures.write_text(json.dumps(rounded) + "\n")


def results(module: Any, n: int) -> list[Any]:
    """Make calls of a few functions whose levels creep up, in records of ``module``."""
    rng = random.Random(20)  # noqa: S311 (levels, no secrets)
    level, now, made = 4096 * MIB, 1_700_000_000.0, []
    for idx in range(n):
        name = f"step_{idx % N_FUNCTIONS}"
        seconds = rng.uniform(0.01, 0.05)
        size = rng.randrange(64 * MIB)
        kept = rng.choice([-1, 1]) * size + 1000
        before = snapshot(module, now, level, level)
        peak = snapshot(module, now + seconds, level + 2 * size, level)
        level = max(0, level + kept)
        after = snapshot(module, now + seconds, level, level)
        made.append(
            module.ProfileResult(
                name, seconds, before, after, peak, max(0, kept), max(0, -kept), 0, 0
            )
        )
        now += seconds
    return made


def snapshot(module: Any, now: float, allocated: int, cached: int) -> Any:
    """Take a snapshot of a device that holds a third more than is allocated."""
    reserved = allocated + cached // 3
    return module.MemorySnapshot(
        now, allocated, reserved, allocated, reserved, allocated, reserved - allocated, 0
    )


def classic(module: Any, made: list[Any]) -> None:
    """Judge results as a notebook does."""
    analyzer = module.MemoryAnalyzer()
    analyzer.analyze_memory_patterns(made)
    analyzer.generate_performance_insights(made)
    analyzer.generate_optimization_report(made)


def evidence() -> dict[str, float]:
    """Time the evidence rule on one long series."""
    rng = random.Random(21)  # noqa: S311 (likewise)
    n = max(SIZES.values())
    levels = [4096 * MIB + 100 * idx + rng.randrange(MIB) for idx in range(n)]
    return {"evidence_1e6_ms": milliseconds(partial(gpumem.classify_growth, levels), repeats(n))}


def peer(own_ms: float) -> dict[str, float]:
    """Time gpu-memory-profiler on as many results, where it is installed."""
    if importlib.util.find_spec("gpumemprof") is None:
        return {}
    if importlib.util.find_spec("torch") is None:
        # It imports torch, which analysing does not use.
        sys.modules["torch"] = torch = ModuleType("torch")
        vars(torch).update(device=type("device", (), {}), Tensor=type("Tensor", (), {}))
    module = ModuleType("peer")
    for part in ("analyzer", "profiler"):
        vars(module).update(vars(importlib.import_module(f"gpumemprof.{part}")))
    n = SIZES[N_PEER]
    made = results(module, n)
    took = milliseconds(partial(classic, module, made), repeats(n))
    return {f"peer_{N_PEER}_ms": took, f"peer_{N_PEER}_ratio": took / own_ms}


def repeats(n: int) -> int:
    """Return how often work is repeated: the more often the smaller it is."""
    return max(3, 200_000 // n)


def peak_bytes() -> int:
    """Return the most that this process has held."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


if __name__ == "__main__":
    main(Path(sys.argv[1]))
