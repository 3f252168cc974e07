"""What gpumem assumes of PyTorch, beyond its documentation. One test is one assumption.

Tests whose names have `cuda` in them need a card, which may be played.
"""

from __future__ import annotations

import gc
import inspect
import pickle
import sys
import types
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

torch: Any = pytest.importorskip("torch")

READ_BY_C = (types.GetSetDescriptorType, types.MemberDescriptorType)
CALLED_BY_C = (types.BuiltinFunctionType, types.MethodDescriptorType)
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def attribute(owner: type, name: str) -> Any:
    """Return what stands under a name in a class or the nearest of its bases."""
    return next(vars(base)[name] for base in owner.__mro__ if name in vars(base))


def not_read_by_c(owner: type, *names: str) -> list[str]:
    return [name for name in names if not isinstance(attribute(owner, name), READ_BY_C)]


def is_called_by_c(function: object) -> bool:
    """Whether `Method` of `objects/still` accepts it: no function of Python's, and no dict."""
    is_slot = type(attribute(type(function), "__call__")) is types.WrapperDescriptorType
    is_of_python = isinstance(function, (types.FunctionType, types.MethodType, type))
    return is_slot and not is_of_python and not hasattr(function, "__dict__")


def base() -> Any:
    """Return the class of all tensors that is written in C++."""
    return getattr(torch._C, "TensorBase", None) or torch._C._TensorBase


# Tensors and storages


def test_all_tensors_come_from_one_class_of_c() -> None:
    """`objects/adapters/torch/access.rs` finds it as `TensorBase`, before 2.1 `_TensorBase`."""
    assert hasattr(torch._C, "TensorBase") == (VERSION >= (2, 1))
    assert issubclass(torch.Tensor, base())
    assert base().__qualname__ in {"TensorBase", "_TensorBase"}


def test_c_reads_attributes_of_tensors() -> None:
    """`objects/adapters/torch/access.rs` reads them past the tensor's class."""
    names = "is_leaf retains_grad grad grad_fn _backward_hooks _post_accumulate_grad_hooks"
    names += " requires_grad shape dtype device layout"
    assert not_read_by_c(base(), *names.split()) == []


def test_c_is_behind_these_methods_of_tensors() -> None:
    """`objects/adapters/torch/access.rs` calls them in a copy of the process."""
    names = "element_size untyped_storage _indices _values crow_indices col_indices"
    names += " ccol_indices row_indices values"
    assert [it for it in names.split() if not is_called_by_c(attribute(base(), it))] == []


def test_c_gives_device_size_and_address_of_a_storage() -> None:
    """`objects/adapters/torch/access.rs` reads them of what `untyped_storage` returns."""
    storage = torch._C.StorageBase
    assert not_read_by_c(storage, "device", "_cdata") == []
    for name in ("nbytes", "data_ptr"):
        assert is_called_by_c(attribute(storage, name))
    tensor = torch.zeros(3)
    found = base().untyped_storage(tensor[1:])
    assert isinstance(found, storage)
    assert (found.nbytes(), found.data_ptr()) == (12, tensor.data_ptr())
    assert found._cdata == tensor.untyped_storage()._cdata


def test_a_tensor_without_memory_says_so() -> None:
    """`objects/adapters/torch/access.rs` counts nothing on `meta`."""
    meta = torch.empty(3, device="meta")
    assert str(meta.untyped_storage().device) == "meta"
    assert str(torch.zeros(3).device) == "cpu"


def test_a_sparse_tensor_has_no_storage_but_parts() -> None:
    """`objects/adapters/torch/access.rs` counts its parts, by the name of its layout."""
    sparse = torch.eye(3).to_sparse()
    with pytest.raises((RuntimeError, NotImplementedError)):
        sparse.untyped_storage()
    assert str(sparse.layout) == "torch.sparse_coo"
    assert sparse._indices().untyped_storage().nbytes() > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compressed = torch.eye(3).to_sparse_csr()
    assert str(compressed.layout) == "torch.sparse_csr"
    assert compressed.crow_indices().untyped_storage().nbytes() > 0


def test_c_writes_dtypes_devices_and_layouts() -> None:
    """`objects/still` asks `str()`, if that is C code."""
    for value, words in (
        (torch.float32, "torch.float32"),
        (torch.device("cpu"), "cpu"),
        (torch.strided, "torch.strided"),
    ):
        for name in ("__str__", "__repr__"):
            assert type(attribute(type(value), name)) is types.WrapperDescriptorType
        assert str(value) == words


