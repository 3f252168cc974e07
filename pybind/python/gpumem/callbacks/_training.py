"""The base of all callbacks: marks steps and writes to trackers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import gpumem
from gpumem.callbacks._scalars import Scalars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Writer(Protocol):
    """Where scalars and findings go."""

    def scalars(self, values: dict[str, int], step: int) -> None:
        """Write bytes by their names."""

    def text(self, words: str, step: int) -> None:
        """Write the findings as Markdown."""


class Marks:
    """One call of ``evaluate`` or ``predict``."""

    def __init__(self, label: str) -> None:
        """Mark the loop's beginning."""
        self._marks: Iterator[None] = iter(gpumem.steps(itertools.repeat(None), label))
        next(self._marks)

    def step_ended(self) -> None:
        """Mark the end of a step."""
        next(self._marks)


class Training(Marks):
    """One call of ``fit`` or ``train``."""

    def __init__(self, label: str, writers: Sequence[Writer]) -> None:
        super().__init__(label)
        self._writers = writers
        self._scalars = Scalars() if writers else None

    def write(self, step: int) -> None:
        """Write the levels now."""
        if self._scalars is not None:
            values = self._scalars.now()
            for writer in self._writers:
                writer.scalars(values, step)

    def ended(self, step: int) -> None:
        """Write the levels at the end, what was kept, and the findings."""
        if self._scalars is None:
            return
        values = self._scalars.at_end()
        words = findings()
        for writer in self._writers:
            writer.scalars(values, step)
            writer.text(words, step)


def findings() -> str:
    """Return this session's findings as Markdown, worst first."""
    found = [it for it in gpumem.report().findings if it.withdrawn is None]
    if not found:
        return "no findings"
    return "\n".join(f"- **{it.title}** {it.detail}".rstrip() for it in found)
