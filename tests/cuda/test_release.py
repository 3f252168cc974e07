"""Each step of a release says what the allocator gave back, to the byte."""

from __future__ import annotations

import sys
from typing import Any

import gpumem
import pytest

from tests.support.in_process import forked_from

from .notebook import MIB, empty, held, machine, names, run, started


def allocated() -> int:
    n_bytes: int = sys.modules["torch"].cuda.memory_allocated()
    return n_bytes


def freed(*steps: str, dry_run: bool = False) -> dict[str, Any]:
    """Return what each step gave back."""
    return {step.name: step.freed for step in gpumem.release(*steps, dry_run=dry_run).steps}


@pytest.mark.any_card
@forked_from("torch")
def test_every_step_in_turn() -> None:
    torch = started()
    # A result that is displayed, a cycle, an error's frames, and a cache.
    run(
        f"{empty(100)}[:1].data_ptr()\n"
        "torch.empty((200 << 20) + 5, dtype=torch.uint8, device='cuda')"
    )
    run(
        "import gc\ngc.disable()\nclass Node:\n    pass\n"
        f"n = Node()\nn.me = n\nn.t = {empty(30)}\ndel n"
    )
    run(f"def step():\n    t = {empty(40)}\n    1 / 0")
    assert run("step()") == "ZeroDivisionError"
    start = allocated()
    rounded = (200 << 20) + 512
    assert start == rounded + 70 * MIB + 512, start

    # A preview frees nothing.
    preview = freed("all", dry_run=True)
    assert allocated() == start, preview

    assert freed("cycles")["cycles"] == {"cuda:0": 30 * MIB}
    assert allocated() == rounded + 40 * MIB + 512
    assert freed("traceback")["traceback"] == {"cuda:0": 40 * MIB}
    assert allocated() == rounded + 512
    assert freed("outputs")["outputs"] == {"cuda:0": rounded}
    assert allocated() == 512
    reserved, free = torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]
    given = freed("cache")["cache"]["cuda:0"]
    assert given == reserved - torch.cuda.memory_reserved() > 300 * MIB, given
    assert torch.cuda.mem_get_info()[0] - free >= given, "the driver has it again"
    # There is nothing more.
    assert not any(freed("all").values())


@forked_from("torch")
def test_a_name_and_all_its_other_names() -> None:
    started()
    run(f"losses = [{empty(64)} for _ in range(3)]\nagain = losses")
    assert freed("losses")["losses"] == {"cuda:0": 192 * MIB}
    assert allocated() == 512
    assert "losses" not in names()
    # What another object keeps, too, is not given back.
    run(f"a = {empty(64)}\nkept.append(a)")
    assert not freed("a")["a"]
    assert allocated() == 64 * MIB + 512


@forked_from("torch")
def test_the_cache_of_every_card_is_given_back() -> None:
    machine().cards(3)
    torch = started()
    run(
        "for idx in range(3):\n"
        "    t = torch.empty((100 + idx) << 20, dtype=torch.uint8, device=f'cuda:{idx}')\n"
        "del t"
    )
    before = [torch.cuda.memory_reserved(idx) for idx in range(3)]
    given = gpumem.release("cache").freed
    now = [torch.cuda.memory_reserved(idx) for idx in range(3)]
    assert given == {f"cuda:{idx}": before[idx] - now[idx] for idx in range(3)}, (given, before)
    assert now == [2 * MIB, 0, 0], now
    assert torch.cuda.current_device() == 0


@forked_from("torch")
def test_the_graph_of_a_sum_of_losses() -> None:
    started()
    run("w = torch.empty(8 << 20, device='cuda', requires_grad=True)\ntotal = 0")
    cell = "loss = (w * w * w).sum()\ntotal = total + loss"
    for _ in range(4):
        run(cell)
    # w, and of each turn two results, each of 32 MiB, that its graph has saved.
    assert held()["total"] >= 3 * 32 * MIB, held()
    assert freed("total", "loss")["total"]["cuda:0"] >= 3 * 32 * MIB
    assert allocated() == 32 * MIB + 512, allocated()
