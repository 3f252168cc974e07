"""A finding's path, rate and fix are of the attribute that grew, not of the largest object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem, sim

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Shell

MIB = 1 << 20
START = "from gpumem import sim\nsim.use(8 << 30)\nMB = 1 << 20\n"


@dataclass
class Case:
    """A cell that defines, one that grows, and what is said of each name that grows."""

    definition: str
    cell: str
    expected: list[tuple[str, str, int]]
    fixed: str | None = None
    n_runs: int = 10


TRAINER = """
class Trainer:
    def __init__(self):
        self.w = sim.tensor(256 * MB, requires_grad=True)
        self.logs = []
        self.seen = {}
trainer = Trainer()
"""

METHODS = """
class Evaluator:
    def __init__(self):
        self.w = sim.tensor(256 * MB, requires_grad=True)
        self.logs = []
        self.losses = []
    def evaluate(self, x):
        hidden = x * 0.5
        self.logs.append({"n": 1, "hidden": hidden})
        return hidden.sum().item()
    def validate(self, x):
        loss = (x * self.w).sum()
        self.losses.append(loss)
        return loss
trainer = Evaluator()
"""

METER = """
class Meter:
    def __init__(self): self.sum = 0; self.vals = []
    def update(self, v): self.sum = self.sum + v; self.vals.append(v)
w = sim.tensor(64 * MB, requires_grad=True)
m = Meter()
"""

DETACHED = "(v.detach() if hasattr(v, 'detach') else v)"

CASES = {
    "a list beside a large weight": Case(
        TRAINER,
        "trainer.logs.append(sim.tensor(10 * MB))",
        [("trainer.logs", "trainer.logs[", 10)],
        "trainer.logs.append(sim.tensor(10 * MB).cpu())",
    ),
    "graphs beside a large weight": Case(
        TRAINER,
        "loss = (sim.tensor(10 * MB) * trainer.w).sum()\ntrainer.logs.append(loss)",
        [("trainer.logs", "trainer.logs[", 10)],
        "trainer.logs.append(loss.detach())",
    ),
    "what a method puts into a dict": Case(
        METHODS,
        "score = trainer.evaluate(sim.tensor(10 * MB))",
        [("trainer.logs", "trainer.logs[", 10)],
        'self.logs.append({"n": 1, "hidden": hidden.cpu()})',
    ),
    "graphs that a method keeps": Case(
        METHODS,
        "v = trainer.validate(sim.tensor(10 * MB))",
        [("trainer.losses", "trainer.losses[", 10)],
        "self.losses.append(loss.detach())",
    ),
    "an object in an object": Case(
        TRAINER
        + """
class Runner:
    def __init__(self):
        self.other = [sim.tensor(100 * MB)]
        self.trainer = trainer
    def go(self):
        self.trainer.logs.append(sim.tensor(9 * MB))
