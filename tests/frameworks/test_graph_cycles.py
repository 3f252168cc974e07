"""Tensors that their own graph keeps: neither a name nor Python's collector reaches them."""

from __future__ import annotations

from typing import Any

import gpumem
import pytest

from tests.support.in_process import forked_from

from .shell import run

HOOK = """
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    y = x.exp()
"""
GRADIENT = "y = x.detach().clone().requires_grad_()\n(y ** 3).sum().backward(create_graph=True)"


def outlived() -> list[Any]:
    found = gpumem.report().findings
    return [it for it in found if it.kind == "outlived" and it.withdrawn is None]


@pytest.mark.parametrize(
    ("keep", "kind", "cure", "cured"),
    [
        (HOOK, "hook_cycle", "t.detach()", HOOK.replace("lambda t: t,", "lambda t: t.detach(),")),
        (GRADIENT, "gradient_cycle", ".grad = None", f"{GRADIENT}\ny.grad = None"),
    ],
    ids=["hook", "gradient"],
)
@forked_from("torch")
def test_tensors_kept_by_their_graph_are_reported_after_del(
    keep: str, kind: str, cure: str, cured: str
) -> None:
    run("%gpumem on", "import torch\nx = torch.randn(32 << 20, requires_grad=True)")
    run(cured, "del y")
    assert not outlived()
    run(keep, "del y")
    [found] = outlived()
    assert found.holders[0].kind == kind
    assert (found.details.name, found.details.is_rebound) == ("y", False)
    assert found.details.n_bytes >= 128 << 20
    assert cure in found.suggestions[0]
