"""What PyTorch's objects hold, and that looking at them runs nothing."""

from __future__ import annotations

import gc
import os
import sys
import types
import weakref
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from .live import look

N = 1 << 18
SIZE = 4 * N


def ones(*, requires_grad: bool = False) -> Any:
    return torch.ones(N, requires_grad=requires_grad)


def test_views_and_aliases_share_their_storage() -> None:
    tensor = ones()
    found = look(tensor=tensor, head=tensor[:10], other=tensor.view(2, -1), same=tensor.detach())
    assert found.n_bytes == {"host": SIZE}


def test_a_view_keeps_all_of_its_storage() -> None:
    assert look(head=ones()[:10]).n_bytes == {"host": SIZE}


def test_what_is_nowhere_has_no_bytes() -> None:
    assert look(meta=torch.ones(N, device="meta"), empty=torch.ones(0)).n_bytes == {}


def test_memory_shared_with_numpy_counts_once() -> None:
    import numpy as np  # noqa: PLC0415 (comes with torch)

    array = np.ones(N, np.float32)
    assert look(a=torch.from_numpy(array), b=torch.from_numpy(array)).n_bytes == {"host": SIZE}


def test_a_loss_keeps_what_its_graph_saved() -> None:
    weights = ones(requires_grad=True)
    found = look(losses=[(ones() * weights).sum()])
    assert found.n_bytes == {"host": 2 * SIZE + 4}
    assert {"[0]", ".grad_fn", ".next_functions[0][0]", "._saved_self", ".variable"} <= found.steps


def test_after_backward_the_graph_keeps_nothing() -> None:
    weights = ones(requires_grad=True)
    loss = (ones() * weights).sum()
    loss.backward()
    assert look(loss=loss).by_category() == {"tensor": 4, "parameter": SIZE, "gradient": SIZE}


def test_each_tensor_has_its_category() -> None:
    model = torch.nn.Linear(100, 100, bias=False)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 100)).sum().backward()
    optimizer.step()
    found = look(model=model, optimizer=optimizer)
    assert found.by_category() == {
        "parameter": 40_000,
        "gradient": 40_000,
        "optimizer_state": 80_004,
    }
    assert {".weight", ".grad", ".state[…]['exp_avg']"} <= found.steps


# torch warns once in a process.
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_hold_their_parts() -> None:
    dense = torch.eye(100)
    assert look(it=dense.to_sparse()).n_bytes == {"host": 100 * (2 * 8 + 4)}
    rows = dense.to_sparse_csr()
    # The indices of columns are a view of those that it was made from.
    assert look(it=rows).n_bytes == {"host": 101 * 8 + 100 * (2 * 8 + 4)}


def test_a_nested_tensor_holds_its_values() -> None:
    parts = [torch.ones(N), torch.ones(3 * N)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    assert look(it=nested).n_bytes["host"] >= 4 * SIZE


def test_hooks_lead_to_what_they_close_over() -> None:
    weights, kept = torch.ones(1, requires_grad=True), ones()
    weights.register_hook(lambda grad: grad + kept[0])
    assert look(weights=weights).n_bytes == {"host": SIZE + 4}


def test_the_state_of_a_function_of_ones_own_is_found() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any) -> Any:
            ctx.save_for_backward(tensor + 1)
            ctx.also = tensor + 2
            return tensor.sum()

        @staticmethod
        def backward(_: Any, grad: Any) -> Any:
            return grad

    found = look(result=Double.apply(ones(requires_grad=True)))
    assert found.n_bytes == {"host": 3 * SIZE + 4}
    assert {"._saved_tensors[0]", ".also"} <= found.steps


def test_a_checkpoint_is_not_computed_again() -> None:
    calls = []

    def forward(tensor: Any) -> Any:
        calls.append(1)
        return (tensor * tensor).exp()

    tensor = ones(requires_grad=True)
    for is_reentrant in (True, False):
        result = checkpoint(forward, tensor * 2, use_reentrant=is_reentrant)
        n_calls = len(calls)
        # Two are kept: the result and the input of what would be computed again.
        assert look(result=result).n_bytes["host"] == pytest.approx(3 * SIZE, rel=0.01)
        assert len(calls) == n_calls