runner = Runner()
del trainer
""",
        "runner.go()",
        [("runner.trainer", "runner.trainer.logs[", 9)],
        "self.trainer.logs.append(sim.tensor(9 * MB).cpu())",
    ),
    "a list in a dict": Case(
        "state = {'weights': [sim.tensor(100 * MB) for _ in range(3)], 'seen': []}",
        "state['seen'].append(sim.tensor(8 * MB))",
        [("state", "state['seen'][", 8)],
        "state['seen'].append(sim.tensor(8 * MB).cpu())",
    ),
    "two names": Case(
        "big, small = [], {}\nn = 0",
        "n += 1\nbig.append(sim.tensor(20 * MB))\nsmall[n] = sim.tensor(6 * MB)",
        [("big", "big[", 20), ("small", "small[", 6)],
        n_runs=12,
    ),
    "two attributes": Case(
        TRAINER,
        "trainer.logs.append(sim.tensor(20 * MB))\n"
        "trainer.seen[len(trainer.seen)] = sim.tensor(6 * MB)",
        [("trainer.logs", "trainer.logs[", 20), ("trainer.seen", "trainer.seen[", 6)],
        n_runs=12,
    ),
    "a meter that keeps each value twice": Case(
        METER,
        "m.update((sim.tensor(10 * MB) * w).sum())",
        [("m", "m.", 10)],
        f"self.sum = self.sum + {DETACHED}; self.vals.append({DETACHED})",
    ),
}


def grow(shell: Shell, cells: list[str]) -> list[Any]:
    """Run the cells, each of them recorded; the findings at their end that stand."""
    sim.use(8 << 30)
    shell.run("%gpumem on")
    for cell in cells:
        outcome = shell.run(cell)
        assert outcome.raw.success, outcome.stdout
    return [it for it in gpumem.report().findings if it.withdrawn is None]


def replayed(new_shell: Callable[[], Shell], cells: list[str], fix: Any) -> int:
    """Run the cells with a fix; how much more is allocated at the end than five runs before."""
    _gpumem.reset()
    shell = new_shell()
    levels = []
    for cell in cells:
        shell.run(cell.replace(fix.before, fix.after))
        levels.append(sim.memory_stats()["allocated_bytes"])
    return int(levels[-1] - levels[-6])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_finding_is_of_what_grew(new_shell: Callable[[], Shell], case: Case) -> None:
    cells = [START + case.definition, *[case.cell] * case.n_runs]
    found = grow(new_shell(), cells)
    for finding, (grown, start, mib) in zip(found, case.expected, strict=True):
        (holder, *_), rate = finding.holders, finding.bytes_per_run
        assert finding.title.startswith(grown)
        assert holder.name == grown.split(".")[0]
        assert holder.path.startswith(start)
        assert rate == pytest.approx(mib * MIB, rel=0.02)
    for finding in found if case.fixed else ():
        assert finding.fix.after == case.fixed
        assert replayed(new_shell, cells, finding.fix) <= MIB


def test_what_an_object_replaces_is_no_growth(shell: Shell) -> None:
    step = "trainer.last = [sim.tensor((20 + k % 3) * MB)]; k += 1"
    assert grow(shell, [START + TRAINER + "k = 0", *[step] * 12]) == []


def test_a_host_list_beside_a_device_is_named(shell: Shell) -> None:
    pytest.importorskip("numpy")
    start = START + "import numpy as np\nw = sim.tensor(MB)\nkept = []"
    cells = [start, *["batch = np.ones(1572864)\nkept.append(batch)"] * 10]
    (found,) = grow(shell, cells)
    assert (found.device, found.holders[0].name) == ("host", "kept")
    assert found.bytes_per_run == pytest.approx(12 * MIB, rel=0.1)


def test_the_line_shows_a_bound_that_can_be_typed(shell: Shell) -> None:
    cache = "@functools.lru_cache(maxsize=None)\ndef embed(n): return sim.tensor(12 * MB)\nn = 0"
    grow(shell, [START + "import functools\n" + cache, *["n += 1\ns = embed(n)"] * 10])
    assert "fix: @functools.lru_cache(maxsize=8) in another cell" in shell.lines[-1]


MALLOC = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
def decode():
    p = libc.malloc(24 << 20)
    ctypes.memset(p, 1, 24 << 20)
"""


def test_growth_that_no_look_finds_is_no_pythons(shell: Shell) -> None:
    _gpumem.use_sources(["host"])
    (found,) = grow(shell, [MALLOC, *["decode()"] * 10])
    assert not found.holders
    text = gpumem.report().text()
    assert "no Python object holds it" in text
    assert "a list or a dict" not in text


def test_a_cell_is_not_called_by_the_line_that_counts(shell: Shell) -> None:
    start = START + "store = {}\ndef batch(i): store[i] = sim.tensor(40 * MB)\ni = 0"
    (found,) = grow(shell, [start, *["batch(i)\ni += 1"] * 3])
    assert found.cell.label == "batch(i)"
