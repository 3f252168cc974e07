"""The demonstration without a screen, as people start it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "target" / "demo"
PNG = b"\x89PNG\r\n\x1a\n"


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    xtask = os.environ.get("GPUMEM_XTASK")
    if xtask is None:
        pytest.fail("GPUMEM_XTASK is not set: run cargo xtask test demo")
    command = [xtask, "demo", "--headless", *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT / "tests")


def demo_of(folder: Path, cells: Sequence[str]) -> subprocess.CompletedProcess[str]:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, folder / "written-by-a-test.ipynb")
    return demo("--notebook", str(folder / "written-by-a-test.ipynb"))


@pytest.fixture(scope="module")
def quickstart() -> subprocess.CompletedProcess[str]:
    for name in ("quickstart.html", "report.png"):
        (DEMO / name).unlink(missing_ok=True)
    return demo()


def test_quickstart_runs_and_prints_its_report(
    quickstart: subprocess.CompletedProcess[str],
) -> None:
    assert quickstart.returncode == 0, quickstart.stderr
    said = quickstart.stdout
    assert "\n▲ losses leaks 64 MiB a step\n" in said
    assert "\n▲ losses.append(model(batch).sum()) " in said


def test_quickstart_says_where_its_page_and_picture_are(
    quickstart: subprocess.CompletedProcess[str],
) -> None:
    *_, page, picture = quickstart.stdout.splitlines()
    assert page == f"wrote {DEMO / 'quickstart.html'}"
    assert picture == f"wrote {DEMO / 'report.png'}"


def test_quickstart_leaves_a_picture(quickstart: subprocess.CompletedProcess[str]) -> None:
    assert quickstart.returncode == 0, quickstart.stderr
    picture = (DEMO / "report.png").read_bytes()
    assert picture.startswith(PNG)
    assert len(picture) <= 90_000


def test_quickstart_leaves_a_page_that_loads_nothing(
    quickstart: subprocess.CompletedProcess[str],
) -> None:
    assert quickstart.returncode == 0, quickstart.stderr
    page = (DEMO / "quickstart.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert re.findall(r"""(?:src|href)=["']https?:[^"']*\.(?:js|css)""", page) == []
    assert re.findall(r"""<script[^>]*src=["'][^"']+""", page) == []


def test_a_cell_that_fails_ends_it_with_its_error(tmp_path: Path) -> None:
    ended = demo_of(tmp_path, ["n = 0", "1 / n"])
    assert ended.returncode == 1
    assert "cell 2 of written-by-a-test.ipynb failed: ZeroDivisionError" in ended.stderr
    assert "----> 1 1 / n" in ended.stderr


def test_a_notebook_that_is_missing_is_one_clear_line() -> None:
    ended = demo("--notebook", "no-such.ipynb")
    assert ended.returncode == 1
    [line] = filter(None, ended.stderr.splitlines())
    assert line.startswith("error: copying no-such.ipynb: ")


def test_the_checkout_stays_as_it_is() -> None:
    status = ["git", "status", "--porcelain", "--", "notebooks"]
    before = subprocess.run(status, cwd=ROOT, check=True, capture_output=True, text=True)
    assert demo().returncode == 0
    after = subprocess.run(status, cwd=ROOT, check=True, capture_output=True, text=True)
    assert before.stdout == after.stdout
