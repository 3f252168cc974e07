"""A look inside the process, where no other can be had: the user's hooks see nothing of it.

A hook asks whether a look is under way. The rest of what happens at a cell's end, such as its
line, may call what it likes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

PRELUDE = """
%gpumem off
import builtins, gc, sys, threading
import gpumem
from gpumem import _gpumem

_gpumem._testing.look_in_process(True)
_gpumem._set_look_patience(60_000)
leak, results = [], []

class Plain:
    def __init__(self):
        self.tensor = sim.tensor(8 << 20)

def note(*what):
    if _gpumem._testing.looks_under_way():
        results.append(repr(what))
"""

PROFILE = """
def profile(frame, event, argument):
    note(event, frame.f_code.co_name)

sys.setprofile(profile)
"""

PROFILE_ALL = PROFILE + "threading.setprofile_all_threads(profile)\n"

TRACE = """
def trace(frame, event, argument):
    note(event, frame.f_code.co_name)
    return trace

sys.settrace(trace)
"""

MONITORING = """
tool, events = sys.monitoring.PROFILER_ID, sys.monitoring.events
sys.monitoring.use_tool_id(tool, "user")
watched = [events.PY_START, events.PY_RETURN, events.CALL, events.RAISE, events.LINE]
for event in watched:
    seen = lambda *what, event=event: note(event, what)
    sys.monitoring.register_callback(tool, event, seen)
sys.monitoring.set_events(tool, sum(watched))
"""

IMPORT = """
real_import = builtins.__import__

def imported(name, *arguments, **named):
    note("import", name)
    return real_import(name, *arguments, **named)

builtins.__import__ = imported
"""

AUDIT = """
sys.addaudithook(lambda event, arguments: note("audit", event))
"""

# Every container that is made is a reason to collect.
COLLECTION = """
gc.callbacks.append(lambda phase, information: note("gc", phase))
gc.set_threshold(1, 1, 1)
"""

SIGNAL = """
import signal
signal.signal(signal.SIGALRM, lambda number, frame: note("signal", number))
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
"""

HOOKS = {
    "profile": PROFILE,
    "trace": TRACE,
    "import": IMPORT,
    "audit": AUDIT,
    "collection": COLLECTION,
}
if sys.platform != "win32":
    HOOKS["signal"] = SIGNAL
HOOKS_SINCE_3_12 = {"profile of all threads": PROFILE_ALL, "monitoring": MONITORING}
if sys.version_info >= (3, 12):
    HOOKS |= HOOKS_SINCE_3_12

GROWN = "%%gpumem\nleak.append([{'kept': (Plain(),)}])"

REMOVED = """
sys.setprofile(None)
sys.settrace(None)
gc.callbacks.clear()
if "signal" in globals():
    signal.setitimer(signal.ITIMER_REAL, 0)
if "real_import" in globals():
    builtins.__import__ = real_import
if "watched" in globals():
    sys.monitoring.set_events(tool, 0)
"""

HELD = """
recording = gpumem.recording()
# Run 0 is the cell that turned recording off.
held = ["leak" in recording._held_text(run, 100) for run in range(1, len(leak) + 1)]
results = [results, held]
"""


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS.keys())
def test_a_hook_of_the_users_is_not_called_inside_a_look(notebook: Notebook, hook: str) -> None:
    cells = [PRELUDE, hook, Step(GROWN, times=3), REMOVED, HELD]
    called, held = notebook.survives(*cells).results
    assert called == []
    assert held == [True] * 3


def test_a_hook_that_is_called_inside_a_look_can_tell(notebook: Notebook) -> None:
    under_way = "_gpumem._testing.looks_under_way()"
    assert notebook.survives(PRELUDE, f"results = {under_way}").results is False