def test_one_dtype_is_one_object() -> None:
    """`objects/adapters/torch/access.rs` remembers a dtype's name by its address."""
    assert torch.zeros(3).dtype is torch.float32


def test_a_shape_is_a_tuple_of_whole_numbers() -> None:
    """`objects/adapters/torch/access.rs` reads it as one."""
    shape = torch.zeros(3, 5).shape
    assert isinstance(shape, tuple)
    assert [type(length) for length in shape] == [int, int]


def test_a_dispatch_key_marks_tensors_of_python_classes() -> None:
    """`objects/adapters/torch/access.rs` does not read them: their class would be entered."""
    assert is_called_by_c(torch._C._dispatch_keys)
    assert is_called_by_c(attribute(torch._C.DispatchKeySet, "has"))
    python = torch._C.DispatchKey.Python

    class Wrapper(torch.Tensor):  # type: ignore[misc, unused-ignore]
        @staticmethod
        def __new__(cls: Any, inside: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inside.shape)

        @classmethod
        def __torch_dispatch__(cls, *_: Any) -> Any:
            raise AssertionError

    assert torch._C._dispatch_keys(Wrapper(torch.zeros(3))).has(python)
    assert not torch._C._dispatch_keys(torch.zeros(3)).has(python)


def test_two_guards_keep_python_out_of_torch() -> None:
    """`objects/adapters/torch/access.rs` enters them around each look."""
    heard = []

    class Own(torch.Tensor):  # type: ignore[misc, unused-ignore]
        @classmethod
        def __torch_function__(cls, function: Any, *_: Any) -> Any:
            heard.append(function)

    tensor = torch.ones(3).as_subclass(Own)
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        assert tensor.shape == (3,)
    assert heard == []
    _ = tensor.shape
    assert len(heard) == 1


def test_gradients_are_switched_by_a_function_of_c() -> None:
    """`objects/adapters/torch/access.rs` switches them off, and back as they were."""
    was_enabled = torch._C.is_grad_enabled()
    torch._C._set_grad_enabled(False)  # noqa: FBT003 (as torch has it)
    assert not torch.is_grad_enabled()
    torch._C._set_grad_enabled(was_enabled)
    assert torch.is_grad_enabled() == was_enabled


def test_a_gradient_that_cannot_be_is_warned_of() -> None:
    """`objects/adapters/torch/access.rs` asks leaves and what retains its gradient alone."""
    tensor = torch.ones(3, requires_grad=True) * 2
    assert (tensor.is_leaf, tensor.retains_grad) == (False, False)
    with pytest.warns(UserWarning, match="not a leaf"):
        _ = tensor.grad


def test_classes_of_tensors_are_found_in_these_modules() -> None:
    """`objects/adapters/torch/access.rs` looks for them without importing."""
    modules = sys.modules
    assert vars(modules["torch"])["Tensor"] is torch.Tensor
    assert vars(modules["torch.nn.parameter"])["Parameter"] is torch.nn.Parameter
    assert isinstance(modules["torch._C"], types.ModuleType)
    assert torch.Tensor.__module__ == "torch"


# The autograd graph


def loss() -> Any:
    weight = torch.ones(3, requires_grad=True)
    return (weight * 2).exp().sum()


def node_classes() -> list[type]:
    found, nodes = [], [loss().grad_fn]
    while nodes:
        node = nodes.pop()
        found.append(type(node))
        nodes += [it for it, _ in node.next_functions if it is not None]
    return found


def test_classes_of_graph_nodes_have_these_names() -> None:
    """`objects/adapters/torch/graph.rs` claims them by name: those of operations have no module."""
    found = {(it.__module__, it.__qualname__) for it in node_classes()}
    operations = {(module, name) for module, name in found if "Backward" in name}
    assert {module for module, _ in operations} == {"builtins"}
    assert found - operations == {("builtins", "AccumulateGrad")}
    assert all(name.endswith("Backward0") for _, name in operations)


def test_c_reads_what_a_graph_node_leads_to() -> None:
    """`objects/adapters/torch/graph.rs` walks the graph, of which the collector knows nothing."""
    for class_ in node_classes():
        assert not_read_by_c(class_, "next_functions") == []
    accumulates = node_classes()[-1]
    assert not_read_by_c(accumulates, "variable") == []


