"""The options of the mark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST_RUNS = 5
"""Fewer calls are not enough to tell a leak from a warm-up."""


@dataclass(frozen=True)
class Options:
    """Options of ``@pytest.mark.gpumem``."""

    no_leak: bool = True
    peak_bytes: int | None = None
    runs: int = 10


def options(args: tuple[Any, ...], given: Mapping[str, Any]) -> Options:
    """Return the options of a mark, or fail the test that has it."""
    from gpumem._sizes import size_bytes

    unknown = sorted(given.keys() - {"no_leak", "peak", "runs"})
    if args or unknown:
        wrong = ", ".join([*map(repr, args), *unknown])
        raise pytest.UsageError(f"gpumem: unknown {wrong}: there is no_leak, peak, runs")
    peak, no_leak, runs = given.get("peak"), given.get("no_leak", True), given.get("runs", 10)
    least = LEAST_RUNS if no_leak else 1
    if not isinstance(runs, int) or runs < least:
        raise pytest.UsageError(f"gpumem: runs must be a number from {least} on, not {runs!r}")
    try:
        peak_bytes = size_bytes(peak) if isinstance(peak, str) else peak
    except ValueError as error:
        raise pytest.UsageError(f"gpumem: peak: {error}") from None
    return Options(no_leak, peak_bytes, runs)
