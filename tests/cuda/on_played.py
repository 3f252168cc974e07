"""A pytest plugin that gives each of pytest's processes a machine with a played card.

`cargo xtask test cuda` loads it, so that also tests for real GPUs, which know nothing of
played ones, find a card: its driver in `LD_LIBRARY_PATH`, its `nvidia-smi` in `PATH`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .played import Machine

CARD = {"total_mib": 16384, "context_mib": 300}


def pytest_configure() -> None:
    """Play a machine before anything looks for one."""
    machine = Machine(Path(tempfile.mkdtemp(prefix="played-cuda-")))
    machine.cards(1, **CARD)
    os.environ["PLAYED_CUDA_STATE"] = str(machine.state_file)
