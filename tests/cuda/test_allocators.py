"""Every way in which torch can be set to allocate: streams, pools, graphs, other allocators."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import gpumem
import pytest

from tests.support.in_process import forked_from, in_process

from .notebook import (
    GIB,
    MIB,
    check,
    configure,
    empty,
    findings,
    held,
    last,
    machine,
    names,
    run,
    shell,
    started,
)

CONFIGURATIONS = {
    "expandable": "expandable_segments:True",
    "split": "max_split_size_mb:20",
    "rounded": "roundup_power2_divisions:4",
    "collected": "garbage_collection_threshold:0.6",
    "expandable and split": "expandable_segments:True,max_split_size_mb:64",
}


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@forked_from("torch")
def test_a_configured_allocator_is_read_as_it_counts(configuration: str) -> None:
    configure(CONFIGURATIONS[configuration])
    torch = started()
    rng = random.Random(3)  # noqa: S311 (a test draws the same again)
    for _ in range(40):
        size = int(2 ** rng.uniform(8, 29))
        before = torch.cuda.memory_allocated()
        if rng.random() < 0.6 or len(names()["kept"]) < 4:
            cell = f"kept.append(torch.empty({size}, dtype=torch.uint8, device='cuda'))"
        else:
            cell = f"del kept[{rng.randrange(3)}::3]"
        assert run(cell) is None, cell
        row = check()
        assert row["kept_bytes"] == torch.cuda.memory_allocated() - before, row
    run("del kept[1:]")
    check()
    run("torch.cuda.empty_cache()")
    check()


@in_process
def test_cuda_s_pool_leaves_unknown_what_torch_does_not_count() -> None:
    configure("backend:cudaMallocAsync")
    torch = started()
    assert torch.cuda.get_allocator_backend() == "cudaMallocAsync"
    for n_mib in (1, 100, 1000):
        before = torch.cuda.memory_allocated()
        run(f"kept.append({empty(n_mib)})")
        row, stats = last(), torch.cuda.memory_stats()
        assert row["kept_bytes"] == torch.cuda.memory_allocated() - before >= n_mib * MIB, row
        assert row["allocated_after_bytes"] == stats["allocated_bytes.all.current"], row
        assert row["reserved_after_bytes"] == stats["reserved_bytes.all.current"], row
        # It counts no blocks: zero would be a lie.
        assert row["n_blocks_after"] in (None, stats["allocation.all.current"]), row
        free, total = torch.cuda.mem_get_info()
        assert row["device_used_after_bytes"] == total - free, row
    assert run(f"x = {empty(20_000)}") == "OutOfMemoryError"
    assert (last()["status"], last()["oom"]["framework"]) == ("out_of_memory", "torch"), last()
    run("%%gpumem --trace\nkept.append(torch.empty(1 << 20, device='cuda'))")
    assert last()["kept_bytes"] >= 4 * MIB
    assert "torch is not traced: RuntimeError: cudaMallocAsync" in shell().lines[-1]
    assert gpumem.holders().roots[0].n_bytes >= 1101 * MIB
    gpumem.report().text()


@forked_from("torch")
def test_a_fraction_is_the_capacity_and_the_report_says_so() -> None:
    torch = started()
    run("torch.cuda.set_per_process_memory_fraction(0.25)")
    run(f"kept.append({empty(100)})")
    row = check()
    assert row["capacity_bytes"] == torch.cuda.mem_get_info()[1] // 4 == 2 * GIB, row

    def device() -> dict[str, Any]:
        [it] = [
            it for it in json.loads(gpumem.report().to_json())["devices"] if it["label"] == "cuda:0"
        ]
        return dict(it)

    assert device()["limited_by"] == "torch", device()
    assert run(f"x = {empty(3000)}") == "OutOfMemoryError"
    row = last()
    assert row["status"] == "out_of_memory", row
    assert row["oom"]["wanted_bytes"] == 3000 * MIB, row["oom"]
    assert row["oom"]["limit_bytes"] == 2 * GIB, row["oom"]
    [found] = findings("out_of_memory")
    # Of the card 8 GiB and most of it free; of the fraction what torch has not reserved.
    assert found.details.total_bytes == 8 * GIB, found.details
    left = 2 * GIB - 102 * MIB
    assert found.details.free_bytes == left, found.details
    assert found.details.missing_bytes == 3000 * MIB - left, found.details
    assert sum(it.n_bytes for it in found.details.parts) == 8 * GIB, found.details
    # A request that a fraction of the card refuses, and the card would not.
    assert run(f"kept.append({empty(1800)})") is None
    assert run(f"y = {empty(1000)}") == "OutOfMemoryError"
    [found] = [it for it in findings("out_of_memory") if it.cell.label.startswith("y =")]
    assert any("limit of 2 GiB" in it for it in found.suggestions), found.suggestions
    assert run(f"try:\n    z = {empty(1000)}\nexcept torch.OutOfMemoryError:\n    pass") is None
    row = last()
    assert row["oom"]["survived"], row["oom"]
    assert row["oom"]["limit_bytes"] == 2 * GIB, row["oom"]
    run("torch.cuda.set_per_process_memory_fraction(1.0)")
    run(f"kept.append({empty(100)})")
    assert check()["capacity_bytes"] == 8 * GIB


@forked_from("torch")
def test_a_block_that_awaits_a_stream_is_active_not_allocated() -> None:
    started()
    run("side = torch.cuda.Stream()")
    run(f"with torch.cuda.stream(side):\n    t = {empty(64)}\nkept.append({empty(32)})")
    assert check()["kept_bytes"] == 96 * MIB
    run("t.record_stream(torch.cuda.current_stream())\ndel t")
    row = check()
    assert row["kept_bytes"] == -64 * MIB, row
    run("torch.cuda.synchronize()")
    assert check()["kept_bytes"] == 0


@forked_from("torch")
def test_a_pool_of_ones_own_is_counted_and_is_no_cache() -> None:
    torch = started()
    run("pool = torch.cuda.MemPool()")
    run(f"with torch.cuda.use_mem_pool(pool):\n    a, b = {empty(50)}, {empty(30)}")
    assert check()["kept_bytes"] == 80 * MIB
    run("del b")
    assert check()["kept_bytes"] == -30 * MIB
    # The pool keeps the 30 MiB for itself.
    before = torch.cuda.memory_reserved()
    released = gpumem.release("cache")
    assert released.freed.get("cuda:0", 0) == before - torch.cuda.memory_reserved(), released
    run("del a, pool")
    check()
    before = torch.cuda.memory_reserved()
    released = gpumem.release("cache")
    assert released.freed.get("cuda:0", 0) == before - torch.cuda.memory_reserved(), released


@pytest.mark.any_card
@forked_from("torch")
def test_a_graph_keeps_its_pool_and_a_replay_keeps_nothing() -> None:
    torch = started()
    run(
        "x = torch.ones(16 << 20, device='cuda')\nside = torch.cuda.Stream()\n"
        "with torch.cuda.stream(side):\n    (x + 1) * 2\ntorch.cuda.synchronize()"
    )
    check()
    assert (
        run("graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(graph):\n    y = (x + 1) * 2")
        is None
    )
    row = check()
    assert row["kept_bytes"] >= 64 * MIB, row
    pools = [it for it in torch.cuda.memory_snapshot() if it["segment_pool_id"] != (0, 0)]
    in_graph = sum(it["total_size"] for it in pools)
    # Twice the size was needed while it was captured: its pool keeps both.
    assert in_graph >= 128 * MIB, in_graph
    for _ in range(3):
        run("graph.replay()")
        assert check()["kept_bytes"] == 0
    before = torch.cuda.memory_reserved()
    released = gpumem.release("cache")
    assert released.freed.get("cuda:0", 0) == before - torch.cuda.memory_reserved(), released
    still = [it for it in torch.cuda.memory_snapshot() if it["segment_pool_id"] != (0, 0)]
    assert sum(it["total_size"] for it in still) == in_graph
    # The graph still computes, where anything does.
    run("graph.replay()\ntorch.cuda.synchronize()\nsame = bool((y == 4).all())")
    assert names()["same"] or "PLAYED_CUDA_STATE" in os.environ


@forked_from("torch")
def test_pinned_memory_is_a_device_of_its_own() -> None:
    torch = started()
    run("pinned = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)")
    row, stats = last("pinned"), torch.cuda.host_memory_stats()

    # What torch calls allocated is what it has from the driver.
    def agrees(row: dict[str, Any], stats: dict[str, int]) -> None:
        assert row["allocated_after_bytes"] == stats["active_bytes.current"], (row, stats)
        assert row["reserved_after_bytes"] == stats["allocated_bytes.current"], (row, stats)

    agrees(row, stats)
    assert row["kept_bytes"] == 64 * MIB, row
    check()
    run("del pinned")
    agrees(last("pinned"), torch.cuda.host_memory_stats())
    assert last("pinned")["kept_bytes"] == -64 * MIB
    kept = torch.cuda.host_memory_stats()["allocated_bytes.current"]
    released = gpumem.release("cache")
    given = kept - torch.cuda.host_memory_stats()["allocated_bytes.current"]
    assert released.freed.get("pinned", 0) == given, (released, given)


@forked_from("torch")
def test_a_copy_to_a_peer_is_on_the_peer_alone() -> None:
    machine().cards(2)
    started()
    run(f"a = {empty(200)}")
    run("b = a.to('cuda:1')")
    assert (check(0)["kept_bytes"], check(1)["kept_bytes"]) == (0, 200 * MIB)
    run("c = b.to('cuda:0', non_blocking=True)\ndel b")
    assert (check(0)["kept_bytes"], check(1)["kept_bytes"]) == (200 * MIB, -200 * MIB)
    assert held()["a"] == held()["c"] == 200 * MIB, held()


@forked_from("torch")
def test_a_slice_of_a_card_is_the_card() -> None:
    parts = [(f"MIG-66616b65-6375-6461-0000-{idx:012x}", 4096) for idx in (1, 2)]
    machine().divide(0, parts)
    os.environ["CUDA_VISIBLE_DEVICES"] = parts[1][0]
    torch = started()
    assert torch.cuda.mem_get_info()[1] == 4 * GIB, torch.cuda.mem_get_info()
    run(f"kept.append({empty(1000)})")
    row = check()
    assert (row["kept_bytes"], row["capacity_bytes"]) == (1000 * MIB, 4 * GIB), row
    assert run(f"x = {empty(3500)}") == "OutOfMemoryError"
    assert last()["status"] == "out_of_memory"
