"""Every test may order failures, and none writes where the user's Jupyter keeps its data."""

from __future__ import annotations

import gc
import os
import tempfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# Read once, when the extension is imported, here and in the processes that tests start.
os.environ["GPUMEM_TESTING"] = "1"


def pytest_collection_finish() -> None:
    """Keep what pytest has collected out of the collector's lists, which every look reads."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_data_folder() -> Iterator[None]:
    """Keep what sessions write in a folder of this run, also of the processes that tests start."""
    usual = os.environ.get("JUPYTER_DATA_DIR")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["JUPYTER_DATA_DIR"] = folder
        yield
    if usual is None:
        del os.environ["JUPYTER_DATA_DIR"]
    else:
        os.environ["JUPYTER_DATA_DIR"] = usual
