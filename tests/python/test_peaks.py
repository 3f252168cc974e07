"""The bounds of a run's peak hold the truth, whatever the user does to the counters."""

from __future__ import annotations

import random
from typing import Any

import gpumem
from gpumem import sim

N_SCHEDULES = 1000


class Schedule:
    """A seeded sequence of allocations, releases and resets; it knows its own true peak."""

    def __init__(self, seed: int, kept: list[sim.Tensor]) -> None:
        self.random = random.Random(seed)  # noqa: S311 (a schedule is no secret)
        self.kept = kept
        self.peak = 0

    def run(self) -> int:
        """Run it, and return its highest level."""
        self._look()
        for _ in range(self.random.randrange(12)):
            action = self.random.choices(
                [self._allocate, self._free, sim.reset_peak_memory_stats, sim.empty_cache],
                [5, 4, 1, 0.5],
            )[0]
            action()
            self._look()
        return self.peak

    def _allocate(self) -> None:
        try:
            self.kept.append(sim.tensor(self.random.randrange(1, 48 << 20)))
        except sim.OutOfMemoryError:
            self.kept.clear()

    def _free(self) -> None:
        if self.kept:
            self.kept.pop(self.random.randrange(len(self.kept)))

    def _look(self) -> None:
        self.peak = max(self.peak, sim.memory_stats()["allocated_bytes"])


def recorded(shell: Any, magic: str) -> list[tuple[dict[str, Any], int]]:
    """Run every schedule in a cell of its own; return each row with its true peak."""
    sim.use(total_bytes=1 << 30)
    kept: list[sim.Tensor] = []
    truths: list[int] = []

    def play(seed: int) -> None:
        truths.append(Schedule(seed, kept).run())

    shell.user_ns["play"] = play
    for seed in range(N_SCHEDULES):
        shell.run_cell(f"{magic}\nplay({seed})")
    rows = [row for row in gpumem.report().runs if row["device"] == "sim:0"]
    assert len(rows) == len(truths) == N_SCHEDULES
    return list(zip(rows, truths, strict=True))


def test_a_peak_s_bounds_hold_the_truth(shell: Any) -> None:
    n_exact = n_bounded = 0
    for row, truth in recorded(shell, "%%gpumem --quiet --no-holders"):
        low, high = row["peak_bytes"], row["peak_high_bytes"]
        assert low <= truth, row
        assert high is None or truth <= high, row
        assert not row["peak_exact"] or low == truth, row
        n_exact += row["peak_exact"]
        n_bounded += high is not None
    # The rule is worth something: it always bounds, and is often exact.
    assert n_bounded == N_SCHEDULES
    assert n_exact > N_SCHEDULES // 3


def test_a_counter_reset_at_the_start_makes_every_peak_exact(shell: Any, monkeypatch: Any) -> None:
    # The schedules' own resets are what would spoil it.
    monkeypatch.setattr(sim, "reset_peak_memory_stats", lambda: None)
    for row, truth in recorded(shell, "%%gpumem --quiet --no-holders --reset-peak"):
        assert (row["peak_bytes"], row["peak_exact"]) == (truth, True), row


def test_a_spike_inside_a_warm_cache_is_no_invented_number(shell: Any) -> None:
    sim.use(total_bytes=1 << 30)
    shell.user_ns["sim"] = sim
    shell.run("warm = sim.tensor(512 << 20)\ndel warm")
    # The cache serves it: the counter and the driver's levels stay.
    spikes = "for _ in range(200):\n    spike = sim.tensor(128 << 20)\n    del spike"
    shell.run(f"%%gpumem --quiet\n{spikes}")
    row = next(row for row in gpumem.report().runs if row["device"] == "sim:0")
    assert row["reserved_before_bytes"] == row["reserved_after_bytes"] == 512 << 20
    assert (row["peak_bytes"], row["peak_high_bytes"]) == (0, 512 << 20)
    assert not row["peak_exact"]
    # All that a run allocated bounds its peak, too.
    shell.run("%%gpumem\nspike = sim.tensor(128 << 20)\ndel spike")
    assert "peak 0 B to 128 MiB" in shell.lines[-1]
