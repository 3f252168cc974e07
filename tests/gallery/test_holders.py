"""Who the gallery's cases name as holder: by what way, and how many bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from . import healthy, places, seeds
from .cases import N_RUNS, WORLDS, Growing, Healthy, Holder, Kept
from .holding import roots

if TYPE_CHECKING:
    import gpumem

    from .conftest import Notebook

MARGIN = 1 << 16
"""A loss, or a list of numbers."""


def of(notebook: Notebook, holder: Holder) -> list[gpumem.Holder]:
    """Return the roots of that kind and name."""
    found = roots(notebook.device)
    return [
        root
        for root in found
        if re.search(holder.kind, root.kind) and re.search(f"^({holder.name})$", root.name)
    ]


@pytest.mark.parametrize("case", seeds.GROWING, ids=lambda case: case.name)
def test_a_leak_has_a_holder_with_its_bytes_and_a_path(notebook: Notebook, case: Growing) -> None:
    notebook.run(case.setup)
    before = sum(root.n_bytes for root in of(notebook, case.holder))
    notebook.run(case.leak, N_RUNS)
    found = of(notebook, case.holder)
    planted = N_RUNS * case.bytes_per_run
    assert sum(root.n_bytes for root in found) - before == pytest.approx(planted, rel=0.01)
    assert re.search(case.holder.path, found[0].path), found[0].path


@pytest.mark.parametrize("case", seeds.GROWING, ids=lambda case: case.name)
def test_with_the_fix_nobody_keeps_more(notebook: Notebook, case: Growing) -> None:
    notebook.run(case.setup)
    notebook.run(case.fix, 2)
    after_two = sum(root.n_bytes for root in roots(notebook.device))
    notebook.run(case.fix, N_RUNS)
    assert sum(root.n_bytes for root in roots(notebook.device)) - after_two < MARGIN


@pytest.mark.parametrize(
    ("world", "case"),
    [
        (world, case)
        for world in WORLDS
        for case in (*seeds.HEALTHY, *healthy.HEALTHY)
        if world in case.worlds
    ],
    ids=lambda it: getattr(it, "name", it),
    indirect=["world"],
)
def test_in_a_healthy_workflow_nobody_keeps_more(notebook: Notebook, case: Healthy) -> None:
    notebook.run(case.setup)
    notebook.run(case.cell, 5)
    after_five = sum(root.n_bytes for root in roots(notebook.device))
    notebook.run(case.cell, 5)
    assert sum(root.n_bytes for root in roots(notebook.device)) - after_five < MARGIN


@pytest.mark.parametrize("case", places.KEPT, ids=lambda case: case.name)
def test_what_is_kept_is_named_and_the_fix_gives_it_back(notebook: Notebook, case: Kept) -> None:
    notebook.run(case.setup)
    for cell in case.cell.split("# %%\n"):
        notebook.run(cell)
    found = of(notebook, case.holder)
    assert sum(root.n_bytes for root in found) == pytest.approx(case.n_bytes, rel=0.01)
    assert re.search(case.holder.path, found[0].path), found[0].path
    notebook.run(case.fix)
    assert sum(root.n_bytes for root in of(notebook, case.holder)) < MARGIN
