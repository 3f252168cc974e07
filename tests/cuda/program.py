"""Runs a program in a notebook of its own, with the real torch on a machine with played cards."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .played import Machine

TIMEOUT_SECONDS = 120


class Program:
    """Starts programs on a machine."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.folder = folder

    def __call__(self, script: str, **variables: str) -> str:
        """Run a script after `shell.py`, with further environment variables; return its output."""
        text = "from shell import *\n" + textwrap.dedent(script)
        # Of a file, so that frames of the allocator's history have lines.
        file = self.folder / "program.py"
        file.write_text(text, encoding="utf-8")
        environment = {
            **os.environ,
            **self.machine.environment,
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "PYTHONFAULTHANDLER": "1",
            **variables,
        }
        ran = subprocess.run(
            [sys.executable, str(file)],
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=environment,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
        if ran.returncode != 0:
            said = f"{ran.stdout[-3000:]}{ran.stderr[-5000:]}"
            pytest.fail(f"the program ended with {ran.returncode}\n{said}", pytrace=False)
        return ran.stdout