def test_next_functions_are_pairs_of_node_and_number() -> None:
    """`objects/adapters/torch/graph.rs` takes the first of each."""
    node = loss().grad_fn
    assert type(node.next_functions) is tuple
    ((inner, number),) = node.next_functions
    assert (type(inner).__name__, number) == ("ExpBackward0", 0)


def test_a_node_keeps_tensors_under_raw_names() -> None:
    """`objects/adapters/torch/graph.rs` reads `_raw_saved_*`, which unpacks nothing."""
    node = loss().grad_fn.next_functions[0][0]
    names = [name for name in vars(type(node)) if name.startswith("_raw_saved_")]
    assert names == ["_raw_saved_result"]
    assert not_read_by_c(type(node), *names) == []
    kept = type(node._raw_saved_result)
    assert (kept.__module__, kept.__qualname__) == ("torch._C._autograd", "SavedTensor")


def test_a_saved_tensor_shows_what_was_packed_since_2_9() -> None:
    """`objects/adapters/torch/graph.rs` calls C code behind `data` and `unpack_hook`."""
    saved = torch._C._autograd.SavedTensor
    has = [name for name in ("data", "unpack_hook") if name in vars(saved)]
    if VERSION < (2, 9):
        assert has == []
        return
    assert has == ["data", "unpack_hook"]
    assert [name for name in has if not is_called_by_c(vars(saved)[name].fget)] == []


@pytest.mark.skipif(VERSION < (2, 9), reason="a saved tensor shows nothing")
def test_to_read_a_saved_tensor_runs_no_hook() -> None:
    """`objects/adapters/torch/graph.rs` reads packed tensors of a checkpoint."""
    heard: list[str] = []
    packed = [3]

    def unpack(_: object) -> Any:
        heard.append("unpacked")

    with torch.autograd.graph.saved_tensors_hooks(lambda _: packed, unpack):
        node = torch.ones(3, requires_grad=True).exp().grad_fn
    raw = node._raw_saved_result
    assert raw.data is packed
    assert raw.unpack_hook is unpack
    assert heard == []


@pytest.mark.skipif(VERSION < (2, 9), reason="a saved tensor shows nothing")
def test_after_backward_a_saved_tensor_is_empty() -> None:
    """`objects/adapters/torch/graph.rs` tells nothing of what was freed."""
    made = torch.ones(3, requires_grad=True).exp()
    assert made.grad_fn._raw_saved_result.data is not None
    made.sum().backward()
    assert made.grad_fn._raw_saved_result.data is None


