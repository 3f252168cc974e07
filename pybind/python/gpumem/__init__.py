"""Which notebook cell grew GPU memory, and does it leak?

Type ``%load_ext gpumem`` in a notebook, then ``%%gpumem`` above a cell or
``%gpumem on`` for every cell, and ``%gpumem_report`` for the report.

The classes of results are in :mod:`gpumem.types`, the API of gpu-memory-profiler is in
:mod:`gpumem.classic`. Sizes are bytes, times are nanoseconds.
"""

from gpumem import callbacks, sim, types
from gpumem._gpu_processes import who
from gpumem._gpumem import (
    DeviceError,
    GpuMemError,
    RecordingError,
    RecordingWarning,
    StoreError,
    __version__,
    footprint,
    load,
    load_ipython_extension,
    mark,
    record,
    recording,
    register_adapter,
    steps,
    unload_ipython_extension,
)
from gpumem._holders import holders
from gpumem._processes import begin_if_started, worker
from gpumem._release import release
from gpumem._report import report
from gpumem._rules import Rules
from gpumem._sessions import open_session, sessions
from gpumem._snapshot import snapshot
from gpumem._verdicts import classify_growth, compare

__all__ = [
    "DeviceError",
    "GpuMemError",
    "RecordingError",
    "RecordingWarning",
    "Rules",
    "StoreError",
    "__version__",
    "callbacks",
    "classify_growth",
    "compare",
    "footprint",
    "holders",
    "load",
    "load_ipython_extension",
    "mark",
    "open_session",
    "record",
    "recording",
    "register_adapter",
    "release",
    "report",
    "sessions",
    "sim",
    "snapshot",
    "steps",
    "types",
    "unload_ipython_extension",
    "who",
    "worker",
]

begin_if_started()
del begin_if_started


def __getattr__(name: str) -> object:
    """Import ``gpumem.classic`` and ``gpumem.dask`` when they are first used."""
    if name in {"classic", "dask"}:
        from importlib import import_module

        return import_module(f"gpumem.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
