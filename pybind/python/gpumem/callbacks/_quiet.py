"""A training never fails through gpumem."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")

SAID: set[str] = set()
"""The messages that were logged already."""


def quiet(method: _F) -> _F:
    """Swallow what goes wrong in a callback's method; log each place once."""

    @functools.wraps(method)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            method(*args, **kwargs)
        except Exception as error:
            failed(method.__qualname__, error)

    return guarded  # type: ignore[return-value]


def failed(place: str, error: Exception) -> None:
    """Log a failure, unless one of that place was logged."""
    if place in SAID:
        return
    SAID.add(place)
    words = f"{place} failed, the training goes on: {type(error).__name__}: {error}"
    _gpumem._log(words)
