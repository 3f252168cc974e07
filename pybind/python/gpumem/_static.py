"""The files of the pages, as the build put them into the package."""

from __future__ import annotations

from pathlib import Path

from gpumem._gpumem import GpuMemError

_FOLDER = Path(__file__).parent / "static"


def built(name: str) -> Path:
    """Return a file's path; raises ``GpuMemError`` where this build has no pages."""
    path = _FOLDER / name
    if not path.is_file():
        message = f"this build of gpumem has no widget: {path} is missing\nhint: cargo xtask build"
        raise GpuMemError(message)
    return path
