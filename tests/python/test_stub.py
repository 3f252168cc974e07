"""What the stub promises is what the extension has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_stub_is_the_extensions() -> None:
    pytest.importorskip("mypy")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "gpumem._gpumem"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
