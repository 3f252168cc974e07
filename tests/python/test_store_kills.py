"""Kernels that are killed at random moments: every run whose line was printed is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLED = Path(__file__).with_name("killed.py")
# More take minutes: ten kernels are killed in two seconds.
N_KILLS = int(os.environ.get("GPUMEM_STORE_KILLS", "20"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kernels are forked")


def killed(folder: Path, *options: str) -> dict[str, list[list[int]] | int]:
    command = [sys.executable, str(KILLED), str(folder), str(N_KILLS), *options]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, list[list[int]] | int] = json.loads(output)
    return found


def test_no_run_whose_line_was_printed_is_lost(tmp_path: Path) -> None:
    found = killed(tmp_path)
    assert found["lost"] == []
    assert found["printed"] >= N_KILLS
    assert found["filled"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="a small disk is made there only")
def test_nor_while_the_disk_fills(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nobody may mount a disk here")
    try:
        found = killed(tmp_path, "--full")
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=False)
    assert found["lost"] == []
    assert found["filled"] != 0
