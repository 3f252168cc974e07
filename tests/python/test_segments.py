"""Where memory lies: the map of segments and blocks, and when it is worth a look."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim

from .frames import of_kind

if TYPE_CHECKING:
    from .conftest import Shell

MIB = 1 << 20
# 30 segments of 20 MiB, each with 6 MiB in use and 14 MiB that cannot be released.
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


def test_what_is_free_in_pieces_is_mapped_when_it_matters(device: Shell) -> None:
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
