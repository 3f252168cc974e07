"""Sessions of notebooks, each in a process of its own: a kernel that dies takes nobody along."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from .kernel import HANG_SECONDS

KERNEL = Path(__file__).with_name("kernel.py")
# What kernels are run by: a debug build, or valgrind and a Python.
PYTHON = shlex.split(os.environ.get("GPUMEM_HARM_PYTHON", sys.executable))
N_ROUNDS = int(os.environ.get("GPUMEM_HARM_ROUNDS", "1"))


@dataclass(frozen=True)
class Step:
    """A cell that runs at least `times` times and `seconds` seconds."""

    cell: str
    times: int = 1
    seconds: float = 0
    cell_id: str | None = None


@dataclass(frozen=True)
class Ended:
    """What is left of a session that its kernel survived."""

    # What each cell raised, by the name of its class.
    errors: list[str | None]
    # How many lines gpumem logged in each cell.
    n_logged: list[int]
    # What each cell took of its thread's time.
    cpu_seconds: list[float]
    # What gpumem printed below the cells.
    lines: list[str]
    # What gpumem logged.
    log: list[str]
    # What the program has put into `results`.
    results: Any
    # Why recording stopped, if it did.
    stopped: str | None
    # The names that the latest look at each device found.
    holders: list[str]


class Notebook:
    """Opens a kernel for each session."""

    def __init__(self, folder: Path, sources: list[str]) -> None:
        self.folder = folder
        self.sources = sources
        self.environment: dict[str, str] = {}
        # What the kernel is started by: it replaces itself by the command in its arguments.
        self.launcher: list[str] = []

    def plays(self, *steps: str | Step, is_loaded: bool = True) -> Ended:
        """Play a session to its end, which its kernel must reach."""
        played = [Step(step) if isinstance(step, str) else step for step in steps]
        session = {
            "is_loaded": is_loaded,
            "sources": self.sources,
            "steps": [asdict(step) for step in played],
        }
        kernel = subprocess.run(
            [*self.launcher, *PYTHON, str(KERNEL)],
            check=False,
            cwd=self.folder,
            env={
                **os.environ,
                **self.environment,
                "IPYTHONDIR": str(self.folder / "ipython"),
            },
            input=json.dumps(session),
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS + 30,
        )
        died = f"the kernel ended with {kernel.returncode}\n{kernel.stderr[-4000:]}"
        assert kernel.returncode == 0, died
        assert kernel.stdout.endswith("}\n"), died
        return Ended(**json.loads(kernel.stdout.splitlines()[-1]))

    def survives(self, *steps: str | Step) -> Ended:
        """Play a session in which nothing goes wrong: not for the program, not for gpumem."""
        ended = self.plays(*steps)
        assert set(ended.errors) <= {None}
        # A look whose copy met a lock of another thread is missed. One whose copy was made while
        # autograd's engine changed what it reads is not whole. Both say so; no more than that.
        may_be_said = ("could not search for holders", "a look for holders is not whole")
        said = [line for line in ended.log if not line.startswith(may_be_said)]
        assert (ended.stopped, said) == (None, [])
        return ended

    def survives_looks(self, *steps: str | Step, holder: str) -> Ended:
        """Play such a session in which looks are answered, not all of them missed."""
        ended = self.survives(*steps)
        assert holder in ended.holders, ended.log
        return ended

    def is_left_alone(self, *steps: str | Step) -> Any:
        """Play a session whose program must come to what it comes to without gpumem."""
        with_gpumem = self.survives(*steps)
        without = self.plays(*steps, is_loaded=False)
        assert (with_gpumem.results, with_gpumem.errors) == (without.results, without.errors)
        return without.results


@pytest.fixture(params=range(N_ROUNDS), autouse=True)
def _round(request: pytest.FixtureRequest) -> int:
    """Play each session as often as ``GPUMEM_HARM_ROUNDS`` says: a race is not lost every time."""
    n: int = request.param
    return n


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    """Return a notebook on a machine with a simulated GPU."""
    return Notebook(tmp_path, ["sim"])
