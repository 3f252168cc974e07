"""Copies of large processes: what is left out of them costs nothing, and is missed by nobody."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")

# Pages of 4 KiB are dear to copy.
PRELUDE = """
import ctypes, mmap, time
import gpumem
from gpumem import _gpumem
_gpumem._set_look_patience(60_000)

PAGE, MIB, PRIVATE = 4096, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS

class Large:
    def __init__(self, n_mib):
        self.map = mmap.mmap(-1, n_mib * MIB, flags=PRIVATE)
        self.map.madvise(mmap.MADV_NOHUGEPAGE)
        view = (ctypes.c_char * (n_mib * MIB)).from_buffer(self.map)
        self.address, self.n_bytes = ctypes.addressof(view), n_mib * MIB
        ctypes.memset(self.address, 1, self.n_bytes)

def marked():
    "The mappings that are left out of copies."
    marked, mapping = [], ""
    for line in open("/proc/self/smaps"):
        if "-" in line.split(" ")[0]:
            mapping = line.split(" ")[0]
        elif line.startswith("VmFlags") and " dc" in line and "io" not in line.split():
            marked.append(mapping)
    return marked

leak = []
"""

# So much of which nothing is known is guessed to be data; what is less is copied once.
LARGE, MEDIUM = "large = Large(768)", "large = Large(400)"

GROWN = "leak.append(sim.tensor(8 << 20))"

HELD = """
recording = gpumem.recording()
n_runs, results = len(leak), []
for run in range(len(gpumem.report().runs)):
    results.append("leak" in recording._held_text(run, 100))
results = sum(results) == n_runs
"""


@pytest.mark.parametrize("large", [LARGE, MEDIUM], ids=["guessed", "learned"])
def test_holders_in_a_large_process(notebook: Notebook, large: str) -> None:
    assert notebook.survives(PRELUDE, large, Step(GROWN, times=6), HELD).results is True


def test_a_list_that_looks_like_data_from_outside(notebook: Notebook) -> None:
    # 72 MB of references: nobody can tell them from numbers before a look needs them.
    listed = "kept = [None] * 9_000_000; kept[-1] = sim.tensor(8 << 20)"
    held = "results = [it.name for it in gpumem.holders().roots]"
    grown = Step(GROWN, times=2)
    ended = notebook.survives(PRELUDE, LARGE, grown, listed, grown, held)
    assert {"kept", "leak"} <= set(ended.results)


def test_memory_that_was_data_and_is_read_now(notebook: Notebook) -> None:
    reused = "del large; kept = [None] * 9_000_000; kept[-1] = sim.tensor(8 << 20)"
    given_back = f"del kept; {MEDIUM}"
    held = "results = {it.name: it.n_bytes >> 20 for it in gpumem.holders().roots}"
    grown = Step(GROWN, times=2)
    steps = [MEDIUM, grown, reused, given_back, grown, reused, held]
    assert notebook.survives(PRELUDE, *steps).results == {"leak": 4 * 8, "kept": 8}


def test_a_fork_in_c_meets_all_memory(notebook: Notebook) -> None:
    forking = """
import threading
is_over, n_forks, n_whole = False, 0, 0
_gpumem._testing.slow_copies(20_000)

def fork():
    global n_forks, n_whole
    while not is_over:
        n_forks += 10
        n_whole += _gpumem._testing.fork_and_read(large.address, large.n_bytes, 10)

thread = threading.Thread(target=fork)
thread.start()
"""
    joined = "is_over = True; thread.join(); results = [n_forks > 0, n_forks - n_whole]"
    steps = [MEDIUM, Step(GROWN, times=2), forking, Step(GROWN, times=20, seconds=5), joined]
    assert notebook.survives(PRELUDE, *steps).results == [True, 0]


def test_marks_of_the_users_stay_and_none_of_ours(notebook: Notebook) -> None:
    marks = """
other = Large(768)
other.map.madvise(mmap.MADV_DONTFORK, 256 * MIB, 256 * MIB)
large.map.madvise(mmap.MADV_DONTFORK, 0, 200 * MIB)
before = marked()
"""
    after = "results = [len(before), before == marked()]"
    steps = [MEDIUM, Step(GROWN, times=2), marks, Step(GROWN, times=4), after]
    assert notebook.survives(PRELUDE, *steps).results == [2, True]


PINNED = """
libc = ctypes.CDLL(None, use_errno=True)

class IoVector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("n", ctypes.c_size_t)]

large = Large(768)
ring = libc.syscall(425, 1, (ctypes.c_char * 120)())
vector = (IoVector * 1)(IoVector(large.address, large.n_bytes))
results = ring >= 0 and libc.syscall(427, ring, 0, vector, 1) == 0
"""

MAPPINGS = """
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
large = Large(160)
for n in range(0, large.n_bytes, 2 * PAGE):
    libc.mprotect(large.address + n, PAGE, mmap.PROT_READ)
