"""Text of the user's that is no Unicode: half a surrogate pair, as `os.listdir` gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

IN_CELLS = {
    "label": "%%gpumem --label a\udcffb\nx = 1",
    "block": "with gpumem.record('a\\udcffb'): x = 1",
    "steps": "for _ in gpumem.steps(range(3), 'a\\udcffb'): x = 1",
    "mark": "gpumem.mark('a\\udcffb')",
    "variable": "globals()['a\\udcff'] = sim.tensor(1 << 20)",
    "attribute": "class A: pass\na = A(); setattr(a, 'b\\udcff', sim.tensor(1 << 20))",
    "thread": "start(work, name='t\\udcff')",
    "function": "work.__code__ = work.__code__.replace(co_name='f\\udcff'); start(work)",
    "file": "work.__code__ = work.__code__.replace(co_filename='f\\udcff'); start(work)",
    "local": "work.__code__ = work.__code__.replace(co_varnames=('t\\udcff',)); start(work)",
    "traced": "%%gpumem --trace\nexec(compile('z = sim.tensor(1 << 20)', 'q\\udcff', 'exec'))",
    "path": "gpumem.recording().save('a\\udcffb.gpumem'); gpumem.load('a\\udcffb.gpumem')",
    "who": "gpumem.who()",
}

# What names nothing may be refused, in words.
REFUSED = {
    "device": "%%gpumem --device a\udcffb\nx = 1",
    "baseline": "%gpumem baseline a\udcffb",
    "why": "%gpumem why a\udcffb",
    "compare": "%gpumem_report --compare a\udcffb",
}

RAISED = "raise OutOfMemoryError('Tried to allocate 2 GiB \\udcff')"

PRELUDE = """
import gpumem
import threading

may_end, threads, leak = threading.Event(), [], []

class OutOfMemoryError(RuntimeError):
    pass

def work():
    tensor = sim.tensor(1 << 20)
    may_end.wait()

def start(function, **named):
    threads.append(threading.Thread(target=function, **named))
    threads[-1].start()
"""

GROWN = "leak.append(sim.tensor(4 << 20))"

JOINED = "may_end.set(); [thread.join() for thread in threads]"


@pytest.mark.parametrize("cell", IN_CELLS.values(), ids=IN_CELLS.keys())
def test_text_that_is_no_unicode(notebook: Notebook, cell: str) -> None:
    notebook.survives(PRELUDE, GROWN, cell, GROWN, JOINED)


def test_a_cell_whose_id_is_no_unicode(notebook: Notebook) -> None:
    notebook.survives(PRELUDE, GROWN, Step(GROWN, cell_id="a\udcffb"), GROWN)


@pytest.mark.parametrize("cell", REFUSED.values(), ids=REFUSED.keys())
def test_text_that_is_no_unicode_in_what_is_refused(notebook: Notebook, cell: str) -> None:
    ended = notebook.plays(PRELUDE, GROWN, cell, GROWN)
    *before, error, after = ended.errors
    assert {*before, after} == {None}
    # Some versions of IPython refuse such a line themselves, `%time` too.
    assert error in {None, "UsageError", "UnicodeEncodeError"}
    assert (ended.stopped, ended.log) == (None, [])


def test_an_error_whose_text_is_no_unicode(notebook: Notebook) -> None:
    ended = notebook.plays(PRELUDE, GROWN, RAISED, GROWN)
    assert ended.errors == [None, None, "OutOfMemoryError", None]
    assert (ended.stopped, ended.log) == (None, [])
