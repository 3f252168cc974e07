"""Kernels that are killed at random moments: every run whose line was printed is kept."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import gpumem
import pytest

from tests.python.played import command
from tests.python.test_store import folder, kept

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["folder", "kept"]

KILLED = Path(__file__).with_name("killed.py")
# More take minutes: ten kernels are killed in two seconds.
N_KILLS = int(os.environ.get("GPUMEM_STORE_KILLS", "10"))

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


@pytest.fixture
def small_group() -> Iterator[Path]:
    """Return a control group with 300 MB whose kills are logged or counted."""
    group = Path("/sys/fs/cgroup/memory", f"gpumem-{os.getpid()}")
    limit = "memory.limit_in_bytes"
    if not group.parent.is_dir():
        group, limit = Path("/sys/fs/cgroup", group.name), "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(300 << 20))
        if limit != "memory.max":
            os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip("nobody may make a control group here, or read the system's log")
    yield group
    group.rmdir()


GREEDY = """
    open(sys.argv[2], "w").write(str(os.getpid()))
    run("%gpumem on\\nkept = []")
    run("while True:\\n    kept.append(b'x' * (20 << 20)); time.sleep(0.05)")
"""


@pytest.mark.usefixtures("kept")
def test_a_kill_by_the_system_is_recognised(folder: Path, small_group: Path) -> None:
    greedy = [*command(folder, GREEDY), str(small_group / "cgroup.procs")]
    assert subprocess.run(greedy, check=False).returncode == -signal.SIGKILL
    (session,) = gpumem.sessions()
    assert (session.ending, session.n_runs) == ("killed_by_system", 1)
    text = gpumem.report(gpumem.open_session(session.id)).text()
    assert "◆ The kernel died in In [2]. It had grown by " in text
