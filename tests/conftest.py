"""Every test may order failures, and none writes where the user's Jupyter keeps its data."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# Read once, when the extension is imported, here and in the processes that tests start.
os.environ["GPUMEM_TESTING"] = "1"

# `cargo xtask test` runs what failed a second time.
FAILED = os.environ.get("GPUMEM_FAILED_TESTS")
IS_SECOND_TRY = "GPUMEM_SECOND_TRY" in os.environ


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what failed in the first try. An alarm counts then, too, and is not tried again."""
    if not (FAILED and IS_SECOND_TRY):
        return
    failed = set(Path(FAILED).read_text(encoding="utf-8").splitlines())
    kept = [it for it in items if it.nodeid in failed and not it.get_closest_marker("first_try")]
    config.hook.pytest_deselected(items=[it for it in items if it not in kept])
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what failed, in the process that hears of all."""
    if FAILED and report.failed and not IS_SECOND_TRY and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(FAILED).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


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
