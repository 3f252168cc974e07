"""``pytest --gpumem``, in a pytest of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import run_python

if TYPE_CHECKING:
    from pathlib import Path

SIM = """
import pytest
from gpumem import sim

sim.use(8 << 30)
"""


def run(folder: Path, *options: str, **files: str) -> tuple[int, list[str]]:
    """Run a suite; return its exit status, and the lines of the summary."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    always = ["-p", "no:cacheprovider", "-W", "error", "-q", "-c", "/dev/null", "--gpumem"]
    ended = run_python("-m", "pytest", *always, *options, "--rootdir", folder, cwd=folder)
    _, _, summary = ended.stdout.partition(" memory left behind ")
    lines = re.split(r"\n(?:=|\d+ (?:passed|failed))", summary)[0].splitlines()[1:]
    return ended.returncode, [line.strip() for line in lines]


SUITE = (
    SIM
    + """
cache = []

@pytest.fixture(scope="session")
def model():
    return {"weight": sim.tensor(100 << 20)}

@pytest.fixture(scope="module")
def shared():
    state = [sim.tensor(40 << 20)]
    cache.append(state)
    return state

def test_model(model):
    assert model

def test_shared(shared):
    assert shared

@pytest.mark.parametrize("n", [1, 2, 3])
def test_cache(n):
    cache.append(sim.tensor(10 << 20))

def test_fails():
    big = sim.tensor(70 << 20)
    assert not big

class TestIt:
    def test_self(self):
        self.big = sim.tensor(20 << 20)

def test_healthy():
    cycle = [sim.tensor(64 << 20)]
    cycle.append(cycle)
"""
)

EXPECTED = [
    "30 MiB on sim:0  test_it.py::test_cache[…] · held by `test_it.cache[1]` · list of 3 tensors",
    "20 MiB on sim:0  test_it.py::TestIt::test_self · held by `self.big` · TestIt of 1 tensor",
    (
        "40 MiB on sim:0  fixture `shared` (module), after its teardown"
        " · held by `test_it.cache[0][0]` · list of 4 tensors"
    ),
    (
        "100 MiB on sim:0  fixture `model` (session) · held until its teardown"
        " · `model['weight']` · dict of 1 tensor"
    ),
    (
        "70 MiB on sim:0  test_it.py::test_fails · held by its traceback until the next test"
        " · `test_fails().<locals>.big` · 1 tensor"
    ),
]
LINES = ["cache.append(sim.t", "self.big =", 'scope="module"', 'scope="session"', "assert not big"]


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_it_says_which_tests_leave_what_and_who_holds_it(
    tmp_path: Path, options: list[str]
) -> None:
    status, found = run(tmp_path, *options, test_it=SUITE)
    assert status == 1
    texts = SUITE.splitlines()
    numbers = [next(n for n, it in enumerate(texts, 1) if line in it) for line in LINES]
    expected = [f"{it} · test_it.py:{n}" for it, n in zip(EXPECTED, numbers, strict=True)]
    assert sorted(found) == sorted(expected)


SMALL = """
import pytest
small, large = [], []

@pytest.mark.parametrize("n", range(30))
def test_small(n):
    small.append(bytearray(b"x") * (512 << 10))

def test_large():
    large.append(bytearray(b"x") * (32 << 20))
"""


def test_a_slow_rise_is_not_the_last_tests(tmp_path: Path) -> None:
    _, lines = run(tmp_path, test_it=SMALL)
    large, small = lines
    assert large.startswith("32 MiB  test_it.py::test_large · held by `test_it.large[0]`")
    assert "test_it.py::test_small[…] · held by `test_it.small[0]`" in small


QUIET = """
import pytest, gpumem

kept, searches = [], []
search = gpumem.holders

def counted():
    searches.append(None)
    return search()

gpumem.holders = counted

@pytest.mark.parametrize("n", range(20))
def test_quiet(n):
    bytearray(b"x") * (32 << 20)

def test_no_search():
    assert len(searches) == 1

def test_kept():
    kept.append(bytearray(b"x") * (32 << 20))

def test_freed():
    kept.clear()
"""


def test_what_is_freed_is_unsaid_and_quiet_tests_cost_no_search(tmp_path: Path) -> None:
    status, lines = run(tmp_path, test_it=QUIET)
    assert (status, lines) == (0, ["none of 23 tests left memory behind"])


def test_its_own_failure_fails_no_test(tmp_path: Path) -> None:
    broken = SIM + "import gpumem\ngpumem.holders = None\ndef test_it(): sim.tensor(1 << 20)\n"
    status, lines = run(tmp_path, test_it=broken)
    assert status == 0
    assert lines[-1] == "gpumem stopped watching: TypeError: 'NoneType' object is not callable"
