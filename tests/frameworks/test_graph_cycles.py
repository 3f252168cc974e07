"""Tensors that their own graph keeps: neither a name nor Python's collector reaches them."""

from __future__ import annotations

import pytest

from .test_oom import in_a_shell

HOOK = """
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    y = x.exp()
"""
GRADIENT = "y = x.detach().clone().requires_grad_()\n(y ** 3).sum().backward(create_graph=True)"


@pytest.mark.parametrize(
    ("keep", "kind", "cure", "cured"),
    [
        (HOOK, "hook_cycle", "t.detach()", HOOK.replace("lambda t: t,", "lambda t: t.detach(),")),
        (GRADIENT, "gradient_cycle", ".grad = None", f"{GRADIENT}\ny.grad = None"),
    ],
    ids=["hook", "gradient"],
)
def test_tensors_kept_by_their_graph_are_reported_after_del(
    keep: str, kind: str, cure: str, cured: str
) -> None:
    in_a_shell(
        "torch",
        f"""
    def outlived():
        found = gpumem.report().findings
        return [it for it in found if it.kind == "outlived" and it.withdrawn is None]
    run("%gpumem on")
    run("import torch\\nx = torch.randn(32 << 20, requires_grad=True)")
    run({cured!r})
    run("del y")
    assert not outlived(), outlived()
    run({keep!r})
    run("del y")
    [found] = outlived()
    assert found.holders[0].kind == {kind!r}, found
    assert (found.details.name, found.details.is_rebound) == ("y", False), found
    assert found.details.n_bytes >= 128 << 20, found
    assert {cure!r} in found.suggestions[0], found
""",
    )
