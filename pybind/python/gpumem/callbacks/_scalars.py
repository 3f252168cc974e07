"""Levels as numbers that a tracker draws."""

from __future__ import annotations

import re

from gpumem import _gpumem

REFUSED = re.compile(r"[^A-Za-z0-9_.-]")
"""Letters of a device's label that a tracker may refuse."""

JUDGED = ("allocated", "process_used", "device_used")
"""The level that growth is judged on: the first one known."""


class Scalars:
    """The levels of a training, from its beginning."""

    def __init__(self) -> None:
        """Read where the levels begin."""
        self._begun = _levels()
        self._highest: dict[str, int] = {}

    def now(self) -> dict[str, int]:
        """Return each device's levels and its peak, in bytes.

        The peak is the highest level since the beginning: exact if the allocator's own counter
        shows it, else the highest that was read here.
        """
        return self._named(_levels())

    def at_end(self) -> dict[str, int]:
        """Return the same, and what was kept since the beginning."""
        levels = _levels()
        values = self._named(levels)
        for label, device in levels.items():
            metric = _metric(device)
            before = self._begun.get(label, {}).get(metric)
            if before is not None:
                values[_name(label, "kept")] = device[metric] - before
        return values

    def _named(self, levels: dict[str, dict[str, int]]) -> dict[str, int]:
        values = {}
        for label, device in levels.items():
            values.update(
                {_name(label, level): n for level, n in device.items() if level != "peak_counter"}
            )
            values[_name(label, "peak")] = self._peak(label, device)
        return values

    def _peak(self, label: str, device: dict[str, int]) -> int:
        begun = self._begun.get(label, {})
        counter = device.get("peak_counter")
        # A counter that stands where it stood is of before.
        own = [counter] if counter is not None and counter != begun.get("peak_counter") else []
        metric = _metric(device)
        read = [self._highest.get(label, 0), begun.get(metric, 0), device[metric]]
        self._highest[label] = max(*read, *own)
        return self._highest[label]


def _metric(device: dict[str, int]) -> str:
    return next(level for level in JUDGED if level in device)


def _levels() -> dict[str, dict[str, int]]:
    """Return the known levels of each accelerator; of the host if there is none."""
    known = [
        (label, is_host, dict(levels))
        for label, is_host, levels in _gpumem.device_scalars()
        if any(level in JUDGED for level, _ in levels)
    ]
    accelerators = {label: levels for label, is_host, levels in known if not is_host}
    return accelerators or {label: levels for label, _, levels in known}


def _name(label: str, level: str) -> str:
    """Return a name that every tracker accepts: MLflow on Windows takes no colon."""
    return f"gpumem/{REFUSED.sub('_', label)}/{level}_bytes"
