"""Cells of several shells of one kernel, which begin and end whenever they like."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

ipykernel = pytest.importorskip("ipykernel")
if ipykernel.version_info < (7,):
    pytest.skip("this ipykernel has no subshells", allow_module_level=True)

from tests.python.test_subshells import Shells, new_shells  # noqa: E402 (skipped before)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

N_CELLS = 120
N_SUBSHELLS = 3

# Its names are a function's: other cells, which run meanwhile, have the same.
THREADS = """\
def marked():
    threads = [threading.Thread(target=gpumem.mark) for _ in range(3)]
    [it.start() for it in threads]; [it.join() for it in threads]
marked()"""

# What people do, with how often; `{n}` tells one cell from the next.
RECORDED = [
    (6, "kept.append(sim.tensor({n} << 10)); time.sleep({n} % 5 / 200)"),
    (2, "%%gpumem -l named\nothers.append(sim.tensor({n} << 10))"),
    (2, "with gpumem.record('block'):\n    kept.append(sim.tensor({n} << 10))"),
    (2, "for _ in gpumem.steps(range(5)): kept.append(sim.tensor({n} << 10))"),
    (2, "await asyncio.sleep({n} % 5 / 200); kept.append(sim.tensor({n} << 10))"),
    (1, "%%gpumem --trace\nkept.append(sim.tensor({n} << 10))"),
    (1, "%%gpumem --source sim --device sim:0\nkept.append(sim.tensor({n} << 10))"),
    (1, "get_ipython().run_cell('x = sim.tensor({n} << 10)')"),
    (1, THREADS),
    (1, "del kept[: len(kept) // 2]"),
    (1, "try: sim.tensor(64 << 30)\nexcept sim.OutOfMemoryError: pass"),
]
CONTROL = [(1, "%gpumem why"), (1, "%gpumem_report --text"), (1, "%gpumem"), (1, "%gpumem status")]


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[Shells]:
    with new_shells(tmp_path) as shells:
        yield shells


def cells(kinds: list[tuple[int, str]], chosen: random.Random, n: int) -> list[str]:
    """Return ``n`` of these."""
    weights, texts = zip(*kinds, strict=True)
    drawn = chosen.choices(texts, weights, k=n)
    return [text.replace("{n}", str(idx + 1)) for idx, text in enumerate(drawn)]


def test_many_cells_at_once_are_as_many_runs(
    shells: Shells, request: pytest.FixtureRequest
) -> None:
    seed = request.getfixturevalue("_round")
    chosen = random.Random(seed)  # noqa: S311 (an order that is the same each time)
    shells.run("%gpumem on")
    places = [None, *(shells.new_subshell() for _ in range(N_SUBSHELLS))]
    recorded = cells(RECORDED, chosen, N_CELLS)
    control = cells(CONTROL, chosen, N_CELLS // 12)
    mixed = recorded + control
    chosen.shuffle(mixed)
    requests = [shells.start(cell, subshell=chosen.choice(places)) for cell in mixed]
    rans = [shells.finish(request) for request in requests]
    errors = [error["content"]["evalue"] for ran in rans for error in ran.of("error")]
    assert errors == []
    assert [ran.printed for ran in rans if "Error in callback" in ran.printed] == []
    shells.run("%gpumem off")
    assert "recording stopped" not in shells.run("%gpumem status").lines[0]
    runs = {run["run"]: run["status"] for run in [*shells.runs("host"), *shells.runs("sim:0")]}
    assert len(runs) == N_CELLS
    assert set(runs.values()) == {"ok"}
    # Each cell with the magic has a line.
    has_magic = [cell.startswith("%%gpumem") for cell in mixed]
    n_lines = [len(ran.lines) for ran in rans]
    assert all(n == 1 for n, is_shown in zip(n_lines, has_magic, strict=True) if is_shown)
