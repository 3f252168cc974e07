"""Sizes as people type them: ``6GiB``, ``512 MB``."""

from __future__ import annotations

import re

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{prefix}IB": 1 << (10 * n) for n, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}B": 1000**n for n, prefix in enumerate("KMGT", 1)},
}


def size_bytes(text: str) -> int:
    """Return a size in bytes.

    Raises:
        ValueError: the text is not a size.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not a size: write 6GiB or 512MiB")
    return int(float(found[1]) * unit)
