"""Keras's ``model.fit()``, on any backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from gpumem.callbacks._quiet import quiet
from gpumem.callbacks._training import Marks, Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpumem.callbacks._training import Writer


class Keras(keras.callbacks.Callback):
    """Mark each batch of ``model.fit()``: ``model.fit(…, callbacks=[Keras()])``.

    ``evaluate`` and ``predict`` are marked, too, where they are not a part of ``fit``. ``writers``
    get the levels after each epoch, and the findings at the end.
    """

    def __init__(self, label: str = "step", writers: Sequence[Writer] = ()) -> None:
        super().__init__()
        self._label = label
        self._own_writers = writers
        self._training: Training | None = None
        self._batches: Marks | None = None
        self._n_batches = 0

    @quiet
    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Mark the beginning."""
        self._training = self._batches = None
        self._n_batches = 0
        self._training = Training(self._label, self._own_writers)

    @quiet
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Mark the end of a batch."""
        if self._training is not None:
            self._n_batches += 1
            self._training.step_ended()

    @quiet
    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Mark the beginning."""
        self._batches = None if self._training else Marks(f"test {self._label}")

    @quiet
    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Mark the end of a batch."""
        if self._batches is not None:
            self._batches.step_ended()

    @quiet
    def on_predict_begin(self, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Mark the beginning."""
        self._batches = None if self._training else Marks(f"prediction {self._label}")

    @quiet
    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Mark the end of a batch."""
        if self._batches is not None:
            self._batches.step_ended()

    @quiet
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Write the levels."""
        if self._training is not None:
            self._training.write(self._n_batches)

    @quiet
    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002 (Keras's)
        """Write what was kept, and the findings."""
        training, self._training = self._training, None
        if training is not None:
            training.ended(self._n_batches)
