"""Build the page beside the extension if it is missing; maturin does all else.

A source distribution carries the built page and needs only maturin. A fresh
checkout does not, and ``pip install .`` from one has to work by itself.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import maturin

_STATIC = Path(__file__).parent / "python" / "gpumem" / "static"
_WORKSPACE = Path(__file__).parent.parent

Settings = dict[str, Any] | None


def _ensure_page(config_settings: Settings, *, compiles: bool) -> None:
    """Build the page; meanwhile compile the extension, so that both keep all cores busy."""
    if _STATIC.is_dir():
        return
    if not (_WORKSPACE / "xtask").is_dir():
        raise RuntimeError(f"{_STATIC} is missing, and this is no checkout to build it from")
    command = [os.environ.get("CARGO", "cargo"), "xtask", "build", "--widget-only"]
    with subprocess.Popen(command, cwd=_WORKSPACE) as page:  # noqa: S603 (a fixed command)
        if compiles:
            with tempfile.TemporaryDirectory() as without_page:
                maturin.build_wheel(without_page, config_settings)
    if page.returncode != 0:
        raise subprocess.CalledProcessError(page.returncode, command)


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel into a folder and return its name."""
    _ensure_page(config_settings, compiles=True)
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Pack the sources into a folder and return the archive's name."""
    _ensure_page(config_settings, compiles=False)
    name: str = maturin.build_sdist(sdist_directory, config_settings)
    return name


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel that points back to these sources and return its name."""
    _ensure_page(config_settings, compiles=False)
    name: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
