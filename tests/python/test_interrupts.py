"""A Ctrl-C that comes while something of ours runs ends the user's cell, as it would without us.

A stand-in for a framework raises it while its levels are read.
"""

from __future__ import annotations

import signal
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.support.programs import output_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Shell

pytestmark = pytest.mark.python


@pytest.fixture
def press(
    ctrl_c: None,  # noqa: ARG001 (has the handler that is pressed)
    monkeypatch: pytest.MonkeyPatch,
    shell: Shell,
) -> Callable[[int], None]:
    """Return a function that makes the n-th read of torch from now press Ctrl-C."""
    reads = SimpleNamespace(n_left=0)

    def is_initialized() -> bool:
        reads.n_left -= 1
        if reads.n_left == 0:
            signal.raise_signal(signal.SIGINT)
        return False

    torch: Any = ModuleType("torch")
    torch.cuda = SimpleNamespace(is_initialized=is_initialized)
    monkeypatch.setitem(sys.modules, "torch", torch)

    def press_in(n: int) -> None:
        reads.n_left = n

    shell.user_ns.update(press=press_in, gpumem=gpumem)
    return press_in


def last_status() -> str:
    cells = [row for row in gpumem.report().runs if row["parent"] is None]
    status: str = cells[-1]["status"]
    return status


def check(shell: Shell, cell: str, *, runs: bool, status: str) -> None:
    """Run a cell in which Ctrl-C is pressed; `x` shows whether its code ran."""
    shell.user_ns["x"] = 0
    ran = shell.run(cell)
    assert isinstance(ran.raw.error_in_exec, KeyboardInterrupt)
    assert "KeyboardInterrupt" in ran.stdout
    assert "Error in callback" not in ran.stdout
    assert (shell.user_ns["x"] == 1) == runs
    assert last_status() == status
    assert shell.ast_transformers == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    after = shell.run("%%gpumem --quiet\ny = 2")
    assert after.errors == ["None", "None"]
    assert last_status() == "ok"


def test_one_before_the_cell_ends_it_before_its_first_line(
    shell: Shell, press: Callable[[int], None]
) -> None:
    press(1)
    check(shell, "%%gpumem --quiet\nx = 1", runs=False, status="interrupted")


def test_one_after_the_cell_ends_it_all_the_same(
    shell: Shell, press: Callable[[int], None]
) -> None:
    press(2)
    check(shell, "%%gpumem --quiet\nx = 1", runs=True, status="ok")


def test_one_in_a_mark_ends_the_loop(shell: Shell, press: Callable[[int], None]) -> None:
    del press
    cell = "%%gpumem --quiet\npress(2)\nfor x in range(1, 10):\n    gpumem.mark()\n    y = [x]"
    check(shell, cell.replace("range(1, 10)", "(5, 1, 6)"), runs=True, status="interrupted")


@pytest.mark.parametrize(
    ("n", "runs"), [pytest.param(1, False, id="begin"), pytest.param(2, True, id="end")]
)
def test_one_at_the_ends_of_a_block_ends_the_cell(
    shell: Shell, press: Callable[[int], None], n: int, *, runs: bool
) -> None:
    del press
    block = "with gpumem.record('a'):\n    len('')\n    x = 1\nlen('')\nz = 1"
    check(shell, f"%%gpumem --quiet\npress({n})\n{block}", runs=runs, status="interrupted")
    assert "z" not in shell.user_ns


def test_one_before_a_cell_that_does_not_parse_is_not_kept(
    shell: Shell, press: Callable[[int], None]
) -> None:
    press(1)
    ran = shell.run("%%gpumem --quiet\nx = = 1")
    assert isinstance(ran.raw.error_before_exec, SyntaxError)
    assert shell.ast_transformers == []


def test_a_handler_of_the_users_is_left_in_its_place(
    shell: Shell, press: Callable[[int], None]
) -> None:
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        press(1)
        ran = shell.run("%%gpumem --quiet\nx = 1")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.errors == ["None", "None"]
    assert pressed == [signal.SIGINT]


@pytest.fixture
def in_ours(shell: Shell, press: Callable[[int], None]) -> list[Any]:
    """Have code of the user's set its own handler while something of ours runs, once."""
    del press
    handlers: list[Any] = []

    def is_initialized() -> bool:
        if not handlers:
            handlers.append(signal.signal(signal.SIGINT, own))
        return False

    def own(number: int, _frame: object) -> None:
        handlers.append(number)

    sys.modules["torch"].cuda.is_initialized = is_initialized
    shell.user_ns["restore"] = lambda: signal.signal(signal.SIGINT, handlers[0])
    shell.run("%%gpumem --quiet\nx = 1")
    return handlers


def test_a_handler_set_inside_of_ours_stays(shell: Shell, in_ours: list[Any]) -> None:
    assert shell.run("import signal\nsignal.raise_signal(signal.SIGINT)").errors == ["None", "None"]
    assert in_ours[1:] == [signal.SIGINT]


def test_a_handler_of_ours_that_is_put_back_later_raises(shell: Shell, in_ours: list[Any]) -> None:
    ran = shell.run("import signal\nrestore()\nsignal.raise_signal(signal.SIGINT)\nx = 2")
    assert isinstance(ran.raw.error_in_exec, KeyboardInterrupt)
    assert shell.user_ns["x"] == 1
    shell.run("%%gpumem --quiet\nx = 3")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(in_ours) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists a thread's signals")
def test_no_signal_is_handled_by_a_thread_of_ours() -> None:
    script = """
import time
from pathlib import Path
import gpumem
def of_ours():
    tasks = Path("/proc/self/task").iterdir()
    return [it for it in tasks if (it / "comm").read_text().startswith("gpumem-")]
with gpumem.record("a"):
    # A thread takes its name when it first runs.
    while not of_ours():
        time.sleep(0.001)
    for task in of_ours():
        status = (task / "status").read_text()
        print(status.split("SigBlk:")[1].split()[0])
"""
    blocked = [int(line, 16) for line in output_of("-c", script).split()]
    assert blocked
    for mask in blocked:
        assert all(mask >> (it - 1) & 1 for it in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM))
