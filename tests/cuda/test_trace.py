"""`--trace` says what torch's own history, counters and snapshot say, to the byte."""

from __future__ import annotations

import pickle
import random
import sys
from itertools import groupby
from pathlib import Path

import pytest

from tests.support.in_process import forked_from

from .notebook import MIB, check, configure, empty, machine, names, rows, run, started, trace

SAVED = Path("trace.pickle")


def retained(device: str = "cuda:0") -> dict[int, int]:
    """Return what each line of the latest run's cell has kept."""
    return {it["line"]: it["retained_bytes"] for it in trace(device)["lines"]}


def history() -> list[str]:
    """Return the actions in torch's own history."""
    events = sys.modules["torch"].cuda.memory._snapshot()["device_traces"][0]
    return [it["action"] for it in events if it["action"] != "snapshot"]


def random_cell(rng: random.Random, n_cards: int, n_steps: int) -> tuple[str, list[str]]:
    """Return a cell, and the names that are alive at its end.

    Of its sizes torch splits the rest off, keeps it whole, or lets it share a segment.
    """
    lines: list[str] = ["%%gpumem --trace"]
    alive: list[str] = []
    for n in range(n_steps):
        if len(alive) > 2 and rng.random() < 0.45:
            lines.append("del " + alive.pop(rng.randrange(len(alive))))
        else:
            size, card = int(2 ** rng.uniform(0, 27.5)), rng.randrange(n_cards)
            lines.append(f"v{n} = torch.empty({size}, dtype=torch.uint8, device='cuda:{card}')")
            alive.append(f"v{n}")
        lines.append("seen.append([torch.cuda.memory_allocated(i) for i in range(n_cards)])")
    return "\n".join(lines), alive


@pytest.mark.parametrize("configuration", ["", "expandable_segments:True", "max_split_size_mb:30"])
@pytest.mark.parametrize("n_cards", [1, 2])
@forked_from("torch")
def test_levels_peak_and_lines_of_a_random_cell(n_cards: int, configuration: str) -> None:
    machine().cards(n_cards, total_mib=32_768)
    configure(configuration)
    torch = started()
    names()["n_cards"] = n_cards
    rng = random.Random(n_cards)  # noqa: S311 (a test draws the same again)
    for _ in range(2):
        cell, alive = random_cell(rng, n_cards, 60)
        names()["seen"] = seen = [[torch.cuda.memory_allocated(idx) for idx in range(n_cards)]]
        assert run(cell) is None
        lines = cell.split("\n")
        for idx in range(n_cards):
            device = f"cuda:{idx}"
            row, found = check(idx), trace(device)
            truth = max(levels[idx] for levels in seen)
            peak = found["peak"]
            assert not found["is_cut"], found
            assert peak["low_bytes"] <= truth <= peak["high_bytes"], (peak, truth)
            # The level after each step of the cell is one of the trace's, in this order.
            steps = found["steps"]
            assert steps["allocated_bytes"][0] == seen[0][idx] == row["before_bytes"]
            assert steps["allocated_bytes"][-1] == seen[-1][idx] == row["after_bytes"]
            assert steps["reserved_bytes"][-1] == torch.cuda.memory_reserved(idx)
            assert peak["low_bytes"] == peak["high_bytes"] == truth, (peak, truth)
            assert (row["peak_exact"], row["peak_bytes"]) == (True, truth), (row, truth)
            changes = [level for level, _ in groupby(levels[idx] for levels in seen)]
            listed = [level for level, _ in groupby(steps["allocated_bytes"])]
            assert listed == changes, (changes, listed)
            # What each line kept is what torch holds of it.
            of_line = {}
            for n, line in enumerate(lines, 1):
                name = line.split(" = ")[0]
                if name in alive and f"'{device}'" in line:
                    of_line[n] = names()[name].untyped_storage().data_ptr()
            blocks = {
                block["address"]: block["size"]
                for segment in torch.cuda.memory_snapshot()
                if segment["device"] == idx
                for block in segment["blocks"]
            }
            expected = {n: blocks[address] for n, address in of_line.items()}
            found_of_line = {n: size for n, size in retained(device).items() if size}
            assert found_of_line == expected, (found_of_line, expected)
        run("del " + ", ".join(alive))


@pytest.mark.any_card
@forked_from("torch")
def test_a_saved_trace_is_torch_s_own_snapshot() -> None:
    torch = started()
    run(
        f"%%gpumem --trace {SAVED}\n"
        "for n in range(3):\n"
        "    kept.append(torch.empty(64 << 20, dtype=torch.uint8, device='cuda'))\n"
        "t = torch.empty(512 << 20, dtype=torch.uint8, device='cuda')\n"
        "del t"
    )
    row, found = check(), trace()
    peak = torch.cuda.max_memory_allocated()
    assert (row["peak_exact"], row["peak_bytes"]) == (True, peak), (row, peak)
    assert (found["peak"]["low_bytes"], found["peak"]["high_bytes"]) == (peak, peak), found
    assert retained() == {3: 192 * MIB, 4: 0}, found["lines"]
    snapshot = pickle.loads(SAVED.read_bytes())  # noqa: S301 (torch wrote it)
    assert sum(it["total_size"] for it in snapshot["segments"]) == torch.cuda.memory_reserved()
    assert sum(it["allocated_size"] for it in snapshot["segments"]) == torch.cuda.memory_allocated()
    events = snapshot["device_traces"][0]
    assert [it["action"] for it in events if it["action"] == "alloc"] == ["alloc"] * 4
    assert found["n_events"] == len([it for it in events if it["action"] != "snapshot"]), found
    assert {it["frames"][0]["line"] for it in events if it["action"] == "alloc"} == {3, 4}
    assert not torch._C._cuda_isHistoryEnabled()
    # Nothing of it is left in torch's own history.
    assert torch.cuda.memory._snapshot()["device_traces"][0] == []


