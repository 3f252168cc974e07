"""Processes on the GPUs, their users, and the notebooks whose kernels they are."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from gpumem import _gpumem
from gpumem._table import NOTEBOOK_WIDTH, TextResult, preformatted

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Process:
    """One process on one device."""

    device: str
    """The device, for example ``cuda:0``."""
    pid: int
    """The driver's process id; in a container it may be the machine's id, see ``kind``."""
    used_bytes: int | None
    """Device memory that it uses; ``None`` if the driver does not report it."""
    why_unknown: str | None
    """Why ``used_bytes`` is not known."""
    kind: str
    """``own`` (this process), ``child`` (of it), ``kernel``, ``kernels_child``, ``process``;
    ``orphaned_kernel`` (its Jupyter server is gone), ``left_over`` (what started it is gone),
    ``zombie`` and ``gone`` (it has ended); ``hidden`` and ``outside`` (of this container): nothing
    else is known about it."""
    is_suspect: bool
    """Whether nobody seems to use it any more."""
    user: str | None
    command: str | None
    """Program and script, for your own processes also the first plain words; never an option."""
    age_nanos: int | None
    """Time since it started."""
    notebook: str | None
    """The path of the notebook whose kernel it is, or whose kernel started it."""
    kernel_id: str | None
    """Jupyter's id of the kernel."""
    server: str | None
    """The address of the kernel's Jupyter server, without its token."""
    words: str
    """A description for people."""


class GpuProcesses(TextResult, Sequence[Process]):
    """The processes on each device at one moment: this process first, then the largest."""

    def __init__(self, found: _gpumem.ProcessScan) -> None:
        """Wrap the result of the extension module."""
        self._found = found

    @property
    def suspects(self) -> list[Process]:
        """Processes that nobody seems to use any more."""
        return [process for process in self if process.is_suspect]

    @cached_property
    def unlisted(self) -> dict[str, str]:
        """For each device without a process list, the reason."""
        devices = self._devices
        return {it["device"]: it["unlisted"] for it in devices if it["unlisted"] is not None}

    @cached_property
    def unattributed_bytes(self) -> dict[str, int]:
        """For each device, the memory that no listed process uses, if it is a lot."""
        devices = self._devices
        return {
            it["device"]: it["unattributed_bytes"] for it in devices if it["unattributed_bytes"]
        }

    def text(self, width: int | None = None) -> str:
        """Return a table for each device."""
        return self._found.text(width or shutil.get_terminal_size().columns)

    @overload
    def __getitem__(self, idx: int) -> Process: ...

    @overload
    def __getitem__(self, idx: slice) -> list[Process]: ...

    def __getitem__(self, idx: int | slice) -> Process | list[Process]:
        """Return one process, or several."""
        return self._processes[idx]

    def __iter__(self) -> Iterator[Process]:
        """Iterate over the processes."""
        return iter(self._processes)

    def __len__(self) -> int:
        """Return the number of processes; one on two devices counts twice."""
        return len(self._processes)

    def __repr__(self) -> str:
        """Return the number of processes."""
        return f"<GpuProcesses: {len(self)} processes>"

    def _repr_html_(self) -> str:
        """Return the text for a notebook: it also says what is unknown, and why."""
        return preformatted(self.text(NOTEBOOK_WIDTH))

    @cached_property
    def _processes(self) -> list[Process]:
        return [
            Process(device=device["device"], **process)
            for device in self._devices
            for process in device["processes"]
        ]

    @cached_property
    def _devices(self) -> list[dict[str, Any]]:
        return self._found.devices()


def who() -> GpuProcesses:
    """Return which processes use the GPUs, and which notebooks they belong to.

    Each process has its memory, user, age, program and script. A kernel also has its notebook,
    found in Jupyter's runtime files and the process's environment. ``suspects`` lists kernels
    whose server is gone, workers whose parent is gone, and processes that have ended but are still
    listed by the driver. gpumem ends no process.
    """
    return GpuProcesses(_gpumem.scan_gpu_processes())
