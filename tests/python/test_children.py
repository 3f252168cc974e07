"""Child processes that a cell left running: their report, and how to end them."""

from __future__ import annotations

import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem._children import LivingChildren
from gpumem.details import Children

from tests.support.in_process import in_process
from tests.support.programs import until
from tests.support.shell import open_shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

pytestmark = [
    pytest.mark.ipython,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of child processes"),
]

ENGINE = """
import multiprocessing, signal
context = multiprocessing.get_context("fork")

def serve(ready):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    weights = bytearray(b"1") * (70 << 20)
    ready.set()
    signal.pause()

class LLM:
    def __init__(self, keeps=False):
        ready = context.Event()
        process = context.Process(target=serve, args=(ready,), name="EngineCore-1", daemon=True)
        process.start()
        assert ready.wait(60)
        if keeps:
            self.process = process
"""


@pytest.fixture
def shell(new_shell: Any) -> Iterator[Shell]:
    """Return a shell that records every cell, and end what its cells began."""
    made: Shell = new_shell()
    said(made, "%gpumem on", ENGINE)
    yield made
    children = LivingChildren()
    children.end(children.all)


def said(shell: Shell, *cells: str) -> str:
    """Run cells, and return what the last one printed and gpumem said of it."""
    out, n_lines = StringIO(), 0
    for cell in cells:
        out, n_lines = StringIO(), len(shell.lines)
        with redirect_stdout(out), redirect_stderr(out):
            shell.run_cell(cell, store_history=True)  # type: ignore[no-untyped-call]
    return "\n".join([out.getvalue(), *shell.lines[n_lines:]])


def found() -> list[gpumem.types.Finding]:
    """Return the findings about processes."""
    return [it for it in gpumem.report().findings if isinstance(it.details, Children)]


def test_engines_left_by_runs_are_a_leak_and_can_be_ended(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of `del llm`, which ends no process."""
    said(shell, *["llm = LLM()\ndel llm"] * 5)
    until(lambda: [it.kind for it in found()] == ["leak"])
    [leak] = found()
    assert isinstance(leak.details, Children)
    assert (leak.details.n_children, leak.details.handle) == (5, "lost")
    # Each has begun with its 70 MiB, but the last may not have been read since.
    until(lambda: "▲ 5 child processes hold 3" in gpumem.report().text(110))
    # Without input, no process ends.
    shown = said(shell, "%gpumem release children")
    assert "no process is ended, because this front end has no input" in shown
    pids = [it.pid for it in LivingChildren().all]
    assert len(pids) == 5
    # One by its id, then the rest.
    monkeypatch.setattr("builtins.input", lambda _: str(pids[0]))
    assert "ended 1 process that holds" in said(shell, "%gpumem release children")
    assert pids[0] not in {it.pid for it in LivingChildren().all}
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert "ended 4 processes that hold" in said(shell, "%gpumem release children")
    assert "no child process lives" in said(shell, "%gpumem release children")
    assert all(it.withdrawn == "let_go" for it in found())


def test_a_process_outlives_its_variable(shell: Shell) -> None:
    """What is held by a variable is no news; what lives on without it is."""
    said(shell, "llm = LLM(keeps=True)")
    [child] = LivingChildren().all
    assert (child.name, child.handle) == ("EngineCore-1", "held")
    until(lambda: LivingChildren().all[0].age_nanos > 10**9)
    said(shell, "1")
    assert found() == []
    shown = said(shell, "del llm")
    assert re.search(
        r"llm is deleted, but process \d+ that In \[\d+\] began holds [\d.]+ MiB", shown
    )
    assert LivingChildren().all[0].handle == "lost"


@in_process
def test_the_headline_counts_child_processes() -> None:
    """That of a session without an accelerator: other tests have used one."""
    shell = open_shell()
    said(shell, "%gpumem on", ENGINE, "llm = LLM(keeps=True)")
    children = LivingChildren()
    try:
        text = gpumem.report().text(300)
        assert text.startswith("Memory · no GPU: host memory of this process · ")
        size = r"[\d.]+ MiB of it by"
        assert re.search(f"in use, {size} this process, {size} child processes", text)
    finally:
        children.end(children.all)


def test_a_pool_that_stays_is_no_news(shell: Shell) -> None:
    """Neither is one that each run begins and ends, nor a program that has ended."""
    said(shell, "import subprocess, sys", "pool = context.Pool(2)")
    try:
        uses = "r = pool.map(abs, range(4))"
        makes = "with context.Pool(1) as other:\n    r = other.map(abs, range(4))\nother.join()"
        runs = "r = subprocess.run([sys.executable, '-c', ''], check=True)"
        said(shell, *[uses, makes, runs] * 4)
        assert found() == []
        assert [it.handle for it in LivingChildren().all] == ["held"] * 2
    finally:
        said(shell, "pool.terminate(); pool.join(); del pool, other")


def test_only_children_are_ended(shell: Shell) -> None:
    """Neither this process nor its parent is one, and a typing error ends nothing."""
    said(shell, "llm = LLM()")
    children = LivingChildren()
    for stranger in (os.getpid(), os.getppid(), 1):
        assert not children._found.end(stranger)
        with pytest.raises(ValueError, match="no living child"):
            gpumem.release("children", end=[stranger])
    assert "is no process id" in said(shell, "%gpumem release children 4x")
    assert "would ask to end 1 process" in said(shell, "%gpumem release")
    assert len(LivingChildren().all) == 1
