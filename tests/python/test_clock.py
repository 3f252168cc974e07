"""When things happened: every time in a recording against the system's monotonic clock."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem

from tests.python.frames import of_kind, times
from tests.python.machine import T4, Machine, needs_driver
from tests.support.programs import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

Span = tuple[int, int]


@contextmanager
def span(spans: list[Span]) -> Iterator[None]:
    """Note the clock's readings around something."""
    before = time.monotonic_ns()
    yield
    spans.append((before, time.monotonic_ns()))


@pytest.fixture
def start() -> Span:
    """Begin a recording, and tell between which readings of the clock it begins."""
    _gpumem.use_sources(["host"])
    starts: list[Span] = []
    with span(starts):
        _gpumem.reset()
    return starts[0]


def check(start: Span, at: int, during: Span) -> None:
    """Check that an instant of the recording lies between two readings of the clock."""
    assert during[0] - start[1] <= at <= during[1] - start[0]


def samples(run: int) -> dict[str | None, list[int]]:
    """Return when the host was read in a run: by the sampler, and at each label's marks."""
    found = [it for it in of_kind(gpumem.recording(), "samples") if it["run"] == run]
    return {it.get("marks"): times(it) for it in found}


def runs() -> dict[int, dict[str, Any]]:
    # A later frame of the same index replaces the earlier one.
    return {run["idx"]: run for run in of_kind(gpumem.recording(), "run")}


def test_the_wall_is_read_once_at_the_start() -> None:
    before = time.time_ns()
    _gpumem.reset()
    after = time.time_ns()
    with gpumem.record("block"):
        pass
    (header,) = of_kind(gpumem.recording(), "header")
    assert before <= header["wall_anchor_nanos"] <= after


def test_a_run_lies_between_the_readings_at_its_ends(shell: Shell, start: Span) -> None:
    spans: list[Span] = []
    begins: list[Span] = []
    ends: list[Span] = []
    with span(spans):
        shell.run("%%gpumem\n1 + 1")
    block = gpumem.record("block")
    with span(begins):
        block.__enter__()
    with span(ends):
        block.__exit__(None, None, None)
    cell, block_run = runs()[0], runs()[1]
    check(start, cell["started_nanos"], spans[0])
    check(start, cell["ended_nanos"], spans[0])
    check(start, block_run["started_nanos"], begins[0])
    check(start, block_run["ended_nanos"], ends[0])


def test_a_mark_lies_between_the_readings_around_it(start: Span) -> None:
    spans: list[Span] = []
    with gpumem.record("loop"):
        for _ in range(20):
            with span(spans):
                gpumem.mark("step")
    marked = samples(0)["step"]
    assert len(marked) == len(spans)
    for at, during in zip(marked, spans, strict=True):
        check(start, at, during)


def test_threads_tell_time_by_the_same_clock(start: Span) -> None:
    spans: dict[str, list[Span]] = {f"thread {n}": [] for n in range(4)}
    barrier = threading.Barrier(len(spans))

    def work(name: str) -> None:
        barrier.wait()
        with gpumem.record(name):
            for _ in range(10):
                with span(spans[name]):
                    gpumem.mark(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in spans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    marked = [samples(run) for run in runs()]
    for name, around in spans.items():
        (at,) = [labels[name] for labels in marked if name in labels]
        for instant, during in zip(at, around, strict=True):
            check(start, instant, during)


def test_the_sampler_reads_inside_its_run_and_in_order(start: Span) -> None:
    for _ in range(20):
        with gpumem.record("block"):
            time.sleep(0.01)
    sampled = []
    for idx, run in runs().items():
        at = samples(idx).get(None, [])
        assert at == sorted(set(at))
        assert all(run["started_nanos"] <= instant <= run["ended_nanos"] for instant in at)
        sampled += at
    # On a busy machine some of the runs have none.
    check(start, sampled[0], (start[0], time.monotonic_ns()))


def test_a_spike_is_where_it_was(start: Span) -> None:
    spans: list[Span] = []
    highest: list[tuple[int, int]] = []

    def is_sampled() -> bool:
        with gpumem.record("block"):
            time.sleep(0.02)
            with span(spans):
                spike = b"x" * 300_000_000
                time.sleep(0.02)
                del spike
            time.sleep(0.02)
        run = len(spans) - 1
        found = [it for it in of_kind(gpumem.recording(), "samples") if it["run"] == run]
        seen = [
            (n, at) for it in found for n, at in zip(it["process_used"], times(it), strict=True)
        ]
        highest[:] = [max(seen, default=(0, 0))]
        before = runs()[run]["levels"][0]["before"]["process_used"]
        return bool(highest[0][0] > before + 250_000_000)

    until(is_sampled)
    check(start, highest[0][1], spans[-1])


@needs_driver
def test_a_driver_s_level_is_as_old_as_its_sample_says(machine: Machine) -> None:
    script = """
from tests.python.frames import of_kind, times
levels()
before = time.monotonic_ns()
_gpumem.reset()
start = [before, time.monotonic_ns()]
read = "nvmlDeviceGetMemoryInfo_v2"
with gpumem.record("block"):
    wait_for_calls(read, 5)
    changed = [time.monotonic_ns()]
    put(gpu0__used_mib=4096)
    changed.append(time.monotonic_ns())
    wait_for_calls(read, 5)
devices = {it["label"]: it["idx"] for it in of_kind(gpumem.recording(), "device")}
(sampled,) = [it for it in of_kind(gpumem.recording(), "samples")
              if it["device"] == devices["cuda:0"] and it.get("marks") is None]
rose = next(at for at, used in zip(times(sampled), sampled["device_used"]) if used >> 20 == 4096)
tell([start, changed, rose])
"""
    start, changed, rose = machine.ask(T4, script)
    # No sample shows the change before it was made.
    assert rose >= changed[0] - start[1]
