"""The names of gpu-memory-profiler, implemented by gpumem.

Code written for those names runs with its import changed::

    from gpumem import GPUMemoryProfiler, MemoryAnalyzer

    profiler = GPUMemoryProfiler()
    for batch in loader:
        profiler.profile_function(training_step, model, batch)
    report = MemoryAnalyzer(profiler).generate_optimization_report()

The rules are those of gpu-memory-profiler, to the last digit. They judge single
calls, and mistake a function that allocates what another one frees for a leak.
:func:`gpumem.report` judges series. Sizes are bytes, times are seconds.
"""

from gpumem._gpumem import MemorySnapshot, ProfileResult
from gpumem.classic.analyzer import GapFinding, MemoryAnalyzer, MemoryPattern, PerformanceInsight
from gpumem.classic.profiler import GPUMemoryProfiler

__all__ = [
    "GPUMemoryProfiler",
    "GapFinding",
    "MemoryAnalyzer",
    "MemoryPattern",
    "MemorySnapshot",
    "PerformanceInsight",
    "ProfileResult",
]
