"""``@pytest.mark.gpumem``, in a pytest of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.programs import run_python

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

HEAD = """
import pytest
from gpumem import sim

cache = []

@pytest.fixture(autouse=True)
def device():
    sim.use(8 << 30)
"""


def run(folder: Path, body: str, head: str = HEAD) -> subprocess.CompletedProcess[str]:
    (folder / "test_body.py").write_text(head + body)
    options = ["-p", "no:cacheprovider", "--strict-markers", "-q", "-c", "/dev/null"]
    return run_python("-m", "pytest", *options, "--rootdir", folder, "test_body.py", cwd=folder)


def test_a_leak_fails_with_its_rate_and_holder(tmp_path: Path) -> None:
    body = """
@pytest.mark.gpumem(no_leak=True, runs=10)
def test_step():
    cache.append(sim.tensor(212 << 20))
"""
    ended = run(tmp_path, body)
    assert ended.returncode == 1, ended.stdout
    assert "test_step keeps 212 MiB a call on sim:0 · held by `cache`" in ended.stdout


def test_few_calls_are_enough_where_a_name_collects(tmp_path: Path) -> None:
    body = """
@pytest.mark.gpumem(runs=5)
def test_step():
    loss = sim.tensor(16 << 20, requires_grad=True) * 2
    cache.append(loss)

@pytest.mark.gpumem(runs=5)
def test_replaced():
    cache[:] = [sim.tensor(16 << 20)]
"""
    ended = run(tmp_path, body)
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout
    kept, path, *fix = ended.stdout[ended.stdout.index("test_step keeps") :].splitlines()[:5]
    assert kept == "test_step keeps 32 MiB a call on sim:0 · held by `cache`"
    assert path.endswith(" · list of 5 tensors, each with its graph")
    line = next(n for n, text in enumerate((HEAD + body).splitlines(), 1) if "append" in text)
    assert fix == [
        f"test_body.py:{line}",
        "- cache.append(loss)",
        "+ cache.append(loss.detach())",
    ]


def test_a_healthy_body_passes_and_runs_as_often_as_said(tmp_path: Path) -> None:
    body = """
calls = []

@pytest.mark.gpumem(runs=7, peak="2GiB")
def test_step(tmp_path):
    calls.append(tmp_path)
    sim.tensor(1 << 30)

@pytest.mark.gpumem
def test_default():
    calls.append(None)

def test_calls():
    assert len(calls) == 17
    assert len(set(calls)) == 2
"""
    ended = run(tmp_path, body)
    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout


def test_what_waits_for_the_collector_is_no_leak(tmp_path: Path) -> None:
    body = """
@pytest.mark.gpumem
def test_step():
    cycle = [sim.tensor(64 << 20)]
    cycle.append(cycle)
"""
    assert run(tmp_path, body).returncode == 0


def test_a_peak_above_the_limit_fails(tmp_path: Path) -> None:
    body = """
@pytest.mark.gpumem(peak="1 GiB")
def test_step():
    sim.tensor(2 << 30)
"""
    ended = run(tmp_path, body)
    assert "test_step rises to 2 GiB on sim:0 · at most 1 GiB is accepted" in ended.stdout


def test_without_a_device_the_host_is_measured(tmp_path: Path) -> None:
    body = """
import pytest
kept = []

@pytest.mark.gpumem
def test_step():
    kept.append(bytearray(b"x") * (32 << 20))

@pytest.mark.gpumem
def test_healthy():
    bytearray(b"x") * (32 << 20)
"""
    ended = run(tmp_path, body, head="")
    held = "test_step keeps 32 MiB a call · held by `kept`\nkept[0] · list\ntest_body.py:7\n"
    assert held in ended.stdout
    assert "1 failed, 1 passed" in ended.stdout


def test_the_hosts_peak_counts_from_the_tests_start(tmp_path: Path) -> None:
    body = """
import pytest
before = bytearray(b"x") * (96 << 20)

@pytest.mark.gpumem(no_leak=False, peak="64MiB", runs=2)
@pytest.mark.parametrize("n", [32, 80])
def test_step(n):
    bytearray(b"x") * (n << 20)
"""
    ended = run(tmp_path, body, head="")
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout
    assert "test_step[80] rises by " in ended.stdout


def test_an_error_in_the_body_is_the_tests_own(tmp_path: Path) -> None:
    body = """
@pytest.mark.gpumem
def test_step():
    assert cache
"""
    ended = run(tmp_path, body)
    assert ended.returncode == 1
    assert "assert cache" in ended.stdout


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    body = """
@pytest.mark.gpumem(runs=2)
def test_few(): ...

@pytest.mark.gpumem(peek="1GiB")
def test_typed(): ...
"""
    ended = run(tmp_path, body)
    assert "gpumem: runs must be a number from 5 on, not 2" in ended.stdout
    assert "gpumem: unknown peek: there is no_leak, peak, runs" in ended.stdout


def test_a_suite_without_the_mark_does_not_load_gpumem(tmp_path: Path) -> None:
    body = """
import sys

def test_other():
    assert "pytest_gpumem" in sys.modules
    assert not [name for name in sys.modules if name.split(".")[0] == "gpumem"]
"""
    ended = run(tmp_path, body, head="")
    assert ended.returncode == 0, ended.stdout
