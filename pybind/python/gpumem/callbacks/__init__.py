"""Callbacks for trainers, and writers for experiment trackers.

A trainer's loop is inside a library, so ``gpumem.steps`` cannot be written around it. A callback
marks its steps, so that growth inside ``trainer.fit()`` is judged step by step. A writer sends
levels, peaks and findings to a tracker.

Each name has a module of its own, which is imported when the name is first used. Only that module
imports the library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpumem.callbacks.keras import Keras
    from gpumem.callbacks.lightning import Lightning
    from gpumem.callbacks.mlflow import MLflow
    from gpumem.callbacks.tensorboard import TensorBoard
    from gpumem.callbacks.transformers import TrainerCallback
    from gpumem.callbacks.wandb import WandB

PLACES = {
    "Keras": "keras",
    "Lightning": "lightning",
    "MLflow": "mlflow",
    "TensorBoard": "tensorboard",
    "TrainerCallback": "transformers",
    "WandB": "wandb",
}
"""The module of each name."""

__all__ = ["Keras", "Lightning", "MLflow", "TensorBoard", "TrainerCallback", "WandB"]


def __getattr__(name: str) -> Any:
    place = PLACES.get(name)
    if place is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{place}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
