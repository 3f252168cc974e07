"""What is recorded in a Python without the GIL: levels and verdicts, and no names."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import gpumem
import pytest

pytestmark = pytest.mark.python

# What the documentation says about a build that can run without the GIL.
FREE_THREADED = """
import sysconfig
sysconfig.get_config_vars()["Py_GIL_DISABLED"] = 1
"""
BUILDS = {"this Python as one": FREE_THREADED, "a free-threaded build": ""}

SESSION = """
import threading
import gpumem
from gpumem import sim
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(history_manager=None)
for cell in [
    "%load_ext gpumem",
    "%config GpuMem.quiet = True\\n%config GpuMem.store = False",
    "import gpumem\\nfrom gpumem import sim\\nsim.use(8 << 30)\\nkept = []",
    "%gpumem on",
    *["kept.append(sim.tensor(64 << 20))"] * 12,
]:
    shell.run_cell(cell, store_history=True).raise_error()
"""
LEAK = """
[leak] = [it for it in gpumem.report().findings if it.kind == "leak" and it.device == "sim:0"]
print("holders:", len(leak.holders))
print(gpumem.report())
print(shell.run_line_magic("gpumem", "status"))
for ask in [gpumem.holders, lambda: gpumem.footprint(None)]:
    try:
        ask()
    except gpumem.GpuMemError as error:
        print(error)
"""
# What may go wrong only if threads run at the same time.
THREADS = """
def work(number):
    kept = []
    for turn in range(60):
        with gpumem.record(f"turn of {number % 3}"):
            kept.append(sim.tensor(1 << 20))
            gpumem.mark("step")
        if turn % 20 == 19:
            kept.clear()
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
while True:
    str(gpumem.report())
    if not any(thread.is_alive() for thread in threads):
        break
for thread in threads:
    thread.join()
blocks = {row["run"] for row in gpumem.report().runs if "turn of" in (row["label"] or "")}
print(len(blocks))
"""


def run(build: str, code: str) -> str:
    if not build and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has the GIL: CI runs this on a free-threaded one")
    ran = subprocess.run(
        [sys.executable, "-c", f"{build}{SESSION}{code}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(gpumem.__file__).parents[1])},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_without_the_gil_a_leak_is_found_and_has_no_names(build: str) -> None:
    said = run(build, LEAK)
    assert "holders: 0\n" in said
    # The report, the status, and both refusals.
    assert said.count("this Python is free-threaded") == 4


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_threads_record_while_reports_are_made(build: str) -> None:
    assert run(build, THREADS).endswith("\n480\n")
