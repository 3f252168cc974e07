"""The simulated device, as a notebook uses it."""

from __future__ import annotations

import gc
import operator
import re
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from gpumem import sim

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20


@pytest.fixture(autouse=True)
def device() -> None:
    sim.use(total_bytes=1 << 30)


def allocated() -> int:
    return sim.memory_stats()["allocated_bytes"]


def leaf(n_mib: int = 2) -> sim.Tensor:
    return sim.tensor(n_mib * MIB, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "nbytes"),
    [
        (lambda a, b: a + b, 4 * MIB),
        (lambda a, b: b + a, 4 * MIB),
        (lambda a, b: a * b, 4 * MIB),
        (lambda a, b: a @ b, 2 * MIB),
        (lambda a, b: b @ a, 4 * MIB),
        (lambda a, _: a.sum(), 4),
        (lambda a, _: a * 2, 2 * MIB),
        (lambda a, _: 0.5 * a, 2 * MIB),
        (lambda a, _: 1 + a, 2 * MIB),
    ],
)
def test_a_result_has_the_size_of_its_operands(
    make: Callable[[sim.Tensor, sim.Tensor], sim.Tensor], nbytes: int
) -> None:
    assert make(sim.tensor(2 * MIB), sim.tensor(4 * MIB)).nbytes == nbytes


@pytest.mark.parametrize(("n_bytes", "held"), [(0, 512), (1, 512), (512, 512), (513, 1024)])
def test_the_allocator_rounds_up(n_bytes: int, held: int) -> None:
    kept = sim.tensor(n_bytes)
    assert kept.nbytes == n_bytes
    assert allocated() == held


@pytest.mark.parametrize(
    ("make", "n_bytes"),
    [
        # Without a leaf there is no graph: the result alone is kept.
        (lambda _, batch: batch.sum(), 512),
        (lambda _, batch: batch @ batch, 4 * MIB),
        # A graph keeps the leaf, and what `*` and `@` saved for the way back.
        (lambda leaf, _: leaf.sum(), 2 * MIB + 512),
        (lambda leaf, batch: (batch @ leaf).sum(), 6 * MIB + 512),
        (lambda leaf, batch: (leaf * batch).sum(), 6 * MIB + 512),
        # `+` saves no operand, and numbers are never saved.
        (lambda leaf, batch: (leaf + batch).sum(), 2 * MIB + 512),
        (lambda leaf, _: (leaf * 2).sum(), 2 * MIB + 512),
        # A chain keeps what its earlier links saved.
        (lambda leaf, batch: (batch @ leaf + 1).sum().sum(), 6 * MIB + 512),
        (lambda leaf, batch: (batch @ leaf).sum().detach(), 512),
        (lambda leaf, batch: (batch @ leaf).sum().item(), 0),
    ],
)
def test_what_a_result_keeps_alive(
    make: Callable[[sim.Tensor, sim.Tensor], object], n_bytes: int
) -> None:
    kept = make(leaf(), sim.tensor(4 * MIB))
    assert allocated() == n_bytes
    del kept
    assert allocated() == 0


def test_a_list_of_losses_leaks_and_a_list_of_numbers_does_not() -> None:
    weights = leaf()

    def loss() -> sim.Tensor:
        return (sim.tensor(4 * MIB) @ weights).sum()

    losses = [loss() for _ in range(10)]
    assert allocated() == 2 * MIB + 10 * (4 * MIB + 512)
    losses.clear()
    numbers = [loss().item() for _ in range(10)]
    assert (allocated(), len(numbers)) == (2 * MIB, 10)


def test_detach_shares_the_storage() -> None:
    original = leaf()
    detached = original.detach()
    assert not detached.requires_grad
    del original
    assert allocated() == 2 * MIB
    del detached
    assert allocated() == 0


def test_backward_frees_what_was_saved_and_leaves_gradients() -> None:
    weights = leaf()
    loss = (sim.tensor(4 * MIB) @ weights).sum()
    loss.backward()
    assert allocated() == 2 * 2 * MIB + 512
    assert weights.grad is not None
    assert weights.grad.nbytes == weights.nbytes
    with pytest.raises(RuntimeError, match="a second time: what `matmul` saved"):
        loss.backward()
    weights.grad = None
    assert allocated() == 2 * MIB + 512


