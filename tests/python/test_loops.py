"""Loops without marks are found and counted, and their levels are read."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim

from tests.python.arrow import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="no sys.monitoring")

MIB = 1 << 20

PRELUDE = """
import asyncio, contextlib, itertools, threading, time
import gpumem
from gpumem import sim
from gpumem._gpumem import _testing
look = _testing.look_at_loops
kept = []
"""


@pytest.fixture
def recorded(shell: Shell) -> Shell:
    """Return a shell that records every cell, on a simulated device."""
    sim.use(1 << 30)
    shell.run(PRELUDE)
    shell.run("%gpumem on")
    return shell


def loops() -> list[dict[str, Any]]:
    """Return the loops of the latest run that has any."""
    found: list[dict[str, Any]] = json.loads(gpumem.report().to_json())["loops"]
    latest = max((it["run"] for it in found), default=None)
    return [it for it in found if it["run"] == latest]


def counted(shell: Shell, cell: str) -> list[tuple[int, str, int]]:
    """Run a cell; the line, the function and the iterations of each loop that turned."""
    outcome = shell.run(textwrap.dedent(cell).strip("\n"))
    assert outcome.raw.success, outcome.stdout
    turned = [it for it in loops() if it["n_iterations"]]
    assert not any(it["is_estimate"] for it in turned)
    return [(it["line"], it["function"], it["n_iterations"]) for it in turned]


# Bodies of a function; `look()` stands where counting begins. The loops that turn then.
SHAPES = {
    "for": ("for i in range(5):\n    look()", [(0, 5)]),
    "for of several lines": (
        "for (i,\n     j) in zip(\n    range(5), range(5)\n):\n    look()",
        [(0, 5)],
    ),
    "for with else": ("for i in range(5):\n    look()\nelse:\n    i = 0", [(0, 5)]),
    "continue": (
        "for i in range(6):\n    look()\n    if i % 2:\n        continue\n    i += 1",
        [(0, 6)],
    ),
    "if at the end": ("for i in range(6):\n    look()\n    if i % 2:\n        i += 1", [(0, 6)]),
    "if and else": (
        "for i in range(6):\n    look()\n    if i % 2:\n        i += 1\n    else:\n        i -= 1",
        [(0, 6)],
    ),
    "break": ("for i in range(9):\n    look()\n    if i == 5:\n        break", [(0, 5)]),
    "nested": (
        "for i in range(3):\n    look()\n    for j in range(4):\n        i += j",
        [(0, 3), (2, 12)],
    ),
    "nested as the last of an if": (
        (
            "for i in range(3):\n    look()\n    if i >= 0:\n"
            "        for j in range(4):\n            i += j"
        ),
        [(0, 3), (3, 12)],
    ),
    "while": ("k = 0\nwhile k < 5:\n    look()\n    k += 1", [(1, 4)]),
    "while of several lines": (
        "k = 0\nwhile (k < 5 and\n       k < 7):\n    look()\n    k += 1",
        [(1, 4)],
    ),
    "while with or": ("k = 0\nwhile k < 3 or k < 5:\n    look()\n    k += 1", [(1, 4)]),
    "while true": (
        "k = 0\nwhile True:\n    look()\n    k += 1\n    if k == 5:\n        break",
        [(1, 4)],
    ),
    "while with continue": (
        "k = 0\nwhile k < 6:\n    look()\n    k += 1\n    if k % 2:\n        continue\n    j = k",
        [(1, 5)],
    ),
    "while with continue in except": (
        (
            "k = 0\nwhile k < 6:\n    look()\n    k += 1\n    try:\n        1 / (k % 2)\n"
            "    except ZeroDivisionError:\n        continue\n    j = k"
        ),
        [(1, 6)],
    ),
    "nested while": (
        "a = 0\nwhile a < 3:\n    look()\n    a += 1\n    b = 0\n    while b < 4:\n        b += 1",
        [(1, 2), (5, 9)],
    ),
    "while as the first of a while": (
        (
            "a, b = 0, 4\nwhile a < 3:\n    while b > 0:\n        look()\n"
            "        b -= 1\n    a, b = a + 1, 4"
        ),
        [(1, 2), (2, 9)],
    ),
    "try": (
        (
            "for i in range(6):\n    look()\n    try:\n        1 / (i % 2)\n"
            "    except ZeroDivisionError:\n        pass"
        ),
        [(0, 6)],
    ),
    "code behind a handler": (
        (
            "for i in range(6):\n    look()\n    try:\n        1 / (i % 2)\n"
            "    except ZeroDivisionError:\n        i = 1\n    i += 1\n    i += 2"
        ),
        [(0, 6)],
    ),
    "handlers and no loop": (
        (
            "look()\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    i = 1\ni = 2\n"
            "try:\n    1 / 0\n"
            "except ZeroDivisionError:\n    i = 3\ni = 4"
        ),
        [],
    ),
    "finally": (
        (
            "for i in range(5):\n    look()\n    try:\n        if i == 2:\n            continue\n"
            "    finally:\n        j = 1"
        ),
        [(0, 5)],
    ),
    "with": (
        (
            "for i in range(5):\n    look()\n    with contextlib.nullcontext():\n"
            "        if i == 2:\n"
            "            continue\n        j = i"
        ),
        [(0, 5)],
    ),
    "match": (
        (
            "for i in range(5):\n    look()\n    match i:\n        case 1:\n            j = 1\n"
            "        case _:\n            j = 2"
        ),
        [(0, 5)],
    ),
    "comprehension": ("[look() for i in range(5)]", [(0, 5)]),
    "comprehension of two loops": (
        "[look() for i in range(3) for j in range(4)]",
        [(0, 3), (0, 12)],
    ),
    "comprehension with a condition": (
        "[look() for i in range(6) if i % 2 or not look()]",
        [(0, 6)],
    ),
    "comprehension in a loop of one line": (
        "for i in range(3): look(); [j for j in range(4)]",
        [(0, 3), (0, 12)],
    ),
    "long body": (
        "for i in range(5):\n    look()\n" + "    i += 1\n" * 300 + "    i += 2",
        [(0, 5)],
    ),
}


@pytest.mark.parametrize(("body", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_iterations_of_a_loop_of_any_shape(
    recorded: Shell, body: str, expected: list[tuple[int, int]]
) -> None:
    cell = "def work():\n" + textwrap.indent(body, "    ") + "\nwork()"
    assert counted(recorded, cell) == [(2 + line, "work", n) for line, n in expected]


FUNCTIONS = {
    "a loop that calls a function with a loop": (
        """
        def inner():
            for j in range(4):
                look()

        for i in range(3):
            inner()
        """,
        [(5, "<module>", 3), (2, "inner", 12)],
    ),
    "a generator": (
        """
        def batches():
            for i in range(5):
                look()
                yield i

        for batch in batches():
            pass
        """,
        [(6, "<module>", 5), (2, "batches", 5)],
    ),
    "a generator that goes on after the run": (
        """
        def batches():
            for i in range(9):
                look()
                yield i

        batch = batches()
        for i in range(4):
            next(batch)
        """,
        [(7, "<module>", 4), (2, "batches", 3)],
    ),
    "a generator expression": (
        "sum(1 for i in range(5) if look() is None)",
        [(1, "<genexpr>", 5)],
    ),
    "a method": (
        """
        class Trainer:
            def fit(self):
                for batch in range(5):
                    look()

        Trainer().fit()
        """,
        [(3, "Trainer.fit", 5)],
    ),
    "a thread": (
        """
        def work():
            for i in range(5):
                look()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
        [(2, "work", 5)],
    ),
    "two threads with one function": (
        """
        def work():
            for i in range(200):
                both.wait()

        both = threading.Barrier(2, action=look)
        one, other = threading.Thread(target=work), threading.Thread(target=work)
        one.start(), other.start()
        one.join(), other.join()
        """,
        [(2, "work", 400)],
    ),
    "code that is executed": (
        "exec('for i in range(5):\\n    look()')",
        [(1, "<module>", 5)],
    ),
    "a coroutine": (
        """
        async def work():
            for i in range(5):
                await asyncio.sleep(0)
                look()

        await work()
        """,
        [(2, "work", 5)],
    ),
    "a coroutine that waits": (
        """
        async def work():
            for i in range(5):
                await asyncio.to_thread(look)

        await work()
        """,
        [(2, "work", 5)],
    ),
    "an asynchronous generator that waits": (
        """
        async def requests():
            for i in range(5):
                await asyncio.to_thread(look)
                yield i

        async def serve():
            async for request in requests():
                pass

        await serve()
        """,
        [(7, "serve", 5), (2, "requests", 5)],
    ),
    "tasks that wait": (
        """
        async def work():
            for i in range(5):
                await asyncio.to_thread(look)

        await asyncio.gather(work(), work())
        """,
        [(2, "work", 10)],
    ),
}


