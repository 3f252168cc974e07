"""Which notebook cell grew GPU memory, and does it leak?

``%load_ext gpumem`` in a notebook, then ``%%gpumem`` above a cell or
``%gpumem on`` for every cell, and ``%gpumem_report`` for the whole picture.
"""

from gpumem import sim
from gpumem._gpumem import (
    DeviceError,
    GpuMemError,
    Recording,
    RecordingError,
    __version__,
    load,
    load_ipython_extension,
    mark,
    recording,
    steps,
    unload_ipython_extension,
)
from gpumem._report import Cell, Evidence, Finding, Report, report

__all__ = [
    "Cell",
    "DeviceError",
    "Evidence",
    "Finding",
    "GpuMemError",
    "Recording",
    "RecordingError",
    "Report",
    "__version__",
    "load",
    "load_ipython_extension",
    "mark",
    "recording",
    "report",
    "sim",
    "steps",
    "unload_ipython_extension",
]
