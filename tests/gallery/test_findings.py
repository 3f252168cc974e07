"""What gpumem says of the gallery's cells: each leak is found, and nothing else is accused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import healthy, seeds
from .cases import N_RUNS, WORLDS, Growing, Healthy

if TYPE_CHECKING:
    from .conftest import Notebook

# Of torch on the CPU, resident memory is judged: pages, and what else the process does.
EXACT = {"sim": 0.01, "torch": 0.25, "cuda": 0.01}
HEALTHY = [*seeds.HEALTHY, *healthy.HEALTHY]


@pytest.mark.parametrize("case", seeds.GROWING, ids=lambda case: case.name)
def test_a_cell_that_keeps_more_each_time_is_a_leak(notebook: Notebook, case: Growing) -> None:
    notebook.run(case.setup)
    notebook.run(case.leak, N_RUNS)
    [leak] = notebook.alarms
    # A collection frees it.
    is_doubtful = case.holder.kind == "cyclic_garbage"
    assert leak.state == ("suspected" if case.is_meant or is_doubtful else "leak")
    assert leak.bytes_per_run == pytest.approx(case.bytes_per_run, rel=EXACT[notebook.world])
    assert leak.cell is not None
    assert case.leak.startswith(leak.cell.label)


@pytest.mark.parametrize("case", seeds.GROWING, ids=lambda case: case.name)
def test_its_fix_is_not_accused(notebook: Notebook, case: Growing) -> None:
    notebook.run(case.setup)
    notebook.run(case.fix, N_RUNS)
    assert notebook.alarms == []


@pytest.mark.parametrize(
    "case", [case for case in seeds.GROWING if case.half_fix], ids=lambda case: case.name
)
def test_what_the_text_proposes_still_grows(notebook: Notebook, case: Growing) -> None:
    notebook.run(case.setup)
    notebook.run(case.half_fix, N_RUNS)
    [leak] = notebook.alarms
    assert leak.bytes_per_run == pytest.approx(case.half_fix_bytes, rel=EXACT[notebook.world])


@pytest.mark.parametrize(
    ("world", "case"),
    [(world, case) for world in WORLDS for case in HEALTHY if world in case.worlds],
    ids=lambda it: getattr(it, "name", it),
    indirect=["world"],
)
def test_a_healthy_workflow_is_not_accused(notebook: Notebook, case: Healthy) -> None:
    notebook.run(case.setup)
    notebook.run(case.cell, N_RUNS)
    assert notebook.alarms == []
