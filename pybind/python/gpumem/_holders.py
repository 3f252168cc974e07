"""Who holds device memory: names, what each alone keeps, and the path to it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem
from gpumem._fields import read
from gpumem._table import TextResult, size, table

if TYPE_CHECKING:
    from collections.abc import Iterator

# The most levels that are shown below a name.
DEEPEST = 100


@dataclass(frozen=True)
class HolderBranch:
    """Part of what a name keeps. Sizes are bytes."""

    step: str
    """The step from its holder: ``[3]``, ``.grad_fn``; ``[0] … [95]`` for several."""
    what: str
    n: int
    """How many objects of the same kind it stands for."""
    n_bytes: int
    """What it alone keeps."""
    children: tuple[HolderBranch, ...]


@dataclass(frozen=True)
class Holder:
    """A name, and the memory that would be free without it."""

    name: str
    """For example ``losses``, ``Out[3]`` or ``last exception``."""
    kind: str
    """``variable``, ``output_history``, ``traceback``, ``debugger``, ``run_module``,
    ``module_global``, ``thread_frame``, ``cyclic_garbage``, ``uncollected_garbage`` (the
    garbage collector is off), ``graph_cycle``, ``gradient_cycle``, ``hook_cycle`` (its own
    autograd graph keeps it), ``system`` or ``unnamed``."""
    device: str
    n_bytes: int
    """Bytes that it alone keeps: they are freed only when it lets go."""
    path: str
    """The Python expression of the largest object; empty if no object was found."""
    what: str
    """A description: ``list of 96 tensors, each with its graph``."""
    children: tuple[HolderBranch, ...]
    grown_bytes: int | None = None
    """Only in a finding: its growth over the finding's runs."""
    since_execution_count: int | None = None
    """The number of the run (``In [4]``) since which it holds most of ``n_bytes``; ``None`` if that
    came bit by bit, or no recorded run looked for holders. Never in a finding."""
    allocated_in: str | None = None
    """The line that allocated the largest object: ``In [4], line 2``, ``train.py:12``. Only while
    torch records a history of its CUDA allocator, with torch 2.15 or newer."""


@dataclass(frozen=True)
class SharedMemory:
    """Memory that several names keep together: it is freed only when all of them let go."""

    names: tuple[str, ...]
    """The first few names."""
    and_others: bool
    device: str
    n_bytes: int
    path: str
    what: str


class Holders(TextResult):
    """The holders of each device's memory at one moment."""

    def __init__(self, found: _gpumem.HolderSearch) -> None:
        """Wrap the result of a walk."""
        self._found = found

    @cached_property
    def roots(self) -> list[Holder]:
        """The names, fullest device first, sorted by the bytes that each alone keeps."""
        return [
            read(Holder, {**root, "device": device["device"]})
            for device in self._devices
            for root in device["roots"]
        ]

    @cached_property
    def shared(self) -> list[SharedMemory]:
        """Memory that several names keep together."""
        return [
            read(SharedMemory, {**entry, "device": device["device"]})
            for device in self._devices
            for entry in device["shared"]
        ]

    @property
    def composition(self) -> dict[str, dict[str, int]]:
        """The purpose of each device's bytes: ``parameters``, ``gradients``, ``graphs``, ..."""
        return {device["device"]: dict(device["parts"]) for device in self._devices}

    @property
    def is_cut(self) -> bool:
        """Whether the search stopped at a bound: there is more than this."""
        return any(device["is_cut"] for device in self._devices)

    def text(
        self, name: str | None = None, device: str | None = None, width: int | None = None
    ) -> str:
        """Return a text, of one name or one device if given."""
        return self._found.text(name, device, width or shutil.get_terminal_size().columns)

    def __iter__(self) -> Iterator[Holder]:
        """Iterate over the names."""
        return iter(self.roots)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self.roots)

    def __repr__(self) -> str:
        """Return the number of names."""
        return f"<Holders: {len(self.roots)} names>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a row for each name, then what several share."""
        alone = [(it.device, size(it.n_bytes), it.name, it.what, it.path) for it in self.roots]
        shared = [
            (it.device, size(it.n_bytes), ", ".join(it.names), it.what, it.path)
            for it in self.shared
        ]
        return table(("device", "retained", "held by", "what", "path"), [*alone, *shared])

    def _fix(self, holder: Holder | SharedMemory, sources: list[str]) -> tuple[str, str] | None:
        """Return the statement in a module's text that makes a name hold it, and a better one."""
        if isinstance(holder, SharedMemory):
            return None
        return self._found.fix(holder.device, holder.name, sources)

    @cached_property
    def _devices(self) -> list[dict[str, Any]]:
        return self._found.devices()


def holders(*, depth: int = 1) -> Holders:
    """Find who holds device memory now, without running any of your code.

    The result lists names, each with the memory that it alone keeps; then memory
    that several names share; then memory that no name reaches: libraries, cyclic
    garbage (found without collecting it), and memory that is allocated although no
    object holds it. ``depth`` is the number of levels below each name. Only adapters
    that you registered are called.

    Raises:
        ValueError: ``depth`` is not from 1 to 100.
        GpuMemError: one of your adapters calls this function.
    """
    if not 1 <= depth <= DEEPEST:
        message = f"depth must be from 1 to {DEEPEST}, not {depth}"
        raise ValueError(message)
    return Holders(_gpumem.find_holders(depth))
