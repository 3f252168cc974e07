"""The wheel works by itself, without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_published_wheel_finds_the_quickstarts_leak(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(wheel, tmp_path / "installed", "zip")
    notebook = shutil.copy(ROOT / "notebooks" / "quickstart.ipynb", tmp_path)
    ran = subprocess.run(
        [sys.executable, ROOT / "xtask" / "python" / "run_notebook.py", notebook],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
    )
    assert ran.returncode == 0, ran.stderr
    assert "\n▲ losses leaks 64 MiB a step\n" in ran.stdout
    assert (tmp_path / "report.png").stat().st_size > 0
