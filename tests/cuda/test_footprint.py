"""What `gpumem.footprint` says a model takes, and what torch's allocator gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .program import Program

STARTED = """
    import torch
    from torch import nn
    run("import torch\\nkept = [torch.empty(1, device='cuda')]")
    run("%gpumem on")
    base = torch.cuda.memory_allocated()

    def near(told, truth, where):
        assert abs(told - truth) <= 0.01 * truth, (where, told, truth, told / max(truth, 1))

    def rows(footprint):
        return {row.part: row for row in footprint.rows if row.device == "cuda:0"}

    def requested():
        return torch.cuda.memory_stats()["requested_bytes.all.current"]

    class Taken:
        # What work adds: as asked for, and as the allocator gave it.
        def __init__(self, work):
            before = requested(), torch.cuda.memory_allocated()
            self.result = work()
            self.requested = requested() - before[0]
            self.allocated = torch.cuda.memory_allocated() - before[1]
        def is_told_by(self, told, where):
            assert told == self.requested, (where, told, self.requested)
            near(told, self.allocated, where)

    class Block(nn.Module):
        def __init__(self, width, n_heads):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.n_heads = n_heads
        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.n_heads, c // self.n_heads
                ).permute(2, 0, 3, 1, 4)
            a = (q @ k.transpose(-2, -1)).softmax(-1) @ v
            x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
            return x + self.down(torch.relu(self.up(x)))

    class Transformer(nn.Module):
        def __init__(self, width=1024, n_blocks=4, n_words=50257):
            super().__init__()
            self.words = nn.Embedding(n_words, width)
            self.blocks = nn.ModuleList(Block(width, 8) for _ in range(n_blocks))
            self.head = nn.Linear(width, n_words)
        def forward(self, ids):
            x = self.words(ids)
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    def transformer():
        with torch.device("cuda"):
            return Transformer()

    ids = torch.zeros(2, 64, dtype=torch.long, device="cuda")
    # Workspaces of the libraries are taken once, and are no part of a model.
    warm = nn.Linear(64, 64).cuda()
    warm(torch.ones(2, 64, device="cuda")).sum().backward()
    del warm
