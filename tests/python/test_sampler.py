"""What the sampler sees between the ends of a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _gpumem

from tests.python.frames import of_kind, times
from tests.support.programs import until

if TYPE_CHECKING:
    from tests.python.conftest import Shell

SPIKE_BYTES = 100_000_000


@pytest.fixture(autouse=True)
def _host_alone() -> None:
    _gpumem.use_sources(["host"])


def test_a_spike_inside_a_run_is_seen() -> None:
    def is_seen() -> bool:
        with gpumem.record("spike"):
            spike = b"x" * SPIKE_BYTES
            time.sleep(0.02)
            del spike
        row = gpumem.report().runs[-1]
        return bool(row["peak_bytes"] - row["before_bytes"] > 0.9 * SPIKE_BYTES)

    until(is_seen)


def test_points_of_old_runs_are_downsampled_if_a_session_has_many() -> None:
    for _ in range(70):
        with gpumem.record("loop"):
            for _ in range(4000):
                gpumem.mark()
    found = of_kind(gpumem.recording(), "samples")
    n_points = [len(times(it)) for it in found]
    marks = [n for it, n in zip(found, n_points, strict=True) if it.get("marks") is not None]
    assert sum(n_points) <= 1 << 18
    assert 16 <= marks[0] < 4000
    assert marks[-1] == 4000


def sampled(shell: Shell, cell: str) -> tuple[int, int]:
    """Run a cell that takes 0.2 s or more; return its nanoseconds and how often it was sampled."""
    shell.run(f"{cell}\ntime.sleep(0.2)")
    recording = gpumem.recording()
    run = gpumem.report().runs[-1]
    frames = [it for it in of_kind(recording, "samples") if it["run"] == run["run"]]
    [samples] = [it for it in frames if it.get("marks") is None]
    return run["duration_nanos"], len(times(samples))


def at_most(nanos: int) -> int:
    """Return how many samples, 40 ms apart, have room in a run."""
    return nanos // 40_000_000 + 1


@pytest.mark.parametrize("asked", ["%%gpumem --interval 40ms", "%gpumem on --interval 40ms"])
def test_no_sample_comes_sooner_than_it_is_asked_for(shell: Shell, asked: str) -> None:
    shell.run("%gpumem use host\n%gpumem off\nimport time")
    is_cell = asked.startswith("%%")
    if not is_cell:
        shell.run(asked)
        assert "sampled every 40ms at most" in shell.lines[-1]
    nanos, n_samples = sampled(shell, asked if is_cell else "")
    assert 1 <= n_samples <= at_most(nanos)
    shell.run("%gpumem on --interval 1ms")

    def is_sooner() -> bool:
        nanos, n_samples = sampled(shell, "")
        return n_samples > at_most(nanos)

    until(is_sooner)


def test_the_interval_is_a_setting_that_outlives_a_reset(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    shell.run("%config GpuMem.interval = '40ms'\n%gpumem use host\n%gpumem reset\nimport time")
    nanos, n_samples = sampled(shell, "%%gpumem")
    assert 1 <= n_samples <= at_most(nanos)
    shell.run("%config GpuMem.interval = 'soon'")
    assert 'GpuMem.interval: "soon" is not a duration: write one as 10ms or 0.5s' in caplog.text
