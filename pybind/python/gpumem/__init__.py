"""Which notebook cell grew GPU memory, and does it leak?

Type ``%load_ext gpumem`` in a notebook, then ``%%gpumem`` above a cell or
``%gpumem on`` for every cell, and ``%gpumem_report`` for the report.
"""

# isort: split
from gpumem import _gil  # noqa: F401 (refuses a Python without the GIL)

# isort: split
from gpumem import sim
from gpumem._company import GpuProcesses, Process, who
from gpumem._gpumem import (
    DeviceError,
    Footprint,
    FootprintRow,
    GpuMemError,
    Recording,
    RecordingError,
    RecordingWarning,
    StoreError,
    TorchSnapshot,
    __version__,
    footprint,
    load,
    load_ipython_extension,
    load_snapshot,
    mark,
    record,
    recording,
    register_adapter,
    steps,
    unload_ipython_extension,
)
from gpumem._holders import Holder, HolderBranch, Holders, SharedMemory, holders
from gpumem._release import Released, ReleaseStep, release
from gpumem._report import Cell, Evidence, Finding, Findings, Fix, Report, report
from gpumem._rules import Rules
from gpumem._sessions import LastRun, StoredSession, open_session, sessions
from gpumem._verdicts import Change, Comparison, Growth, GrowthSide, classify_growth, compare
from gpumem.classic import (
    GPUMemoryProfiler,
    MemoryAnalyzer,
    MemoryPattern,
    MemorySnapshot,
    PerformanceInsight,
    ProfileResult,
)

__all__ = [
    "Cell",
    "Change",
    "Comparison",
    "DeviceError",
    "Evidence",
    "Finding",
    "Findings",
    "Fix",
    "Footprint",
    "FootprintRow",
    "GPUMemoryProfiler",
    "GpuMemError",
    "GpuProcesses",
    "Growth",
    "GrowthSide",
    "Holder",
    "HolderBranch",
    "Holders",
    "LastRun",
    "MemoryAnalyzer",
    "MemoryPattern",
    "MemorySnapshot",
    "PerformanceInsight",
    "Process",
    "ProfileResult",
    "Recording",
    "RecordingError",
    "RecordingWarning",
    "ReleaseStep",
    "Released",
    "Report",
    "Rules",
    "SharedMemory",
    "StoreError",
    "StoredSession",
    "TorchSnapshot",
    "__version__",
    "classify_growth",
    "compare",
    "footprint",
    "holders",
    "load",
    "load_ipython_extension",
    "load_snapshot",
    "mark",
    "open_session",
    "record",
    "recording",
    "register_adapter",
    "release",
    "report",
    "sessions",
    "sim",
    "steps",
    "unload_ipython_extension",
    "who",
]
