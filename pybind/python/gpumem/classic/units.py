"""Numbers of bytes as gpu-memory-profiler writes and converts them."""

_TEXT_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def format_bytes(bytes_value: float, precision: int = 2) -> str:
    """Return a number of bytes as text, in units of 1024: ``"1.25 GB"``."""
    if bytes_value == 0:
        return "0 B"
    size, idx = float(bytes_value), 0
    while size >= 1024 and idx < len(_TEXT_UNITS) - 1:  # noqa: PLR2004 (the units' factor)
        size, idx = size / 1024, idx + 1
    return f"{size:.{precision}f} {_TEXT_UNITS[idx]}"


def convert_bytes(value: float, from_unit: str, to_unit: str) -> float:
    """Convert between ``B``, ``KB``, ``MB``, ``GB`` and ``TB``, in units of 1024.

    Raises:
        ValueError: there is no such unit.
    """
    for unit in (from_unit, to_unit):
        if unit not in _UNITS:
            raise ValueError(f"unknown unit {unit!r}: there are {', '.join(_UNITS)}")
    return value * _UNITS[from_unit] / _UNITS[to_unit]