@pytest.mark.parametrize(("cell", "expected"), FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_iterations_of_loops_in(
    recorded: Shell, cell: str, expected: list[tuple[int, str, int]]
) -> None:
    # The loops of Python's own library, in which pools and event loops wait, come beside.
    counted(recorded, cell)
    turned = [it for it in loops() if it["n_iterations"] and not it["is_library"]]
    assert [(it["line"], it["function"], it["n_iterations"]) for it in turned] == expected


def test_calls_of_a_function_that_calls_itself(recorded: Shell) -> None:
    cell = """
    def explore(node, depth):
        if depth == 2:
            look()
        for child in (0, 1):
            if depth:
                explore(child, depth - 1)

    explore(1, 4)
    """
    counted(recorded, cell)
    [calls] = [it for it in loops() if it["kind"] == "calls"]
    assert (calls["line"], calls["function"], calls["parent"]) == (1, "explore", None)
    # Of 31 calls the first three were under way when counting began.
    assert calls["n_iterations"] == 28


def test_calls_that_no_loop_of_python_makes(recorded: Shell) -> None:
    cell = """
    def step(i):
        if i in (1, 3, 6):
            look()

    list(map(step, range(20)))
    """
    # Counted since the second look; that it is called again, the third one can tell.
    assert counted(recorded, cell) == [(1, "step", 16)]
    assert [it["kind"] for it in loops()] == ["calls"]


def test_calls_that_a_loop_makes_are_its_iterations(recorded: Shell) -> None:
    cell = """
    def step(i):
        look()

    for i in range(20):
        step(i)
    """
    assert counted(recorded, cell) == [(4, "<module>", 20)]


def test_each_loop_knows_the_loop_around_it(recorded: Shell) -> None:
    cell = """
    def batches():
        for i in range(4):
            look()
            yield i

    def train():
        for batch in batches():
            [i for i in range(3)]

    for epoch in range(2):
        train()
    """
    counted(recorded, cell)
    by_number = {it["loop"]: it for it in loops()}
    around = {
        it["line"]: by_number[it["parent"]]["line"] if it["parent"] is not None else None
        for it in by_number.values()
    }
    assert around == {10: None, 7: 10, 2: 7, 8: 7}


def test_where_a_loop_stands(recorded: Shell, tmp_path: Path) -> None:
    (tmp_path / "users.py").write_text("def run(look):\n    for i in range(3):\n        look()\n")
    library = tmp_path / "site-packages" / "installed.py"
    library.parent.mkdir()
    library.write_text("def run(look):\n\n    for i in range(3):\n        look()\n")
    recorded.run(f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(library.parent)!r}]")
    recorded.run("def of_another_cell():\n    for i in range(3):\n        look()")
    cell = "\n%%gpumem\n\nimport users, installed\nfor i in range(3):\n    look()\n"
    recorded.run(cell + "users.run(look)\ninstalled.run(look)\nof_another_cell()")
    number = recorded.execution_count - 1
    assert [
        (it["file"], it["execution_count"], it["line"], it["is_library"]) for it in loops()
    ] == [
        (None, number, 5, False),
        (str(tmp_path / "users.py"), None, 2, False),
        (str(library), None, 3, True),
        (None, number - 1, 2, False),
    ]


