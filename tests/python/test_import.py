"""Which Pythons can import gpumem."""

from __future__ import annotations

import subprocess
import sys

FREE_THREADED = """
import sys
sys.version = sys.version.replace("(", "free-threading build (", 1)
import gpumem
"""


def test_a_python_without_the_gil_is_refused_in_one_line() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FREE_THREADED], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("ImportError: gpumem needs a Python build with the GIL")
    assert "_gpumem" not in ran.stderr
