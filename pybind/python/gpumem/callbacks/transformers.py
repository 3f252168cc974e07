"""Hugging Face's ``Trainer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import transformers

from gpumem.callbacks._quiet import quiet
from gpumem.callbacks._training import Marks, Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpumem.callbacks._training import Writer


class TrainerCallback(transformers.TrainerCallback):
    """Mark each step of ``trainer.train()``: ``Trainer(…, callbacks=[TrainerCallback()])``.

    A step is an update of the weights, as ``Trainer`` counts them, or a batch where ``evaluate``
    and ``predict`` are not a part of the training. ``writers`` get the levels whenever the trainer
    logs, and the findings at the end.
    """

    def __init__(self, label: str = "step", writers: Sequence[Writer] = ()) -> None:
        self._label = label
        self._writers = writers
        self._training: Training | None = None
        self._batches: Marks | None = None

    @quiet
    def on_train_begin(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Mark the beginning."""
        self._training = self._batches = None
        # Only the first of several processes writes.
        writers = self._writers if state.is_world_process_zero else ()
        self._training = Training(self._label, writers)

    @quiet
    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Mark the end of a step."""
        if self._training is not None:
            self._training.step_ended()

    @quiet
    def on_prediction_step(self, *_: Any, **__: Any) -> None:
        """Mark the end of a batch of ``evaluate`` or ``predict``."""
        if self._training is not None:
            return
        # There is no event at their beginning.
        if self._batches is None:
            self._batches = Marks(f"prediction {self._label}")
        else:
            self._batches.step_ended()

    @quiet
    def on_evaluate(self, *_: Any, **__: Any) -> None:
        """Forget the loop that has ended."""
        self._batches = None

    @quiet
    def on_predict(self, *_: Any, **__: Any) -> None:
        """Forget the loop that has ended."""
        self._batches = None

    @quiet
    def on_log(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Write the levels, as often as the trainer logs."""
        if self._training is not None:
            self._training.write(state.global_step)

    @quiet
    def on_train_end(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Write what was kept, and the findings."""
        training, self._training = self._training, None
        if training is not None:
            training.ended(state.global_step)
