"""Which Pythons can import gpumem."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gpumem
import pytest

pytestmark = pytest.mark.python

# What the documentation says of a build that can run without the GIL.
FREE_THREADED = """
import sysconfig
sysconfig.get_config_vars()["Py_GIL_DISABLED"] = 1
"""
BUILDS = {
    "an own build": (shutil.which("python3.14t") or shutil.which("python3.13t"), ""),
    "this Python as one": (sys.executable, FREE_THREADED),
}


@pytest.mark.parametrize(("python", "start"), BUILDS.values(), ids=BUILDS)
def test_a_python_without_the_gil_is_refused_in_one_line(python: str | None, start: str) -> None:
    if python is None:
        pytest.skip("no free-threaded Python is here")
    ran = subprocess.run(
        [python, "-c", f"{start}import gpumem"],
        capture_output=True,
        text=True,
        check=False,
        # Nothing else need be installed there: it is refused before all other imports.
        env={**os.environ, "PYTHONPATH": str(Path(gpumem.__file__).parents[1])},
    )
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("ImportError: gpumem needs a Python build with the GIL")
    assert "_gpumem" not in ran.stderr
