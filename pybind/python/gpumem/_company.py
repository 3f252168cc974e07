"""Who is on the GPUs: processes, their users, the notebooks whose kernels they are."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Process:
    """One process on one device."""

    device: str
    """The device, as ``cuda:0``."""
    pid: int
    """As the driver gives it; in a container it may be the machine's id, see ``kind``."""
    used_bytes: int | None
    """What it uses of the device; ``None`` where the driver does not tell."""
    why_unknown: str | None
    """Why ``used_bytes`` is not known."""
    kind: str
    """``own`` (this process), ``child`` (of it), ``kernel``, ``kernels_child``, ``process``;
    ``orphaned_kernel`` (its Jupyter server is gone), ``left_over`` (what started it is gone),
    ``zombie`` and ``gone`` (it has ended); ``hidden`` and ``outside`` (of this container): nothing
    more can be known of it from here."""
    is_suspect: bool
    """Nobody seems to use it any more."""
    user: str | None
    command: str | None
    """Program and script, of your own processes the first plain words too; no option, no value."""
    age_nanos: int | None
    """How long ago it began."""
    notebook: str | None
    """The path of the notebook whose kernel, or kernel's child, it is."""
    kernel_id: str | None
    """The kernel's id, as Jupyter knows it."""
    server: str | None
    """Where the kernel's Jupyter server is reached, without its token."""
    words: str
    """What it is, in words."""


class Company(Sequence[Process]):
    """Who is on each device, at one moment: this process first, then the largest."""

    def __init__(self, found: _gpumem.Company) -> None:
        """Take what was found."""
        self._found = found

    @property
    def suspects(self) -> list[Process]:
        """Those that nobody seems to use any more."""
        return [process for process in self if process.is_suspect]

    @cached_property
    def unlisted(self) -> dict[str, str]:
        """Why there is no list of processes, for each device that has none."""
        devices = self._devices
        return {it["device"]: it["unlisted"] for it in devices if it["unlisted"] is not None}

    @cached_property
    def untold_bytes(self) -> dict[str, int]:
        """What is used of each device by nobody on its list, where that is much."""
        devices = self._devices
        return {it["device"]: it["untold_bytes"] for it in devices if it["untold_bytes"]}

    def text(self, width: int | None = None) -> str:
        """Return it as a table for each device."""
        return self._found.text(width or shutil.get_terminal_size().columns)

    @overload
    def __getitem__(self, idx: int) -> Process: ...

    @overload
    def __getitem__(self, idx: slice) -> list[Process]: ...

    def __getitem__(self, idx: int | slice) -> Process | list[Process]:
        """Return one process, or several."""
        return self._processes[idx]

    def __iter__(self) -> Iterator[Process]:
        """Go through the processes."""
        return iter(self._processes)

    def __len__(self) -> int:
        """Count them: one that is on two devices counts twice."""
        return len(self._processes)

    def __repr__(self) -> str:
        """Show the tables."""
        return self.text()

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


def who() -> Company:
    """Find out which processes use the GPUs, and which notebooks they are.

    Of each process: its memory, user, age, program and script; of a kernel the notebook, by
    Jupyter's runtime files and the process's environment. A kernel whose server is gone, what a
    run left over, and what has ended but is still listed by the driver are marked as ``suspects``.
    Nothing is ended: that is yours to do.
    """
    return Company(_gpumem.find_company())
