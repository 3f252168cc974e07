"""The same recording, judged by the extension and by the page's module."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import gpumem
import pytest

from .live import ReportPage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .live import Guarded

TOLERANCE = 1e-9


@pytest.mark.parametrize("name", ["leak", "one", "thousand"])
def test_both_come_to_the_same_report(
    name: str,
    recordings: dict[str, gpumem.Recording],
    open_page: Callable[..., Guarded],
    tmp_path: Path,
) -> None:
    """Numbers agree within 1e-9 of their size, all else to the letter."""
    report = gpumem.report(recordings[name])
    path = tmp_path / "report.html"
    report.save(path)
    page = ReportPage(open_page(path.as_uri()).page)
    differences = list(_differences(json.loads(report.to_json()), json.loads(page.report_json())))
    assert differences == []


def _differences(native: object, wasm: object, path: str = "") -> list[str]:
    if isinstance(native, dict) and isinstance(wasm, dict) and native.keys() == wasm.keys():
        return [d for key in native for d in _differences(native[key], wasm[key], f"{path}.{key}")]
    if isinstance(native, list) and isinstance(wasm, list) and len(native) == len(wasm):
        pairs = enumerate(zip(native, wasm, strict=True))
        return [d for idx, (a, b) in pairs for d in _differences(a, b, f"{path}[{idx}]")]
    if isinstance(native, float) and isinstance(wasm, int | float):
        same = math.isclose(native, wasm, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    else:
        same = native == wasm and type(native) is type(wasm)
    return [] if same else [f"{path}: {native!r} natively, {wasm!r} in the page"]
