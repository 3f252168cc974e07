"""Training with torch beside cells that grow: its engine changes graphs without the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .conftest import Notebook, Step

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("torch")

SECONDS = 3

# What a training thread does over and over, by what changes in it.
TRAINED = {
    "saved tensors are freed": """
weights = torch.ones(100, requires_grad=True)

def step():
    chain = weights
    for _ in range(300):
        chain = chain * 1.0001 * weights.detach()
    chain.sum().backward()
    weights.grad = None
""",
    "gradients are replaced": """
parameters = [torch.ones(10, requires_grad=True) for _ in range(2000)]

def step():
    torch.stack([it.sum() for it in parameters]).sum().backward()
    for it in parameters:
        it.grad = None
""",
    "an optimizer steps": """
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(20)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    optimizer.zero_grad()
    model(torch.ones(4, 32)).sum().backward()
    optimizer.step()
""",
}

IN_A_THREAD = """
import threading

n_steps, is_over, raised = 0, False, []

def train():
    global n_steps
    try:
        while not is_over:
            step()
            n_steps += 1
    except BaseException as error:
        raised.append(repr(error))

thread = threading.Thread(target=train)
thread.start()
kept = []
"""

JOINED = "is_over = True; thread.join(); results = [n_steps > 0, raised]"

# Enough for a look at each cell's end.
GROWN = "kept.append((torch.ones(1000), sim.tensor(1 << 20)))"

SUMMED = """
model = torch.nn.Linear(8, 1)
inputs = torch.ones(4, 8)
total_loss = 0
"""

ACCUMULATED = """
for _ in range(45_000):
    loss = model(inputs).pow(2).mean()
    loss.backward()
    total_loss += loss
kept = sim.tensor(64 << 20)
"""

CHAINED = """
scale = torch.ones(64, requires_grad=True)
total = scale.sum()
kept = []
"""

LENGTHENED = """
for _ in range(1000):
    total = total + (torch.ones(64) * scale).sum()
kept.append(sim.tensor(8 << 20))
"""

# Few looks: each has the time that it needs on a busy machine, if the wheel lets a test say so.
PATIENT = """
from gpumem import _gpumem
if hasattr(_gpumem, "_testing"):
    _gpumem._set_look_patience(60_000)
"""

FREED_IN_A_THREAD = """
import threading

def free():
    global total
    total = 0

threading.stack_size(1 << 20)
thread = threading.Thread(target=free)
thread.start()
thread.join()
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    """Return a notebook whose torch is on the CPU, beside a simulated GPU."""
    return Notebook(tmp_path, ["torch", "sim", "host"])


@pytest.mark.parametrize("trained", TRAINED.values(), ids=TRAINED.keys())
def test_training_in_a_thread_during_searches_for_holders(notebook: Notebook, trained: str) -> None:
    search = Step("holders = gpumem.holders()", times=3, seconds=SECONDS)
    cells = ["import gpumem, torch", trained, IN_A_THREAD]
    assert notebook.survives(*cells, search, JOINED).results == [True, []]


@pytest.mark.parametrize("trained", TRAINED.values(), ids=TRAINED.keys())
def test_training_in_a_thread_beside_cells_that_grow(notebook: Notebook, trained: str) -> None:
    grown = Step(GROWN, times=3, seconds=SECONDS)
    cells = ["import torch", trained, IN_A_THREAD]
    ended = notebook.survives_looks(*cells, grown, JOINED, holder="kept")
    assert ended.results == [True, []]


def test_a_sum_of_losses_with_its_graph_and_its_cure(notebook: Notebook) -> None:
    cells = ["import torch", PATIENT, SUMMED, ACCUMULATED, "total_loss = 0"]
    notebook.survives_looks(*cells, holder="kept")


def test_a_graph_that_grows_over_many_cells(notebook: Notebook) -> None:
    lengthened = Step(LENGTHENED, times=45)
    notebook.survives_looks("import torch", CHAINED, lengthened, "total = 0", holder="kept")


def test_a_graph_that_a_thread_with_a_small_stack_frees(notebook: Notebook) -> None:
    lengthened = Step(LENGTHENED, times=6)
    cells = ["import torch", PATIENT, CHAINED, lengthened, FREED_IN_A_THREAD]
    notebook.survives_looks(*cells, holder="kept")
