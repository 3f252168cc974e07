"""The bands of a memory snapshot: a block over its life, in the chart of the trace."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from tests.python.snapshots import with_settings

from .live import FRAMES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

# The plot's edges in the chart, and the highest level.
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 22, 198
HIGHEST_MIB = 38


def test_a_band_says_what_its_block_is(open_file: Callable[..., Page], tmp_path: Path) -> None:
    source = tmp_path / "snapshot.pickle"
    source.write_bytes(pickle.dumps(with_settings()))
    page = open_file(source)
    canvas = page.locator("canvas[data-chart=levels]")
    box = canvas.bounding_box()
    assert box is not None

    def read(event: float, mib: float) -> str:
        x = LEFT + event / 8 * (box["width"] - LEFT - RIGHT)
        y = BOTTOM - mib / HIGHEST_MIB * (BOTTOM - TOP)
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.evaluate(FRAMES)
        reading = page.locator("figure:has(canvas[data-chart=levels]) + .reading")
        return str(reading.inner_text())

    of_peak = "here 19 MiB from event 5 to 6, for 1 µs, by lm/train.py:21 in step"
    assert of_peak in read(5.5, 15)
    assert "here 6 MiB from event 4 to the end, for 4 µs, by lm/train.py:7 in step" in read(7, 3)
    assert "here" not in read(2, 3)
    assert "here" not in read(7, 15)
