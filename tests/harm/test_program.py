"""What the user's own program sees of gpumem: nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

GROWN = "leak = globals().get('leak', []); leak.append(sim.tensor(8 << 20))"

# Threads that wait in a function, as long as cells grow.
WAITING = """
import threading
results = []
may_end, has_begun = threading.Event(), threading.Event()

def wait():
    has_begun.set()
    may_end.wait()
"""

EXECUTED = """
def work():
    kept = sim.tensor(1 << 20)
    exec("made = 1")
    wait()
    try:
        exec("results.append(made)")
    except NameError as error:
        results.append(repr(error))
"""

CHANGED = """
def work():
    kept, x = sim.tensor(1 << 20), 1
    variables = locals()
    variables["x"] = 99
    variables["new"] = 98
    wait()
    results.append([variables["x"], variables["new"]])
"""

LET_GO = """
class Farewell:
    def __del__(self):
        results.append(threading.current_thread().name)

def work():
    kept, farewell = sim.tensor(1 << 20), Farewell()
    locals()
    del farewell
    wait()
    results.append("work is over")
"""

BEGUN = """
thread = threading.Thread(target=work, name="worker")
thread.start()
has_begun.wait()
"""

ENDED = "may_end.set(); thread.join()"

REPLACED_IMPORT = """
import builtins

results = []
real_import = builtins.__import__

def imported(name, *arguments, **named):
    results.append(name)
    return real_import(name, *arguments, **named)
"""

# As lazy importers and tracers do, this one lets go of what its own cache kept.
FREEING_IMPORT = """
import builtins

class Slot:
    __slots__ = ("tensor", "parts")

def fill():
    held[:] = [Slot() for _ in range(2000)]
    for slot in held:
        slot.tensor = sim.tensor(512)
        slot.parts = {"kept": [slot.tensor]}

def imported(name, *arguments, **named):
    if name in ("types", "collections", "functools"):
        held.clear()
        junk.append([bytearray(64) for _ in range(2000)])
    return real_import(name, *arguments, **named)

held, junk, leak = [], [], []
real_import = builtins.__import__
"""

LENGTH_HINT = """
import operator
real, results = operator.length_hint, []

def length_hint(of, default=0):
    results.append(type(of).__name__)
    return real(of, default)

operator.length_hint = length_hint
"""

PROCESSES = """
import os, signal, subprocess, time
results = []
signal.signal(signal.SIGCHLD, lambda *_: results.append("SIGCHLD"))

# While no look is under way, which has one.
def n_descriptors():
    counts = []
    for _ in range(20):
        counts.append(len(os.listdir("/proc/self/fd")))
        time.sleep(0.02)
    return min(counts)
"""

# Once a first look has been: what it opens for good, it opens once.
COUNTED = "before = n_descriptors(); results.append(subprocess.run(['false']).returncode)"

WAITED = """
results.append(subprocess.run(["true"]).returncode)
try:
    results.append(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    results.append("no child")
results.append("no descriptor" if n_descriptors() == before else "descriptors")
"""

ASKING_THE_SHELL = {
    f"{event} {function}"
    for event in ("call", "return")
    for function in ("InteractiveShell.user_ns", "TraitType.__get__", "TraitType.get")
}

# The functions that the interpreter enters while `find_holders` is being called.
PROFILED = """
import sys
import gpumem

class Plain:
    pass

class Slotted:
    __slots__ = ("tensor",)

kept = []
for _ in range(3):
    plain, slotted = Plain(), Slotted()
    plain.tensor, slotted.tensor = sim.tensor(1 << 20), sim.tensor(1 << 20)
    kept.append((plain, slotted))

looks, results = [], []

def profile(frame, event, argument):
    if event == "c_call" and argument.__name__ == "find_holders":
        looks.append("looks")
    elif event in ("c_return", "c_exception") and argument.__name__ == "find_holders":
        looks.clear()
        results.append("looked")
    elif looks:
        results.append(f"{event} {frame.f_code.co_qualname}")

sys.setprofile(profile)
gpumem.holders()
gpumem.holders()
sys.setprofile(None)
"""


@pytest.mark.parametrize(
    ("function", "before_3_13"),
    [(EXECUTED, [1]), (CHANGED, [[99, 98]])],
    ids=["names of exec", "values of locals()"],
)
def test_local_variables_of_a_function_that_waits_in_a_thread(
    notebook: Notebook, function: str, before_3_13: list[object]
) -> None:
    cells = [WAITING, function, BEGUN, Step(GROWN, times=3), ENDED]
    results = notebook.is_left_alone(*cells)
    if sys.version_info < (3, 13):
        assert results == before_3_13


def test_a_value_that_locals_keeps_is_let_go_by_its_own_thread(notebook: Notebook) -> None:
    cells = [WAITING, LET_GO, BEGUN, Step(GROWN, times=3), "results.append('cells are over')"]
    results = notebook.is_left_alone(*cells, ENDED)
    if sys.version_info < (3, 13):
        assert results == ["cells are over", "work is over", "worker"]


def test_imports_that_a_replaced_import_sees(notebook: Notebook) -> None:
    grown = f"builtins.__import__ = imported\n{GROWN}\nimport sched"
    back = "builtins.__import__ = real_import"
    # Once gpumem has shown everything that it shows, it imports nothing any more.
    cells = [REPLACED_IMPORT, Step(GROWN, times=3), grown, back]
    assert "sched" in notebook.is_left_alone(*cells)


def test_an_import_hook_that_frees_what_leads_to_tensors(notebook: Notebook) -> None:
    grown = "fill(); builtins.__import__ = imported; leak.append(sim.tensor(8 << 20))"
    steps = [Step(step) for _ in range(20) for step in (grown, "builtins.__import__ = real_import")]
    notebook.survives(FREEING_IMPORT, *steps)


def test_a_users_length_hint_is_not_called(notebook: Notebook) -> None:
    grown = Step(GROWN, times=3)
    ended = notebook.survives(LENGTH_HINT, grown, "operator.length_hint = real")
    assert ended.results == []


def test_no_code_of_python_runs_inside_a_look(notebook: Notebook) -> None:
    seen = notebook.survives(PROFILED).results
    # The shell is queried for the user's names first, before the look.
    assert [event for event in seen if event not in ASKING_THE_SHELL] == ["looked", "looked"]


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors as Linux shows them")
def test_children_signals_and_descriptors_of_the_users(notebook: Notebook) -> None:
    cells = [PROCESSES, Step(GROWN, times=3), COUNTED, Step(GROWN, times=3), WAITED]
    own = ["SIGCHLD", 1, "SIGCHLD", 0]
    assert notebook.is_left_alone(*cells) == [*own, "no child", "no descriptor"]
