"""The names that people know from gpu-memory-profiler, answered by gpumem.

Code written for those names runs with its import changed::

    from gpumem import GPUMemoryProfiler, MemoryAnalyzer

    profiler = GPUMemoryProfiler()
    for batch in loader:
        profiler.profile_function(training_step, model, batch)
    report = MemoryAnalyzer(profiler).generate_optimization_report()

The rules behind them are the classic ones, to the last digit: they judge single
calls, and take a function that allocates what another one frees for a leak.
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
