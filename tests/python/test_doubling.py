"""A cell that is run again and holds its old and its new result at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
from gpumem import sim
from gpumem.details import RerunDoubling

from tests.support.shell import run

if TYPE_CHECKING:
    from tests.python.conftest import Shell

MIB = 1 << 20
MODEL = f"""
class Model:
    def __init__(self):
        self.weights = [sim.tensor(50 * {MIB}) for _ in range(4)]
"""


def doubled(shell: Shell, cell: str, times: int = 2) -> list[gpumem.types.Finding]:
    """Run a cell again and again on a new device; return what is said of two copies."""
    sim.use(1 << 30)
    shell.user_ns["sim"] = sim
    run(shell, MODEL, "%gpumem on", *[cell] * times)
    shell.user_ns.pop("model", None)
    return [it for it in gpumem.report().findings if it.kind == "rerun_doubling"]


def test_a_rerun_is_reported_with_copies_name_and_fix(shell: Shell) -> None:
    [found] = doubled(shell, "model = Model()")
    assert found.details == RerunDoubling(200 * MIB, 200 * MIB, 200 * MIB, 1)
    assert [holder.name for holder in found.holders] == ["model"]
    assert found.fix is not None
    assert (found.fix.before, found.fix.after) == (
        "model = Model()",
        "model = None\nmodel = Model()",
    )


def test_an_applied_fix_is_not_proposed_again(shell: Shell) -> None:
    assert doubled(shell, "model = None\nmodel = Model()", 4) == []


def test_a_rerun_that_uses_its_result_is_not_reported(shell: Shell) -> None:
    cell = f"if 'model' not in globals(): model = Model()\nwork = sim.tensor(300 * {MIB})\ndel work"
    assert doubled(shell, cell, 4) == []


def test_a_batch_as_large_as_the_model_is_no_second_copy(shell: Shell) -> None:
    cell = f"""
if 'model' in globals():
    batch = sim.tensor(200 * {MIB})
    del batch, model
model = Model()"""
    assert doubled(shell, cell, 4) == []
