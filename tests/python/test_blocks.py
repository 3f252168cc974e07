"""`gpumem.record`: runs inside a cell's run, in threads and tasks too."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim

from tests.support.programs import run_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.python.conftest import Shell

pytestmark = pytest.mark.python

MIB = 1 << 20


@pytest.fixture
def recorded(shell: Shell) -> Shell:
    """Return a shell that records every cell, on a simulated device."""
    sim.use(1 << 30)
    shell.run("import asyncio, threading, gpumem\nfrom gpumem import sim\nkept = []")
    shell.run("%gpumem on")
    return shell


def rows(device: str = "sim:0") -> list[dict[str, Any]]:
    return [row for row in gpumem.report().runs if row["device"] == device]


def tree() -> list[str]:
    """Each run as its path, in the order begun; the cell's own is empty."""
    paths: dict[int, str] = {}
    for row in rows("host"):
        around = paths.get(row["parent"])
        name = row["label"] or ""
        paths[row["run"]] = name if around is None else f"{around}/{name}"
    return list(paths.values())


def check(shell: Shell, cell: str, *expected: str) -> None:
    outcome = shell.run(cell)
    assert outcome.errors == ["None", "None"], outcome.errors
    assert tree() == ["", *expected]


def test_blocks_nest(recorded: Shell) -> None:
    cell = """
with gpumem.record("epoch"):
    with gpumem.record("forward"):
        kept.append(sim.tensor(8 << 20))
    with gpumem.record("backward"):
        pass
"""
    check(recorded, cell, "/epoch", "/epoch/forward", "/epoch/backward")
    assert [row["kept_bytes"] for row in rows()] == [8 * MIB, 8 * MIB, 8 * MIB, 0]


def test_a_function_is_a_block_under_its_name(recorded: Shell) -> None:
    cell = """
@gpumem.record
def bare(n, *, times=1):
    "The doc."
    return n * times

@gpumem.record("named")
def other():
    return bare(2)

class Model:
    @gpumem.record
    def forward(self):
        return other()

    @gpumem.record
    @staticmethod
    def build():
        return Model()

assert bare(2, times=3) == 6
assert Model.build().forward() == 2
assert (bare.__name__, bare.__doc__) == ("bare", "The doc.")
"""
    forward = "/Model.forward"
    check(
        recorded,
        cell,
        "/bare",
        "/Model.build",
        forward,
        f"{forward}/named",
        f"{forward}/named/bare",
    )


def test_each_thread_has_its_own_blocks(recorded: Shell) -> None:
    cell = """
barrier = threading.Barrier(2, timeout=30)

def work(name):
    with gpumem.record(name):
        barrier.wait()
        with gpumem.record("inner"):
            barrier.wait()

with gpumem.record("main"):
    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
    assert recorded.run(cell).errors == ["None", "None"]
    assert sorted(tree()) == ["", "/a", "/a/inner", "/b", "/b/inner", "/main"]


def test_each_task_has_its_own_blocks(recorded: Shell) -> None:
    cell = """
@gpumem.record
async def job(n):
    await asyncio.sleep(0)
    with gpumem.record(f"step {n}"):
        await asyncio.sleep(0)

with gpumem.record("main"):
    await asyncio.gather(job(1), job(2))
    with gpumem.record("after"):
        pass
"""
    assert recorded.run(cell).errors == ["None", "None"]
    assert sorted(tree()) == [
        "",
        "/main",
        "/main/after",
        "/main/job",
        "/main/job",
        "/main/job/step 1",
        "/main/job/step 2",
    ]


def test_a_generator_is_inside_its_block_only_while_it_runs(recorded: Shell) -> None:
    cell = """
@gpumem.record
def batches():
    for n in range(2):
        with gpumem.record("load"):
            pass
        got = yield n
    return got

with gpumem.record("loop"):
    running = batches()
    assert next(running) == 0
    with gpumem.record("step"):
        assert running.send("x") == 1
    try:
        running.send("last")
    except StopIteration as stop:
        assert stop.value == "last"
    with gpumem.record("after"):
        pass
"""
    check(
        recorded,
        cell,
        "/loop",
        "/loop/batches",
        "/loop/batches/load",
        "/loop/step",
        "/loop/batches/load",
        "/loop/after",
    )


def test_an_asynchronous_generator_too(recorded: Shell) -> None:
    cell = """
caught = []

@gpumem.record
async def batches():
    for n in range(2):
        with gpumem.record("load"):
            await asyncio.sleep(0)
        try:
            yield n
        except KeyError as error:
            caught.append(error)

