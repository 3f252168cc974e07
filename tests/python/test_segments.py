"""Where memory lies: the map of segments and blocks, and when it is worth a look."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim

from .frames import of_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Shell

MIB = 1 << 20
REAL_DATA = Path(os.environ.get("GPUMEM_REAL_DATA", Path(__file__).parents[3] / "shared/data"))
SNAPSHOTS = sorted((REAL_DATA / "pytorch_snapshots").glob("*.pickle"))

# 30 segments of 20 MiB, of which each then holds 6 MiB and has 14 MiB that nobody can give back.
FILL = "held = [sim.tensor(6 << 20) for _ in range(90)]"
PIERCE = "held = held[::3]"


def maps() -> list[dict[str, Any]]:
    """Return the latest look at each device."""
    found: list[dict[str, Any]] = json.loads(gpumem.report().to_json())["maps"]
    return found


def states(found: dict[str, Any]) -> list[list[tuple[str, int]]]:
    """Return what each segment is made of, in MiB."""
    return [
        [(block["state"], block["n_bytes"] // MIB) for block in segment["blocks"]]
        for segment in found["segments"]
    ]


@pytest.fixture
def device(shell: Shell) -> Shell:
    """Return a shell that records every cell on an empty simulated device."""
    sim.use(total_bytes=1 << 30)
    shell.user_ns["sim"] = sim
    shell.run("%gpumem use sim\n%gpumem on")
    return shell


def test_what_is_free_in_pieces_is_mapped_when_it_has_come_to_that(device: Shell) -> None:
    device.run(FILL)
    assert maps() == []
    device.run(PIERCE)
    (seen,) = maps()
    stats = sim.memory_stats()
    assert (seen["device"], seen["reason"]) == ("sim:0", None)
    found = seen["found"]
    assert found["reserved_bytes"] == stats["reserved_bytes"]
    assert found["in_use_bytes"] == stats["allocated_bytes"]
    assert found["split_bytes"] == stats["inactive_split_bytes"]
    assert found["largest_free_bytes"] == stats["largest_free_bytes"] == 14 * MIB
    assert states(found)[0] == [("held", 6), ("free", 14)]
    finding = next(it for it in gpumem.report().findings if it.kind == "fragmentation")
    assert "in pieces of 14 MiB at most" in finding.title


def test_a_map_is_taken_anew_only_where_memory_lies_elsewhere(device: Shell) -> None:
    device.run(FILL)
    device.run(PIERCE)
    first = maps()[0]["run"]
    device.run("x = 1")
    assert maps()[0]["run"] == first
    device.run("more = [sim.tensor(12 << 20) for _ in range(9)]")
    assert maps()[0]["run"] == first + 2
    assert maps()[0]["found"]["in_use_bytes"] == (30 * 6 + 9 * 12) * MIB


def test_a_map_of_the_moment_when_memory_ran_out_stays(device: Shell) -> None:
    device.run(FILL)
    device.run(PIERCE)
    device.run("try:\n    sim.tensor(500 << 20)\nexcept sim.OutOfMemoryError:\n    held.clear()")
    (at_the_error,) = maps()
    assert at_the_error["found"]["in_use_bytes"] == 30 * 6 * MIB
    # It goes on; the card of the error has its own map all the same.
    device.run("sim.empty_cache()")
    device.run("held = [sim.tensor(5 << 20) for _ in range(80)][::4]")
    runs = [mapped["run"] for mapped in of_kind(gpumem.recording(), "segments")]
    assert runs == [at_the_error["run"], at_the_error["run"] + 2]
    assert maps()[0]["run"] == runs[-1]


def test_each_simulated_device_has_its_own_map(device: Shell) -> None:
    sim.use(total_bytes=1 << 30, n_devices=2)
    device.run(FILL.replace("20)", "20, device=1)"))
    device.run(PIERCE)
    (seen,) = maps()
    assert seen["device"] == "sim:1"
    assert seen["found"]["in_use_bytes"] == 30 * 6 * MIB


def test_memory_in_one_piece_is_not_looked_at(device: Shell) -> None:
    device.run("whole = sim.tensor(500 << 20)")
    device.run("del whole")
    assert maps() == []


class FakeTorch(ModuleType):
    """A torch whose CUDA runs, with segments as its `memory_snapshot` tells them."""

    def __init__(self, segments: list[dict[str, Any]]) -> None:
        super().__init__("torch")
        self.segments = segments
        self.asked: list[dict[str, Any]] = []
        self.is_recording = False
        self.n_blocks: int | None = None
        properties = SimpleNamespace(uuid="11111111-2222", name="Played")
        self.cuda = SimpleNamespace(
            is_initialized=lambda: True,
            device_count=lambda: 1,
            get_device_properties=lambda _: properties,
            get_allocator_backend=lambda: "native",
            memory=SimpleNamespace(memory_snapshot=self.snapshot),
        )
        self._C = SimpleNamespace(
            _cuda_memoryStats=self.stats, _cuda_isHistoryEnabled=lambda: self.is_recording
        )

    def snapshot(self, mempool_id: object = None, **options: bool) -> list[dict[str, Any]]:
        assert mempool_id is None
        self.asked.append(options)
        return self.segments

    def stats(self, _ordinal: int) -> dict[str, Any]:
        def level(current: int) -> dict[str, dict[str, int]]:
            return {"all": {"current": current, "peak": current, "allocated": current, "freed": 0}}

        own = [segment for segment in self.segments if segment["device"] == 0]
        blocks = [block for segment in own for block in segment["blocks"]]
        held = [block for block in blocks if block["state"] != "inactive"]
        split = [
            block["size"]
            for segment in own
            for block in segment["blocks"]
            if block["state"] == "inactive" and len(segment["blocks"]) > 1
        ]
        n_blocks = len(held) if self.n_blocks is None else self.n_blocks
        return {
            "allocation": level(n_blocks),
            "allocated_bytes": level(sum(block["size"] for block in held)),
            "reserved_bytes": level(sum(block["size"] for block in blocks)),
            "inactive_split_bytes": level(sum(split)),
        }


def segment(*blocks: tuple[str, int], **more: Any) -> dict[str, Any]:
    """Return a segment in torch's shape, of blocks in MiB."""
    address = more.pop("address", 1 << 40)
    told = []
    for state, mib in blocks:
        size = mib * MIB
        told.append({"address": address, "size": size, "requested_size": size - 8, "state": state})
        address += size
    kinds = {"segment_type": "large", "stream": 0, "segment_pool_id": (0, 0)}
    return {"device": 0, "blocks": told, "frames": [], "is_expandable": False, **kinds, **more}


