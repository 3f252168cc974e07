"""A machine whose CUDA driver and NVML are played by `tests/played-cuda`."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.forked import run_module

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = os.environ.get("PLAYED_CUDA_LIBRARIES")
needs_driver = pytest.mark.skipif(
    FOLDER is None, reason="the test driver is built by `cargo xtask test`, on Linux"
)

UUID = "3f1a8c55-0000-4b7e-9d21-00000000000{}"
T4 = {
    "gpu0.uuid": f"GPU-{UUID.format(0)}",
    "gpu0.name": "Tesla T4",
    "gpu0.total_mib": 16384,
    "gpu0.reserved_mib": 384,
    "gpu0.used_mib": 1024,
}
A100 = {
    "gpu1.uuid": f"GPU-{UUID.format(1)}",
    "gpu1.name": "A100",
    "gpu1.total_mib": 40960,
    "gpu1.reserved_mib": 640,
    "gpu1.used_mib": 2048,
}
# The faster card comes first for CUDA and last on the bus.
BOTH = {**T4, **A100, "cuda.order": "1,0"}
ALIKE = {**BOTH, "gpu1.name": "Tesla T4"}
MIG = {
    "gpu0.uuid": f"GPU-{UUID.format(0)}",
    "gpu0.mig_places": 7,
    "gpu0.mig0.uuid": "MIG-11111111-0000-4b7e-9d21-000000000000",
    "gpu0.mig0.name": "A100 MIG 1g.5gb",
    "gpu0.mig0.total_mib": 4864,
    "gpu0.mig0.used_mib": 512,
    "gpu0.mig2.uuid": "MIG-22222222-0000-4b7e-9d21-000000000000",
    "gpu0.mig2.name": "A100 MIG 2g.10gb",
    "gpu0.mig2.total_mib": 9728,
    "gpu0.mig2.used_mib": 1024,
}

# What a script finds.
PRELUDE = """
import ctypes, json, os, subprocess, sys, time
from pathlib import Path
from gpumem import _gpumem
import gpumem
from tests.python.on_machine import *
"""


class Machine:
    """A machine whose driver is played.

    Its processes find their libraries by one link: where they look is read once, at a start.
    """

    def __init__(self, folder: Path, library_link: Path) -> None:
        self.library_link = library_link
        self.state_file = folder / "state"
        self.log_file = folder / "log"
        self.libraries = folder / "libraries"
        shutil.copytree(str(FOLDER), self.libraries)
        self.log_file.touch()
        self.environment: dict[str, str] = {}
        self.errors = ""

    def without(self, symbol: str) -> None:
        """Take one function out of the libraries: its name is no longer to be found."""
        for library in self.libraries.iterdir():
            absent = symbol[:-1] + "X"
            image = library.read_bytes().replace(f"{symbol}\0".encode(), f"{absent}\0".encode())
            library.write_bytes(image)

    def ask(self, state: dict[str, Any], script: str) -> Any:
        """Run a script on this machine and return what it passes to `tell`."""
        lines = [f"{key} = {value}" for key, value in state.items()]
        self.state_file.write_text("\n".join(lines), encoding="utf-8")
        self.library_link.unlink(missing_ok=True)
        self.library_link.symlink_to(self.libraries)
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("CUDA_")},
            "LD_LIBRARY_PATH": str(self.library_link),
            "PLAYED_CUDA_STATE": str(self.state_file),
            "PLAYED_CUDA_LOG": str(self.log_file),
            **self.environment,
        }
        ran = run_module(
            "tests.python.on_machine",
            PRELUDE + script,
            after=("gpumem.magics", "tests.support.shell"),
            timeout=120,
            environment=environment,
        )
        assert ran.returncode == 0, ran.stderr
        self.errors = ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    @property
    def calls_of_ours(self) -> list[str]:
        """Each call that a thread of gpumem's has made, in order."""
        lines = [line.split(" ", 2) for line in self.log_file.read_text("utf-8").splitlines()]
        return [call for _, thread, call in lines if thread.startswith("gpumem-")]