@forked_from("torch")
def test_of_a_long_cell_the_last_events_are_left_and_are_exact() -> None:
    torch = started()
    cell = """
    %%gpumem --trace
    first = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
    del first
    small = torch.empty(10 << 20, dtype=torch.uint8, device="cuda")
    for _ in range(40_000):
        t = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        del t
    last = torch.empty(20 << 20, dtype=torch.uint8, device="cuda")
    kept.append(torch.empty(70 << 20, dtype=torch.uint8, device="cuda"))
    """
    run("torch.cuda.reset_peak_memory_stats()")
    assert run(cell) is None
    row, found = check(), trace()
    assert found["is_cut"], found["n_events"]
    # The spike of the first line is gone from the history, and torch's counter has seen it.
    truth = torch.cuda.max_memory_allocated()
    assert truth >= 300 * MIB
    assert row["peak_bytes"] <= truth <= row["peak_high_bytes"], row
    assert found["steps"]["allocated_bytes"][-1] == torch.cuda.memory_allocated()
    listed = {line: size for line, size in retained().items() if size}
    assert (listed[8], listed[9]) == (20 * MIB, 70 * MIB), listed
    assert listed.get(4, 10 * MIB) == 10 * MIB, listed


@forked_from("torch")
def test_a_history_of_the_users_own_is_read_and_left_alone() -> None:
    torch = started()
    run("torch.cuda.memory._record_memory_history(max_entries=1000, stacks='python')")
    run(f"kept.append({empty(5)})")
    n_before = len(history())
    assert n_before > 0
    run(f"%%gpumem --trace\nkept.append({empty(30)})")
    assert retained() == {2: 30 * MIB}, trace()
    assert torch._C._cuda_isHistoryEnabled()
    now = history()
    assert now[n_before:] == ["segment_alloc", "alloc"], now[n_before:]
    run(f"%%gpumem --trace\nkept.append({empty(40)})")
    assert retained() == {2: 40 * MIB}, trace()
    assert trace()["peak"]["low_bytes"] == torch.cuda.max_memory_allocated()
    # One that is short: of 2000 events in the cell it keeps the last 1000.
    run(
        "%%gpumem --trace\nfor _ in range(1000):\n"
        "    t = torch.empty(1 << 20, dtype=torch.uint8, device='cuda')\n    del t\n"
        "kept.append(torch.empty(50 << 20, dtype=torch.uint8, device='cuda'))"
    )
    assert trace()["is_cut"], trace()
    assert retained()[5] == 50 * MIB, retained()
    assert len(torch.cuda.memory._snapshot()["device_traces"][0]) == 1000
    # One that the user has ended, but not dropped.
    run("torch.cuda.memory._record_memory_history(None)")


@forked_from("torch")
def test_modules_and_labels_of_a_training_step() -> None:
    torch = started()
    run("""
    layers = [torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 8)]
    model = torch.nn.Sequential(*layers).cuda()
    inputs = torch.empty(4096, 512, device="cuda")
    """)
    run("""
    %%gpumem --trace
    with torch.profiler.record_function("forward"):
        hidden = model[0](inputs)
        out = model[2](model[1](hidden))
    with torch.profiler.record_function("backward"):
        out.sum().backward()
    """)
    row, found = check(), trace()
    nested = {it["label"]: it for it in rows() if it["parent"] == row["run"]}
    assert set(nested) == {"forward", "backward"}, nested
    assert nested["forward"]["kept_bytes"] >= 2 * 16 * MIB, nested
    assert nested["forward"]["after_bytes"] == nested["backward"]["before_bytes"]
    assert nested["forward"]["kept_bytes"] + nested["backward"]["kept_bytes"] == row["kept_bytes"]
    modules = {
        it["path"][-1] if isinstance(it["path"], list) else it["path"] for it in found["modules"]
    }
    assert any("Linear" in it for it in modules), found["modules"]
    assert row["peak_bytes"] == torch.cuda.max_memory_allocated(), row


@forked_from("torch")
def test_an_error_in_a_traced_cell_ends_the_history() -> None:
    torch = started()
    cell = f"%%gpumem --trace\nkept.append({empty(64)})\nx = {empty(9000)}"
    assert run(cell) == "OutOfMemoryError"
    row = check()
    assert row["status"] == "out_of_memory"
    assert retained()[2] == 64 * MIB, trace()
    assert not torch._C._cuda_isHistoryEnabled()
