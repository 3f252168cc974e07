"""A pool that is really fragmented, and the map of segments beside torch's own snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .program import Program

STARTED = """
    import json
    import torch
    run("import torch\\nkept = [torch.empty(1, device='cuda')]")
    run("%gpumem on")
    def found(kind):
        return [it for it in gpumem.report().findings if it.kind == kind]
    def maps():
        return json.loads(gpumem.report().to_json())["maps"]
    def of_torch(device=0):
        segments = [it for it in torch.cuda.memory_snapshot() if it["device"] == device]
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
"""

FRAGMENT = """
    # One segment is cut into pieces, and every second one is given back.
    run("t = torch.empty(6400 << 20, dtype=torch.uint8, device='cuda')\\ndel t")
    run("pieces = [torch.empty({piece_mib} << 20, dtype=torch.uint8, device='cuda')"
        " for _ in range({n})]")
    run("del pieces[::2]")
"""


@pytest.mark.parametrize("configuration", ["", "expandable_segments:True"])
def test_the_map_is_torch_s_snapshot(program: Program, configuration: str) -> None:
    program(
        STARTED
        + """
    import random
    rng = random.Random(5)
    run("pieces = []")
    for n in range(12):
        sizes = [int(2 ** rng.uniform(8, 27)) for _ in range(30)]
        run(f"pieces += [torch.empty(n, dtype=torch.uint8, device='cuda') for n in {sizes}]")
        run(f"del pieces[{rng.randrange(3)}::{rng.randrange(2, 4)}]")
    assert run("x = torch.empty(9 << 30, dtype=torch.uint8, device='cuda')") == "OutOfMemoryError"
    [shown] = [it for it in maps() if it["device"] == "cuda:0"]
    assert shown["reason"] is None, shown
    told, truth = shown["found"], of_torch()
    assert {key: told[key] for key in truth} == truth, (truth, {key: told[key] for key in truth})
    # Segment by segment, too: what is drawn adds up to what each holds.
    drawn = sorted(
        sum(block["n_bytes"] for block in it["blocks"]) for it in told["segments"]
    )
    sizes = sorted(it["total_size"] for it in torch.cuda.memory_snapshot())
    assert drawn == sizes, (drawn, sizes)
    assert_quiet()
    """,
        PYTORCH_CUDA_ALLOC_CONF=configuration,
        PYTORCH_ALLOC_CONF=configuration,
    )


@pytest.mark.parametrize("piece_mib", [4, 40])
def test_an_error_for_want_of_one_large_piece(program: Program, piece_mib: int) -> None:
    cells = FRAGMENT.format(n=6400 // piece_mib, piece_mib=piece_mib)
    program(
        STARTED
        + cells
        + f"""
    piece = {piece_mib} * MIB
    """
        + """
    free = torch.cuda.mem_get_info()[0]
    cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    wanted = 2500
    assert free < wanted * MIB < cached, (free, cached)
    assert run(f"x = torch.empty({wanted} << 20, dtype=torch.uint8, device='cuda')") == (
        "OutOfMemoryError"
    )
    oom = last()["oom"]
    truth = of_torch()
    assert oom["largest_free_bytes"] == truth["largest_free_bytes"], (oom, truth)
    [finding] = found("out_of_memory")
    assert finding.details.largest_free_bytes == truth["largest_free_bytes"]
    said = finding.title + finding.detail + " ".join(finding.suggestions)
    if piece < 20 * MIB:
        # Expandable segments move no less than 20 MiB: torch proposes them, and they do not help.
        assert "in pieces, the largest piece 4 MiB" in said, said
        assert "expandable_segments:True" in oom["message"]
        assert "expandable_segments:True" not in said, said
    assert_quiet()
    """
    )
    program(
        STARTED
        + cells
        + f"""
    error = {None if piece_mib >= 20 else "OutOfMemoryError"!r}
    assert run("x = torch.empty(2500 << 20, dtype=torch.uint8, device='cuda')") == error
    check()
    """,
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
        PYTORCH_ALLOC_CONF="expandable_segments:True",
    )


def test_a_pool_in_pieces_is_found_before_memory_runs_out(program: Program) -> None:
    program(
        STARTED
        + FRAGMENT.format(n=1600, piece_mib=4)
        + """
    for _ in range(3):
        run("x = torch.empty(3 << 20, dtype=torch.uint8, device='cuda')")
    inactive = torch.cuda.memory_stats()["inactive_split_bytes.all.current"]
    assert inactive > GIB, inactive
    [finding] = found("fragmentation")
    details = finding.details
    assert details.inactive_split_bytes == inactive, (details, inactive)
    assert details.reserved_bytes == torch.cuda.memory_reserved(), details
    assert_quiet()
    """
    )
