"""Verdicts on bare levels, and against a baseline."""

from __future__ import annotations

import math
import random
import re
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim
from gpumem.details import Growth

if TYPE_CHECKING:
    from tests.python.conftest import Shell

MIB = 1 << 20


def check(levels: list[float], state: str, shape: str, **more: list[float]) -> None:
    """Assert the verdict on some levels in MiB."""
    scaled = {
        name: [MIB * level for level in values] if name == "reserved" else values
        for name, values in more.items()
    }
    growth = gpumem.classify_growth([MIB * level for level in levels], **scaled)
    assert (growth.state, growth.shape) == (state, shape)


def test_levels_have_a_verdict_and_a_shape() -> None:
    check([*range(100, 220, 10)], "leak", "growth")
    check([100.0] * 12, "stable", "flat")
    check([100, 160, 200, *[200.0] * 10], "stable", "warm-up")
    check([5.0, 5.0, 5.0], "not_enough_data", "flat")


def test_a_verdict_has_its_figures() -> None:
    growth = gpumem.classify_growth([MIB * run for run in range(24)])
    assert growth.bytes_per_run == MIB
    assert growth.interval == (MIB, MIB)
    assert growth.total_bytes == 23 * MIB
    assert growth.n_missing == 0
    assert growth.p < 1e-6
    figures = {figure.name: figure for figure in growth.evidence}
    assert figures["block_t"].value == math.inf
    assert figures["trend_z"].holds
    assert gpumem.classify_growth([1.0] * 4).n_missing == 5


def test_reserved_that_grows_alone_is_no_leak() -> None:
    check(
        [500.0] * 20,
        "suspected",
        "reserved-only",
        reserved=[500.0 + 20 * run for run in range(20)],
    )


