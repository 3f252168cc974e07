"""Lightning's ``Trainer``, by either of its packages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gpumem.callbacks._quiet import quiet
from gpumem.callbacks._training import Marks, Training
from gpumem.callbacks.mlflow import MLflow
from gpumem.callbacks.tensorboard import TensorBoard
from gpumem.callbacks.wandb import WandB

# Callbacks of one package are none to the other's trainer: that of the package in use is taken.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ModuleNotFoundError:
        from pytorch_lightning import Callback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpumem.callbacks._training import Writer


class Lightning(Callback):
    """Mark each batch of ``trainer.fit()``: ``Trainer(…, callbacks=[Lightning()])``.

    ``validate``, ``test`` and ``predict`` are marked, too, where they are not a part of ``fit``.

    The trainer's own loggers get the levels whenever it logs, and those of TensorBoard, Weights &
    Biases and MLflow the findings at the end; ``writers`` replace them, ``()`` writes nothing.
    """

    def __init__(self, label: str = "step", writers: Sequence[Writer] | None = None) -> None:
        self._label = label
        self._writers = writers
        self._training: Training | None = None
        self._batches: Marks | None = None
        self._n_batches = 0

    @quiet
    def on_train_start(self, trainer: Any, _module: Any) -> None:
        """Mark the beginning."""
        self._training, self._batches, self._n_batches = None, None, 0
        writers = self._writers
        if writers is None:
            writers = [_Logger(it) for it in trainer.loggers]
        if not trainer.is_global_zero:
            # Only the first of several processes writes.
            writers = ()
        self._training = Training(self._label, writers)

    @quiet
    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """Mark the end of a batch; write the levels, as often as the trainer logs."""
        if self._training is None:
            return
        self._training.step_ended()
        self._n_batches += 1
        every = trainer.log_every_n_steps
        if every and self._n_batches % every == 0:
            self._training.write(trainer.global_step)

    @quiet
    def on_validation_start(self, trainer: Any, _module: Any) -> None:
        """Mark the beginning."""
        self._begin(trainer, "validation")

    @quiet
    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        """Mark the end of a batch."""
        self._batch_ended()

    @quiet
    def on_test_start(self, trainer: Any, _module: Any) -> None:
        """Mark the beginning."""
        self._begin(trainer, "test")

    @quiet
    def on_test_batch_end(self, *_: Any, **__: Any) -> None:
        """Mark the end of a batch."""
        self._batch_ended()

    @quiet
    def on_predict_start(self, trainer: Any, _module: Any) -> None:
        """Mark the beginning."""
        self._begin(trainer, "prediction")

    @quiet
    def on_predict_batch_end(self, *_: Any, **__: Any) -> None:
        """Mark the end of a batch."""
        self._batch_ended()

    @quiet
    def on_train_end(self, trainer: Any, _module: Any) -> None:
        """Write what was kept, and the findings."""
        training, self._training = self._training, None
        if training is not None:
            training.ended(trainer.global_step)

    def _begin(self, trainer: Any, what: str) -> None:
        is_by_itself = self._training is None and not trainer.sanity_checking
        self._batches = Marks(f"{what} {self._label}") if is_by_itself else None

    def _batch_ended(self) -> None:
        if self._batches is not None:
            self._batches.step_ended()


class _Logger:
    """A logger of Lightning as a writer."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def scalars(self, values: dict[str, int], step: int) -> None:
        self._logger.log_metrics(values, step)

    def text(self, words: str, step: int) -> None:
        writer = self._of_tracker()
        if writer is not None:
            writer.text(words, step)

    def _of_tracker(self) -> Writer | None:
        """Return what writes a text with the tracker that is behind it: loggers have no method."""
        logger = self._logger
        match type(logger).__name__:
            case "TensorBoardLogger":
                return TensorBoard(logger.experiment)
            case "WandbLogger":
                return WandB(logger.experiment)
            case "MLFlowLogger":
                return MLflow(logger.run_id, logger.experiment)
            case _:
                return None
