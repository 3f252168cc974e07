"""Build the widget where it is missing, then hand over to maturin.

A source distribution carries the built widget and needs only maturin. A fresh
checkout does not, and ``pip install ./pybind`` from one has to work by itself.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import maturin

_PACKAGE = Path(__file__).parent / "python" / "gpumem"
_WORKSPACE = Path(__file__).parent.parent

Settings = dict[str, Any] | None


def _ensure_widget() -> None:
    if (_PACKAGE / "static").is_dir():
        return
    if not (_WORKSPACE / "xtask").is_dir():
        missing = f"{_PACKAGE / 'static'} is missing, and this is no checkout to build it from"
        raise RuntimeError(missing)
    subprocess.run(  # noqa: S603 (a fixed command in our own checkout)
        [os.environ.get("CARGO", "cargo"), "xtask", "build", "--widget-only"],
        cwd=_WORKSPACE,
        check=True,
    )


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel into a folder and return its name."""
    _ensure_widget()
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Pack the sources into a folder and return the archive's name."""
    _ensure_widget()
    name: str = maturin.build_sdist(sdist_directory, config_settings)
    return name


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel that points back to these sources and return its name."""
    _ensure_widget()
    name: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