running = batches()
with gpumem.record("loop"):
    assert await anext(running) == 0
    with gpumem.record("step"):
        assert await running.athrow(KeyError("x")) == 1
    async for _ in running:
        pass
    with gpumem.record("after"):
        pass
assert len(caught) == 1
"""
    check(
        recorded,
        cell,
        "/loop",
        "/loop/batches",
        "/loop/batches/load",
        "/loop/step",
        "/loop/batches/load",
        "/loop/after",
    )


def test_what_a_function_is_stays_seen() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def coroutine() -> None: ...

    assert inspect.isgeneratorfunction(gpumem.record(generator))
    assert inspect.iscoroutinefunction(gpumem.record(coroutine))
    assert asyncio.run(gpumem.record(coroutine)()) is None


def test_a_block_left_open_by_a_generator_holds_no_other(recorded: Shell) -> None:
    cell = """
def leaves():
    with gpumem.record("left"):
        yield

running = leaves()
next(running)
with gpumem.record("other"):
    running.close()
    with gpumem.record("inner"):
        pass
with gpumem.record("next"):
    pass
"""
    check(recorded, cell, "/left", "/left/other", "/left/other/inner", "/next")
    assert {row["status"] for row in rows()} == {"ok"}


def test_a_block_that_outlives_its_cell_ends_by_itself(recorded: Shell) -> None:
    recorded.run("late = gpumem.record('late')\nlate.__enter__()\nkept.append(sim.tensor(8 << 20))")
    recorded.run("kept.append(sim.tensor(16 << 20))")
    assert [row["status"] for row in rows()] == ["ok", "running", "ok"]
    recorded.run("late.__exit__(None, None, None)")
    cell, late, *_ = rows()
    assert late["parent"] == cell["run"]
    assert late["status"] == "ok"
    assert late["kept_bytes"] == 24 * MIB
    assert late["ended_nanos"] > cell["ended_nanos"]
    recorded.run("with gpumem.record('fresh'): pass")
    assert rows()[-1]["parent"] == rows()[-2]["run"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("ValueError('x')", "error"),
        ("KeyboardInterrupt()", "interrupted"),
        ("sim.OutOfMemoryError('x')", "out_of_memory"),
    ],
)
def test_an_exception_passes_through(recorded: Shell, error: str, status: str) -> None:
    recorded.run(f"raised = {error}")
    outcome = recorded.run("with gpumem.record('a'):\n    raise raised")
    assert recorded.user_ns["raised"] is not None
    assert outcome.last_type == type(recorded.user_ns["raised"]).__name__
    assert [row["status"] for row in rows()][-2:] == [status, status]


def test_outside_of_a_cell_a_block_is_a_run_of_its_own(shell: Shell) -> None:
    sim.use(1 << 30)
    kept = []
    for _ in range(9):
        with gpumem.record("step"):
            kept.append(sim.tensor(8 * MIB))
        with gpumem.record("other"):
            pass
    assert {row["parent"] for row in rows()} == {None}
    (leak,) = [each for each in gpumem.report().findings if each.device == "sim:0"]
    # Somebody may want what a name collects.
    assert leak.state == "suspected"
    [kept_by] = leak.holders
    assert kept_by.name.startswith("kept in test_outside_of_a_cell"), kept_by
    assert "18 runs of 2 cells" in gpumem.report().text()
    assert shell.lines == []


def test_who_wants_no_looks_has_none_after_a_block(shell: Shell) -> None:
    sim.use(1 << 30)
    shell.run("%config GpuMem.holders = False")
    kept = []
    for _ in range(3):
        with gpumem.record("step"):
            kept.append(sim.tensor(8 * MIB))
    assert json.loads(gpumem.report().to_json())["holders"] == []


SCRIPT = """
import gpumem
from gpumem import sim

sim.use(8 << 30)
weight = sim.tensor(64 << 20, requires_grad=True)
losses = []

def train_step():
    losses.append((sim.tensor(100 << 20) * weight).sum())

