"""Loops that are counted while they turn: the program and its tools see nothing of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="no sys.monitoring")

# `look` counts the loops that are under way from then on; without gpumem it does nothing.
PRELUDE = """
import bdb, cProfile, gc, os, pstats, signal, sys, threading, time, traceback, weakref
from gpumem._gpumem import _testing
look, results = _testing.look_at_loops, []
monitoring = getattr(sys, "monitoring", None)

def tools():
    return [monitoring.get_tool(number) for number in range(6)]
"""

NOTHING_IS_LEFT = "results.append(tools())"

TRACE = """
def work(n):
    for i in range(n):
        look()
        if i % 2:
            continue
        k = 0
        while k < 2:
            k += 1

def trace(frame, event, argument):
    if frame.f_code.co_name == "work":
        results.append((event, frame.f_lineno))
    return trace

sys.settrace(trace)
work(5)
sys.settrace(None)
"""

PROFILE = """
def helper(i):
    return i

def work(n):
    for i in range(n):
        look()
        helper(i)

def profile(frame, event, argument):
    if frame.f_code.co_name in ("work", "helper"):
        results.append((event, frame.f_code.co_name))

sys.setprofile(profile)
work(5)
sys.setprofile(None)
"""

DEBUGGER = """
class Debugger(bdb.Bdb):
    def user_line(self, frame):
        if frame.f_code.co_name == "work":
            results.append(frame.f_lineno)

def work(n):
    for i in range(n):
        look()
        i += 1

Debugger().runcall(work, 4)
"""

STATISTICS = """
def helper(i):
    return i

def work(n):
    for i in range(n):
        look()
        helper(i)

profiler = cProfile.Profile()
profiler.runcall(work, 5)
calls = pstats.Stats(profiler).stats.items()
own = ("work", "helper")
results.append(sorted((name, stat[0]) for (_, _, name), stat in calls if name in own))
"""

# As coverage counts lines and branches: once each, switched on again when it says so.
COVERAGE = """
tool, events = monitoring.COVERAGE_ID, monitoring.events
monitoring.use_tool_id(tool, "coverage")
watched = events.LINE | events.BRANCH | events.JUMP | events.PY_START

def seen(name):
    def note(code, *arguments):
        if code.co_name == "work":
            results.append((name, *(it for it in arguments if isinstance(it, int))))
        return monitoring.DISABLE
    return note

for name in ("LINE", "BRANCH", "JUMP", "PY_START"):
    monitoring.register_callback(tool, getattr(events, name), seen(name))
monitoring.set_events(tool, watched)

def work(n):
    for i in range(n):
        look()
        if i == 3:
            monitoring.restart_events()

work(6)
monitoring.set_events(tool, 0)
monitoring.free_tool_id(tool)
"""

LOCAL_EVENTS = """
tool, events = 3, monitoring.events
monitoring.use_tool_id(tool, "user")
monitoring.register_callback(tool, events.JUMP, lambda code, *jump: results.append(jump))

def work(n):
    for i in range(n):
        look()

monitoring.set_local_events(tool, work.__code__, events.JUMP)
work(5)
results.append(monitoring.get_local_events(tool, work.__code__))
monitoring.free_tool_id(tool)
"""

EVERY_TOOL = """
for number in range(6):
    monitoring.use_tool_id(number, f"user {number}")
for i in range(5):
    look()
results.append(tools())
for number in range(6):
    monitoring.free_tool_id(number)
"""

STOLEN_TOOL = """
def free_ours():
    for number in range(6):
        if monitoring.get_tool(number) == "gpumem":
            monitoring.free_tool_id(number)

for i in range(6):
    if i == 2:
        free_ours()
        for number in (3, 4, 5):
            monitoring.use_tool_id(number, "user")
    look()
results.append(tools())
for number in (3, 4, 5):
    monitoring.free_tool_id(number)
"""

NO_MONITORING = """
del sys.monitoring
for i in range(5):
    look()
results.append(i)
sys.monitoring = monitoring
"""

ERROR = """
def work(n):
    for i in range(n):
        look()
        [1 / (3 - j) for j in range(i + 1)]

try:
    work(9)
except ZeroDivisionError as error:
    results.extend((it.name, it.lineno) for it in traceback.extract_tb(error.__traceback__))
"""

LINES = """
def work(n):
    for i in range(n):
        look()
        results.append(sys._getframe().f_lineno)
        results.append(work.__code__.co_code == code)

code = work.__code__.co_code
work(4)
results.append(len(list(work.__code__.co_lines())))
"""

RECURSION = """
def work(depth):
    deepest[0] = depth
    if depth in (3, 5):
        look()
    for i in range(1):
        work(depth + 1)

deepest = [0]
try:
    work(1)
except RecursionError:
    results.append(deepest[0])
"""

LET_GO = """
class Plain:
    pass

def work(n):
    kept = Plain()
    weakref.finalize(kept, results.append, "work is over")
    for i in range(n):
        look()

work(3)
results.append("cell goes on")
"""

SUSPENDED = """
def numbers():
    for i in range(100):
        look()
        yield i

generator = numbers()
results.extend(next(generator) for _ in range(5))
"""

RESUMED = "results.extend(next(generator) for _ in range(5))"

FORKED = """
def work(n):
    total = 0
    for i in range(n):
        total += i
    return total

for i in range(3):
    look()
    work(10)
    child = os.fork()
    if child == 0:
        os._exit(work(100_000) == 4999950000 and sum(1 for _ in range(1000)) == 1000)
    results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

THREADS = """
def work():
    for i in range(2000):
        if not i % 100:
            look()
        exec(code, {})
    done.append(i)

code = compile("for i in range(20): pass", "<executed>", "exec")
done = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
results.append(done)
"""

