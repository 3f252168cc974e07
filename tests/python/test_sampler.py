"""What the sampler sees between the ends of a run."""

from __future__ import annotations

import time

import gpumem
import pytest
from gpumem import _gpumem

N_SPIKES = 20
SPIKE_BYTES = 300_000_000
SPIKE_SECONDS = 0.02


@pytest.fixture(autouse=True)
def fresh() -> None:
    _gpumem.reset()
    _gpumem.use_sources(["host"])


def test_every_spike_of_20_ms_is_seen() -> None:
    for _ in range(N_SPIKES):
        with gpumem.record("spike"):
            spike = b"x" * SPIKE_BYTES
            time.sleep(SPIKE_SECONDS)
            del spike
    rises = [row["peak_bytes"] - row["before_bytes"] for row in gpumem.report().runs]
    assert [rise > 0.9 * SPIKE_BYTES for rise in rises] == [True] * N_SPIKES


def test_points_of_old_runs_are_thinned_where_a_session_has_many() -> None:
    def n_bytes_after(n_runs: int) -> int:
        _gpumem.reset()
        for _ in range(n_runs):
            with gpumem.record("loop"):
                for _ in range(4000):
                    gpumem.mark()
        return len(gpumem.recording().to_bytes())

    # 70 runs have more points than a session keeps.
    assert n_bytes_after(70) < n_bytes_after(60)
