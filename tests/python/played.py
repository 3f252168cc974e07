"""A process of its own that plays cells and keeps its session in a folder."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

from tests.support.forked import ROOT
from tests.support.programs import run_python

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

START = f"""
import os, signal, sys, time
sys.path.append({str(ROOT)!r})
from tests.support.shell import open_shell
shell = open_shell(store=sys.argv[1], prints=True)
import gpumem
from gpumem import _gpumem, sim
shell.user_ns.update(gpumem=gpumem, sim=sim, os=os, signal=signal, time=time)

def run(cell):
    return shell.run_cell(cell, store_history=True)

"""


def command(folder: Path, program: str) -> list[str]:
    """Return what starts a program in which ``run`` runs a cell."""
    return [sys.executable, "-c", START + textwrap.dedent(program), str(folder)]


def play(folder: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run such a program to its end; return what it printed."""
    return run_python(*command(folder, program)[1:], **environment)
