"""A pytest plugin that gives each of pytest's processes a machine with a played card.

`cargo xtask test cuda` loads it, so that also tests for real GPUs, which know nothing of
played ones, find a card: its driver in `LD_LIBRARY_PATH`, its `nvidia-smi` in `PATH`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .played import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = pytest.StashKey[Machine]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Play a machine before anything looks for one, such as a `conftest.py` with torch."""
    machine = Machine(Path(tempfile.mkdtemp(prefix="played-cuda-")))
    machine.cards(1, total_mib=16384)
    os.environ["PLAYED_CUDA_STATE"] = str(machine.state_file)
    early_config.stash[OWN] = machine


@pytest.fixture
def own_machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Return the machine of this very process, for the time of a test.

    Its number of cards and its visible ones are known once torch has started CUDA.
    """
    machine = request.config.stash[OWN]
    with machine.restored():
        yield machine
