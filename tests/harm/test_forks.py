"""Programs that fork: no thread of ours is in the way, before the fork and after it."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.programs import run_python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="counts threads as Linux lists them"
)

# What a program does around its forks; `forked` returns what a child comes to.
PROGRAM = """
import json, os, sys, time, warnings

results = []

def forked(act):
    reader, writer = os.pipe()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, repr(act()).encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    results.extend(str(it.message) for it in caught)
    results.append(os.read(reader, 999).decode())
    os.close(reader)

def n_threads():
    return len(os.listdir("/proc/self/task"))

def n_threads_of_a_grandchild():
    forked(n_threads)
    return results[-1]

def alone():
    return os.unshare(os.CLONE_NEWUSER) if hasattr(os, "unshare") else None

def fork_in_all_ways():
    for act in (n_threads, n_threads_of_a_grandchild, alone):
        forked(act)
"""

SHELL = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

config = Config()
config.HistoryManager.enabled = False
config.GpuMem.store = sys.argv[1]
config.GpuMem.quiet = True
shell = InteractiveShell.instance(config=config)
if is_loaded:
    shell.run_line_magic("load_ext", "gpumem")
    shell.run_line_magic("gpumem", "on")
shell.user_ns.update(fork_in_all_ways=fork_in_all_ways, leak=[], time=time)
"""

# Forks in a cell, below it, and while a look is under way.
CELLS = f"""
{SHELL}
rows = [[n] for n in range(50_000)]
leak = "import gpumem; leak.append(gpumem.sim.tensor(8 << 20))" if is_loaded else "pass"
for cell in ("fork_in_all_ways()", leak, leak, "pass", "fork_in_all_ways()"):
    assert shell.run_cell(cell, store_history=True).success
    fork_in_all_ways()
"""

BLOCKS = """
if is_loaded:
    import gpumem
    record = gpumem.record
else:
    from contextlib import nullcontext as record
with record("outer"):
    fork_in_all_ways()
    with record("inner"):
        fork_in_all_ways()
fork_in_all_ways()
"""

# Handlers of other libraries run between ours and the count of threads.
HANDLERS = f"""
if is_loaded:
    import gpumem
os.register_at_fork(
    before=lambda: sum(range(100)), after_in_parent=lambda: sum(n for n in range(1000))
)
{BLOCKS}
"""

# What comes and goes after a fork, in the same run.
SPIKED = f"""
{SHELL}
import gpumem

spiked = "fork_in_all_ways(); spike = b'x' * 100_000_000; time.sleep(0.3); del spike"
assert shell.run_cell(spiked, store_history=True).success
(run,) = gpumem.report().runs
found["spike"] = run["peak_bytes"] - run["before_bytes"]
"""


def play(folder: Path, body: str, *, is_loaded: bool) -> dict[str, Any]:
    """Run a program, and return what its forks came to and what it found."""
    script = folder / "program.py"
    head = f"{PROGRAM}\nis_loaded, found = {is_loaded}, {{}}\n"
    tail = "\nprint('\\nFOUND' + json.dumps([results, found]))\n"
    script.write_text(head + textwrap.dedent(body) + tail)
    ran = run_python(script, folder / "store", IPYTHONDIR=str(folder / "ipython"))
    assert (ran.returncode, ran.stderr) == (0, "")
    results, found = json.loads(ran.stdout.rpartition("FOUND")[2])
    return {"results": results, **found}


@pytest.mark.parametrize(
    "program", [CELLS, BLOCKS, HANDLERS], ids=["cells", "blocks", "handlers of others"]
)
def test_a_program_without_threads_that_forks(tmp_path: Path, program: str) -> None:
    plain = play(tmp_path, program, is_loaded=False)
    assert set(plain["results"]) == {"1", "'1'", "None"}
    assert play(tmp_path, program, is_loaded=True)["results"] == plain["results"]


def test_a_run_is_sampled_on_after_a_fork(tmp_path: Path) -> None:
    assert play(tmp_path, SPIKED, is_loaded=True)["spike"] > 90_000_000
