"""A simulated GPU, for notebooks and tests on a machine that has none.

Tensors have a size and no numbers. What they do to memory is real: they live in
a model of PyTorch's caching allocator (512-byte rounding, pools, segments that
split and merge, a capacity that runs out), and a result that requires grad keeps
alive what its backward pass would need::

    from gpumem import sim

    weights = sim.tensor(64 << 20, requires_grad=True)
    losses = []
    for _ in range(10):
        loss = (sim.tensor(16 << 20) @ weights).sum()
        losses.append(loss)  # keeps every batch: .item() would not

The device is ``sim:0``. The first tensor makes one of 8 GiB where :func:`use`
has made none.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import TYPE_CHECKING

from gpumem._gpumem import (
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
    "OutOfMemoryError",
    "Tensor",
    "empty_cache",
    "memory_stats",
    "no_grad",
    "reset_peak_memory_stats",
    "tensor",
    "use",
]


def use(total_bytes: int = 8 << 30) -> None:
    """Make an empty device of ``total_bytes`` and use it from here on.

    Tensors that exist already keep the device they were made on: their memory is
    no longer shown, and what is computed from them stays there.
    """
    sim_use(total_bytes)


def tensor(n_bytes: int, *, requires_grad: bool = False) -> Tensor:
    """Allocate a tensor of ``n_bytes``.

    Raises :class:`OutOfMemoryError` where the device has no room for it, even
    after its cache was emptied.
    """
    return sim_tensor(n_bytes, requires_grad=requires_grad)


def no_grad() -> _NoGrad:
    """Build no graphs, in this thread: a context manager and a decorator."""
    return _NoGrad()


def empty_cache() -> int:
    """Give unused segments back to the device; return how many bytes that was."""
    return sim_empty_cache()


def memory_stats() -> dict[str, int]:
    """Return what the allocator counts now.

    Sizes, in bytes: ``allocated_bytes``, ``active_bytes``, ``reserved_bytes``,
    ``inactive_split_bytes``, ``largest_free_bytes``, ``peak_allocated_bytes``,
    ``peak_reserved_bytes``, ``total_bytes``. Counts: ``n_segments``,
    ``n_retries``, ``n_ooms``.
    """
    return sim_memory_stats()


def reset_peak_memory_stats() -> None:
    """Set the peaks to the present levels."""
    sim_reset_peak_memory_stats()


class _NoGrad(ContextDecorator):
    """Turns graphs off and, at the end, back to what they were."""

    def __init__(self) -> None:
        self._before: list[bool] = []

    def _recreate_cm(self) -> _NoGrad:
        # A decorated function may run in two threads: each call has its own.
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
