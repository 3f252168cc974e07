"""The levels of a run are torch's and the driver's own figures, to the byte."""

from __future__ import annotations

import os
import random

import gpumem
import pytest

from tests.support.in_process import forked_from

from .notebook import MIB, check, last, machine, names, run, started

# Sizes that torch rounds in each of its ways: small and large pool, whole segments, 512 B.
SIZES = [1, 511, 513, 1 << 20, (1 << 20) + 1, 10 << 20, (10 << 20) + 1, 300 << 20, 2 << 30]


@pytest.mark.any_card
@forked_from("torch")
def test_each_size_is_counted_as_torch_counts_it() -> None:
    torch = started()
    for n_bytes in SIZES:
        before = torch.cuda.memory_allocated()
        run(f"kept.append(torch.empty({n_bytes}, dtype=torch.uint8, device='cuda'))")
        row = check()
        assert row["kept_bytes"] == torch.cuda.memory_allocated() - before, row
        assert (row["peak_exact"], row["peak_bytes"]) == (True, torch.cuda.max_memory_allocated())
        assert row["capacity_bytes"] <= torch.cuda.mem_get_info()[1], row
    run("del kept[1:]")
    assert check()["after_bytes"] == 512
    run("torch.cuda.empty_cache()")
    assert check()["reserved_after_bytes"] == 2 * MIB


@pytest.mark.parametrize("n_cards", [2, 8])
@forked_from("torch")
def test_each_card_has_levels_of_its_own(n_cards: int) -> None:
    machine().cards(n_cards)
    torch = started()
    assert torch.cuda.device_count() == n_cards
    for idx in range(n_cards):
        cell = "kept.append(torch.empty({0} << 20, dtype=torch.uint8, device='cuda:{0}'))"
        run(cell.format(idx) if idx else "pass")
        for other in range(n_cards):
            check(other)
        rose = {other: last(f"cuda:{other}")["kept_bytes"] for other in range(n_cards)}
        assert rose == {other: (idx << 20) * (other == idx) for other in range(n_cards)}, rose
    # A context costs, and only where torch has opened one.
    opened = [last(f"cuda:{idx}")["device_used_after_bytes"] for idx in range(n_cards)]
    assert all(used >= 300 * MIB for used in opened), opened
    assert {it["device"] for it in gpumem.report().runs} >= {
        f"cuda:{idx}" for idx in range(n_cards)
    }


@forked_from("torch")
def test_a_card_without_our_context_has_none_of_our_memory() -> None:
    machine().cards(2)
    started()
    run("pass")
    row = last("cuda:1")
    assert row["process_used_after_bytes"] == 0, row
    assert last("cuda:0")["process_used_after_bytes"] >= 300 * MIB


@forked_from("torch")
def test_a_random_session_on_two_cards() -> None:
    machine().cards(2)
    torch = started()
    rng = random.Random(15)  # noqa: S311 (a test draws the same again)
    cell = """
    for step in {steps}:
        if step[0] == "alloc":
            kept.append(torch.empty(step[1], dtype=torch.uint8, device=f"cuda:{{step[2]}}"))
        elif step[0] == "free":
            del kept[step[1] % len(kept)]
        elif step[0] == "empty":
            torch.cuda.empty_cache()
        else:
            torch.cuda.reset_peak_memory_stats(step[1])
        for idx in range(2):
            seen[idx].append(torch.cuda.memory_allocated(idx))
    """
    seen: list[list[int]] = [[], []]
    names()["seen"] = seen
    for _ in range(40):
        steps = []
        for _ in range(rng.randrange(1, 8)):
            kind = rng.choices(["alloc", "free", "empty", "reset"], [6, 4, 1, 0.3])[0]
            steps.append(
                {
                    "alloc": ("alloc", int(2 ** rng.uniform(0, 27)), rng.randrange(2)),
                    "free": ("free", rng.randrange(1000)),
                    "empty": ("empty",),
                    "reset": ("reset", rng.randrange(2)),
                }[kind]
            )
        if len(names()["kept"]) < 10:
            steps = [step for step in steps if step[0] != "free"]
        began = [torch.cuda.memory_allocated(idx) for idx in range(2)]
        for idx in range(2):
            seen[idx][:] = [began[idx]]
        assert run(cell.format(steps=steps)) is None
        for idx in range(2):
            row = check(idx)
            assert row["kept_bytes"] == seen[idx][-1] - began[idx], (row, seen[idx])
            truth = max(seen[idx])
            low, high = row["peak_bytes"], row["peak_high_bytes"]
            assert low <= truth <= (truth if high is None else high), (steps, low, truth, high)
            if row["peak_exact"]:
                assert low == truth, (steps, low, truth)


VISIBLE = {
    "one": ("1", ["1"]),
    "swapped": ("3,0", ["3", "0"]),
    "spaces": (" 2 , 1", ["2", "1"]),
    "uuid": ("{2},{0}", ["2", "0"]),
    "uuid prefix": ("{3:.40s}", ["3"]),
    "cut at what is unknown": ("1,9,2", ["1"]),
    "cut at -1": ("2,-1,0", ["2"]),
}


@pytest.mark.parametrize("shown", VISIBLE)
@forked_from("torch")
def test_cards_go_by_the_numbers_that_the_environment_gives(shown: str) -> None:
    machine().cards(4)
    uuids = [f"GPU-66616b65-6375-6461-0000-{gpu + 1:012x}" for gpu in range(4)]
    for gpu, uuid in enumerate(uuids):
        machine().card(gpu, uuid=uuid)
    variable, cards = VISIBLE[shown]
    os.environ["CUDA_VISIBLE_DEVICES"] = variable.format(*uuids)
    # Before CUDA runs, only NVML is read.
    run("%gpumem on\nx = 1")
    before = [it["device"] for it in gpumem.report().runs]
    torch = started()
    assert torch.cuda.device_count() == len(cards), torch.cuda.device_count()
    for idx, card in enumerate(cards):
        run(f"kept.append(torch.empty({1 + idx} << 28, dtype=torch.uint8, device='cuda:{idx}'))")
        row = check(idx)
        assert row["kept_bytes"] == (1 + idx) * 256 * MIB, row
        uuid = str(torch.cuda.get_device_properties(idx).uuid)
        assert uuid.endswith(f"{int(card) + 1:012x}"), (uuid, card)
    devices = {it["device"] for it in gpumem.report().runs}
    cuda = {it for it in devices if it.startswith(("cuda", "nvml"))}
    assert cuda == {f"cuda:{idx}" for idx in range(len(cards))} | set(before) & cuda, devices


@forked_from("torch")
def test_without_a_visible_card_there_is_none() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    run("import torch\n%gpumem on\nx = torch.ones(1 << 20)")
    import torch

    assert not torch.cuda.is_available()
    assert not [it for it in gpumem.report().runs if it["device"].startswith(("cuda", "nvml"))]
