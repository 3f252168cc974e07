"""What a person is told of each case: the finding, with the name that holds it and the cure.

`test_findings` and `test_holders` ask the two halves apart, each with more of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from gpumem.details import Growth, Retention

from . import places, seeds
from .cases import MIB, N_RUNS, PRELUDES, Growing, Holder, Kept, Looped

if TYPE_CHECKING:
    import gpumem

    from .conftest import Notebook

PLACES = {"output_history", "traceback", "debugger", "run_module"}
RETAINED = [case for case in places.KEPT if case.holder.kind in PLACES]
NAMED = [case for case in places.KEPT if case.holder.kind not in PLACES]

LARGE = 10
"""So many times larger than else, for what is kept once: on the host less is not worth telling."""


def enlarged(notebook: Notebook) -> None:
    """Let tensors be larger from now on; the simulated device stays the one that there is."""
    prelude = PRELUDES[notebook.world].replace("sim.use(4 << 30)", "")
    notebook.run(prelude.replace("8 << 20", "80 << 20").replace("2 << 20", "20 << 20"))


def assert_holds(found: gpumem.Holder, holder: Holder) -> None:
    assert found.kind == holder.kind
    assert re.fullmatch(holder.name, found.name), found.name
    assert re.search(holder.path, found.path), found.path


@pytest.mark.parametrize("case", seeds.GROWING, ids=lambda case: case.name)
def test_a_leak_is_told_with_who_holds_it_and_its_bytes(notebook: Notebook, case: Growing) -> None:
    if notebook.world == "torch" and case.holder.kind == "cyclic_garbage":
        pytest.skip("nobody counts what torch allocates on the CPU: what hides is not looked for")
    notebook.run(case.setup)
    notebook.run(case.leak, N_RUNS)
    [leak] = notebook.alarms
    first = leak.holders[0]
    assert_holds(first, case.holder)
    # Where names do not tell of it, a first look that went no further has nothing to compare with.
    n_compared = N_RUNS if case.holder.kind == "variable" else first.grown_bytes // (2 * 8 * MIB)
    assert n_compared >= N_RUNS - 1
    assert first.grown_bytes == pytest.approx(n_compared * case.bytes_per_run, rel=0.01)
    if leak.fix is not None and leak.fix.before is not None:
        assert leak.fix.before in case.setup + case.leak
    else:
        # An object that is more than its data is not thrown away.
        assert leak.fix is not None or first.path in leak.suggestions[0]


@pytest.mark.parametrize("case", seeds.LOOPED, ids=lambda case: case.name)
def test_a_loop_in_one_cell_is_told_with_who_holds_what_its_steps_left(
    notebook: Notebook, case: Looped
) -> None:
    notebook.run("import gpumem\n" + case.setup)
    notebook.run(case.leak)
    [leak] = notebook.alarms
    assert isinstance(leak.details, Growth)
    assert (leak.details.steps, leak.state) == (True, "leak")
    assert_holds(leak.holders[0], case.holder)
    planted = case.n_steps * case.bytes_per_step
    assert leak.holders[0].grown_bytes == pytest.approx(planted, rel=0.01)
    assert leak.fix is not None
    assert leak.fix.before is not None
    assert leak.fix.before in case.leak
    notebook.run(case.setup)
    notebook.run(case.fix)
    assert notebook.alarms == []


@pytest.mark.parametrize("case", RETAINED, ids=lambda case: case.name)
def test_what_a_place_keeps_is_told_until_it_is_let_go(notebook: Notebook, case: Kept) -> None:
    enlarged(notebook)
    notebook.run(case.setup)
    for cell in case.cell.split("# %%\n"):
        notebook.run(cell)
    [found] = [
        it for it in notebook.alarms if isinstance(it.details, Retention) and it.withdrawn is None
    ]
    kept = found.details
    assert isinstance(kept, Retention)
    assert kept.place == case.holder.kind
    assert kept.n_bytes == pytest.approx(LARGE * case.n_bytes, rel=0.01)
    assert_holds(found.holders[0], case.holder)
    assert found.fix is not None
    assert case.fix in {found.fix.after, kept.release}
    notebook.run(case.fix)
    notebook.run("None")
    assert notebook.alarms == []


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.name)
def test_what_a_name_of_the_users_keeps_once_is_no_finding(notebook: Notebook, case: Kept) -> None:
    enlarged(notebook)
    notebook.run(case.setup)
    notebook.run(case.cell)
    assert notebook.alarms == []


def test_of_names_that_share_all_they_have_one_is_told_with_the_other(notebook: Notebook) -> None:
    """Neither keeps a tensor alone: it is free when both let go."""
    notebook.run("outputs = []\nby_step = {}")
    append = "output = tensor()\noutputs.append(output)\nby_step[len(outputs)] = output\ndel output"
    notebook.run(append, N_RUNS)
    [leak] = notebook.alarms
    [first] = leak.holders
    assert_holds(first, Holder("outputs", "variable", r"outputs\[\d+\]"))
    assert first.what.endswith("shared with by_step")
    assert first.grown_bytes == pytest.approx(N_RUNS * 8 * MIB, rel=0.01)
    assert leak.state == "suspected"