def test_what_imports_itself_is_no_loop(recorded: Shell, tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"link{i}.py").write_text(f"import link{i + 1}\n")
    (tmp_path / "link4.py").write_text("import installed\nfor i in range(3):\n    look()\n")
    # What a library does while it is imported is none, either.
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "installed.py").write_text("for i in range(3):\n    look()\n")
    recorded.run(f"import builtins, sys; sys.path[:0] = [{str(tmp_path)!r}, {str(library)!r}]")
    recorded.run("builtins.look = look")
    recorded.run("import link0")
    assert [(it["file"], it["line"]) for it in loops()] == [(str(tmp_path / "link4.py"), 2)]


def test_loops_of_a_block_outside_of_a_recorded_cell(shell: Shell) -> None:
    shell.run(PRELUDE)
    cell = """
    with gpumem.record("epoch"):
        for i in range(5):
            look()
    """
    assert counted(shell, cell) == [(2, "<module>", 5)]
    assert loops()[0]["execution_count"] == shell.execution_count - 1


def test_marks_that_are_set_in_a_loop(recorded: Shell) -> None:
    cell = """
    for epoch in range(3):
        look()
        for batch in gpumem.steps(range(5)):
            pass
    """
    counted(recorded, cell)
    assert [(it["line"], it["n_iterations"], it["n_marks"]) for it in loops()] == [
        (1, 3, 15),
        # The last mark is set when the last iteration is over.
        (3, 15, 14),
    ]


