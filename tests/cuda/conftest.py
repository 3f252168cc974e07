"""The real torch on a card: on a played machine, or on a real GPU where nothing is played.

What torch computes on a played card is garbage, what it allocates is real.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from . import nvidia, played

if TYPE_CHECKING:
    from pathlib import Path


def pytest_report_header() -> str:
    """Say what these tests are, before the first of them."""
    if played.LIBRARIES is None:
        return "cuda: on a real GPU, the tests that are marked any_card"
    return (
        "cuda: the real PyTorch on a played CUDA without a GPU; its numbers are garbage, its"
        " allocator is real. `cargo xtask test gpu` runs the same on a real GPU"
    )


@pytest.fixture(autouse=True)
def _card(request: pytest.FixtureRequest) -> None:
    """Skip where there is no card for a test, and say why."""
    if played.LIBRARIES is None:
        if request.node.get_closest_marker("any_card") is None:
            pytest.skip("no played CUDA here: `cargo xtask test cuda` builds it")
        try:
            nvidia.first_visible()
        except nvidia.NoGpuError as reason:
            pytest.skip(str(reason))
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed here")


@pytest.fixture
def machine(tmp_path: Path) -> played.Machine:
    """Return a played machine with one card of 8 GiB, on which a context costs 300 MiB."""
    folder = tmp_path / "machine"
    folder.mkdir()
    made = played.Machine(folder)
    made.cards(1)
    return made


@pytest.fixture
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Return what a process needs in its environment to have the card."""
    if played.LIBRARIES is None:
        own = {"CUDA_VISIBLE_DEVICES": nvidia.first_visible().uuid}
    else:
        machine: played.Machine = request.getfixturevalue("machine")
        own = machine.environment
    return {
        **own,
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        # Else both take most of the card at once, and no level would move.
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
