"""Python programs that a test starts, and what it waits for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from gpumem import cli

from tests.support.forked import run_module, with_root

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_SECONDS = 60


def run_python(
    *arguments: object, cwd: Path | None = None, timeout: float = 200, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end; a session of this process is not the parent of its session.

    One that hangs prints where.
    """
    around = {name: it for name, it in os.environ.items() if name != "GPUMEM_PROCESSES"}
    command = [sys.executable, "-X", "faulthandler", *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**around, **with_root(), **environment},
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            out, err = process.communicate(timeout=30)
            pytest.fail(f"{arguments} took longer than {timeout} s\n{out}\n{err}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


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
    """Run ``jupyter gpumem``: what runs a program in a process of its own, all else in this one.

    One that runs a notebook has from its start what talks to kernels.
    """
    runs = arguments[0] in {"run", "check"}
    if cwd or environment or (runs and not any(str(it).endswith(".ipynb") for it in arguments)):
        return run_python("-m", "gpumem", *arguments, cwd=cwd, **environment)
    if runs:
        return run_module("gpumem.__main__", *arguments, after=("nbclient", "gpumem"), timeout=200)
    out, err, code = StringIO(), StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("always")
        try:
            code = cli.main(list(map(str, arguments)))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def until(is_so: Callable[[], bool]) -> None:
    """Try again for as long as a busy machine may need."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
