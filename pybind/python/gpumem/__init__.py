"""Which notebook cell grew GPU memory, and does it leak?

Type ``%load_ext gpumem`` in a notebook, then ``%%gpumem`` above a cell or
``%gpumem on`` for every cell, and ``%gpumem_report`` for the report.
"""

# isort: split
from gpumem import _gil  # noqa: F401 (refuses a Python without the GIL)

# isort: split
from gpumem import callbacks, sim
from gpumem._company import GpuProcesses, Process, who
from gpumem._gpumem import (
    DeviceError,
    DeviceProfile,
    Footprint,
    FootprintRow,
    GpuMemError,
    JobRanks,
    LevelLog,
    MemoryTimeline,
    NsightExport,
    Recording,
    RecordingError,
    RecordingWarning,
    StoreError,
    Table,
    TorchChange,
    TorchSnapshot,
    TorchTrace,
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
from gpumem._holders import Holder, HolderBranch, Holders, SharedMemory, holders
from gpumem._processes import begin_if_started, worker
from gpumem._release import Released, ReleaseStep, release
from gpumem._report import (
    Cell,
    ChildProcess,
    Evidence,
    Finding,
    Findings,
    Fix,
    IdleMemory,
    KnownLeak,
    ProcessGrowth,
    Report,
    Twin,
    report,
)
from gpumem._rules import Rules
from gpumem._sessions import LastRun, StoredSession, open_session, sessions
from gpumem._snapshot import SavedSnapshot, snapshot
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
    "ChildProcess",
    "Comparison",
    "DeviceError",
    "DeviceProfile",
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
    "IdleMemory",
    "JobRanks",
    "KnownLeak",
    "LastRun",
    "LevelLog",
    "MemoryAnalyzer",
    "MemoryPattern",
    "MemorySnapshot",
    "MemoryTimeline",
    "NsightExport",
    "PerformanceInsight",
    "Process",
    "ProcessGrowth",
    "ProfileResult",
    "Recording",
    "RecordingError",
    "RecordingWarning",
    "ReleaseStep",
    "Released",
    "Report",
    "Rules",
    "SavedSnapshot",
    "SharedMemory",
    "StoreError",
    "StoredSession",
    "Table",
    "TorchChange",
    "TorchSnapshot",
    "TorchTrace",
    "Twin",
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
    "unload_ipython_extension",
    "who",
    "worker",
]

begin_if_started()
del begin_if_started


def __getattr__(name: str) -> object:
    """Import ``gpumem.dask`` where it is used: only there is dask."""
    if name == "dask":
        from importlib import import_module

        return import_module("gpumem.dask")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