def test_a_function_of_ones_own_has_this_class() -> None:
    """`objects/adapters/torch/graph.rs` knows the nodes of `torch.autograd.Function` by it."""

    class Own(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
        @staticmethod
        def forward(ctx: Any, tensor: Any) -> Any:
            ctx.save_for_backward(tensor)
            return tensor * 2

    made = Own.apply(torch.ones(3, requires_grad=True))
    node = made.grad_fn
    named = [(it.__module__, it.__qualname__) for it in type(node).__mro__]
    assert ("torch.autograd.function", "BackwardCFunction") in named
    assert not_read_by_c(type(node), "next_functions", "_raw_saved_tensors") == []
    assert len(node._raw_saved_tensors) == 1


def test_a_view_that_was_changed_hides_a_node_since_2_15() -> None:
    """`objects/adapters/torch/graph.rs` reads `_wrapped_node` of `CopySlices`."""
    tensor = torch.ones(3, requires_grad=True) * 2
    tensor[0:1].exp_()
    node = tensor.grad_fn
    assert type(node).__qualname__ == "CopySlices"
    has = any("_wrapped_node" in vars(it) for it in type(node).__mro__)
    assert has == (VERSION >= (2, 15))
    if has:
        assert not_read_by_c(type(node), "_wrapped_node") == []
        assert "Backward" in type(node._wrapped_node).__qualname__


def test_hooks_of_a_tensor_are_in_dicts() -> None:
    """`objects/adapters/torch/mod.rs` follows them to what they close over."""

    def hook(_: Any) -> None: ...

    leaf = torch.ones(3, requires_grad=True)
    leaf.register_hook(hook)
    leaf.register_post_accumulate_grad_hook(hook)
    assert list(leaf._backward_hooks.values()) == [hook]
    assert list(leaf._post_accumulate_grad_hooks.values()) == [hook]


# Modules and optimizers


def test_a_module_keeps_its_parts_in_three_dicts() -> None:
    """`objects/adapters/torch/modules.rs` names parameters and buffers by them."""
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    own, inner = vars(module), vars(module[0])
    assert own["_modules"] == {"0": module[0]}
    assert set(inner["_parameters"]) == {"weight", "bias"}
    assert "running_mean" in inner["_buffers"]
    class_ = torch.nn.Module
    assert (class_.__module__, class_.__qualname__) == ("torch.nn.modules.module", "Module")
    assert vars(sys.modules["torch.nn.modules.module"])["Module"] is class_


def test_a_module_is_called_by_its_forward() -> None:
    """`recording/trace/modules.rs` names the class whose `forward` a frame is in."""
    forward = vars(torch.nn.Linear)["forward"]
    assert isinstance(forward, types.FunctionType)
    assert forward.__code__.co_name == "forward"


def test_an_optimizer_keeps_its_state_as_attributes() -> None:
    """`objects/adapters/torch/modules.rs` and `python/footprint.rs` read it past its class."""
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(3)
    optimizer.step()
    own = vars(optimizer)
    assert isinstance(own["defaults"], dict)
    assert type(own["param_groups"]) is list
    assert own["param_groups"][0]["params"] == [parameter]
    assert {"exp_avg", "exp_avg_sq"} <= set(own["state"][parameter])
    class_ = torch.optim.Optimizer
    assert (class_.__module__, class_.__qualname__) == ("torch.optim.optimizer", "Optimizer")


def test_options_of_optimizers_have_these_names() -> None:
    """`python/footprint.rs` computes the state that an optimizer will have."""
    parameter = torch.nn.Parameter(torch.ones(3))
    for optimizer, names in (
        (torch.optim.SGD, {"momentum", "fused"}),
        (torch.optim.Adam, {"amsgrad", "fused", "capturable"}),
        (torch.optim.RMSprop, {"centered", "momentum", "capturable"}),
        (torch.optim.LBFGS, {"history_size"}),
    ):
        assert names <= set(optimizer([parameter]).param_groups[0])


def test_compiled_code_lives_in_these_packages() -> None:
    """`objects/walk/rest.rs` tells what `torch.compile` keeps by the names of its modules."""
    folder = Path(torch.__file__).parent
    places = ("_dynamo", "_functorch", "_inductor", "_inductor/cudagraph_trees.py")
    assert [it for it in places if not (folder / it).exists()] == []


# Processes


def test_a_loader_worker_is_recognised_by_its_arguments() -> None:
    """`gpumem/_processes.py` reads `worker_id` before the worker has begun."""
    from torch.utils.data._utils import worker  # noqa: PLC0415 (the module that is looked at)

    loop = worker._worker_loop
    assert loop.__module__ == "torch.utils.data._utils.worker"
    assert "worker_id" in inspect.signature(loop).parameters
    assert torch.utils.data.get_worker_info() is None


def test_a_spawned_process_is_recognised_by_its_arguments() -> None:
    """`gpumem/_processes.py` reads `i`, the rank."""
    wrapped = sys.modules["torch.multiprocessing.spawn"]._wrap
    assert wrapped.__module__ == "torch.multiprocessing.spawn"
    assert "i" in inspect.signature(wrapped).parameters


# Devices


def test_a_backend_says_if_it_has_started() -> None:
    """`machine/sources/torch/backend.rs` asks `is_initialized` first, which starts nothing."""
    for name in ("cuda", "xpu", "mtia"):
        backend = getattr(torch, name, None)
        if backend is not None:
            started = backend.is_initialized()
            assert type(started) is bool
            assert backend.is_initialized() == started


def test_an_extensions_backend_has_a_name_of_its_own() -> None:
    """`machine/sources/torch.rs` takes any other name for an extension's."""
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"


def test_metal_keeps_whether_it_is_available() -> None:
    """`machine/sources/torch/metal.rs` takes a kept answer for a sign that Metal is used."""
    assert hasattr(torch.mps, "current_allocated_memory")
    assert hasattr(torch.mps, "driver_allocated_memory")
    assert hasattr(torch.mps, "recommended_max_memory")
    assert hasattr(torch.backends.mps.is_available, "cache_info")


# The CUDA allocator


@pytest.fixture
def cuda() -> Iterator[Any]:
    """Return `torch.cuda`, started, with memory in use on its first card."""
    if not torch.cuda.is_available():
        pytest.skip("there is no card, nor a played one")
    kept = torch.empty(4 << 20, dtype=torch.uint8, device="cuda:0")
    yield torch.cuda
    del kept
    gc.collect()
    torch.cuda.empty_cache()


def test_functions_of_cuda_have_these_names() -> None:
    """`machine/sources/torch/backend.rs` and `recording` look for them in `torch._C`."""
    if torch.version.cuda is None:
        pytest.skip("a torch without CUDA")
    names = "memoryStats hostMemoryStats getMemoryFraction getDevice hasPrimaryContext"
    names += " attach_out_of_memory_observer isHistoryEnabled memorySnapshot"
    found = [name for name in names.split() if hasattr(torch._C, f"_cuda_{name}")]
    assert found == names.split()
    # `gpumem/_history.py` watches the code of the second.
    for name in ("_snapshot", "_record_memory_history", "memory_snapshot"):
        assert isinstance(getattr(torch.cuda.memory, name), types.FunctionType)


def test_cuda_counts_by_kind_by_pool_and_by_figure(cuda: Any) -> None:
    """`machine/sources/torch/stats.rs` reads levels and peaks by these keys."""
    stats = torch._C._cuda_memoryStats(0)
    kinds = "allocated_bytes requested_bytes active_bytes reserved_bytes inactive_split_bytes"
    for kind in (*kinds.split(), "allocation"):
        assert {"current", "peak", "allocated", "freed"} <= set(stats[kind]["all"])
    assert stats["allocated_bytes"]["all"]["current"] >= 4 << 20
    assert {"num_alloc_retries", "num_ooms"} <= set(stats)
    assert cuda.is_initialized()


def test_cuda_counts_pinned_memory_without_pools(cuda: Any) -> None:
    """`machine/sources/torch/backend.rs` reads it; the names of its figures changed in 2.10."""
    assert cuda.is_initialized()
    stats = torch._C._cuda_hostMemoryStats()
    assert ("active_bytes" in stats) == (VERSION >= (2, 10))
    assert ("reserved_bytes" in stats) == (VERSION < (2, 10))
    assert "current" in stats["allocated_bytes"]


def test_a_reset_of_cudas_peaks_lets_them_all_fall(cuda: Any) -> None:
    """`machine/sources/torch/stats.rs` notices a reset of the user's by any peak."""
    more = torch.empty(40 << 20, dtype=torch.uint8, device="cuda:0")
    before = torch._C._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"]
    del more
    cuda.reset_peak_memory_stats(0)
    stats = torch._C._cuda_memoryStats(0)["allocated_bytes"]["all"]
    assert stats["peak"] == stats["current"] < before


def test_cuda_names_its_allocator(cuda: Any) -> None:
    """`machine/sources/torch/backend.rs` knows `native`, and that others count less."""
    assert cuda.get_allocator_backend() == "native"


def test_cuda_gives_properties_and_fraction(cuda: Any) -> None:
    """`machine/sources/torch/backend.rs` names a device by them, and knows its limit."""
    properties = cuda.get_device_properties(0)
    assert properties.total_memory > 0
    assert len(str(properties.uuid)) == 36
    assert 0 < torch._C._cuda_getMemoryFraction(0) <= 1
    assert torch._C._cuda_getDevice() == 0
    assert torch._C._cuda_hasPrimaryContext(0) is True


def test_cuda_reports_out_of_memory_by_four_numbers(cuda: Any) -> None:
    """`recording/oom/observer.rs` reads device, wanted, total and free bytes."""
    heard: list[Any] = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: heard.append(numbers))
    wanted = cuda.get_device_properties(0).total_memory * 2
    with pytest.raises(
        torch.OutOfMemoryError, match=r"out of memory\. Tried to allocate"
    ) as raised:
        torch.empty(wanted, dtype=torch.uint8, device="cuda:0")
    assert raised.type.__name__ == "OutOfMemoryError"
    assert raised.type.__module__ in {"torch", "torch.cuda"}
    ((device, alloc_size, total, free),) = heard
    assert (device, alloc_size) == (0, wanted)
    assert total >= free > 0


