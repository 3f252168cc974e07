"""What a case of the gallery is, and the worlds that it is run in.

A case is text: cells as people write them. They use ``tensor()`` and ``weights()``, of
8 MiB each, and ``no_grad``, which a prelude defines for simulated tensors and for torch, on
the CPU and on a GPU.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass

MIB = 1 << 20
SIZE = 8 * MIB
N_RUNS = 12

TORCH = """
import torch

no_grad = torch.no_grad


def tensor():
    return torch.ones(2 << 20, device={device!r})


def weights():
    return torch.ones(2 << 20, device={device!r}, requires_grad=True)


def clone(t):
    return t.clone()
"""

PRELUDES = {
    "sim": """
from gpumem import sim

sim.use(4 << 30)
no_grad = sim.no_grad


def tensor():
    return sim.tensor(8 << 20)


def weights():
    return sim.tensor(8 << 20, requires_grad=True)


def clone(t):
    return t + 0
""",
    "torch": TORCH.format(device="cpu"),
    "cuda": TORCH.format(device="cuda"),
}
DEVICES = {"sim": "sim:0", "torch": "host", "cuda": "cuda:0"}


def _is_here(world: str) -> bool:
    """Tell whether to open a world: that of a GPU needs torch to see one.

    The simulated device stands in for torch, where that is not installed.
    """
    has_torch = importlib.util.find_spec("torch") is not None
    if world == "sim":
        return not has_torch
    return has_torch and (world == "torch" or importlib.import_module("torch").cuda.is_available())


WORLDS = [world for world in PRELUDES if _is_here(world)]


@dataclass(frozen=True)
class Holder:
    """Who keeps what a cell left behind."""

    name: str
    """As ``gpumem.holders()`` names the root; a pattern."""
    kind: str
    path: str = ""
    """A pattern that its path to the largest object contains."""


@dataclass(frozen=True)
class Growing:
    """A cell that keeps more each time it runs, and the cell that does not."""

    name: str
    text: str
    """Where it is from."""
    truth: str
    leak: str
    fix: str
    holder: Holder
    errs: str = ""
    """Where the text errs."""
    setup: str = ""
    bytes_per_run: int = SIZE
    half_fix: str = ""
    """What the text proposes, where it still grows."""
    half_fix_bytes: int = 0
    is_meant: bool = False
    """Nothing says that it is an accident, and the device is not full soon: growing, no leak."""


@dataclass(frozen=True)
class Looped:
    """A loop in one cell that keeps more with each step, and the loop that does not."""

    name: str
    truth: str
    leak: str
    fix: str
    holder: Holder
    setup: str
    n_steps: int
    bytes_per_step: int = SIZE


@dataclass(frozen=True)
class Kept:
    """A cell that leaves something behind once, and what gives it back."""

    name: str
    truth: str
    cell: str
    """Or several, with ``# %%`` between them."""
    fix: str
    holder: Holder
    setup: str = ""
    n_bytes: int = SIZE


@dataclass(frozen=True)
class Healthy:
    """A workflow that leaks nothing, however it may look."""

    name: str
    cell: str
    setup: str = ""
    truth: str = ""
    worlds: tuple[str, ...] = ("sim", "torch", "cuda")
