"""Finding what holds device memory among 1e4, 1e5 and 1e6 live objects.

The heap is that of a notebook: dicts, lists, instances and records, with tensors of
a simulated device planted in them in every way. Each walk is measured in one run
with a collection, and with what one would write by hand: every object that the
collector knows, `isinstance`, `get_referrers`. Writes milliseconds and ratios as
JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem, sim
from IPython.core.interactiveshell import InteractiveShell

from tests.support.measure import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"1e4": 10_000, "1e5": 100_000, "1e6": 1_000_000}
N_TENSORS = 100
TENSOR_BYTES = 1 << 20
N_STORAGES = 200_000
# Referrers of a tensor take a look at every object: a few tell what all would take.
N_BY_HAND = 5


class Record:
    """An instance with a dict of its own."""

    def __init__(self, content: object) -> None:
        self.content = content
        self.tags = {"kind": "record"}


class Slotted:
    """An instance without one."""

    __slots__ = ("content",)

    def __init__(self, content: object) -> None:
        self.content = content


def heap(n_objects: int) -> dict[str, Any]:
    """Return variables that keep about ``n_objects``, tensors among them."""
    variables: dict[str, Any] = {}
    n_groups = 20
    for group in range(n_groups):
        # A record, its dict and its tags, a list, a dict and a deque: six objects.
        rows = [
            {"id": i, "parts": [Record(i), deque([i])]} for i in range(n_objects // n_groups // 6)
        ]
        variables[f"group_{group}"] = rows
    for number in range(N_TENSORS):
        rows = variables[f"group_{number % n_groups}"]
        row = rows[number * 7919 % len(rows)]
        row.setdefault("parts", []).append(planted(number))
    return variables


def planted(number: int) -> object:
    """Return something that keeps one tensor, in one of many ways."""
    tensor = sim.tensor(TENSOR_BYTES)
    ways: list[Callable[[], object]] = [
        lambda: tensor,
        lambda: Record(tensor),
        lambda: Slotted(tensor),
        lambda: {"loss": [tensor]},
        lambda: (tensor, number),
        lambda: {tensor},
        lambda: deque([tensor]),
        lambda: lambda: tensor,
        lambda: kept_by_default(tensor),
        lambda: suspended(tensor),
    ]
    return ways[number % len(ways)]()


def kept_by_default(tensor: sim.Tensor) -> Callable[[], object]:
    """Return a function that keeps a tensor as its argument's default."""

    def function(kept: sim.Tensor = tensor) -> sim.Tensor:
        return kept

    return function


def suspended(tensor: sim.Tensor) -> object:
    """Return a generator that keeps a tensor in its frame."""

    def frame() -> Any:
        yield tensor

    generator = frame()
    next(generator)
    return generator


def by_hand() -> float:
    """Return the milliseconds of the usual recipe for all tensors, from those for a few."""
    start = time.perf_counter()
    tensors = [it for it in gc.get_objects() if isinstance(it, sim.Tensor)]
    found = time.perf_counter()
    for tensor in tensors[:N_BY_HAND]:
        gc.get_referrers(tensor)
    searched = time.perf_counter()
    n_searched = min(N_BY_HAND, len(tensors)) or 1
    return (found - start + (searched - found) / n_searched * len(tensors)) * 1e3


def named_share(variables: dict[str, Any]) -> float:
    """Return the share of the planted bytes that a name reaches."""
    nodes, *_ = _gpumem._testing.object_graph(variables)
    storages = [storage for _, _, storage in nodes if storage is not None]
    n_bytes: int = sum(n for _, n in storages)
    return 100 * n_bytes / (N_TENSORS * TENSOR_BYTES)


def measure(n_objects: int) -> dict[str, float]:
    """Measure one heap."""
    sim.use()
    variables = heap(n_objects)
    gc.collect()
    collect = milliseconds(gc.collect)
    walk = milliseconds(lambda: _gpumem._testing.object_graph(variables))
    hand = by_hand()
    return {
        "ms": walk,
        "collect_ms": collect,
        "collections": walk / collect,
        "by_hand_ms": hand,
        "by_hand_ratio": hand / walk,
        "named_percent": named_share(variables),
    }


def answered(n_tensors: int) -> float:
    """Return the milliseconds from asking to the answer where every object leads to memory.

    A list, a tensor and a storage each: dominators, retained bytes and paths of all of them.
    """
    sim.use(total_bytes=1 << 40)
    globals()["lists"] = [[sim.tensor(512)] for _ in range(n_tensors)]
    gc.collect()
    return milliseconds(lambda: _gpumem.find_holders(1), 3)


def in_a_shell(n_objects: int) -> dict[str, float]:
    """Measure what a run's end and an error that is caught take among `n_objects` objects.

    A run's end is held against one without holders, in turn.
    """
    sim.use()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "gpumem")
    variables = heap(n_objects)
    shell.user_ns.update(variables, sim=sim, took=[], more=[], perf_counter=time.perf_counter)
    gc.collect()
    run: Callable[[str], object] = shell.run_cell
    cells = {"with": "%%gpumem --quiet\npass", "without": "%%gpumem --quiet --no-holders\npass"}
    times: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(50):
        for name, cell in cells.items():
            times[name].append(milliseconds(partial(run, cell), 1))
    caught = "try: sim.tensor(1 << 50)\nexcept RuntimeError: pass"
    for _ in range(5):
        run(f"%%gpumem --quiet\nt = perf_counter()\n{caught}\ntook.append(perf_counter() - t)")
    grown = partial(run, "%%gpumem --quiet\nmore.append(sim.tensor(9 << 20))")
    grown_end = milliseconds(grown, 5)
    for name in variables:
        del shell.user_ns[name]
    variables.clear()
    shell.user_ns["many"] = [sim.tensor(512) for _ in range(N_STORAGES)]
    gc.collect()
    return {
        "end_ms": max(0.0, median(times["with"]) - median(times["without"])),
        "grown_end_ms": grown_end,
        "grown_end_ms_2e5": milliseconds(grown, 5),
        "oom_ms": 1e3 * median(shell.user_ns["took"]),
    }


def main(path: Path) -> None:
    """Measure all heaps and write the figures."""
    figures = {
        f"{key}_{size}": value
        for size, n_objects in SIZES.items()
        for key, value in measure(n_objects).items()
    }
    # The larger of the two is what a walk may take.
    budget = max(250.0, 3 * figures["collect_ms_1e6"])
    figures["budget_share_1e6"] = 100 * figures["ms_1e6"] / budget
    figures["unnamed_percent"] = 100 - min(figures[f"named_percent_{size}"] for size in SIZES)
    figures["answer_ms_1e6"] = answered(333_333)
    del globals()["lists"]
    figures.update(in_a_shell(SIZES["1e6"]))
    path.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
