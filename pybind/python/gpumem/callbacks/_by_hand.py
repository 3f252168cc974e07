"""A writer in a loop of the user's own."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gpumem.callbacks._quiet import quiet
from gpumem.callbacks._scalars import Scalars
from gpumem.callbacks._training import findings


class ByHand(ABC):
    """Where scalars and findings go; a loop without a trainer calls ``log`` and ``finish``."""

    def __init__(self) -> None:
        self._levels: Scalars | None = None

    @abstractmethod
    def scalars(self, values: dict[str, int], step: int) -> None:
        """Write bytes by their names."""

    @abstractmethod
    def text(self, words: str, step: int) -> None:
        """Write the findings as Markdown."""

    @quiet
    def log(self, step: int) -> None:
        """Write each device's levels and its peak since the first call. It never raises."""
        if self._levels is None:
            self._levels = Scalars()
        self.scalars(self._levels.now(), step)

    @quiet
    def finish(self, step: int) -> None:
        """Write the levels, what was kept since the first call, and the findings."""
        levels, self._levels = self._levels or Scalars(), None
        self.scalars(levels.at_end(), step)
        self.text(findings(), step)
