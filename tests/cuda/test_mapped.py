"""Reading the map of segments from torch, and the reason if torch cannot give it."""

from __future__ import annotations

import json
from typing import Any

import gpumem

from tests.support.in_process import forked_from

from .notebook import empty, logged, run, started
from .test_fragmentation import fragment


def latest() -> dict[str, Any]:
    """Return the latest look at the card."""
    [found] = json.loads(gpumem.report().to_json())["maps"]
    return dict(found)


@forked_from("torch")
def test_a_map_shows_pools_and_blocks_awaiting_a_stream() -> None:
    torch = started()
    fragment(40)
    run("side, pool = torch.cuda.Stream(), torch.cuda.MemPool()")
    run(f"with torch.cuda.use_mem_pool(pool):\n    a, b = {empty(50)}, {empty(30)}\ndel b")
    run(f"with torch.cuda.stream(side):\n    t = {empty(64)}")
    run("t.record_stream(torch.cuda.current_stream())\ndel t, pieces[::2]")
    segments = latest()["found"]["segments"]
    assert {it["pool"] for it in segments} == {"large", "small", "private"}, segments
    assert {it["stream"] for it in segments} == {0, 1}, segments
    states = {block["state"] for it in segments for block in it["blocks"]}
    assert states == {"held", "free", "awaiting"}, states
    # What is free in a private pool is nobody else's.
    free = [
        block["n_bytes"]
        for it in segments
        if it["pool"] != "private"
        for block in it["blocks"]
        if block["state"] == "free"
    ]
    assert latest()["found"]["largest_free_bytes"] == max(free)
    assert torch.cuda.memory_reserved() == latest()["found"]["reserved_bytes"]


@forked_from("torch")
def test_torch_snapshot_is_read_once_without_history() -> None:
    import torch

    stats, calls = torch._C._cuda_memoryStats, []
    n_blocks: list[int] = []

    def counted(ordinal: int) -> dict[str, Any]:
        found = dict(stats(ordinal))
        if n_blocks and ordinal == 0:
            found["allocation"]["all"]["current"] = n_blocks[0]
        return found

    torch._C._cuda_memoryStats = counted
    started()
    memory = torch.cuda.memory
    whole = memory.memory_snapshot

    def newer(mempool_id: object = None, **options: bool) -> Any:
        calls.append((mempool_id, options))
        return whole(mempool_id, **options)

    def older(mempool_id: object = None) -> Any:
        calls.append((mempool_id, {}))
        return whole(mempool_id)

    def broken(**_: bool) -> Any:
        raise RuntimeError("no snapshot today")

    memory.memory_snapshot = broken
    fragment(40)
    assert run("x = 1") is None
    said = "where the memory of cuda:0 lies is not known: RuntimeError: no snapshot today"
    assert set(logged) == {said}, logged
    logged.clear()
    memory.memory_snapshot = newer
    run("del pieces[::2]\nx = 1")
    run("x = 2")
    assert calls == [(None, {"include_traces": False})], calls
    calls.clear()
    memory.memory_snapshot = older
    run("torch.cuda.memory._record_memory_history()\ndel pieces[::2]")
    assert latest()["reason"] == "this torch cannot tell it while you record its memory history"
    run("torch.cuda.memory._record_memory_history(None)\ndel pieces[::2]")
    assert (latest()["reason"], calls) == (None, [(None, {})]), latest()
    n_blocks.append(60_000)
    run("del pieces[::2]")
    words = "60000 blocks take a while to look at: `%%gpumem --trace` takes that time"
    assert (latest()["reason"], latest()["found"], len(calls)) == (words, None, 1), latest()
