"""What a look finds when its cell's line has been shown: added to the line, or to the next one."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem, sim

from tests.python.test_kernel import TIMEOUT, Kernel, new_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks are late on Linux alone")

# A line waits for nothing, and a look takes longer than that.
PRELUDE = """
from gpumem import _gpumem, sim
sim.use(total_bytes=1 << 30)
_gpumem._set_look_patience(1)
rows = [[n] for n in range(200_000)]
big = lambda: sim.tensor(100 << 20)
"""
KEPT = "+100 MiB kept"
FOUND = "◆ IPython keeps 100 MiB that no name of yours reaches"


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    with new_kernel(tmp_path) as kernel:
        kernel.run(PRELUDE)
        kernel.run("%gpumem on")
        yield kernel


def update(kernel: Kernel) -> str:
    """Wait until an output is updated, and return its text."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=TIMEOUT)
        if message["msg_type"] == "update_display_data":
            text: str = message["content"]["data"]["text/plain"]
            return text


def test_an_idle_kernel_adds_a_finding_to_the_line_of_its_cell(kernel: Kernel) -> None:
    ran = kernel.run("big()")
    [line] = ran.lines
    assert line.startswith(KEPT)
    assert FOUND not in line
    updated = update(kernel)
    assert updated.startswith(f"{line}\n{FOUND}")


@pytest.fixture
def shell(new_shell: Any) -> Iterator[Any]:
    made = new_shell()
    made.run(PRELUDE)
    made.run("%gpumem on")
    yield made
    made.user_ns.pop("rows")
    _gpumem._set_look_patience(60_000)


def test_a_shell_that_updates_nothing_has_the_next_line_say_it(shell: Any) -> None:
    shell.run("big()")
    [line] = [line for line in shell.lines if KEPT in line]
    assert FOUND not in line
    n_answered = _gpumem._looks()[1]
    while _gpumem._looks()[1] == n_answered:
        shell.run("pass")
        time.sleep(0.01)
    shell.run("%%gpumem\npass")
    first, second, *_ = shell.lines[-1].splitlines()
    assert (first, second[: len(FOUND)]) == ("In [3]:", FOUND)
    assert "kept nothing" in shell.lines[-1]


def looked_at() -> list[str]:
    """Return the names that the recorded looks found."""
    looks = json.loads(gpumem.report().to_json())["holders"]
    return [it["name"] for look in looks for it in look["roots"]]


@pytest.fixture
def unseen(new_shell: Any) -> Any:
    """Return a shell whose latest run kept a tensor and had no time for a look."""
    shell = new_shell()
    shell.user_ns.update(sim=sim)
    shell.run("sim.use(total_bytes=1 << 30)")
    _gpumem._testing.use_up_looks()
    shell.run("%%gpumem\nkept = sim.tensor(100 << 20)")
    return shell


@pytest.mark.usefixtures("unseen")
def test_a_run_without_time_for_a_look_has_one_when_it_is_read() -> None:
    assert looked_at() == ["kept"]


def test_what_another_cell_makes_is_not_laid_to_the_run(unseen: Any) -> None:
    unseen.run("other = sim.tensor(200 << 20)")
    unseen.run("pass")
    assert looked_at() == []
