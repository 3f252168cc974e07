"""After an internal failure nothing is recorded, and cells to be recorded print the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _gpumem, widget

from tests.support.programs import run_python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

WORDS = "panic: panic requested by a test"
GO_ON = "Your cells are not affected. `%gpumem on` records again."


@pytest.fixture
def stopped(shell: Shell) -> Shell:
    """Return a shell in which something of ours failed in its second cell."""
    shell.run("1")
    _gpumem._testing.panic_in_next_callback()
    shell.run("2")
    return shell


def says_so(text: str) -> bool:
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return first.startswith(f"recording stopped after In [2]: {WORDS}") and first.endswith(GO_ON)


def said_by(shell: Shell, cell: str) -> list[str]:
    """Return our lines below a cell, which works as ever."""
    n_lines = len(shell.lines)
    assert shell.run(cell).errors == ["None", "None"]
    return shell.lines[n_lines:]


def test_each_cell_with_the_magic_prints_the_reason(stopped: Shell) -> None:
    for _ in range(3):
        (line,) = said_by(stopped, "%%gpumem\nx = 1")
        assert "\n" not in line
        assert says_so(line)
        assert said_by(stopped, "x = 1") == []
    assert said_by(stopped, "%%gpumem --quiet\nx = 1") == []


def test_with_every_cell_recorded_it_is_said_once(shell: Shell) -> None:
    shell.run("%gpumem on")
    _gpumem._testing.panic_in_next_callback()
    (line,) = said_by(shell, "x = 1")
    assert says_so(line)
    assert said_by(shell, "x = 2") == []
    (line,) = said_by(shell, "%%gpumem\nx = 3")
    assert says_so(line)


@pytest.mark.parametrize("at_end", [False, True])
def test_the_cell_of_the_failure_is_named(shell: Shell, *, at_end: bool) -> None:
    shell.run("from gpumem import _gpumem")
    if at_end:
        shell.run("_gpumem._testing.panic_in_next_callback()")
    else:
        _gpumem._testing.panic_in_next_callback()
        shell.run("x = 1")
    assert says_so(_gpumem._stopped() or "")


def test_a_cell_without_a_number_leaves_it_out(shell: Shell) -> None:
    _gpumem._testing.panic_in_next_callback()
    shell.run("x = 1", store_history=False)
    assert (_gpumem._stopped() or "").startswith(f"recording stopped: {WORDS}")


def test_without_a_run_the_report_asks_for_none(shell: Shell) -> None:
    _gpumem._testing.panic_in_next_callback()
    shell.run("1")
    text = gpumem.report().text()
    assert " ".join(text.split()) == _gpumem._stopped()
    assert " ".join(text.split()).endswith(GO_ON)


@pytest.mark.parametrize("ask", ["%gpumem", "%gpumem status", "%gpumem_report --text"])
def test_every_view_says_so_at_its_top(stopped: Shell, ask: str) -> None:
    (said,) = said_by(stopped, ask)
    assert says_so(said.replace(GO_ON, f"{GO_ON}\n\n", 1))
    stopped.run("%gpumem on")
    (said,) = said_by(stopped, ask)
    assert "stopped" not in said


def test_the_report_says_so_wherever_it_is_shown(stopped: Shell, tmp_path: Path) -> None:
    report = gpumem.report()
    assert says_so(report.text())
    assert max(len(line) for line in report.text(60).splitlines()[:4]) <= 60
    assert says_so(widget.live(report).notice)
    report.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert says_so(page.partition('<p id="notice">')[2].partition("</p>")[0])
    stopped.run("%gpumem baseline before\n%gpumem_report --compare before --text")
    assert says_so(stopped.lines[-1])
    # A recording that was kept is about another time.
    assert gpumem.report(gpumem.recording()).notice is None


def test_what_goes_on_has_no_notice(shell: Shell, tmp_path: Path) -> None:
    shell.run("%%gpumem\nx = 1")
    gpumem.report().save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<p id="notice"></p>' in page


FIRST = """
from tests.support.shell import open_shell
shell = open_shell()
from gpumem import _gpumem, report
_gpumem._testing.panic_in_next_callback()

def said(cell):
    shell.display_pub.outputs.clear()
    shell.run_cell(cell, store_history=True).raise_error()
    return [output["data"]["text/plain"] for output in shell.display_pub.outputs]

lines = said("%%gpumem\\nx = 1")
assert lines and lines[0].startswith("recording stopped after In [1]: panic"), lines
assert said("%%gpumem\\nx = 2") == lines
assert lines[0] in said("%gpumem status")[0]
assert report().runs == []
assert said("%gpumem on")[0].startswith("recording every cell")
said("%%gpumem\\nimport gpumem\\nwith gpumem.record('block'):\\n    x = 3\\ngpumem.mark('mark')")
said("x = 4")
said("%%gpumem --trace\\nx = 5")
rows = [(row["label"], row["status"]) for row in report().runs if row["device"] == "host"]
assert rows == [(None, "ok"), ("block", "ok"), (None, "ok"), (None, "ok")], rows
print("went on")
"""


def test_a_failure_in_the_first_run_is_survived(tmp_path: Path) -> None:
    ran = run_python("-c", FIRST, cwd=tmp_path, IPYTHONDIR=str(tmp_path))
    assert ran.stdout.endswith("went on\n"), ran.stderr
    assert ran.stderr.startswith(f"recording stopped: {WORDS}")


def test_after_going_on_blocks_and_marks_are_recorded(stopped: Shell) -> None:
    stopped.run("%gpumem on")
    stopped.user_ns["gpumem"] = gpumem
    stopped.run(
        "from gpumem import sim\nsim.use()\nkept = []\n"
        "for _ in gpumem.steps(range(12), 'loop'):\n    kept.append(sim.tensor(1 << 26))\n"
        "with gpumem.record('block'):\n    x = 1"
    )
    report = gpumem.report()
    assert "block" in [row["label"] for row in report.runs]
    assert any("loop" in finding.path for finding in report.findings)
