"""What `gpumem.footprint` says a model takes, and what torch's allocator gives it."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.support.in_process import forked_from

from .notebook import check, held, names, run, started

if TYPE_CHECKING:
    from collections.abc import Callable


OPTIMIZERS = [
    "torch.optim.Adam(parameters)",
    "torch.optim.Adam(parameters, amsgrad=True)",
    "torch.optim.AdamW(parameters, fused=True)",
    "torch.optim.AdamW(parameters, foreach=True)",
    "torch.optim.AdamW(parameters, capturable=True)",
    "torch.optim.SGD(parameters, lr=0.1)",
    "torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)",
    "torch.optim.RMSprop(parameters)",
    "torch.optim.Adagrad(parameters)",
    "torch.optim.Adafactor(parameters)",
    "torch.optim.NAdam(parameters)",
]


def near(stated: int, truth: int, where: object) -> None:
    assert abs(stated - truth) <= 0.01 * truth, (where, stated, truth, stated / max(truth, 1))


def parts(*work: Any) -> dict[str, Any]:
    """Return what a footprint says of each part on the card."""
    return {row.part: row for row in gpumem.footprint(*work).rows if row.device == "cuda:0"}


def requested() -> int:
    """Return the bytes that torch code has requested and not freed."""
    stats = sys.modules["torch"].cuda.memory_stats()
    n_bytes: int = stats["requested_bytes.all.current"]
    return n_bytes


class Taken:
    """The bytes that work adds: as requested, and as the allocator rounds them."""

    def __init__(self, work: Callable[[], Any]) -> None:
        allocated = sys.modules["torch"].cuda.memory_allocated
        before = requested(), allocated()
        self.result = work()
        self.requested = requested() - before[0]
        self.allocated = allocated() - before[1]

    def check(self, expected: int, where: object) -> None:
        assert expected == self.requested, (where, expected, self.requested)
        near(expected, self.allocated, where)


def check_optimizer(make: str, ids: Any) -> None:
    """Compare what a footprint says with what each part takes, before and after it is there."""
    from .models import transformer

    of_model = Taken(transformer)
    model = of_model.result
    parameters = list(model.parameters())
    variables = {"torch": sys.modules["torch"], "parameters": parameters}
    made = Taken(lambda: eval(make, variables))  # noqa: S307 (our own text)
    optimizer = made.result
    rows = parts(model, optimizer)
    of_model.check(rows["parameters"].expected_bytes, (make, "parameters"))
    assert rows["parameters"].present_bytes == rows["parameters"].expected_bytes

    of_gradients = Taken(lambda: model(ids).sum().backward())
    of_gradients.check(rows["gradients"].expected_bytes, (make, "gradients"))
    of_state = Taken(optimizer.step)
    # Adagrad makes its state at once, the others at the first step.
    of_state.requested += made.requested
    of_state.allocated += made.allocated
    expected = rows["optimizer_state"].expected_bytes if "optimizer_state" in rows else 0
    of_state.check(expected, (make, "state"))
    # Once all is there, it says so.
    for part, row in parts(model, optimizer).items():
        near(row.present_bytes, row.expected_bytes, (make, part))


@forked_from("torch")
def test_optimizers_of_a_transformer_take_what_is_said() -> None:
    torch = started()
    from .models import token_ids

    ids = token_ids()
    gc.collect()
    base = torch.cuda.memory_allocated()
    for make in OPTIMIZERS:
        check_optimizer(make, ids)
        gc.collect()
        assert torch.cuda.memory_allocated() == base, make


@pytest.mark.parametrize("precision", ["bfloat16 weights", "autocast", "gradient scaler"])
@forked_from("torch")
def test_a_model_of_mixed_precision(precision: str) -> None:
    torch = started()
    from .models import token_ids, transformer

    ids = token_ids()
    dtype = torch.bfloat16 if precision == "bfloat16 weights" else torch.float32
    of_model = Taken(lambda: transformer().to(dtype))
    model = of_model.result
    optimizer = torch.optim.AdamW(model.parameters())
    rows = parts(model, optimizer)
    of_model.check(rows["parameters"].expected_bytes, "parameters")
    scaler = torch.amp.GradScaler(enabled=precision == "gradient scaler")

    def backward() -> None:
        with torch.autocast("cuda", torch.float16, enabled=precision != "bfloat16 weights"):
            loss = model(ids).sum()
        scaler.scale(loss).backward()

    # The scale itself is a number on the card.
    scaler.scale(torch.ones(1, device="cuda"))
    Taken(backward).check(rows["gradients"].expected_bytes, "gradients")
    # A scaler steps if gradients are finite, and what is computed here is garbage.
    Taken(optimizer.step).check(rows["optimizer_state"].expected_bytes, "state")


@forked_from("torch")
def test_checkpoints_keep_less_of_a_model_beside_its_parameters() -> None:
    started()
    from .models import token_ids, transformer

    names()["ids"] = token_ids()
    of_model = Taken(transformer)
    names()["model"] = of_model.result
    rows = parts(of_model.result)
    of_model.check(rows["parameters"].expected_bytes, "parameters")
    run("x = model.hidden(ids)")
    of_plain = check()["kept_bytes"]
    # Whoever holds the result holds the graph: torch's allocator says the same within rounding.
    near(held()["x"], of_plain, "graph")
    run("x = None")
    run("from torch.utils.checkpoint import checkpoint\nx = model.hidden(ids, checkpoint)")
    of_checkpointed = check()["kept_bytes"]
    assert of_checkpointed < of_plain / 3, (of_checkpointed, of_plain)
    near(held()["x"], of_checkpointed, "checkpointed graph")


@forked_from("torch")
def test_low_rank_adapters_take_gradients_and_state_alone() -> None:
    torch = started()
    from .models import LoRA, token_ids, transformer

    ids = token_ids()

    def make() -> Any:
        model = transformer().requires_grad_(False)  # noqa: FBT003 (as torch has it)
        for block in model.blocks:
            block.qkv, block.up = LoRA(block.qkv), LoRA(block.up)
        return model

    of_model = Taken(make)
    model = of_model.result
    trained = [it for it in model.parameters() if it.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    rows = parts(model, optimizer)
    of_model.check(rows["parameters"].expected_bytes, "parameters")
    of_gradients = Taken(lambda: model(ids).sum().backward())
    of_gradients.check(rows["gradients"].expected_bytes, "gradients")
    Taken(optimizer.step).check(rows["optimizer_state"].expected_bytes, "state")
    assert rows["optimizer_state"].expected_bytes < 0.1 * rows["parameters"].expected_bytes


@forked_from("torch")
def test_a_cache_of_keys_and_values_is_found_as_large_as_it_is() -> None:
    started()
    run("""
    cache = [(torch.empty(1, 8, 0, 64, device="cuda"), torch.empty(1, 8, 0, 64, device="cuda"))
             for _ in range(6)]
    """)
    cell = """
    new = torch.empty(1, 8, 128, 64, device="cuda")
    cache = [(torch.cat([k, new], 2), torch.cat([v, new], 2)) for k, v in cache]
    """
    of_one = 6 * 2 * 8 * 64 * 4 * 128
    for n in range(1, 9):
        before = requested()
        run(cell)
        row = check()
        if n > 1:
            assert requested() - before == of_one
            # Many small pieces: the allocator leaves a rest of up to 1 MiB with some.
            assert row["kept_bytes"] >= of_one, (n, row["kept_bytes"])
    assert held()["cache"] == 8 * of_one, held()