LEAK = """
weights = sim.tensor(1 << 20)
for i in range(60):
    kept.append(sim.tensor(2 << 20))
    time.sleep(0.02)
"""


def test_a_loop_is_found_by_itself_and_its_levels_are_read(recorded: Shell) -> None:
    counted(recorded, LEAK)
    [leaking] = loops()
    assert (leaking["line"], leaking["was_running"], leaking["is_estimate"]) == (2, True, False)
    assert leaking["n_iterations"] >= 10
    [levels] = [it for it in leaking["levels"] if it["device"] == "sim:0"]
    first, last = levels["first"], levels["last"]
    grown = last["allocated_bytes"] - first["allocated_bytes"]
    assert grown == (last["iteration"] - first["iteration"]) * 2 * MIB > 0
    columns = Reader(gpumem.report().table("samples")).columns
    rows = zip(*(columns[name] for name in ("series", "device", "label")), strict=True)
    number = str(leaking["loop"])
    assert list(rows).count(("loop", "sim:0", number)) == levels["n_readings"]


def test_a_short_run_is_left_alone(recorded: Shell) -> None:
    before = loops()
    recorded.run("for i in range(1000): pass")
    assert loops() == before


def test_a_loop_that_turns_fast_is_estimated(recorded: Shell) -> None:
    cell = """
    end = time.monotonic() + 1.5
    for n in itertools.count():
        if not n & 0xfff and time.monotonic() > end:
            break
    """
    recorded.run(textwrap.dedent(cell))
    [fast] = loops()
    assert fast["is_estimate"]
    assert fast["levels"] == []
    # How often a busy machine stops it is not known from moments.
    assert fast["n_iterations"] > 10_000


def test_the_recording_keeps_loops(recorded: Shell, tmp_path: Path) -> None:
    counted(recorded, "for i in range(5): look()")
    path = tmp_path / "session.gpumem"
    gpumem.recording().save(path)
    saved = json.loads(gpumem.report(gpumem.load(path)).to_json())
    assert saved["loops"] == loops()


def test_a_setting_switches_it_off(recorded: Shell) -> None:
    cell = "for i in range(5): look()"
    for is_on in (False, True):
        recorded.run(f"%config GpuMem.loops = {is_on}")
        recorded.run(cell)
        last = json.loads(gpumem.report().to_json())["runs"][-1]["run"]
        assert (loops()[-1:] != [] and loops()[-1]["run"] == last) == is_on


# The lines after one cell that ran once. Nobody marked its loop.
JUDGED = {
    "a graph that each iteration keeps leaks": (
        (
            "weights = sim.tensor(4 << 20, requires_grad=True)\nlook()\nfor i in range(20):\n"
            "    look() if i == 0 else time.sleep(0.03)\n"
            "    kept.append((sim.tensor(4 << 20) * weights).sum())"
        ),
        "▲ kept +4 MiB every iteration of line 3",
    ),
    "a list that is counted may be meant": (
        (
            "for i in range(20):\n    look() if i == 0 else time.sleep(0.03)\n"
            "    kept.append(sim.tensor(4 << 20))\nprint(len(kept))"
        ),
        "○ kept +4 MiB every iteration of line 1",
    ),
    "a list that is concatenated is meant": (
        (
            "for i in range(20):\n    look() if i == 0 else time.sleep(0.03)\n"
            "    kept.append(sim.tensor(4 << 20))\nlast = list(kept)"
        ),
        "",
    ),
    "five networks are no leak": (
        (
            "for i in range(5):\n    look() if i == 0 else time.sleep(0.03)\n"
            "    kept.append(sim.tensor(16 << 20))\nprint(len(kept))"
        ),
        "",
    ),
    "what is cleared is no growth": (
        (
            "for epoch in range(4):\n    for i in range(10):\n"
            "        look() if i == 0 else time.sleep(0.03)\n"
            "        kept.append(sim.tensor(4 << 20))\n    kept.clear()"
        ),
        "",
    ),
    "steps that are marked are judged by their marks": (
        (
            "weights = sim.tensor(4 << 20, requires_grad=True)\nfor i in gpumem.steps(range(20)):\n"
            "    look() if i == 0 else time.sleep(0.03)\n"
            "    kept.append((sim.tensor(4 << 20) * weights).sum())"
        ),
        "▲ kept +4 MiB every step",
    ),
}


