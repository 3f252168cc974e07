"""PyTorch's memory snapshot, with the name of what holds each block."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpumem import _gpumem
from gpumem._table import TextResult, preformatted

if TYPE_CHECKING:
    import os


@dataclass(frozen=True)
class NamedBlocks(TextResult):
    """The blocks in a memory snapshot that was written, and how many have a name."""

    path: Path
    n_blocks: int
    """How many blocks are allocated."""
    n_named: int
    """How many of them have the path that holds them."""
    note: str | None
    """What is unknown, and why."""

    def text(self) -> str:
        """Return what was written, and how to open it."""
        note = "" if self.note is None else f"\n! {self.note}"
        return (
            f"wrote {self.path}: {self.n_named:,} of {self.n_blocks:,} blocks with the path that"
            f" holds them\nopen it with %gpumem_report, or at pytorch.org/memory_viz{note}"
        )

    def _repr_html_(self) -> str:
        """Return the text for a notebook."""
        return preformatted(self.text())


def snapshot(path: str | os.PathLike[str]) -> NamedBlocks:
    """Write PyTorch's memory snapshot to a file, each block with the path that holds it.

    The file is what ``torch.cuda.memory._dump_snapshot`` writes, and opens in the same
    viewers. The holder, such as ``losses[3].grad_fn._saved_self``, is in the ``user_metadata`` of a
    block with a recorded stack, and a frame ``held by`` of a block without one. None of your code
    is run, except for adapters that you registered.

    Raises:
        GpuMemError: torch is not imported, has not started CUDA, or uses another allocator.
        OSError: the file cannot be written.
    """
    file = Path(path).expanduser()
    return NamedBlocks(file, *_gpumem._save_snapshot(file))
