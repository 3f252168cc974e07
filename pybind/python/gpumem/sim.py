"""Simulated GPUs, for notebooks and tests on a machine without a GPU.

Tensors have a size but no numbers. Their effect on memory is real: they live in a
model of PyTorch's caching allocator (512-byte rounding, pools, segments that split
and merge, a limited capacity). A result that requires grad keeps the tensors alive
that its backward pass would need::

    from gpumem import sim

    weights = sim.tensor(64 << 20, requires_grad=True)
    losses = []
    for _ in range(10):
        loss = (sim.tensor(16 << 20) @ weights).sum()
        losses.append(loss)  # keeps every batch: .item() would not

The device is ``sim:0``. Without a call of :func:`use`, the first tensor creates one
of 8 GiB. There may be several, each with its own allocator::

    sim.use(8 << 30, n_devices=2)
    shard = sim.tensor(64 << 20, device=1)  # or "sim:1"
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import TYPE_CHECKING

from gpumem._gpumem import (
    HostTensor,
    OutOfMemoryError,
    Tensor,
    sim_empty_cache,
    sim_memory_stats,
    sim_reset_peak_memory_stats,
    sim_set_grad_enabled,
    sim_tensor,
    sim_use,
)

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "HostTensor",
    "OutOfMemoryError",
    "Tensor",
    "empty_cache",
    "memory_stats",
    "no_grad",
    "reset_peak_memory_stats",
    "tensor",
    "use",
]


def use(total_bytes: int = 8 << 30, *, n_devices: int = 1) -> None:
    """Create empty devices, ``sim:0`` and so on, and use them from now on.

    Each has ``total_bytes`` (bytes) and its own allocator. There are at most 64.

    Existing tensors stay on their old device, and so do results computed from them.
    The old devices' memory is no longer shown.
    """
    sim_use(total_bytes, n_devices)


def tensor(n_bytes: int, *, requires_grad: bool = False, device: int | str = 0) -> Tensor:
    """Allocate a tensor of ``n_bytes`` (bytes) on a device, such as ``1`` or ``"sim:1"``.

    Raises :class:`OutOfMemoryError` if the device has no room for it, even with an
    empty cache. Results are on the device of their operands, which must be the same;
    ``.to(device)`` returns a copy elsewhere, without the graph.
    """
    return sim_tensor(n_bytes, requires_grad=requires_grad, device=device)


def no_grad() -> _NoGrad:
    """Build no graphs in this thread, as a context manager or a decorator."""
    return _NoGrad()


def empty_cache() -> int:
    """Return unused segments to all devices; return the number of bytes freed."""
    return sim_empty_cache()


def memory_stats(device: int | str = 0) -> dict[str, int]:
    """Return the current counters of a device's allocator.

    Sizes, in bytes: ``allocated_bytes``, ``active_bytes``, ``reserved_bytes``,
    ``inactive_split_bytes``, ``largest_free_bytes``, ``peak_allocated_bytes``,
    ``peak_reserved_bytes``, ``total_bytes``. Counts: ``n_segments``,
    ``n_retries``, ``n_ooms``.
    """
    return sim_memory_stats(device)


def reset_peak_memory_stats(device: int | str = 0) -> None:
    """Set a device's peaks to the current levels."""
    sim_reset_peak_memory_stats(device)


class _NoGrad(ContextDecorator):
    """Turns graphs off, and at the end restores the previous setting."""

    def __init__(self) -> None:
        self._before: list[bool] = []

    def _recreate_cm(self) -> _NoGrad:
        # A decorated function may run in two threads: each call needs its own instance.
        return _NoGrad()

    def __enter__(self) -> None:
        self._before.append(sim_set_grad_enabled(enabled=False))

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sim_set_grad_enabled(enabled=self._before.pop())
