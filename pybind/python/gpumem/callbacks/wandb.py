"""Weights & Biases."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpumem.callbacks._by_hand import ByHand

STEP = "gpumem/step"
"""The horizontal axis: the run's own counter rises with each thing that is logged."""


class WandB(ByHand):
    """Write levels to a run, by default the active one, and findings to its summary."""

    def __init__(self, run: Any = None) -> None:
        super().__init__()
        self._run = run
        self._is_defined = False

    def scalars(self, values: dict[str, int], step: int) -> None:
        """Write bytes by their names."""
        run = self._active()
        if run is None:
            return
        if not self._is_defined:
            run.define_metric("gpumem/*", step_metric=STEP)
            self._is_defined = True
        run.log({**values, STEP: step})

    def text(self, words: str, step: int) -> None:  # noqa: ARG002 (a summary has no steps)
        """Write the findings as Markdown."""
        run = self._active()
        if run is not None:
            run.summary["gpumem/findings"] = words

    def _active(self) -> Any:
        return self._run if self._run is not None else import_module("wandb").run
