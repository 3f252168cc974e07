"""The classes of what gpumem's functions return. Sizes are bytes, times are nanoseconds.

You need them for annotations and ``isinstance``; the functions make the objects. ``repr``
gives one line, ``str`` and ``text()`` the text, and a notebook shows a table or the report.
What only one kind of finding has is in :mod:`gpumem.details`.
"""

from gpumem._gpu_processes import GpuProcesses, Process
from gpumem._gpumem import (
    DeviceProfile,
    Footprint,
    FootprintRow,
    JobRanks,
    LevelLog,
    MemoryTimeline,
    NsightExport,
    OtherFile,
    Recording,
    SessionProcesses,
    Table,
    TorchChange,
    TorchSnapshot,
    TorchTrace,
)
from gpumem._holders import Holder, HolderBranch, Holders, SharedMemory
from gpumem._release import Released, ReleaseStep
from gpumem._report import (
    Cell,
    ChildProcess,
    ChildProcesses,
    Evidence,
    Finding,
    Findings,
    Fix,
    IdleMemory,
    KnownLeak,
    ProcessGrowth,
    Report,
    Twin,
)
from gpumem._sessions import LastRun, StoredSession, StoredSessions
from gpumem._snapshot import NamedBlocks
from gpumem._verdicts import Change, Comparison, GrowthSide, GrowthVerdict

__all__ = [
    "Cell",
    "Change",
    "ChildProcess",
    "ChildProcesses",
    "Comparison",
    "DeviceProfile",
    "Evidence",
    "Finding",
    "Findings",
    "Fix",
    "Footprint",
    "FootprintRow",
    "GpuProcesses",
    "GrowthSide",
    "GrowthVerdict",
    "Holder",
    "HolderBranch",
    "Holders",
    "IdleMemory",
    "JobRanks",
    "KnownLeak",
    "LastRun",
    "LevelLog",
    "MemoryTimeline",
    "NamedBlocks",
    "NsightExport",
    "OtherFile",
    "Process",
    "ProcessGrowth",
    "Recording",
    "ReleaseStep",
    "Released",
    "Report",
    "SessionProcesses",
    "SharedMemory",
    "StoredSession",
    "StoredSessions",
    "Table",
    "TorchChange",
    "TorchSnapshot",
    "TorchTrace",
    "Twin",
]
