"""Needs a GPU: without one every test here is skipped, and says why."""

from __future__ import annotations

import pytest

from . import nvidia


@pytest.fixture(scope="session", autouse=True)
def gpu() -> nvidia.Gpu:
    """Return the GPU that the tests use: the first one that this environment shows."""
    try:
        return nvidia.first_visible()
    except nvidia.NoGpuError as reason:
        pytest.skip(str(reason))
