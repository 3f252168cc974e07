"""What the packaging tests share: the checkout and what was built from it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def built(variable: str) -> Path:
    """Return an archive that ``cargo xtask test packaging`` built."""
    path = os.environ.get(variable)
    if path is None:
        pytest.fail(f"{variable} is not set: run cargo xtask test packaging")
    return Path(path)


@pytest.fixture(scope="session")
def wheel() -> Path:
    return built("GPUMEM_WHEEL")


@pytest.fixture(scope="session")
def sdist() -> Path:
    return built("GPUMEM_SDIST")


@pytest.fixture(scope="session")
def tracked() -> frozenset[str]:
    """Return the files that git keeps, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return frozenset(path for path in listed.stdout.splitlines() if (ROOT / path).exists())