BODY
[leak] = [it for it in gpumem.report().findings if it.kind == "leak"]
print(leak.title, leak.holders[0].name, leak.fix.before, leak.fix.after, sep="|")
"""
LOOP = "for _ in range(10):\n    with gpumem.record('train'):\n        train_step()"
DECORATED = "step = gpumem.record(train_step)\nfor _ in range(10):\n    step()"
STEPS = "with gpumem.record('train'):\n    for _ in gpumem.steps(range(12)):\n        train_step()"


@pytest.mark.parametrize("body", [LOOP, DECORATED, STEPS], ids=["loop", "decorated", "steps"])
def test_a_script_learns_the_name_and_the_line(tmp_path: Path, body: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.replace("BODY", body))
    line = "losses.append((sim.tensor(100 << 20) * weight).sum())"
    title = f"losses leaks 100 MiB a {'step' if body is STEPS else 'run'}"
    fixed = f"{line[:-1]}.detach())"
    # A busy machine may miss the looks of so short a script.
    for _ in range(4):
        printed = run_python("script.py", cwd=tmp_path)
        if printed.returncode == 0:
            break
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.strip().split("|") == [title, "losses", line, fixed]


def test_off_is_off_but_for_recorded_cells(shell: Shell) -> None:
    shell.run("%gpumem off")
    with gpumem.record("a"):
        gpumem.mark()
    assert rows("host") == []
    shell.run("import gpumem")
    shell.run("%%gpumem\nwith gpumem.record('b'): pass")
    assert tree() == ["", "/b"]
    shell.run("%gpumem on")
    with gpumem.record("c"):
        pass
    assert tree() == ["", "/b", "c"]


def test_growth_in_a_block_is_reported_under_its_cell(recorded: Shell) -> None:
    cell = """
for _ in range(12):
    with gpumem.record("epoch"):
        with gpumem.record("forward"):
            kept.append(sim.tensor(8 << 20))
"""
    recorded.run(f"%%gpumem --label training\n{cell}")
    paths = {finding.path for finding in gpumem.report().findings if finding.device == "sim:0"}
    # Of the innermost block alone: the memory is the same.
    assert paths == {("epoch", "forward")}
    assert "◆ kept +8 MiB every run (12 of 12)" in recorded.lines[-1]


def test_a_mark_belongs_to_the_innermost_block(recorded: Shell) -> None:
    cell = """
with gpumem.record("train"):
    for _ in gpumem.steps(range(12)):
        kept.append(sim.tensor(8 << 20))
"""
    recorded.run(cell)
    (leak,) = [each for each in gpumem.report().findings if each.device == "sim:0"]
    assert leak.path == ("train", "steps")


def test_a_block_reads_what_its_cell_reads(recorded: Shell) -> None:
    recorded.run("%%gpumem --device sim:0\nwith gpumem.record('a'):\n    gpumem.mark()")
    assert rows("host") == []
    assert [row["label"] for row in rows()] == [None, "a"]


def test_a_peak_between_two_readings_is_seen_by_the_sampler(recorded: Shell) -> None:
    recorded.run(
        "import time\n"
        "with gpumem.record('quiet'):\n    pass\n"
        "with gpumem.record('spike'):\n"
        "    spike = b'x' * (64 << 20)\n    time.sleep(0.1)\n    del spike"
    )
    cell, quiet, spike = rows("host")
    assert spike["peak_bytes"] - spike["before_bytes"] > 60 * MIB
    assert spike["peak_bytes"] == cell["peak_bytes"]
    assert quiet["peak_bytes"] - quiet["before_bytes"] < 8 * MIB


def test_a_reset_forgets_the_blocks_that_are_open(recorded: Shell) -> None:
    block = gpumem.record("old")
    with block:
        recorded.run("%gpumem reset")
        with gpumem.record("new"):
            pass
    assert tree() == ["new"]


@pytest.mark.usefixtures("recorded")
def test_one_block_is_entered_by_many_threads() -> None:
    block = gpumem.record("shared")

    def work() -> None:
        for _ in range(50):
            with block, contextlib.suppress(ValueError), block:
                raise ValueError

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(tree()) == ["shared"] * 200 + ["shared/shared"] * 200
    assert {row["status"] for row in rows() if row["parent"] is None} == {"ok"}
    assert {row["status"] for row in rows() if row["parent"] is not None} == {"error"}


@pytest.mark.parametrize("wrong", [None, 3, int])
def test_what_is_no_name_and_no_function_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="record takes a"):
        gpumem.record(wrong)


def test_a_failure_of_ours_stays_out_of_the_block(
    recorded: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    recorded.run(
        "from gpumem import _gpumem\n_gpumem._testing.panic_in_next_callback()\n"
        "with gpumem.record('a'):\n    x = 1"
    )
    assert recorded.user_ns["x"] == 1
    assert tree() == [""] * len(tree())
    assert "a block was not recorded: panic" in caplog.text
