"""Profiling without a profiler of one's own: one is shared."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from gpumem.classic.profiler import GPUMemoryProfiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_shared: list[GPUMemoryProfiler] = []


def get_global_profiler(device: object = None) -> GPUMemoryProfiler:
    """Return the shared profiler; the first call makes it, for ``device``."""
    if not _shared:
        _shared.append(GPUMemoryProfiler(device))
    return _shared[0]


def set_global_profiler(profiler: GPUMemoryProfiler) -> None:
    """Share this profiler from now on."""
    _shared[:] = [profiler]


def profile_function(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    device: object = None,
    profiler: GPUMemoryProfiler | None = None,
) -> Any:  # noqa: ANN401 (a function like the one given, or a decorator)
    """Measure every call of the decorated function; a call returns the function's result.

    The results are in ``results`` of ``profiler``, by default :func:`get_global_profiler`::

        @profile_function(name="forward")
        def forward(batch): ...
    """
    if func is None:
        return functools.partial(profile_function, name=name, device=device, profiler=profiler)
    called = str(name or getattr(func, "__name__", type(func).__name__))

    @functools.wraps(func)
    def profiled(*args: object, **kwargs: object) -> object:
        used = profiler or get_global_profiler(device)
        with used.profile_context(called):
            return func(*args, **kwargs)

    return profiled


@contextlib.contextmanager
def profile_context(
    name: str = "context",
    device: object = None,
    profiler: GPUMemoryProfiler | None = None,
) -> Iterator[GPUMemoryProfiler]:
    """Measure a block as a call of ``name``; yield the profiler that gets its result."""
    used = profiler or get_global_profiler(device)
    with used.profile_context(name):
        yield used
