"""Real frameworks on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return what a process of a test has in its environment."""
    return {"IPYTHONDIR": str(tmp_path / "ipython")}
