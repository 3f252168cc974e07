"""Python programs that a test starts, and what it waits for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.support.in_process import with_root

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_SECONDS = 60


def run_python(
    *arguments: object, cwd: Path | None = None, timeout: float = 200, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end; a session of this process is not the parent of its session."""
    around = {name: it for name, it in os.environ.items() if name != "GPUMEM_PROCESSES"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**around, **with_root(), **environment},
        text=True,
        timeout=timeout,
    )


def output_of(
    *arguments: object, cwd: Path | None = None, timeout: float = 200, **environment: str
) -> str:
    """Return what a program prints that must succeed."""
    ran = run_python(*arguments, cwd=cwd, timeout=timeout, **environment)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    return ran.stdout


def run_gpumem(
    *arguments: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m gpumem``."""
    return run_python("-m", "gpumem", *arguments, cwd=cwd, **environment)


def until(is_so: Callable[[], bool]) -> None:
    """Try again for as long as a busy machine may need."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
