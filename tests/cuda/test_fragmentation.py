"""A pool that is really fragmented, and the map of segments beside torch's own snapshot."""

from __future__ import annotations

import json
import random
import sys

import gpumem
import pytest

from tests.support.in_process import forked_from

from .notebook import GIB, MIB, check, configure, empty, findings, last, run, started

EXPANDABLE_MIB = 20
"""Expandable segments move no less."""


def fragment(piece_mib: int) -> None:
    """Cut one segment into pieces, and give every second one back."""
    run(f"t = {empty(6400)}\ndel t")
    run(f"pieces = [{empty(piece_mib)} for _ in range({6400 // piece_mib})]")
    run("del pieces[::2]")


def of_torch() -> dict[str, int]:
    """Return what torch's own snapshot says of the first card."""
    snapshot = sys.modules["torch"].cuda.memory_snapshot()
    segments = [it for it in snapshot if it["device"] == 0]
    blocks = [block for it in segments for block in it["blocks"]]
    free = [it["size"] for it in blocks if it["state"] == "inactive"]
    unused = [it for it in segments if it["active_size"] == 0]
    return {
        "reserved_bytes": sum(it["total_size"] for it in segments),
        "in_use_bytes": sum(it["active_size"] for it in segments),
        "unused_bytes": sum(it["total_size"] for it in unused),
        "split_bytes": sum(free) - sum(it["total_size"] for it in unused),
        "largest_free_bytes": max(free, default=0),
        "n_segments": len(segments),
        "n_blocks": len(blocks),
    }


@pytest.mark.parametrize("configuration", ["", "expandable_segments:True"])
@forked_from("torch")
def test_the_map_is_torch_s_snapshot(configuration: str) -> None:
    configure(configuration)
    torch = started()
    rng = random.Random(5)  # noqa: S311 (a test draws the same again)
    run("pieces = []")
    for _ in range(12):
        sizes = [int(2 ** rng.uniform(8, 27)) for _ in range(30)]
        run(f"pieces += [torch.empty(n, dtype=torch.uint8, device='cuda') for n in {sizes}]")
        run(f"del pieces[{rng.randrange(3)}::{rng.randrange(2, 4)}]")
    assert run("x = torch.empty(9 << 30, dtype=torch.uint8, device='cuda')") == "OutOfMemoryError"
    maps = json.loads(gpumem.report().to_json())["maps"]
    [shown] = [it for it in maps if it["device"] == "cuda:0"]
    assert shown["reason"] is None, shown
    reported, truth = shown["found"], of_torch()
    assert {key: reported[key] for key in truth} == truth, (
        truth,
        {key: reported[key] for key in truth},
    )
    # Segment by segment, too: what is drawn adds up to what each holds.
    drawn = sorted(sum(block["n_bytes"] for block in it["blocks"]) for it in reported["segments"])
    sizes = sorted(it["total_size"] for it in torch.cuda.memory_snapshot())
    assert drawn == sizes, (drawn, sizes)


@pytest.mark.parametrize("piece_mib", [4, 40])
@forked_from("torch")
def test_an_error_for_want_of_one_large_piece(piece_mib: int) -> None:
    torch = started()
    fragment(piece_mib)
    free = torch.cuda.mem_get_info()[0]
    cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    assert free < 2500 * MIB < cached, (free, cached)
    assert run(f"x = {empty(2500)}") == "OutOfMemoryError"
    oom = last()["oom"]
    truth = of_torch()
    assert oom["largest_free_bytes"] == truth["largest_free_bytes"], (oom, truth)
    [finding] = findings("out_of_memory")
    assert finding.details.largest_free_bytes == truth["largest_free_bytes"]
    said = finding.title + finding.detail + " ".join(finding.suggestions)
    if piece_mib < EXPANDABLE_MIB:
        # torch proposes them, and they do not help.
        assert "in pieces, the largest piece 4 MiB" in said, said
        assert "expandable_segments:True" in oom["message"]
        assert "expandable_segments:True" not in said, said


@pytest.mark.parametrize("piece_mib", [4, 40])
@forked_from("torch")
def test_expandable_segments_join_large_pieces(piece_mib: int) -> None:
    configure("expandable_segments:True")
    started()
    fragment(piece_mib)
    error = None if piece_mib >= EXPANDABLE_MIB else "OutOfMemoryError"
    assert run(f"x = {empty(2500)}") == error
    check()


@forked_from("torch")
def test_a_pool_in_pieces_is_found_before_memory_runs_out() -> None:
    torch = started()
    fragment(4)
    for _ in range(3):
        run("x = torch.empty(3 << 20, dtype=torch.uint8, device='cuda')")
    inactive = torch.cuda.memory_stats()["inactive_split_bytes.all.current"]
    assert inactive > GIB, inactive
    [finding] = findings("fragmentation")
    details = finding.details
    assert details.inactive_split_bytes == inactive, (details, inactive)
    assert details.reserved_bytes == torch.cuda.memory_reserved(), details
