"""``gpumem.mark()`` and ``gpumem.steps()``: growth inside one long cell."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim
from gpumem.details import Growth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

MIB = 1 << 20


@pytest.fixture
def recorded(shell: Shell) -> Shell:
    sim.use()
    shell.run("import gpumem\nfrom gpumem import sim\nkept = []")
    return shell


def counts_steps(finding: gpumem.types.Finding) -> bool:
    return isinstance(finding.details, Growth) and finding.details.steps


def growing(shell: Shell, body: str) -> list[tuple[tuple[str, ...], int, int | None]]:
    """Run a cell; path, steps and bytes per step of what grew inside it."""
    outcome = shell.run(f"%%gpumem -q\n{body}")
    assert outcome.raw.success, outcome.stdout
    return [
        (finding.path, finding.n_runs, finding.bytes_per_run)
        for finding in gpumem.report().findings
        if counts_steps(finding) and finding.device == "sim:0" and finding.state != "stable"
    ]


LEAK = "    kept.append(sim.tensor(2 << 20))"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"for _ in gpumem.steps(range(12)):\n{LEAK}", [(("steps",), 12, 2 * MIB)]),
        (f"for _ in gpumem.steps(range(12), 'epoch'):\n{LEAK}", [(("epoch",), 12, 2 * MIB)]),
        (f"for _ in gpumem.steps(i for i in range(12)):\n{LEAK}", [(("steps",), 12, 2 * MIB)]),
        (f"for _ in range(12):\n{LEAK}\n    gpumem.mark('batch')", [(("batch",), 12, 2 * MIB)]),
        ("for _ in gpumem.steps(range(12)):\n    t = sim.tensor(2 << 20)", []),
        (
            f"for i in gpumem.steps(range(20)):\n{LEAK}\n    if i == 11: break",
            [(("steps",), 11, 2 * MIB)],
        ),
    ],
    ids=["range", "label", "generator", "mark", "healthy", "break"],
)
def test_growth_from_step_to_step_is_found(
    recorded: Shell, body: str, expected: list[tuple[tuple[str, ...], int, int]]
) -> None:
    assert growing(recorded, body) == expected


def test_what_a_loop_keeps_in_its_first_step_counts(recorded: Shell) -> None:
    """Where it begins is marked, so that the first step is known as well as the others."""
    body = f"for i in gpumem.steps(range(12)):\n    if i in (0, 3):\n    {LEAK}"
    assert growing(recorded, body) == []
    [settled] = [finding for finding in gpumem.report().findings if counts_steps(finding)]
    assert "grew for 4 steps and stopped at 4 MiB" in settled.title
    assert growing(recorded, f"for _ in gpumem.steps(range(3)):\n{LEAK}\n") == [
        (("steps",), 3, 2 * MIB)
    ]
    [few] = [finding for finding in gpumem.report().findings if finding.kind == "growing"]
    assert "grew in all 3 steps" in few.detail
    assert "held by kept" in few.detail


def test_a_loop_that_is_gone_through_again_in_one_run_goes_on(recorded: Shell) -> None:
    """What lies between two epochs belongs to no step of its own."""
    body = f"for _ in range(3):\n    for _ in gpumem.steps(range(5)):\n    {LEAK}"
    assert growing(recorded, body) == [(("steps",), 15, 2 * MIB)]


def test_a_loop_that_collects_anew_names_what_it_collects_into(recorded: Shell) -> None:
    # The second run lets go of what the first had collected: it keeps nothing more.
    loop = "kept = []\nfor _ in gpumem.steps(range(12)):\n" + LEAK
    for _ in range(2):
        assert growing(recorded, loop) == [(("steps",), 12, 2 * MIB)]
    found = [finding for finding in gpumem.report().findings if counts_steps(finding)]
    assert [[holder.name for holder in finding.holders] for finding in found] == [["kept"]]


def test_steps_of_another_thread_belong_to_the_run(recorded: Shell) -> None:
    loop = f"def train():\n    for _ in gpumem.steps(range(12)):\n    {LEAK}\n"
    threads = "import threading\nt = threading.Thread(target=train)\nt.start()\nt.join()"
    assert growing(recorded, loop + threads) == [(("steps",), 12, 2 * MIB)]


def test_outside_of_a_recorded_cell_marks_do_nothing(recorded: Shell) -> None:
    gpumem.mark()
    assert list(gpumem.steps("ab")) == ["a", "b"]
    recorded.run("gpumem.mark()\nlist(gpumem.steps(range(12)))")
    assert gpumem.report().runs == []


def test_steps_has_the_length_of_what_it_goes_through() -> None:
    assert len(gpumem.steps([1, 2, 3])) == 3
    with pytest.raises(TypeError, match=r"has no len\(\)"):
        len(gpumem.steps(iter([1])))


def test_steps_can_be_gone_through_again() -> None:
    twice = gpumem.steps([1, 2])
    assert list(twice) == list(twice) == [1, 2]
    iterator = iter(twice)
    assert iter(iterator) is iterator


def test_what_cannot_be_iterated_is_refused_as_by_iter() -> None:
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        iter(gpumem.steps(3))


def test_an_exception_of_the_iterable_passes_through(recorded: Shell) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise LookupError("no more")

    recorded.user_ns["items"] = items
    outcome = recorded.run("%%gpumem\nfor seen in gpumem.steps(items()): pass")
    assert (outcome.last_type, outcome.last_args) == ("LookupError", "('no more',)")
    assert recorded.user_ns["seen"] == 1


def test_close_reaches_the_generator_below() -> None:
    closed: list[str] = []

    def items() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.append("closed")

    iterator = iter(gpumem.steps(items()))
    assert next(iterator) == 0
    iterator.close()
    assert closed == ["closed"]
    assert list(iterator) == []
    iter(gpumem.steps([1])).close()


def test_steps_keeps_no_item(recorded: Shell) -> None:
    class Item:
        pass

    items = (Item() for _ in range(3))
    seen: list[weakref.ref[Any]] = []
    recorded.user_ns.update(items=items, seen=seen, weakref=weakref)
    recorded.run(
        "%%gpumem\n"
        "for item in gpumem.steps(items):\n"
        "    seen.append(weakref.ref(item))\n"
        "    del item\n"
        "    assert seen[-1]() is None"
    )
    gc.collect()
    assert [ref() for ref in seen] == [None] * 3


def test_marks_are_bounded_and_keep_the_extremes(recorded: Shell) -> None:
    recorded.run(
        "%%gpumem -q\n"
        "for i in gpumem.steps(range(20_000)):\n"
        "    if i == 7_001: kept.append(sim.tensor(100 << 20))\n"
        "    if i == 7_002: kept.clear()"
    )
    assert len(gpumem.recording().to_bytes()) < 600_000
    (row,) = (row for row in gpumem.report().runs if row["device"] == "sim:0")
    assert row["status"] == "ok"
    assert row["peak_bytes"] >= 100 * MIB


def test_marks_while_another_thread_records(recorded: Shell) -> None:
    over = threading.Event()

    def mark() -> None:
        while not over.is_set():
            gpumem.mark("other")

    thread = threading.Thread(target=mark)
    thread.start()
    try:
        for _ in range(50):
            assert recorded.run("%%gpumem -q\nlist(gpumem.steps(range(20)))").raw.success
    finally:
        over.set()
        thread.join()
    assert len({row["run"] for row in gpumem.report().runs}) == 50