HELD, AWAITING, FREE = "active_allocated", "active_pending_free", "inactive"


@pytest.fixture
def torch(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    """Return a torch of which much is free in pieces, in a shell that reads it."""
    fake = FakeTorch(
        [
            segment((HELD, 40), (FREE, 300), (AWAITING, 60)),
            segment((HELD, 1), (FREE, 1), segment_type="small", stream=0x7F00),
            segment((HELD, 8), (FREE, 500), segment_pool_id=(0, 3)),
            segment((HELD, 7), (FREE, 9), device=1),
        ]
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    shell.run("%gpumem use torch")
    return fake


def test_torch_tells_its_segments_without_its_history(shell: Shell, torch: FakeTorch) -> None:
    shell.run("%%gpumem\nx = 1")
    shell.run("%%gpumem\nx = 2")
    assert torch.asked == [{"include_traces": False}]
    (seen,) = maps()
    found = seen["found"]
    assert states(found) == [
        [("held", 40), ("free", 300), ("awaiting", 60)],
        [("held", 1), ("free", 1)],
        [("held", 8), ("free", 500)],
    ]
    pools = [(segment["pool"], segment["stream"]) for segment in found["segments"]]
    assert pools == [("large", 0), ("small", 1), ("private", 0)]
    # What is free in a private pool is nobody else's.
    assert found["largest_free_bytes"] == 300 * MIB


def test_an_older_torch_is_asked_where_it_has_no_history(shell: Shell, torch: FakeTorch) -> None:
    def older(mempool_id: object = None) -> list[dict[str, Any]]:
        assert mempool_id is None
        torch.asked.append({})
        return torch.segments

    torch.cuda.memory.memory_snapshot = older
    torch.is_recording = True
    shell.run("%%gpumem\nx = 1")
    assert torch.asked == []
    assert maps()[0]["reason"] == "this torch cannot tell it while you record its memory history"
    torch.is_recording = False
    shell.run("%%gpumem\nx = 1")
    assert torch.asked == []
    torch.segments[0]["blocks"][1]["size"] -= 30 * MIB
    shell.run("%%gpumem\nx = 1")
    assert torch.asked == [{}]
    assert maps()[0]["reason"] is None


def test_too_many_blocks_are_left_alone_and_that_is_said(shell: Shell, torch: FakeTorch) -> None:
    torch.n_blocks = 60_000
    shell.run("%%gpumem\nx = 1")
    assert torch.asked == []
    words = "60000 blocks take a while to look at: `%%gpumem --trace` takes that time"
    assert maps()[0] == {"device": "cuda:0", "run": 0, "reason": words, "found": None}


def test_a_snapshot_that_breaks_costs_the_cell_nothing(shell: Shell, torch: FakeTorch) -> None:
    def broken(**_options: bool) -> list[dict[str, Any]]:
        message = "no snapshot today"
        raise RuntimeError(message)

    torch.cuda.memory.memory_snapshot = broken
    outcome = shell.run("%%gpumem\nx = 1\nx")
    assert outcome.result == "1"
    assert maps() == []


@pytest.mark.skipif(not SNAPSHOTS, reason=f"real snapshots are not in {REAL_DATA}")
@pytest.mark.parametrize("file", SNAPSHOTS, ids=lambda file: file.stem)
def test_real_snapshots_are_read_to_the_last_byte(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    def no_class(_unpickler: object, module: str, name: str) -> None:
        raise pickle.UnpicklingError(f"{module}.{name}")

    reader = type("Reader", (pickle.Unpickler,), {"find_class": no_class})
    with file.open("rb") as opened:
        segments = reader(opened).load()["segments"]
    fake = FakeTorch(segments)
    # Whatever it says of itself, it is looked at.
    plain: Callable[[int], dict[str, Any]] = fake.stats
    split = {"all": {"current": 1 << 40, "peak": 0, "allocated": 0, "freed": 0}}
    fake._C._cuda_memoryStats = lambda ordinal: {
        **plain(ordinal),
        "reserved_bytes": split,
        "inactive_split_bytes": split,
    }
    monkeypatch.setitem(sys.modules, "torch", fake)
    shell.run("%gpumem use torch")
    shell.run("%%gpumem\nx = 1")
    found = maps()[0]["found"]
    own = [segment for segment in segments if segment["device"] == 0]
    blocks = [block for segment in own for block in segment["blocks"]]
    assert found["n_segments"] == len(own)
    assert found["reserved_bytes"] == sum(segment["total_size"] for segment in own)
    busy = [block["size"] for block in blocks if block["state"] != "inactive"]
    assert found["in_use_bytes"] == sum(busy) == sum(segment["active_size"] for segment in own)
    free = [
        block["size"]
        for segment in own
        for block in segment["blocks"]
        if block["state"] == "inactive" and segment.get("segment_pool_id", (0, 0)) == (0, 0)
    ]
    assert found["largest_free_bytes"] == max(free, default=0)