def test_cudas_snapshot_has_these_keys(cuda: Any) -> None:
    """`recording/trace/snapshot.rs` and `recording/named_snapshot` read them."""
    snapshot = cuda.memory._snapshot()
    assert {"segments", "device_traces", "allocator_settings"} <= set(snapshot)
    assert type(snapshot["external_annotations"]) is list
    segment = next(it for it in snapshot["segments"] if it["allocated_size"] >= 4 << 20)
    keys = "device address total_size allocated_size active_size stream segment_type"
    assert {*keys.split(), "segment_pool_id", "blocks"} <= set(segment)
    block = next(it for it in segment["blocks"] if it["state"] == "active_allocated")
    assert {"address", "size", "requested_size", "frames"} <= set(block)
    assert {it["state"] for it in segment["blocks"]} <= {"active_allocated", "inactive"}
    pickle.dumps(snapshot)


def test_cudas_settings_have_these_names(cuda: Any) -> None:
    """`recording/trace/snapshot.rs` knows by them how blocks are rounded."""
    settings = cuda.memory._snapshot()["allocator_settings"]
    assert {"roundup_power2_divisions", "expandable_segments", "max_split_size"} <= set(settings)


def test_cuda_gives_segments_without_history(cuda: Any) -> None:
    """`machine/sources/torch/segments.rs` asks for them so, and does without before."""
    has = "include_traces" in inspect.signature(cuda.memory.memory_snapshot).parameters
    segments = cuda.memory.memory_snapshot(**({"include_traces": False} if has else {}))
    assert {it["segment_type"] for it in segments} <= {"small", "large"}
    assert (0, 0) in {it["segment_pool_id"] for it in segments}