def test_times_put_levels_into_order() -> None:
    levels = [5.0, 4.0, 3.0, 2.0, 1.0, 10.0, 9.0, 8.0, 7.0, 6.0]
    check(levels, "leak", "growth", times=levels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, math.nan],), "allocated[1] is NaN: a level is a number of bytes, from 0 on"),
        (([1.0, -2.0],), "allocated[1] is -2: a level is a number of bytes, from 0 on"),
        (([math.inf],), "allocated[0] is inf: a level is a number of bytes, from 0 on"),
        (([1.0], [1.0, 2.0]), "reserved has 2 entries, allocated has 1: one of each a run"),
    ],
)
def test_what_is_no_level_is_named(arguments: tuple[list[float], ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        gpumem.classify_growth(*arguments)


def test_any_size_has_an_answer() -> None:
    assert gpumem.classify_growth([]).state == "not_enough_data"
    assert gpumem.classify_growth([2.0**63] * 20).state == "stable"
    assert gpumem.classify_growth([2.0**70, *[0.0] * 20]).state == "stable"


def test_a_session_is_compared_with_its_own_baseline(shell: Shell) -> None:
    shell.run("import gpumem; gpumem.sim.use(total_bytes=8 << 30); kept = []")
    leak = "%%gpumem -q\nkept.append(gpumem.sim.tensor(16 << 20))"
    for _ in range(10):
        shell.run(leak)
    shell.run("%gpumem baseline before")
    for _ in range(10):
        shell.run(leak)
    shell.run("%gpumem_report --compare before --text")
    assert shell.lines[0].startswith("baseline before: 10 runs")
    first, line = shell.lines[-1].splitlines()
    assert first == "Against before:"
    assert line.startswith(
        "◆ same   sim:0 · kept.append(gpumem.sim.tensor(16 << 20)): +16 MiB → +16 MiB"
    )


def test_a_comparison_says_what_it_waits_for(shell: Shell) -> None:
    shell.run("import gpumem; gpumem.sim.use(total_bytes=8 << 30); kept = []")
    for _ in range(10):
        shell.run("%%gpumem -q\nkept.append(gpumem.sim.tensor(16 << 20))")
    shell.run("%gpumem baseline before\n%gpumem_report --compare before --text")
    assert shell.lines[-1].startswith("Against before: Waiting for kept.append(")


def test_a_fix_is_found_by_its_first_line(shell: Shell) -> None:
    def recorded(keeps: str) -> gpumem.types.Recording:
        gpumem._gpumem.reset()
        shell.run("import gpumem; gpumem.sim.use(total_bytes=8 << 30); kept = []")
        for _ in range(12):
            shell.run(f"%%gpumem -q\nloss = gpumem.sim.tensor(16 << 20)\n{keeps}")
        return gpumem.recording()

    leaking, fixed = recorded("kept.append(loss)"), recorded("kept.append(loss.nbytes)")
    comparison = gpumem.compare(fixed, leaking)
    (change,) = [entry for entry in comparison.changes if entry.device == "sim:0"]
    assert change.change == "fixed"
    assert change.before is not None
    assert change.before.bytes_per_run == 16 * MIB
    assert change.after.bytes_per_run == 0
    assert "✓ fixed" in comparison.text()
    assert gpumem.compare(leaking, leaking).changes[0].change == "same"


@pytest.mark.parametrize("name", ["before", "before the fix"])
def test_what_the_line_of_a_baseline_says_can_be_typed(shell: Shell, name: str) -> None:
    shell.run("%%gpumem\n1")
    shell.run(f"%gpumem baseline {name}")
    said, typed = shell.lines[-1].removesuffix(" after the next ones").split(" · ")
    assert said == f"baseline {name}: 1 run"
    shell.run(f"{typed} --text")
    assert shell.lines[-1].startswith(f"Against {name}: ")


def test_a_baseline_that_is_not_there_is_named(shell: Shell) -> None:
    outcome = shell.run("%gpumem_report --compare monday")
    assert "cannot read 'monday': neither a file nor a baseline" in outcome.stdout + outcome.stderr
    outcome = shell.run("%gpumem baseline")
    assert "baseline needs a name" in outcome.stdout + outcome.stderr


@pytest.mark.parametrize(
    ("cell", "state", "kept_blocks"),
    [
        ("kept.append(sim.tensor(8 << 20))", "suspected", 1),
        # The old one is freed once the new one is there.
        ("kept[:] = [sim.tensor((len(Out) + 8) << 23)]; len(kept)", "stable", 0),
    ],
)
def test_live_allocations_tell_collections_from_replacements(
    shell: Shell, cell: str, state: str, kept_blocks: int
) -> None:
    sim.use(total_bytes=8 << 30)
    shell.user_ns.update(sim=sim, kept=[sim.tensor(1 << 20)])
    for _ in range(12):
        shell.run(f"%%gpumem --quiet\n{cell}")
    run = [row for row in gpumem.report().runs if row["device"] == "sim:0"][-1]
    assert run["n_blocks_after"] - run["n_blocks_before"] == kept_blocks
    finding = next(it for it in gpumem.report().findings if it.device == "sim:0")
    assert finding.state == state
    assert "live_allocations" in [figure.name for figure in finding.evidence]


def test_a_finding_names_who_holds_it_and_the_line_to_change(shell: Shell) -> None:
    sim.use(total_bytes=800 << 20)
    shell.user_ns.update(sim=sim, collected=[])
    cell = "collected.append(sim.tensor(8 << 20))"
    for _ in range(6):
        shell.run(f"%%gpumem --quiet\n{cell}")
    (finding,) = [it for it in gpumem.report().findings if it.device == "sim:0"]
    # Nothing says that the list is an accident: six runs are not enough.
    assert (finding.kind, finding.n_runs) == ("growing", 6)
    (holder,) = finding.holders
    assert (holder.name, holder.kind, holder.path) == ("collected", "variable", "collected[0]")
    assert holder.n_bytes == 6 * (8 << 20)
    assert finding.detail.endswith("held by collected (list of 6 tensors)")
    assert finding.fix is not None
    assert (finding.fix.before, finding.fix.after) == (cell, f"{cell[:-1]}.cpu())")
    for _ in range(6):
        shell.run(f"%%gpumem --quiet\n{cell}")
    (finding,) = [it for it in gpumem.report().findings if it.device == "sim:0"]
    assert (finding.kind, finding.n_runs) == ("leak", 12)
    shell.run("%%gpumem --quiet --no-holders\ncollected.append(sim.tensor(8 << 20))")
    shell.run("%%gpumem --quiet\ncollected.clear()")
    assert [it for it in gpumem.report().findings if it.kind == "leak"] == []


def test_a_slow_leak_is_named_among_what_comes_and_goes(shell: Shell) -> None:
    sim.use(total_bytes=16 << 30)
    sizes = random.Random(7)  # noqa: S311 (only noise)
    shell.user_ns.update(sim=sim, sizes=sizes, kept=[])
    for _ in range(60):
        # What takes the place of the last one may be larger than all that was collected.
        shell.run(
            "%%gpumem --quiet\nbatch = sim.tensor(sizes.randint(1, 100) << 20)\n"
            "kept.append(sim.tensor(1 << 20))"
        )
    [finding] = [it for it in gpumem.report().findings if it.kind == "growing"]
    assert finding.holders[0].name == "kept"
    assert finding.fix is not None
    assert finding.fix.before == "kept.append(sim.tensor(1 << 20))"


CACHE = """
from functools import lru_cache
from itertools import count
keys = count()

@lru_cache(maxsize=50)
def recent(key):
    return new()
"""


# Keys and results both hold memory, and some results are dicts.
CACHE_OF_MODELS = """
from functools import lru_cache

@lru_cache(maxsize=50)
def recent(model):
    return {"weights": model.weights}

class Model:
    def __init__(self):
        self.weights = new()
"""


@pytest.mark.parametrize(
    ("make", "add"),
    [
        ("from collections import deque\nrecent = deque(maxlen=50)", "recent.append(new())"),
        ("from queue import Queue\nrecent = Queue(50)", "recent.put(new())"),
        ("from asyncio import Queue\nrecent = Queue(50)", "recent.put_nowait(new())"),
        (CACHE, "recent(next(keys));"),
        (CACHE_OF_MODELS, "recent(Model());"),
    ],
)
def test_a_container_with_a_bound_fills_up(shell: Shell, make: str, add: str) -> None:
    sim.use(total_bytes=8 << 30)
    shell.user_ns.update(new=lambda: sim.tensor(8 << 20))
    shell.run(make)
    for _ in range(12):
        shell.run(f"%%gpumem --quiet\n{add}")
    (finding,) = [it for it in gpumem.report().findings if it.device == "sim:0"]
    assert (finding.kind, finding.severity) == ("bounded", "info")
    assert finding.title == "recent fills up: 12 of at most 50"
    assert finding.detail.startswith("400 MiB when full")


def test_a_name_is_followed_through_edits_of_its_cell(shell: Shell) -> None:
    sim.use(total_bytes=8 << 30)
    shell.user_ns.update(weights=sim.tensor(1 << 20, requires_grad=True), sim=sim, losses=[])
    add = "losses.append(sim.tensor(8 << 20) * weights)"
    for n in range(9):
        shell.run(f"%%gpumem --quiet\n{add}  # {n}", cell_id="one")
    (finding,) = [it for it in gpumem.report().findings if it.device == "sim:0"]
    assert (finding.kind, finding.n_runs) == ("leak", 8)
    assert finding.title == "losses leaks 16 MiB a run"
    # The same after the fix: it has not grown since.
    for _ in range(2):
        shell.run("%%gpumem --quiet\nsim.tensor(8 << 20) * weights;", cell_id="one")
    (finding,) = [it for it in gpumem.report().findings if it.device == "sim:0"]
    assert (finding.kind, finding.withdrawn) == ("settled", "edited")


THREAD = """
import queue, threading
inbox, results = queue.Queue(), []

def worker():
    while True:
        {body}
        inbox.task_done()

def evaluate():
    {call}
    inbox.put(8 << 20)
    inbox.join()

threading.Thread(target=worker, daemon=True).start()
"""


@pytest.mark.parametrize(
    ("body", "call", "by"),
    [
        ("results.append(sim.tensor(inbox.get()))", "pass", "worker (thread)"),
        ("len(results), inbox.get()", "results.append(sim.tensor(8 << 20))", None),
    ],
)
def test_what_a_thread_collects_is_laid_to_no_cell(
    shell: Shell, body: str, call: str, by: str | None
) -> None:
    sim.use(total_bytes=1 << 30)
    shell.user_ns["sim"] = sim
    shell.run(THREAD.format(body=body, call=call))
    for _ in range(6):
        shell.run("%%gpumem --quiet\nscore = evaluate()")
    [finding] = [it for it in gpumem.report().findings if it.device == "sim:0"]
    assert finding.holders[0].name == "results"
    assert isinstance(finding.details, Growth)
    assert finding.details.by == by
    assert (" ran, by worker (thread)" in finding.detail) == (by is not None)


def on_sim() -> list[gpumem.types.Finding]:
    """Return the findings about the simulated device."""
    return [it for it in gpumem.report().findings if it.device == "sim:0"]


def test_cells_that_each_run_once_are_no_series(shell: Shell) -> None:
    sim.use(total_bytes=8 << 30)
    shell.run("from gpumem import sim")
    for n in range(40):
        shell.run(f"%%gpumem --quiet\nx{n} = sim.tensor({n * 7 % 20 + 1} << 20)")
    assert on_sim() == []


def test_lists_of_different_cells_are_not_one(shell: Shell) -> None:
    sim.use(total_bytes=8 << 30)
    shell.run("import gpumem\nfrom gpumem import sim\nb3, b4, b5 = [], [], []")
    for n in (3, 4, 5):
        append = f"for _ in gpumem.steps(range(12)): b{n}.append(sim.tensor({10 * n} << 20))"
        shell.run(f"%%gpumem --quiet\n{append}")
    holders = [[it.name for it in finding.holders] for finding in on_sim()]
    assert sorted(holders) == [["b3"], ["b4"], ["b5"]]


SETUP = """
sim.use(total_bytes=8 << 30)
weights = sim.tensor(4 << 20, requires_grad=True)
losses = []
"""


@pytest.mark.parametrize("magic", ["", "%%gpumem --quiet\n"])
@pytest.mark.parametrize("setup", [SETUP, "losses = []"])
def test_a_series_begins_anew_with_its_holder(shell: Shell, magic: str, setup: str) -> None:
    shell.run("from gpumem import sim\n" + SETUP)
    for _ in range(2):
        shell.run(magic + setup)
        for _ in range(6):
            shell.run("%%gpumem --quiet\nlosses.append((sim.tensor(32 << 20) * weights).sum())")
    [finding] = on_sim()
    assert isinstance(finding.details, Growth)
    assert (finding.kind, finding.n_runs, finding.holders[0].name) == ("leak", 6, "losses")
    each = finding.bytes_per_run
    assert each is not None
    assert finding.details.total_bytes == 6 * each


def test_an_entry_of_a_cache_counts_once(shell: Shell) -> None:
    sim.use(total_bytes=3 << 30)
    shell.run(CACHE.replace("new()", "[new() for _ in range(4)]").replace("50", "20"))
    shell.user_ns.update(new=lambda: sim.tensor(8 << 20))
    for _ in range(12):
        shell.run("%%gpumem --quiet\nlatest = recent(next(keys))")
    [finding] = on_sim()
    assert finding.title == "recent fills up: 12 of at most 20"
    assert finding.detail.startswith("640 MiB when full")


def test_a_growing_collection_is_inspected_early(shell: Shell) -> None:
    sim.use(total_bytes=8 << 30)
    shell.run("from gpumem import sim\nkept = []")
    for _ in range(4):
        shell.run("%%gpumem\nkept.append(sim.tensor(12 << 20))")
    [_, second, _, fourth] = [re.sub(r"\d+\]", "n]", line) for line in shell.lines]
    assert "○ kept (In [n]) +12 MiB in each of 2 runs\n" in second
    assert "○ kept (In [n]) collects 12 MiB in each of 4 runs · on purpose?\n" in fourth


TRAINER = """
class Trainer:
    def __init__(self):
        self.weight = sim.tensor(256 << 20, requires_grad=True)
        self.losses = []
trainer = Trainer()
"""


@pytest.mark.parametrize(
    ("setup", "cell", "named"),
    [
        # The weights have more than all of the losses.
        (
            TRAINER,
            "trainer.losses.append((sim.tensor(10 << 20) * trainer.weight).sum())",
            "○ trainer.losses (In [2]) +10 MiB in each of 2 runs",
        ),
        # The latest one has another name, too: after two runs nobody knows which of them collects.
        (
            TRAINER,
            "loss = (sim.tensor(10 << 20) * trainer.weight).sum()\ntrainer.losses.append(loss)",
            "○ trainer.losses (In [3]) +10 MiB in each of 3 runs",
        ),
        # A name of the latest one is not who collects.
        (
            "masks = {}\nsizes = iter((160, 240, 320))",
            "n = next(sizes)\nmask = masks[n] = sim.tensor(n << 20)",
            "○ masks (In [2]) +400 MiB in 2 runs",
        ),
    ],
)
def test_the_first_hint_names_the_holder(shell: Shell, setup: str, cell: str, named: str) -> None:
    sim.use(total_bytes=8 << 30)
    shell.run(f"from gpumem import sim\n{setup}")
    for _ in range(3):
        shell.run(f"%%gpumem\n{cell}")
    hints = [line for text in shell.lines for line in text.splitlines() if line.startswith("○")]
    first = re.sub(r"\d+\]", "n]", hints[0])
    assert first.startswith(re.sub(r"\d+\]", "n]", named))


POSITIONS = """
class Model:
    def __init__(self):
        self.positions = {}
    def at(self, n):
        if n not in self.positions:
            self.positions[n] = sim.tensor(40 << 20)
        return self.positions[n]
model = Model()
"""


def test_a_warning_is_taken_back_where_later_runs_keep_nothing(shell: Shell) -> None:
    sim.use(total_bytes=8 << 30)
    shell.run(f"from gpumem import sim\n{POSITIONS}")
    shell.run("%gpumem on")
    for n in range(24):
        shell.run(f"n = {n} % 12")
        shell.run("position = model.at(n)")
    told = [line for text in shell.lines for line in text.splitlines() if line[0] in "◆✓"]
    [warned, ended] = told
    assert warned.startswith("◆ model.positions +40 MiB every run (9 of 9)")
    assert ended == "✓ model.positions stopped growing"


def test_what_is_emptied_is_the_container_that_grows(shell: Shell) -> None:
    sim.use(total_bytes=8 << 30)
    setup = "history = {'images': [], 'names': ['a']}\nweights = sim.tensor(64 << 20)"
    shell.run(f"from gpumem import sim\n{setup}")
    shell.user_ns["see"] = lambda history: history["images"].append(sim.tensor(12 << 20))
    for _ in range(10):
        shell.run("%%gpumem --quiet\nsee(history)")
    [finding] = on_sim()
    assert finding.fix is not None
    assert finding.fix.after == "history['images'].clear()"
