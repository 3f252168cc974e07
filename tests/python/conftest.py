"""Real shells, each with nothing in it but what a user's shell has."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.python.machine import Machine
from tests.support.shell import Outcome, Shell, new_session, shells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Outcome", "Shell"]


@pytest.fixture(autouse=True)
def _own_session() -> None:
    new_session()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have Python's own handler of Ctrl-C, which a job in the background starts without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return what a process of a test has in its environment."""
    return {"IPYTHONDIR": str(tmp_path / "ipython")}


@pytest.fixture(scope="session")
def library_link(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libraries") / "link"


@pytest.fixture
def machine(tmp_path: Path, library_link: Path) -> Machine:
    return Machine(tmp_path, library_link)


@pytest.fixture
def new_shell(tmp_path: Path) -> Iterator[Any]:
    """Make shells; each replaces the one before it."""
    with shells(tmp_path) as new:
        yield new


@pytest.fixture
def shell(new_shell: Any) -> Shell:
    """Return a shell with gpumem loaded."""
    made: Shell = new_shell()
    return made
