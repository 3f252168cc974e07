"""Names that hold much and that no cell has read for a while: listed, never an alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim
from gpumem.types import Twin

from tests.support.shell import run

if TYPE_CHECKING:
    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

MIB = 1 << 20
SETUP = f"""
def load():
    return [sim.tensor(n * {MIB}) for n in (30, 20, 10)]

class Model:
    def __init__(self):
        self.weights = load()

    def load_state_dict(self, state):
        assert len(state) == len(self.weights)

def score(n):
    return (sim.tensor(n * {MIB}) * model.weights[0]).sum().item()
"""
LOADED = ("checkpoint = load()", "model = Model()\nmodel.load_state_dict(checkpoint)")
USED = ("a = score(1)", "b = score(2)", "c = score(3)", "a + b", "score(4)", "print(c)")


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """Return a shell that records every cell on a device of 1 GiB."""
    sim.use(total_bytes=1 << 30)
    shell.user_ns.update(sim=sim)
    run(shell, "%gpumem on", SETUP)
    return shell


def idle() -> list[str]:
    return [it.release for it in gpumem.report().idle]


def test_a_checkpoint_that_no_cell_reads_is_listed(shell: Shell) -> None:
    run(shell, *LOADED, *USED)
    [it] = gpumem.report().idle
    assert (it.device, it.names, it.n_bytes) == ("sim:0", ("checkpoint",), 60 * MIB)
    assert (it.last_execution_count, it.n_runs_since, it.is_read) == (4, 6, True)
    assert it.twin == Twin(name="model", n_alike=3, n_all=3, by_shape=False)
    assert not gpumem.report().findings
    line = "○ checkpoint · 60 MiB · last read in In [4], 6 runs ago · twin of `model`: 3 of 3 sizes"
    run(shell, "%gpumem")
    assert line in shell.lines[-1]
    text = gpumem.report().text()
    assert line in text
    assert "60 MiB of it not read for a while" in " ".join(text.split())
    assert "○ 1 name not read for a while" in text
    run(shell, it.release)
    assert not idle()


@pytest.mark.parametrize(
    "cell",
    [
        "print(len(checkpoint))",
        "kept = checkpoint",
        "def use():\n    return checkpoint[0]\nuse()",
        "def use():\n    return checkpoint[0]\nhooks = [use]",
        "exec('checkpoint[0]')",
    ],
)
def test_what_may_have_been_read_is_not_listed(shell: Shell, cell: str) -> None:
    run(shell, *LOADED, *USED[:3], cell, *USED[3:])
    assert not idle()


def test_a_cell_that_is_not_recorded_may_read_all(shell: Shell) -> None:
    run(shell, *LOADED, *USED)
    assert idle() == ["del checkpoint"]
    run(shell, "%gpumem off", "checkpoint[0].sum()")
    assert not idle()


def test_functions_from_before_the_recording_may_read_all(shell: Shell) -> None:
    run(shell, "%gpumem reset", *LOADED, *USED)
    assert not idle()


def test_a_report_finds_who_has_it_now(shell: Shell) -> None:
    keep = "class Loader:\n    pass\nloader = Loader()\nloader.data = checkpoint"
    # No level moves after the model is made, so no look is taken after these cells.
    run(shell, *LOADED, keep, *USED, "n = len(loader.data)")
    assert not idle()
    run(shell, "del loader")
    assert idle() == ["del checkpoint"]


def test_two_names_of_one_object_are_idle_together(shell: Shell) -> None:
    run(shell, LOADED[0], "state = checkpoint", LOADED[1], *USED)
    assert idle() == ["del checkpoint, state"]
