"""The names of gpu-memory-profiler (``gpumemprof``), implemented by gpumem.

Code written for those names runs with its import changed::

    from gpumem.classic import GPUMemoryProfiler, MemoryAnalyzer

    profiler = GPUMemoryProfiler()
    for batch in loader:
        profiler.profile_function(training_step, model, batch)
    report = MemoryAnalyzer(profiler).generate_optimization_report()

A name that gpumem does not provide raises an ``ImportError`` that says what to use.

The rules are those of gpu-memory-profiler, to the last digit. They judge single
calls, and mistake a function that allocates what another one frees for a leak.
:func:`gpumem.report` judges series. Sizes are bytes, times are seconds.
"""

from gpumem._gpumem import MemorySnapshot, ProfileResult, __version__
from gpumem.classic.analyzer import GapFinding, MemoryAnalyzer, MemoryPattern, PerformanceInsight
from gpumem.classic.profiler import GPUMemoryProfiler
from gpumem.classic.shared import (
    get_global_profiler,
    profile_context,
    profile_function,
    set_global_profiler,
)
from gpumem.classic.units import convert_bytes, format_bytes

__all__ = [
    "GPUMemoryProfiler",
    "GapFinding",
    "MemoryAnalyzer",
    "MemoryPattern",
    "MemorySnapshot",
    "PerformanceInsight",
    "ProfileResult",
    "__version__",
    "convert_bytes",
    "format_bytes",
    "get_global_profiler",
    "profile_context",
    "profile_function",
    "set_global_profiler",
]

_RECORD = "record cells with `%gpumem on`, scripts with `jupyter gpumem run`; see gpumem.report()"
_HOST = 'use GPUMemoryProfiler("host")'
_OUT_OF_MEMORY = (
    "gpumem.report().findings explains each failed allocation (kind `out_of_memory`); "
    "c.GpuMem.snapshot_on_oom and c.GpuMem.flight_recorder keep more"
)
_TELEMETRY = "gpumem.load(path) reads telemetry files, MemoryAnalyzer.analyze_memory_gaps events"
_SOURCES = "`%gpumem status` lists the sources that are read, gpumem.report().runs the levels"

_INSTEAD = {
    "CPUMemoryProfiler": _HOST,
    "CPUMemoryTracker": _RECORD,
    "DeviceMemoryCollector": _SOURCES,
    "DeviceMemorySample": _SOURCES,
    "MemoryTracker": _RECORD,
    "MemoryVisualizer": 'gpumem.report().save("report.html") writes the pictures',
    "OOMExceptionClassification": _OUT_OF_MEMORY,
    "OOMFlightRecorder": _OUT_OF_MEMORY,
    "OOMFlightRecorderConfig": _OUT_OF_MEMORY,
    "TelemetryEventV2": _TELEMETRY,
    "build_device_memory_collector": _SOURCES,
    "classify_oom_exception": _OUT_OF_MEMORY,
    "detect_torch_runtime_backend": _SOURCES,
    "get_gpu_info": "gpumem.who() lists processes on each GPU, `%gpumem` the use of its memory",
    "load_telemetry_events": _TELEMETRY,
    "telemetry_event_from_record": _TELEMETRY,
    "telemetry_event_to_dict": _TELEMETRY,
    "validate_telemetry_record": _TELEMETRY,
}
"""Replacements for names of gpu-memory-profiler that are not provided."""


def __getattr__(name: str) -> object:
    """Raise an error that says what to use instead of a name that is not provided."""
    if name in _INSTEAD:
        # `from ... import` would replace an AttributeError, and its message, by its own.
        raise ImportError(f"gpumem.classic has no {name}\nhint: {_INSTEAD[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
