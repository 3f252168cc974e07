"""TensorBoard, by a ``SummaryWriter`` of torch or tensorboardX."""

from __future__ import annotations

from typing import Any

from gpumem.callbacks._by_hand import ByHand


class TensorBoard(ByHand):
    """Write levels as scalars and findings as text: ``TensorBoard(SummaryWriter())``."""

    def __init__(self, writer: Any) -> None:
        super().__init__()
        self._writer = writer

    def scalars(self, values: dict[str, int], step: int) -> None:
        """Write bytes by their names."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def text(self, words: str, step: int) -> None:
        """Write the findings as Markdown."""
        self._writer.add_text("gpumem/findings", words, step)
