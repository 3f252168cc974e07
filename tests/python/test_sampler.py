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


def test_old_runs_points_are_downsampled_if_there_are_many() -> None:
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
    """Run a cell until it is sampled; return its nanoseconds and how often it was."""
    found: list[int] = []

    def is_sampled() -> bool:
        shell.run(f"{cell}\ntime.sleep(0.2)")
        run = gpumem.report().runs[-1]
        frames = [it for it in of_kind(gpumem.recording(), "samples") if it["run"] == run["run"]]
        n_samples = sum(len(times(it)) for it in frames if it.get("marks") is None)
        found[:] = [run["duration_nanos"], n_samples]
        return n_samples > 0

    until(is_sampled)
    nanos, n_samples = found
    return nanos, n_samples


def at_most(nanos: int) -> int:
    """Return how many samples, 40 ms apart, have room in a run."""
    return nanos // 40_000_000 + 1


@pytest.mark.parametrize("magic", ["%%gpumem --interval 40ms", "%gpumem on --interval 40ms"])
def test_interval_is_a_minimum_between_samples(shell: Shell, magic: str) -> None:
    shell.run("%gpumem use host\n%gpumem off\nimport time")
    is_cell = magic.startswith("%%")
    if not is_cell:
        shell.run(magic)
        assert "sampled every 40ms at most" in shell.lines[-1]
    nanos, n_samples = sampled(shell, magic if is_cell else "")
    assert n_samples <= at_most(nanos)
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
    assert n_samples <= at_most(nanos)
    shell.run("%config GpuMem.interval = 'soon'")
    assert 'GpuMem.interval: "soon" is not a duration: write one as 10ms or 0.5s' in caplog.text
