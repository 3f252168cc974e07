"""Memory that real frameworks run out of, on the host, and what a release gives back."""

from __future__ import annotations

import weakref
from typing import Any

import gpumem
import pytest

from tests.support.in_process import forked_from, in_process

from .shell import oom, run, shell

STEP = """
def step(n):
    weights, batch = plant(256, 256), plant(256, 256)
    loss = (weights @ batch).sum()
    return torch.empty(n, dtype=torch.uint8)
"""
TORCH_ERRORS = {
    "plain": "step(1 << 56)",
    "chained": "try:\n    step(1 << 56)\nexcept RuntimeError as e:\n    raise ValueError from e",
}


@pytest.mark.parametrize("error", TORCH_ERRORS)
@forked_from("torch")
def test_a_release_lets_go_of_torchs_tensors(error: str) -> None:
    import torch  # noqa: PLC0415 (the process has it from its start)

    planted = []

    def plant(*shape: int) -> Any:
        tensor = torch.ones(*shape, requires_grad=True)
        planted.append(weakref.ref(tensor))
        return tensor

    def alive() -> int:
        return sum(ref() is not None for ref in planted)

    shell().user_ns.update(plant=plant, torch=torch)
    run(STEP, f"%%gpumem\n{TORCH_ERRORS[error]}")
    assert oom() == ("out_of_memory", "torch", 1 << 56), oom()
    assert alive() == 2
    run("%gpumem release traceback")
    assert alive() == 0


@forked_from("torch")
def test_a_worker_of_a_data_loader_is_understood() -> None:
    import torch  # noqa: PLC0415 (the process has it from its start)

    class Large(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, idx: int) -> Any:
            return torch.empty(1 << 56, dtype=torch.uint8)

    shell().user_ns["loader"] = torch.utils.data.DataLoader(Large(), num_workers=1)
    run("%%gpumem\nnext(iter(loader))")
    assert oom() == ("out_of_memory", "torch", 1 << 56), oom()


@in_process
def test_jax_runs_out_on_the_host() -> None:
    run("import jax.numpy")
    run("%%gpumem\njax.numpy.zeros((1 << 46,), dtype='uint8').block_until_ready()")
    assert oom() == ("out_of_memory", "jax", 1 << 46), oom()


@in_process
def test_numpy_runs_out_on_the_host() -> None:
    run("import numpy", "%%gpumem\nnumpy.empty((1 << 56,), dtype='uint8')")
    # It says how much only when it is shown, by code of its own that is not run here.
    assert oom() == ("out_of_memory", "numpy", None), oom()
    [found] = [it for it in gpumem.report().findings if it.kind == "out_of_memory"]
    assert found.device == "host"
