"""The name that was probably meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Return a hint for a message, or nothing if no name is close."""
    close = get_close_matches(typed, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