@pytest.mark.parametrize("claim", JUDGED)
def test_one_run_reports_its_loop(recorded: Shell, claim: str) -> None:
    """The growth, the loop's line, and how much it matters."""
    cell, expected = JUDGED[claim]
    recorded.run(cell)
    # The last display is the one after the cell.
    lines = recorded.lines[-1].splitlines() if recorded.lines else []
    signed = [line for line in lines if line[:1] in ("▲", "◆", "○")]
    assert len(signed) == bool(expected)
    assert "".join(signed).startswith(expected)


# It ends when a line is shown, or with the device half full. Looks are due from 0.2 s on.
LEAKING = """
weights = sim.tensor(2 << 20, requires_grad=True)
outputs = get_ipython().display_pub.outputs
n_before = len(outputs)
for i in range(240):
    time.sleep(0.03)
    kept.append((sim.tensor(2 << 20) * weights).sum())
    if len(outputs) > n_before:
        break
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a look needs a copy of the process")
def test_a_line_says_that_the_device_will_be_full(recorded: Shell) -> None:
    recorded.run(LEAKING)
    _, foretold, after = recorded.lines
    assert re.fullmatch(
        r"▲ kept \+2 MiB every iteration of line 5 \(\d+ of \d+\)\s+· full in about \d+ iterations"
        r" \(\d+ s\)",
        foretold,
    )
    assert "kept · peak" in after
    assert "▲ kept +2 MiB every iteration of line 5" in after


@pytest.mark.skipif(sys.platform != "linux", reason="a look needs a copy of the process")
@pytest.mark.parametrize("off", ["foretell = False", "holders = False", "quiet = True"])
def test_the_line_can_be_switched_off(recorded: Shell, off: str) -> None:
    recorded.run(f"%config GpuMem.{off}")
    recorded.run(LEAKING.replace("240", "40"))
    assert not any(line.startswith("▲") for line in recorded.lines)
    assert len(recorded.user_ns["kept"]) == 40


@pytest.mark.skipif(sys.platform != "linux", reason="a look needs a copy of the process")
def test_what_a_generator_kept_until_it_ended_is_a_note(recorded: Shell) -> None:
    recorded.run(
        "def batches():\n"
        "    made = []\n"
        "    for i in range(120):\n"
        "        made.append(sim.tensor(4 << 20))\n"
        "        time.sleep(0.02)\n"
        "        yield made[-1]\n"
    )
    recorded.run("for batch in batches():\n    pass")
    [finding] = gpumem.report().findings
    assert (finding.withdrawn, finding.severity) == ("returned", "info")
    assert finding.holders[0].name == "made in batches()"
    text = " ".join(gpumem.report().text(110).split())
    # Both loops turn once for each batch.
    place = r"line (1|3 of In \[3\])"
    words = rf"○ made grew \S+ MiB an iteration of {place}; given back when it ended"
    assert re.search(words, text), text
    assert "Nothing grows" not in text


def test_growth_that_could_not_be_seen_is_not_denied(recorded: Shell) -> None:
    """A cell that ran once names what it kept, and no report says that nothing grows."""
    recorded.run("model = sim.tensor(256 << 20)")
    text = gpumem.report().text(110)
    assert "Nothing grows" not in text
    assert "+256 MiB in one run of In [3], held by model" in text
    recorded.run("model = model")
    recorded.run("model = model")
    assert "Nothing grows" in gpumem.report().text(110)
