"""A library's known leak is recognised by the class's module, not by its name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim
from gpumem.types import KnownLeak

from tests.support.shell import run, said

if TYPE_CHECKING:
    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

MIB = 1 << 20
SETUP = """
class Accelerator:
    def __init__(self):
        self._models = []
    def prepare(self, model):
        self._models.append(model)
        return model
    def free_memory(self):
        self._models.clear()

class Trial(Accelerator):
    pass

accelerator = Trial()
"""
TRIAL = f"model = accelerator.prepare([sim.tensor(16 * {MIB})])"
ACCELERATE = KnownLeak(
    id="accelerate-prepared-models",
    library="accelerate",
    version="1.15.0",
    title="accelerate keeps prepared models",
    cause="`prepare()` registers each model and optimizer with the accelerator until "
    "`free_memory()` is called",
    link="https://github.com/huggingface/accelerate/issues/84",
)


@pytest.fixture
def shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Return a shell that records every cell on a device of 1 GiB, beside a library."""
    package = ModuleType("accelerate")
    package.__version__ = "1.15.0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "accelerate", package)
    sim.use(total_bytes=1 << 30)
    shell.user_ns.update(sim=sim)
    run(shell, "%gpumem on", SETUP)
    return shell


def of_library(shell: Shell) -> None:
    run(shell, "Accelerator.__module__ = 'accelerate.accelerator'")


def test_growth_a_library_is_known_for_has_its_title_and_call(shell: Shell) -> None:
    of_library(shell)
    run(shell, *[TRIAL] * 12)
    (finding,) = gpumem.report().findings
    assert finding.known_leak == ACCELERATE
    assert finding.title == ACCELERATE.title
    assert finding.fix is not None
    assert (finding.fix.before, finding.fix.after) == (None, "accelerator.free_memory()")
    text = " ".join(gpumem.report().text().split())
    assert "known leak · accelerate" in text
    assert "with accelerate 1.15.0" in text
    assert text.index("+ accelerator.free_memory()") < text.index(ACCELERATE.link)


def test_a_library_keeping_a_deleted_name_is_reported_at_once(shell: Shell) -> None:
    of_library(shell)
    run(shell, f"model = accelerator.prepare([sim.tensor(200 * {MIB})])")
    out = " ".join(said(shell, "del model"))
    assert "accelerate keeps prepared models" in out
    assert "fix: accelerator.free_memory()" in out


def test_a_class_of_the_users_own_is_no_known_leak(shell: Shell) -> None:
    run(shell, *[TRIAL] * 12)
    (finding,) = gpumem.report().findings
    assert finding.known_leak is None
