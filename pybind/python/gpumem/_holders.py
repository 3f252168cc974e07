"""Who holds device memory: names, what each alone keeps, the way to it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Iterator

# Told of a name at most, whatever was asked for.
DEEPEST = 100


@dataclass(frozen=True)
class Branch:
    """Part of what a name keeps. Sizes are bytes."""

    step: str
    """How it is reached from what holds it: ``[3]``, ``.grad_fn``; ``[0] … [95]`` of several."""
    what: str
    n: int
    """How many alike it stands for."""
    n_bytes: int
    """What it alone keeps."""
    children: tuple[Branch, ...]


@dataclass(frozen=True)
class Holder:
    """A name, and what would be free without it."""

    name: str
    """As you know it: ``losses``, ``Out[3]``, ``last exception``."""
    kind: str
    """``variable``, ``output_history``, ``traceback``, ``debugger``, ``run_module``,
    ``module_global``, ``thread_frame``, ``cyclic_garbage``, ``system`` or ``unnamed``."""
    device: str
    n_bytes: int
    """What it alone keeps: free when it lets go, and only then."""
    path: str
    """The Python expression of the largest object; empty where no object was found."""
    what: str
    """What it is, in words: ``list of 96 tensors, each with its graph``."""
    children: tuple[Branch, ...]
    grown_bytes: int | None = None
    """Of a finding: what it has more over the finding's runs."""


@dataclass(frozen=True)
class Shared:
    """What several names keep together: free only when all of them let go."""

    names: tuple[str, ...]
    """The first few of them."""
    and_others: bool
    device: str
    n_bytes: int
    path: str
    what: str


class Holders:
    """Who holds what, device by device, at one moment."""

    def __init__(self, found: _gpumem.Holders) -> None:
        """Take what a walk found."""
        self._found = found

    @cached_property
    def roots(self) -> list[Holder]:
        """The names, those of the fullest device first, by what each alone keeps."""
        return [
            Holder(
                **{**root, "children": branches(root["children"])},
                device=device["device"],
            )
            for device in self._devices
            for root in device["roots"]
        ]

    @cached_property
    def shared(self) -> list[Shared]:
        """What several names keep together."""
        return [
            Shared(**{**entry, "names": tuple(entry["names"])}, device=device["device"])
            for device in self._devices
            for entry in device["shared"]
        ]

    @property
    def composition(self) -> dict[str, dict[str, int]]:
        """What the bytes of each device are for: ``parameters``, ``gradients``, ``graphs``, ..."""
        return {device["device"]: dict(device["parts"]) for device in self._devices}

    @property
    def is_cut(self) -> bool:
        """Looking was stopped at a bound: there is more than this."""
        return any(device["is_cut"] for device in self._devices)

    def text(
        self, name: str | None = None, device: str | None = None, width: int | None = None
    ) -> str:
        """Return it in words: of one name or one device, if you like."""
        return self._found.text(name, device, width or shutil.get_terminal_size().columns)

    def __iter__(self) -> Iterator[Holder]:
        """Go through the names."""
        return iter(self.roots)

    def __len__(self) -> int:
        """Count the names."""
        return len(self.roots)

    def __repr__(self) -> str:
        """Show it in words."""
        return self.text()

    @cached_property
    def _devices(self) -> list[dict[str, Any]]:
        return self._found.devices()


def holders(*, depth: int = 1) -> Holders:
    """Find who holds device memory now, without running any of your code.

    Names come first, each with what it alone keeps; then what several keep
    together, and what no name reaches: libraries, cyclic garbage (told without
    collecting it), and what is allocated though no object holds it. ``depth``
    says how many levels of what a name holds are told. Only the adapters that you
    registered yourself are called.

    Raises:
        ValueError: ``depth`` is not from 1 to 100.
        GpuMemError: an adapter of yours calls it while it is asked itself.
    """
    if not 1 <= depth <= DEEPEST:
        message = f"depth must be from 1 to {DEEPEST}, not {depth}"
        raise ValueError(message)
    return Holders(_gpumem.find_holders(depth))


def branches(found: list[dict[str, Any]]) -> tuple[Branch, ...]:
    """Return what a name holds, and what that holds in turn."""
    return tuple(Branch(**{**branch, "children": branches(branch["children"])}) for branch in found)