def test_backward_that_finds_no_room_keeps_the_graph() -> None:
    weights = leaf(600)
    loss = (weights.sum() * sim.tensor(200 * MIB)).sum()
    for _ in range(2):
        with pytest.raises(sim.OutOfMemoryError):
            loss.backward()
    assert allocated() == 800 * MIB + 2 * 512
    assert weights.grad is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda tensor, _: tensor.item(), ValueError, "this tensor has 2 MiB"),
        (lambda tensor, _: tensor.backward(), ValueError, "this tensor has 2 MiB"),
        (lambda tensor, _: tensor.detach().sum().backward(), RuntimeError, "does not require grad"),
        (lambda tensor, _: tensor + "a", TypeError, "unsupported operand"),
        (lambda tensor, _: tensor @ 2, TypeError, "unsupported operand"),
        (lambda tensor, _: None * tensor, TypeError, "unsupported operand"),
        (lambda tensor, _: setattr(tensor, "grad", 1), AttributeError, "only be set to None"),
        (lambda _, sim: sim.tensor(-1), ValueError, "n_bytes must be from 0 to .*, not -1"),
        (lambda _, sim: sim.tensor(1 << 70), ValueError, f"n_bytes must be .*, not {1 << 70}"),
        (lambda _, sim: sim.tensor(1.5), TypeError, "float"),
        (lambda _, sim: sim.tensor("1"), TypeError, "str"),
        (lambda _, sim: sim.use(0), ValueError, "total_bytes must be at least 1, not 0"),
        (lambda _, sim: sim.use(-8), ValueError, "total_bytes must be from 0 to .*, not -8"),
        (lambda _, sim: sim.use(n_devices=0), ValueError, "n_devices must be .*, not 0"),
        (lambda _, sim: sim.use(n_devices=65), ValueError, "n_devices must be from 1 to 64"),
        (lambda _, sim: sim.tensor(1, device=1), ValueError, "device must be from 0 to 0, not 1"),
        (lambda _, sim: sim.tensor(1, device=-1), ValueError, "device must be .*, not -1"),
        (lambda _, sim: sim.tensor(1, device="cuda:0"), ValueError, 'device .*, not "cuda:0"'),
        (lambda tensor, _: tensor.to(1.5), TypeError, "int"),
    ],
)
def test_a_wrong_use_names_its_value(
    call: Callable[[Any, Any], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(leaf(), sim)


def test_no_grad_nests() -> None:
    weights = leaf()
    with sim.no_grad():
        with sim.no_grad():
            assert not (weights * 2).requires_grad
        assert not (weights * 2).requires_grad
    assert (weights * 2).requires_grad


def test_no_grad_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), sim.no_grad():
        raise KeyError
    assert leaf().sum().requires_grad


def test_no_grad_decorates() -> None:
    @sim.no_grad()
    def evaluate(weights: sim.Tensor, n_deeper: int) -> sim.Tensor:
        """Evaluate."""
        return evaluate(weights, n_deeper - 1) if n_deeper else weights * 2

    weights = leaf()
    assert evaluate.__doc__ == "Evaluate."
    assert not evaluate(weights, 3).requires_grad
    assert (weights * 2).requires_grad


def test_no_grad_is_per_thread() -> None:
    weights = leaf()
    requires_grad = []
    with sim.no_grad():
        thread = threading.Thread(target=lambda: requires_grad.append((weights * 2).requires_grad))
        thread.start()
        thread.join()
    assert requires_grad == [True]


def test_out_of_memory_has_the_message_of_pytorch() -> None:
    kept = sim.tensor(600 * MIB)
    with pytest.raises(sim.OutOfMemoryError) as raised:
        sim.tensor(500 * MIB)
    assert isinstance(raised.value, RuntimeError)
    assert re.search(
        r"out of memory\. Tried to allocate 500\.00 MiB\. GPU 0 has a total capacity of "
        r"1024\.00 MiB of which 424\.00 MiB is free\. .*this process has 600\.00 MiB memory in "
        r"use\. Of the allocated memory 600\.00 MiB is allocated by PyTorch, and 0 bytes is "
        r"reserved by PyTorch but unallocated\.",
        str(raised.value),
    )
    stats = sim.memory_stats()
    assert (stats["n_ooms"], stats["allocated_bytes"]) == (1, kept.nbytes)
    with pytest.raises(sim.OutOfMemoryError, match="Tried to allocate"):
        sim.tensor((1 << 63) - 1)


def test_the_cache_is_given_back_on_demand() -> None:
    sim.tensor(64 * MIB)
    stats = sim.memory_stats()
    assert (stats["allocated_bytes"], stats["reserved_bytes"]) == (0, 64 * MIB)
    assert (stats["peak_allocated_bytes"], stats["total_bytes"]) == (64 * MIB, 1 << 30)
    assert sim.empty_cache() == 64 * MIB
    assert sim.memory_stats()["reserved_bytes"] == 0
    sim.reset_peak_memory_stats()
    assert sim.memory_stats()["peak_allocated_bytes"] == 0


def test_a_new_device_is_empty_and_old_tensors_stay_on_theirs() -> None:
    old = sim.tensor(64 * MIB)
    sim.use(total_bytes=32 * MIB)
    assert allocated() == 0
    kept = old + 1
    assert (kept.nbytes, allocated()) == (64 * MIB, 0)
    del old, kept
    stats = sim.memory_stats()
    assert (stats["reserved_bytes"], stats["total_bytes"]) == (0, 32 * MIB)


def test_each_device_has_its_own_allocator() -> None:
    sim.use(total_bytes=1 << 30, n_devices=2)
    kept = sim.tensor(64 * MIB, device=1), sim.tensor(2 * MIB, device="sim:0")
    assert [tensor.device for tensor in kept] == ["sim:1", "sim:0"]
    assert [sim.memory_stats(n)["allocated_bytes"] for n in range(2)] == [2 * MIB, 64 * MIB]
    with pytest.raises(sim.OutOfMemoryError, match=r"GPU 1 has .* of which 960\.00 MiB is free"):
        sim.tensor(1000 * MIB, device=1)
    assert [sim.memory_stats(n)["n_ooms"] for n in range(2)] == [0, 1]
    del kept
    sim.reset_peak_memory_stats(1)
    assert [sim.memory_stats(n)["peak_allocated_bytes"] for n in range(2)] == [2 * MIB, 0]
    assert sim.empty_cache() == (64 + 20) * MIB
    sim.use()
    with pytest.raises(ValueError, match="from 0 to 0, not 1"):
        sim.memory_stats(1)


def test_a_result_is_on_the_device_of_its_operands() -> None:
    sim.use(total_bytes=1 << 30, n_devices=2)
    here, there = leaf(), sim.tensor(4 * MIB, requires_grad=True, device=1)
    assert (there @ there).sum().device == "sim:1"
    for combine in (operator.add, operator.mul, operator.matmul):
        with pytest.raises(RuntimeError, match="are on sim:0 and on sim:1"):
            combine(here, there)
    (there * 2).sum().backward()
    assert there.grad is not None
    assert there.grad.device == "sim:1"
    moved = here.to(1)
    assert (moved.device, moved.nbytes, moved.requires_grad) == ("sim:1", 2 * MIB, False)
    assert moved.to("sim:1") is moved


def test_a_long_chain_is_dropped_without_deep_recursion() -> None:
    n_links = 200_000
    loss = sim.tensor(4, requires_grad=True)
    for _ in range(n_links):
        loss = loss + 1
    # On a thread whose stack would not hold a frame per link.
    kept = [loss]
    del loss
    threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    assert allocated() == 0


def test_a_graph_is_invisible_to_the_garbage_collector() -> None:
    weights = leaf()
    loss = (sim.tensor(4 * MIB) @ weights).sum()
    assert gc.get_referents(loss) == [sim.Tensor]


def test_a_tensor_can_be_referred_to_weakly() -> None:
    tensor = sim.tensor(512)
    reference = weakref.ref(tensor)
    assert reference() is tensor
    del tensor
    assert reference() is None


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: sim.tensor(3 * MIB), "sim.tensor(3 MiB)"),
        (leaf, "sim.tensor(2 MiB, requires_grad=True)"),
        (lambda: leaf().sum(), "sim.tensor(4 B, grad_fn=sum)"),
        (lambda: sim.tensor(3 * MIB, device=1), "sim.tensor(3 MiB, device=1)"),
    ],
)
def test_repr(make: Callable[[], object], shown: str) -> None:
    sim.use(n_devices=2)
    assert repr(make()) == shown


def test_threads_share_the_device() -> None:
    kept: list[sim.Tensor] = []

    def work() -> None:
        kept.extend(sim.tensor(1024) + sim.tensor(512) for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert allocated() == 800 * 1024
    kept.clear()
    assert allocated() == 0
