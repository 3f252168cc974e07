"""A variable is gone, and what it held lives on: who keeps it, and what lets go of it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim
from gpumem.details import Outlived

from tests.support.shell import run, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

MIB = 1 << 20
CLASSES = f"""
import gc, queue, threading

class Model:
    def __init__(self):
        self.weights = [sim.tensor(100 * {MIB}), sim.tensor(50 * {MIB})]

class Accelerator:
    def __init__(self):
        self._models = []
    def prepare(self, model):
        self._models.append(model)
        return model

class Cycle(Model):
    def __init__(self):
        super().__init__()
        self.me = self

class Pipeline:
    def __init__(self, model):
        self.model = model

def validate(model):
    raise ValueError("no data set")

def closure(network):
    return lambda: network.weights[0]

def work(jobs, taken):
    job = jobs.get()
    taken.put(1)
    jobs.get()
"""
RAISES = """
try:
    validate(model)
except ValueError as error:
    failure = error
"""
THREAD = """
jobs, taken = queue.Queue(), queue.Queue()
worker = threading.Thread(target=work, args=(jobs, taken), name="inference", daemon=True)
worker.start()
jobs.put(model)
taken.get();
"""


@pytest.fixture
def shell(shell: Shell) -> Iterator[Shell]:
    """Return a shell that records every cell on a device of 1 GiB."""
    sim.use(total_bytes=1 << 30)
    shell.user_ns.update(sim=sim)
    run(shell, "%gpumem on", CLASSES)
    yield shell
    gc.enable()
    if "jobs" in shell.user_ns:
        shell.user_ns["jobs"].put(None)
        shell.user_ns["worker"].join()


def findings() -> list[gpumem.types.Finding]:
    return [it for it in gpumem.report().findings if it.kind == "outlived"]


def allocated() -> int:
    return int(sim.memory_stats()["allocated_bytes"]) // MIB


KEEPERS = {
    "a library": (
        "accelerator = Accelerator()\naccelerator.prepare(model)\nNone",
        "accelerator._models[0]",
        "del accelerator._models[0]",
        "info",
    ),
    "a pipeline": ("kept = Pipeline(model)", "kept.model", "kept.model = None", "info"),
    "a dict": ("kept = {'best': model}", "kept['best']", "del kept['best']", "info"),
    "a list of closures": (
        "kept = [closure(model)]",
        "kept[0].<closure>.network",
        "del kept[0]",
        "info",
    ),
    "a closure": ("kept = closure(model)", "kept.<closure>.network", "del kept", "info"),
    "an exception": (RAISES, "failure.__traceback__", "del failure", "warning"),
    "a traceback": (
        RAISES + "kept = [failure.__traceback__]\ndel failure",
        "kept[0]",
        "del kept[0]",
        "warning",
    ),
    "a list of exceptions": (
        RAISES + "kept = [failure]\ndel failure",
        "kept[0].__traceback__",
        "kept[0].with_traceback(None);",
        "warning",
    ),
}


@pytest.mark.parametrize("letting_go", ["del model", "model = None"])
@pytest.mark.parametrize("keeper", KEEPERS)
def test_the_keeper_is_reported_after_one_run(shell: Shell, keeper: str, letting_go: str) -> None:
    keep, path, fix, severity = KEEPERS[keeper]
    run(shell, "model = Model()", keep, letting_go)
    [found] = findings()
    assert isinstance(found.details, Outlived)
    assert (found.details.name, found.details.path) == ("model", path)
    assert found.details.n_bytes == found.details.had_bytes == 150 * MIB
    assert found.severity == severity
    assert found.fix is not None
    assert found.fix.after == fix
    assert f"{path} keeps its 150 MiB" in shell.lines[-1]
    assert f"fix: {fix}" in shell.lines[-1]
    # It is good for what it promises.
    assert allocated() == 150
    run(shell, fix)
    assert allocated() == 0
    assert [it.withdrawn for it in findings()] == ["let_go"]


def test_garbage_is_reported_while_the_collector_is_off(shell: Shell) -> None:
    run(shell, "gc.disable()", "model = Cycle()", "del model")
    [found] = findings()
    assert (found.severity, found.holders[0].kind) == ("warning", "uncollected_garbage")
    assert found.fix is not None
    run(shell, found.fix.after, "pass")
    assert allocated() == 0
    assert [it.withdrawn for it in findings()] == ["let_go"]


def test_growing_garbage_without_the_collector_is_a_leak(shell: Shell) -> None:
    run(shell, "gc.disable()")
    run(shell, *[f"ring = [sim.tensor(20 * {MIB})]\nring.append(ring)"] * 10)
    [found] = [it for it in gpumem.report().findings if it.kind in {"leak", "growing"}]
    assert (found.kind, found.holders[0].kind) == ("leak", "uncollected_garbage")
    assert found.fix is not None
    assert found.fix.before is None
    run(shell, found.fix.after)
    assert allocated() == 20


def test_the_collector_frees_garbage_by_itself(shell: Shell) -> None:
    run(shell, "model = Cycle()", "del model")
    assert findings() == []


def test_a_thread_that_keeps_it_is_named(shell: Shell) -> None:
    run(shell, "model = Model()", THREAD, "del model")
    [found] = findings()
    assert (found.severity, found.holders[0].name) == ("info", "work() in inference")
    assert "end the thread" in found.suggestions[0]


def test_what_ipython_keeps_is_said_once(shell: Shell) -> None:
    run(shell, "model = Model()\nmodel", "model = None")
    assert findings() == []
    assert [it.kind for it in gpumem.report().findings] == ["retention"]


@pytest.mark.parametrize(
    "cell",
    [
        "view = model.weights[0]\ndel model",
        "net = model\ndel model",
        "del model",
        "first, second = model.weights\ndel model",
        "model = Model()",
        "small = sim.tensor(2 << 20); kept = [small]; del small",
    ],
)
def test_what_is_freed_or_has_another_name_is_no_news(shell: Shell, cell: str) -> None:
    run(shell, "model = Model()", "pass", cell)
    assert findings() == []


def test_a_rebound_name_is_reported_only_by_accident(shell: Shell) -> None:
    run(shell, "model = Model()", "kept = [model]", "model = Model()")
    assert findings() == []
    run(shell, RAISES, "second = model = Model()")
    [found] = findings()
    assert isinstance(found.details, Outlived)
    assert found.details.is_rebound
    assert found.details.path == "failure.__traceback__"


def test_what_its_name_has_again_does_not_count(shell: Shell) -> None:
    run(shell, "model = Model()", "kept = Pipeline(model)", "del model")
    assert [it.withdrawn for it in findings()] == [None]
    run(shell, "model = kept.model; more = sim.tensor(8 << 20)")
    assert [it.withdrawn for it in findings()] == ["let_go"]


def test_why_answers_for_a_name_that_is_gone(shell: Shell) -> None:
    run(shell, "model = Model()", "kept = Pipeline(model)", "del model")
    assert "kept.model keeps its 150 MiB" in said(shell, "%gpumem why model")[0]


def test_a_release_says_what_came_back_or_who_keeps_it(shell: Shell) -> None:
    run(shell, "model = Model()", "kept = Pipeline(model)")
    lines = said(shell, "%gpumem release model")
    assert lines[0] == "model      deleted model · nothing came back"
    assert lines[1] == "○ model is deleted, but kept.model keeps its 150 MiB"
    assert lines[2].strip() == "fix: kept.model = None"
    # The report knows it although no cell has run since.
    assert [it.withdrawn for it in findings()] == [None]
    assert said(shell, "%gpumem release kept")[0].endswith(" · 150 MiB back on sim:0")
    run(shell, "number = 3")
    lines = said(shell, "%gpumem release number")
    assert lines[0] == "number     deleted number · it held nothing of a device"