def test_a_hook_that_unpacks_is_not_called() -> None:
    def unpack(_: Any) -> Any:
        raise AssertionError

    tensor = ones(requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda it: ("packed", it.clone()), unpack):
        result = tensor.exp()
    assert look(result=result).n_bytes == {"host": 3 * SIZE}


class Counting(torch.Tensor):
    """A subclass that counts calls of its code."""

    n_asked = 0

    @classmethod
    def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
        Counting.n_asked += 1
        return super().__torch_function__(*args, **kwargs)

    @property
    def shape(self) -> Any:
        Counting.n_asked += 1
        return super().shape

    def __getattr__(self, name: str) -> Any:
        Counting.n_asked += 1
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        Counting.n_asked += 1
        return False

    __hash__ = torch.Tensor.__hash__


class Wrapper(torch.Tensor):
    """A tensor that is only a shell around another, as quantised ones are."""

    n_dispatched = 0

    @staticmethod
    def __new__(cls: Any, inner: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, dispatch_device=True
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, *_: Any) -> Any:
        Wrapper.n_dispatched += 1
        raise AssertionError


def test_no_code_of_a_tensor_subclass_runs() -> None:
    tensor = ones().as_subclass(Counting)
    tensor.extra = ones()
    Counting.n_asked = 0
    assert look(tensor=tensor).n_bytes == {"host": 2 * SIZE}
    assert Counting.n_asked == 0


def test_a_wrapper_is_not_entered_and_what_it_wraps_is_found() -> None:
    assert look(tensor=Wrapper(ones())).n_bytes == {"host": SIZE}
    assert Wrapper.n_dispatched == 0


def test_modes_are_not_entered_and_are_there_again_afterwards() -> None:
    n_entered = 0

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            nonlocal n_entered
            n_entered += 1
            return func(*args, **(kwargs or {}))

    tensor = torch.eye(10).to_sparse()
    with Mode():
        look(tensor=tensor)
        assert n_entered == 0
        torch.ones(1)
        assert n_entered == 1
        assert torch.is_grad_enabled()


def test_nothing_is_kept_alive() -> None:
    tensor = ones(requires_grad=True)
    result = (tensor * 2).exp()
    alive = weakref.ref(result)
    node = weakref.ref(tensor)
    for _ in range(2):
        look(result=result)
    del tensor, result
    assert alive() is None
    assert node() is None


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no copy of the process can be made here")
def test_a_deep_graph_is_walked_without_recursion() -> None:
    total = torch.ones(1, requires_grad=True)
    for _ in range(50_000):
        total = -total
    # In a copy, as looks are: from torch 2.13 on the walk leaves wrappers behind, and a graph
    # that has many of them overflows the stack of whoever frees it.
    pid = os.fork()
    if pid == 0:
        os._exit(0 if look(total=total).n_bytes == {"host": 8} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_key_value_cache_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.ModuleType("transformers.cache_utils")
    monkeypatch.setitem(sys.modules, library.__name__, library)

    class DynamicLayer:
        def __init__(self) -> None:
            self.keys = ones()
            self.values = ones()

    class DynamicCache:
        def __init__(self) -> None:
            self.layers = [DynamicLayer(), DynamicLayer()]

    DynamicLayer.__module__ = DynamicCache.__module__ = library.__name__
    found = look(past_key_values=DynamicCache())
    assert found.by_category() == {"kv_cache": 4 * SIZE}
    assert {".layers", "[0]", ".keys"} <= found.steps


def test_a_paged_state_is_of_its_device() -> None:
    state = ones()
    state.is_paged, state.page_deviceid = True, 1
    assert look(state=state).n_bytes == {"cuda:1 managed": SIZE}


@pytest.mark.filterwarnings("ignore:Guards may run slower")  # torch, of Python 3.13.0
def test_a_compiled_model_leads_to_its_parameters() -> None:
    model = torch.nn.Linear(100, 100, bias=False)
    compiled = torch.compile(model, backend="eager")
    result = compiled(torch.ones(2, 100)).sum()
    assert look(compiled=compiled).n_bytes["host"] == 40_000
    assert look(result=result).by_category()["parameter"] == 40_000
    torch._dynamo.reset()
    gc.collect()