PROGRAMS = {
    "trace": TRACE,
    "profile": PROFILE,
    "debugger": DEBUGGER,
    "cProfile": STATISTICS,
    "coverage": COVERAGE,
    "local events": LOCAL_EVENTS,
    "every tool is in use": EVERY_TOOL,
    "the tool is taken away": STOLEN_TOOL,
    "no sys.monitoring": NO_MONITORING,
    "error": ERROR,
    "lines": LINES,
    "recursion": RECURSION,
    "locals": LET_GO,
    "threads": THREADS,
}
if sys.platform != "win32":
    PROGRAMS["fork"] = FORKED


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_whose_loops_are_counted(notebook: Notebook, program: str) -> None:
    results = notebook.is_left_alone(PRELUDE, program, NOTHING_IS_LEFT)
    assert results[-1] == [None] * 6
    assert len(results) > 1


def test_a_generator_that_goes_on_when_the_run_is_over(notebook: Notebook) -> None:
    results = notebook.is_left_alone(PRELUDE, SUSPENDED, NOTHING_IS_LEFT, RESUMED)
    assert results == [*range(5), [None] * 6, *range(5, 10)]


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        ("raise ValueError", "ValueError"),
        ("raise SystemExit", "SystemExit"),
        ("signal.raise_signal(signal.SIGINT)", "KeyboardInterrupt"),
    ],
    ids=["error", "exit", "Ctrl-C"],
)
def test_a_cell_that_is_stopped_leaves_nothing_behind(
    notebook: Notebook, stop: str, error: str
) -> None:
    cell = f"for i in range(9):\n    look()\n    if i == 5:\n        {stop}"
    ended = notebook.plays(PRELUDE, cell, NOTHING_IS_LEFT)
    assert ended.errors == [None, error, None]
    assert ended.results == [[None] * 6]


def test_a_ctrl_c_while_a_level_is_read(notebook: Notebook) -> None:
    """It comes at any instruction, also of ours; the loop's own cell ends, and no other."""
    cell = """
def interrupt():
    time.sleep(0.4)
    signal.raise_signal(signal.SIGINT) if is_main() else os.kill(os.getpid(), signal.SIGINT)

is_main = lambda: threading.current_thread() is threading.main_thread()
threading.Thread(target=interrupt).start()
end = time.monotonic() + 60
while time.monotonic() < end:
    time.sleep(0.001)
"""
    ended = notebook.plays(PRELUDE, *[cell, NOTHING_IS_LEFT] * 3)
    assert ended.errors == [None, *["KeyboardInterrupt", None] * 3]
    assert ended.results == [[None] * 6] * 3
    assert ended.stopped is None


def test_a_process_that_ends_while_a_thread_loops(notebook: Notebook) -> None:
    """The kernel reaches its end, or this fails."""
    cell = """
def work():
    while True:
        time.sleep(0.0005)

threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
"""
    notebook.survives(PRELUDE, cell, "look(); time.sleep(0.01)")


def test_code_of_a_subinterpreter(notebook: Notebook) -> None:
    cell = """
interpreters = __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
other = interpreters.create()
for i in range(3):
    look()
    interpreters.run_string(other, "for i in range(100_000): pass")
    results.append(i)
interpreters.destroy(other)
"""
    assert notebook.is_left_alone(PRELUDE, cell) == [0, 1, 2]


def test_an_audit_hook_that_refuses(notebook: Notebook) -> None:
    cell = """
def refuse(event, arguments):
    if event in ("sys._current_frames", "sys.monitoring.register_callback") and is_refusing:
        raise RuntimeError("refused")

is_refusing = True
sys.addaudithook(refuse)
for i in range(5):
    look()
    results.append(i)
is_refusing = False
"""
    ended = notebook.plays(PRELUDE, cell, NOTHING_IS_LEFT)
    assert ended.errors == [None] * 3
    assert ended.results == [*range(5), [None] * 6]
    assert ended.stopped is None
    assert all("refused" in line for line in ended.log)


def test_threads_that_loop_beside_looks_at_any_moment(notebook: Notebook) -> None:
    begun = """
sys.setswitchinterval(1e-5)
is_over = False

def work():
    while not is_over:
        for i in range(1000):
            [j for j in range(10)]

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
"""
    looked = "for i in range(50):\n    look()\n    sum(j for j in range(1000))"
    over = "is_over = True\nfor thread in threads:\n    thread.join()"
    notebook.survives(PRELUDE, begun, Step(looked, times=5, seconds=3), over, NOTHING_IS_LEFT)


# C code without the GIL that allocates while copies are made, in the run and beside it.
BUSY = """
import sys, threading, time, zlib
from gpumem import sim
from gpumem._gpumem import _testing
sim.use(8 << 30)
data, kept, is_over = bytes(range(256)) * 16_384, [], False

def compress():
    return len(zlib.compress(data, 1))

def beside():
    while not is_over:
        compress()

def look():
    while not is_over:
        _testing.look_at_loops()
        time.sleep(0.02)

expected = compress()
threads = [threading.Thread(target=it) for it in (beside, beside, look)]
"""
BUSY_LOOP = """
for thread in threads:
    thread.start()
right = 0
for step in range(60):
    kept.append(sim.tensor(max(1, 2 * len(kept)) << 20))
    right += compress() == expected
is_over = True
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")
def test_looks_inside_of_a_run_change_nothing_of_it(notebook: Notebook) -> None:
    looks = "import gpumem; results = right, gpumem._gpumem._looks()[0]"
    right, n_looks = notebook.survives(BUSY, BUSY_LOOP, looks).results
    assert right == 60
    # One after the run, and at least two inside.
    assert n_looks > 2
