"""A package that lies in a folder, and not in this environment."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

STATIC = ["files.html", "provider.js", "standalone.html", "thin.js"]


def output_of(program: str, folder: Path) -> str:
    """Return what a program prints that imports what lies in the folder."""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
    )
    return ran.stdout
