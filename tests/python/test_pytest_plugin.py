"""``@pytest.mark.gpumem``, in a pytest of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.programs import run_python

if TYPE_CHECKING:
    from pathlib import Path

ON_A_DEVICE = """
import pytest
from gpumem import sim

calls, cache, kept, others, empty = [], [], [], [], []

@pytest.fixture(autouse=True)
def device():
    sim.use(8 << 30)

# Few calls are enough where a name collects.
@pytest.mark.gpumem(runs=5)
def test_collects():
    loss = sim.tensor(16 << 20, requires_grad=True) * 2
    kept.append(loss)

# The text of this file is that of the test before, too.
@pytest.mark.gpumem(runs=5)
def test_again():
    loss = sim.tensor(16 << 20, requires_grad=True) * 2
    others.append(loss)

@pytest.mark.gpumem(runs=5)
def test_replaces():
    kept[:] = [sim.tensor(16 << 20)]

@pytest.mark.gpumem(runs=7, peak="2GiB")
def test_runs_as_said(tmp_path):
    calls.append(tmp_path)
    sim.tensor(1 << 30)

@pytest.mark.gpumem
def test_runs_by_default():
    calls.append(None)

def test_calls():
    assert len(calls) == 17
    assert len(set(calls)) == 2

@pytest.mark.gpumem(no_leak=True, runs=10)
def test_leaks():
    cache.append(sim.tensor(212 << 20))

# What waits for the collector is no leak.
@pytest.mark.gpumem
def test_cycle():
    cycle = [sim.tensor(64 << 20)]
    cycle.append(cycle)

@pytest.mark.gpumem(peak="1 GiB")
def test_rises():
    sim.tensor(2 << 30)

@pytest.mark.gpumem
def test_own_error():
    assert empty

@pytest.mark.gpumem(runs=2)
def test_few(): ...

@pytest.mark.gpumem(peek="1GiB")
def test_typed(): ...
"""

ON_THE_HOST = """
import pytest
before = bytearray(b"x") * (96 << 20)
kept = []

@pytest.mark.gpumem
def test_leaks():
    kept.append(bytearray(b"x") * (32 << 20))

@pytest.mark.gpumem
def test_healthy():
    bytearray(b"x") * (32 << 20)

# A peak counts from the start of its test.
@pytest.mark.gpumem(no_leak=False, peak="64MiB", runs=2)
@pytest.mark.parametrize("n", [32, 80])
def test_peak(n):
    bytearray(b"x") * (n << 20)
"""


def run(folder: Path, body: str) -> str:
    """Run a suite and return what it printed."""
    (folder / "test_body.py").write_text(body)
    options = ["-p", "no:cacheprovider", "--strict-markers", "-q", "-c", "/dev/null"]
    ended = run_python("-m", "pytest", *options, "--rootdir", folder, "test_body.py", cwd=folder)
    return ended.stdout


@pytest.fixture(scope="module")
def on_a_device(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(tmp_path_factory.mktemp("device"), ON_A_DEVICE)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leaks", "test_leaks keeps 212 MiB a call on sim:0 · held by `cache`"),
        ("rises", "test_rises rises to 2 GiB on sim:0 · at most 1 GiB is accepted"),
        ("own_error", "assert empty"),
        ("few", "gpumem: runs must be a number from 5 on, not 2"),
        ("typed", "gpumem: unknown peek: there is no_leak, peak, runs"),
    ],
)
def test_what_fails_says_why(on_a_device: str, name: str, words: str) -> None:
    assert words in on_a_device
    assert f"test_body.py::test_{name} - " in on_a_device


@pytest.mark.parametrize(("test", "name"), [("collects", "kept"), ("again", "others")])
def test_a_leak_fails_with_its_holder_and_the_line_to_change(
    on_a_device: str, test: str, name: str
) -> None:
    kept, path, *fix = on_a_device[on_a_device.index(f"test_{test} keeps") :].splitlines()[:5]
    assert kept == f"test_{test} keeps 32 MiB a call on sim:0 · held by `{name}`"
    assert path.endswith(" · list of 5 tensors, each with its graph")
    lines = ON_A_DEVICE.splitlines()
    assert fix == [
        f"test_body.py:{lines.index(f'    {name}.append(loss)') + 1}",
        f"- {name}.append(loss)",
        f"+ {name}.append(loss.detach())",
    ]


def test_what_is_healthy_passes(on_a_device: str) -> None:
    assert "5 failed, 5 passed, 2 errors" in on_a_device, on_a_device


def test_without_a_device_the_host_is_measured(tmp_path: Path) -> None:
    said = run(tmp_path, ON_THE_HOST)
    assert (
        "test_leaks keeps 32 MiB a call · held by `kept`\nkept[0] · list\ntest_body.py:8\n" in said
    )
    assert "test_peak[80] rises by " in said
    assert "2 failed, 2 passed" in said, said


def test_a_suite_without_the_mark_does_not_load_gpumem(tmp_path: Path) -> None:
    body = """
import sys

def test_other():
    assert "pytest_gpumem" in sys.modules
    assert not [name for name in sys.modules if name.split(".")[0] == "gpumem"]
"""
    said = run(tmp_path, body)
    assert "1 passed" in said, said