"""

OPTIMIZERS = {
    "Adam": "torch.optim.Adam(parameters)",
    "Adam amsgrad": "torch.optim.Adam(parameters, amsgrad=True)",
    "AdamW fused": "torch.optim.AdamW(parameters, fused=True)",
    "AdamW foreach": "torch.optim.AdamW(parameters, foreach=True)",
    "AdamW capturable": "torch.optim.AdamW(parameters, capturable=True)",
    "SGD": "torch.optim.SGD(parameters, lr=0.1)",
    "SGD momentum": "torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)",
    "RMSprop": "torch.optim.RMSprop(parameters)",
    "Adagrad": "torch.optim.Adagrad(parameters)",
    "Adafactor": "torch.optim.Adafactor(parameters)",
    "NAdam": "torch.optim.NAdam(parameters)",
}


def test_optimizers_of_a_transformer_take_what_is_said(program: Program) -> None:
    program(
        STARTED
        + f"""
    optimizers = {OPTIMIZERS}
    """
        + """
    import gc
    gc.collect()
    base = torch.cuda.memory_allocated()
    for name, make in optimizers.items():
        of_model = Taken(transformer)
        model = of_model.result
        parameters = list(model.parameters())
        made = Taken(lambda: eval(make))
        optimizer = made.result
        told = rows(gpumem.footprint(model, optimizer))
        of_model.is_told_by(told["parameters"].expected_bytes, (name, "parameters"))
        assert told["parameters"].present_bytes == told["parameters"].expected_bytes

        of_gradients = Taken(lambda: model(ids).sum().backward())
        of_gradients.is_told_by(told["gradients"].expected_bytes, (name, "gradients"))
        of_state = Taken(optimizer.step)
        # Adagrad makes its state at once, the others at the first step.
        of_state.requested += made.requested
        of_state.allocated += made.allocated
        expected = told["optimizer_state"].expected_bytes if "optimizer_state" in told else 0
        of_state.is_told_by(expected, (name, "state"))
        # Once all is there, it says so.
        now = rows(gpumem.footprint(model, optimizer))
        for part, row in now.items():
            near(row.present_bytes, row.expected_bytes, (name, part))
        del model, parameters, optimizer, told, now, row, of_model, made
        gc.collect()
        assert torch.cuda.memory_allocated() == base, name
    assert_quiet()
    """
    )


@pytest.mark.parametrize("precision", ["bfloat16 weights", "autocast", "gradient scaler"])
def test_a_model_of_mixed_precision(program: Program, precision: str) -> None:
    program(
        STARTED
        + f"""
    precision = {precision!r}
    """
        + """
    dtype = torch.bfloat16 if precision == "bfloat16 weights" else torch.float32
    of_model = Taken(lambda: transformer().to(dtype))
    model = of_model.result
    optimizer = torch.optim.AdamW(model.parameters())
    told = rows(gpumem.footprint(model, optimizer))
    of_model.is_told_by(told["parameters"].expected_bytes, "parameters")
    scaler = torch.amp.GradScaler(enabled=precision == "gradient scaler")
    def backward():
        with torch.autocast("cuda", torch.float16, enabled=precision != "bfloat16 weights"):
            loss = model(ids).sum()
        scaler.scale(loss).backward()
    # The scale itself is a number on the card.
    scaler.scale(torch.ones(1, device="cuda"))
    Taken(backward).is_told_by(told["gradients"].expected_bytes, "gradients")
    # A scaler steps if gradients are finite, and what is computed here is garbage.
    Taken(optimizer.step).is_told_by(told["optimizer_state"].expected_bytes, "state")
    assert_quiet()
    """
    )


def test_a_checkpointed_model_keeps_less_and_its_parameters_take_the_same(program: Program) -> None:
    program(
        STARTED
        + """
    from torch.utils.checkpoint import checkpoint
    of_model = Taken(transformer)
    model = of_model.result
    told = rows(gpumem.footprint(model))
    of_model.is_told_by(told["parameters"].expected_bytes, "parameters")
    def plain():
        x = model.words(ids)
        for block in model.blocks:
            x = block(x)
        return x
    def checkpointed():
        x = model.words(ids)
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x
    names.update(plain=plain, checkpointed=checkpointed)
    run("x = plain()")
    of_plain = check()["kept_bytes"]
    found = {it.name: it.n_bytes for it in gpumem.holders().roots if it.device == "cuda:0"}
    # Whoever holds the result holds the graph: torch's allocator says the same within rounding.
    near(found["x"], of_plain, "graph")
    run("x = None")
    run("x = checkpointed()")
    of_checkpointed = check()["kept_bytes"]
    assert of_checkpointed < of_plain / 3, (of_checkpointed, of_plain)
    found = {it.name: it.n_bytes for it in gpumem.holders().roots if it.device == "cuda:0"}
    near(found["x"], of_checkpointed, "checkpointed graph")
    assert_quiet()
    """
    )


def test_low_rank_adapters_take_gradients_and_state_alone(program: Program) -> None:
    program(
        STARTED
        + """
    class LoRA(nn.Module):
        def __init__(self, linear, rank=8):
            super().__init__()
            self.linear = linear.requires_grad_(False)
            self.a = nn.Parameter(torch.empty(rank, linear.in_features, device="cuda"))
            self.b = nn.Parameter(torch.zeros(linear.out_features, rank, device="cuda"))
        def forward(self, x):
            return self.linear(x) + (x @ self.a.T) @ self.b.T
    def make():
        model = transformer().requires_grad_(False)
        for block in model.blocks:
            block.qkv, block.up = LoRA(block.qkv), LoRA(block.up)
        return model
    of_model = Taken(make)
    model = of_model.result
    trained = [it for it in model.parameters() if it.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    told = rows(gpumem.footprint(model, optimizer))
    of_model.is_told_by(told["parameters"].expected_bytes, "parameters")
    of_gradients = Taken(lambda: model(ids).sum().backward())
    of_gradients.is_told_by(told["gradients"].expected_bytes, "gradients")
    Taken(optimizer.step).is_told_by(told["optimizer_state"].expected_bytes, "state")
    assert told["optimizer_state"].expected_bytes < 0.1 * told["parameters"].expected_bytes
    assert_quiet()
    """
    )


def test_a_cache_of_keys_and_values_is_found_as_large_as_it_is(program: Program) -> None:
    program(
        STARTED
        + """
    run('''
    cache = [(torch.empty(1, 8, 0, 64, device="cuda"), torch.empty(1, 8, 0, 64, device="cuda"))
             for _ in range(6)]
    ''')
    cell = '''
    new = torch.empty(1, 8, 128, 64, device="cuda")
    cache = [(torch.cat([k, new], 2), torch.cat([v, new], 2)) for k, v in cache]
    '''
    of_one = 6 * 2 * 8 * 64 * 4 * 128
    for n in range(1, 9):
        before = requested()
        run(cell)
        row = check()
        if n > 1:
            assert requested() - before == of_one
            # Many small pieces: the allocator leaves a rest of up to 1 MiB with some.
            assert row["kept_bytes"] >= of_one, (n, row["kept_bytes"])
    held = {it.name: it.n_bytes for it in gpumem.holders().roots if it.device == "cuda:0"}
    assert held["cache"] == 8 * of_one, held
    assert_quiet()
    """
    )