def test_cudas_history_notes_these_actions(cuda: Any) -> None:
    """`recording/trace/torch.rs` records it so, and `recording/trace/snapshot.rs` reads it."""
    memory = cuda.memory
    assert torch._C._cuda_isHistoryEnabled() is False
    options = {"context": "alloc", "stacks": "python", "max_entries": 1000}
    memory._record_memory_history("all", **options)
    try:
        assert torch._C._cuda_isHistoryEnabled() is True
        with torch.autograd.profiler.record_function("mine"):
            made = torch.empty(64 << 20, dtype=torch.uint8, device="cuda:0")
        del made
        snapshot = memory._snapshot()
    finally:
        memory._record_memory_history(None)
    assert torch._C._cuda_isHistoryEnabled() is False
    events = snapshot["device_traces"][0]
    actions = [event["action"] for event in events]
    expected = ["segment_alloc", "alloc", "free_requested", "free_completed"]
    assert [it for it in expected if it not in actions] == []
    allocated = next(event for event in events if event["action"] == "alloc")
    assert {"addr", "size", "time_us", "frames"} <= set(allocated)
    frame = allocated["frames"][0]
    assert (frame["filename"], frame["name"]) == (
        __file__,
        "test_cudas_history_notes_these_actions",
    )
    annotations = snapshot["external_annotations"]
    mine = [(it["stage"], type(it["time_us"])) for it in annotations if it["name"] == "mine"]
    assert mine == [("START", int), ("END", int)]


def test_cuda_pools_are_identified_by_two_numbers(cuda: Any) -> None:
    """`objects/adapters/torch/pools.rs` reads them of a graph and of a pool of the user's."""
    graph, pool = torch._C._CUDAGraph, torch._C._MemPool
    assert (graph.__module__, graph.__qualname__) == ("torch._C", "_CUDAGraph")
    assert (pool.__module__, pool.__qualname__) == ("torch._C", "_MemPool")
    numbers = cuda.MemPool().id
    assert [type(number) for number in numbers] == [int, int]
    with pytest.raises(RuntimeError):
        cuda.CUDAGraph().pool()


def test_cuda_gives_one_pool_without_history(cuda: Any) -> None:
    """`objects/adapters/torch/pools.rs` asks for what is free in it."""
    first, second = cuda.MemPool().id
    try:
        snapshot = torch._C._cuda_memorySnapshot((first, second, False))
    except (TypeError, RuntimeError):
        snapshot = torch._C._cuda_memorySnapshot((first, second))
    assert snapshot["segments"] == []
