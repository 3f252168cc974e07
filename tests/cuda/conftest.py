"""The real torch on a played machine: what it computes is garbage, what it allocates is real."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from . import played
from .program import Program

if TYPE_CHECKING:
    from pathlib import Path

CAPACITY_MIB = 8192
CONTEXT_MIB = 300


def pytest_report_header() -> str:
    """Say what these tests are, before the first of them."""
    return (
        "cuda: the real PyTorch on a played CUDA without a GPU; its numbers are garbage, its"
        " allocator is real. tests/gpu asks for the same on a real GPU"
    )


@pytest.fixture(scope="session", autouse=True)
def _played() -> None:
    """Skip where nothing is played, and say why."""
    if played.LIBRARIES is None:
        pytest.skip("no played CUDA here: `cargo xtask test cuda` builds it")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed here")


@pytest.fixture
def machine(tmp_path: Path) -> played.Machine:
    """Return a machine with one card of 8 GiB, on which a context costs 300 MiB."""
    folder = tmp_path / "machine"
    folder.mkdir()
    made = played.Machine(folder)
    made.cards(1, total_mib=CAPACITY_MIB, context_mib=CONTEXT_MIB)
    return made


@pytest.fixture
def program(machine: played.Machine, tmp_path: Path) -> Program:
    """Return what runs programs on that machine."""
    return Program(machine, tmp_path)