results = True
"""


def test_many_mappings_are_copied_only_on_request(notebook: Notebook) -> None:
    counted = """
looked = [run for run in range(len(leak)) if "leak" in gpumem.recording()._held_text(run, 100)]
results = [looked, [root.name for root in gpumem.holders().roots if root.device == "sim:0"]]
"""
    ended = notebook.survives(PRELUDE, MAPPINGS, Step(GROWN, times=3), counted)
    assert ended.results == [[], ["leak"]]


# What no thread of the user's may stand for, and what the rest of a cell's end takes here.
MAX_SECONDS = 0.05


@pytest.mark.parametrize(
    "prepared",
    [f"{LARGE}; results = True", PINNED, MAPPINGS],
    ids=["4 KiB pages", "pinned pages", "mappings"],
)
def test_the_time_of_a_cell_that_grows_in_a_large_process(
    notebook: Notebook, prepared: str
) -> None:
    # What a slow copy reports is known to the next cell; after slow ones come cells without a look.
    grown = Step(f"{GROWN}; time.sleep(1)", times=12)
    ended = notebook.survives(PRELUDE, prepared, grown)
    if not ended.results:
        pytest.skip("pages cannot be pinned here")
    assert statistics.median(ended.cpu_seconds[2:]) < MAX_SECONDS


# A program whose looks take a while, and how it finds their copies.
LOOKED_AT = """
import json, os, signal, threading, time
from pathlib import Path
import gpumem
from gpumem import _gpumem, holders, sim
sim.use(1 << 30)
heap = [{n: [n]} for n in range(1_000_000)]

def copies():
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, *_, rest = stat.read_text().replace("(", ")").split(")")
        except OSError:
            continue
        if int(rest.split()[1]) == os.getpid():
            yield int(number)
"""

# Says the number of the copy that looks for it, and kills itself. The copy would never end.
KILLED = """
_gpumem._set_look_patience(60_000)
_gpumem._testing.fail_look("AnswerSent", "hang")
threading.Thread(target=holders, daemon=True).start()

while not (found := list(copies())):
    time.sleep(0.01)
print(*found, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

# On a busy machine a copy has little of a core. Here it has none for longer than it may compute.
BUSY = """
from IPython.core.interactiveshell import InteractiveShell
_gpumem._set_look_patience(1)
shell = InteractiveShell.instance()
shell.user_ns.update(sim=sim, heap=heap)
shell.run_cell("%load_ext gpumem\\n%gpumem on")
shell.run_cell("kept = sim.tensor(100 << 20)")
[copy] = copies()
os.kill(copy, signal.SIGSTOP)
time.sleep(6)
os.kill(copy, signal.SIGCONT)
until = time.monotonic() + 60
looks = []
while not looks and time.monotonic() < until:
    looks = json.loads(gpumem.report().to_json())["holders"]
print([([it["name"] for it in look["roots"]], look["is_cut"]) for look in looks])
"""

# The copy inside of a run has no core until the run is over. What the one after it finds is asked.
INSIDE = """
from IPython.core.interactiveshell import InteractiveShell
stopped = []

def step():
    time.sleep(0.02)
    if not stopped:
        stopped.extend(copies())
        for copy in stopped:
            os.kill(copy, signal.SIGSTOP)
    return sim.tensor(8 << 20)

shell = InteractiveShell.instance()
shell.user_ns.update(step=step, heap=heap)
shell.run_cell("%load_ext gpumem\\n%gpumem on")
shell.run_cell("kept = []\\nfor _ in range(80): kept.append(step())")
looks = json.loads(gpumem.report().to_json())["holders"]
print(len(stopped), [[it["name"] for it in look["roots"]] for look in looks])
"""


def said_by(program: str) -> str:
    """Run it, and return what it printed last."""
    command = [sys.executable, "-c", LOOKED_AT + program]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return ran.stdout.splitlines()[-1]


def test_a_copy_ends_with_its_process() -> None:
    copy = int(said_by(KILLED))
    until = time.monotonic() + 60
    while is_alive(copy):
        assert time.monotonic() < until, "it goes on without its process"
        time.sleep(0.05)


def test_a_look_on_a_busy_machine_is_not_given_up() -> None:
    assert said_by(BUSY) == "[(['kept'], False)]"


def test_a_look_inside_of_a_run_gives_way_to_the_one_after_it() -> None:
    assert said_by(INSIDE) == "1 [['kept']]"


def is_alive(number: int) -> bool:
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{number}/stat").read_text(encoding="ascii")
        return stat.rpartition(")")[2].split()[0] != "Z"
    return False
