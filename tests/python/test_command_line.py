"""``jupyter gpumem`` in a terminal: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import gpumem
import pytest

from tests.python.test_store import GROW, end, folder, kept

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

__all__ = ["folder", "kept"]


@pytest.fixture
def session(kept: Shell) -> gpumem.StoredSession:
    """Return a session of ten runs that leak, which is over."""
    for _ in range(10):
        kept.run(GROW)
    end()
    (session,) = gpumem.sessions()
    return session


def jupyter_gpumem(folder: Path, command: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code, and what was printed."""
    line = [sys.executable, "-m", "gpumem", command, "--store", str(folder), *arguments]
    ran = subprocess.run(line, check=False, capture_output=True, text=True, timeout=60)
    return ran.returncode, ran.stdout + ran.stderr


def test_sessions_are_listed(session: gpumem.StoredSession, folder: Path) -> None:
    code, said = jupyter_gpumem(folder, "sessions")
    assert code == 0
    assert session.id in said
    (entry,) = json.loads(jupyter_gpumem(folder, "sessions", "--json")[1])
    assert (entry["id"], entry["ending"]) == (session.id, "in_order")


def test_a_session_has_its_report(session: gpumem.StoredSession, folder: Path) -> None:
    code, said = jupyter_gpumem(folder, "report", session.id)
    assert code == 0
    assert said.startswith("GPU memory · 10 runs of 1 cell")
    assert json.loads(jupyter_gpumem(folder, "report", "--json")[1])["findings"]
    assert jupyter_gpumem(folder, "report", "--csv")[1].startswith("run,cell,")
    assert "leaks 300 MiB a run" in jupyter_gpumem(folder, "report", "--markdown")[1]


@pytest.mark.parametrize("name", ["html", "png", "svg", "json", "csv", "markdown"])
def test_a_file_is_not_replaced_unless_it_may_be(
    session: gpumem.StoredSession, folder: Path, tmp_path: Path, name: str
) -> None:
    del session
    path = tmp_path / f"report.{name}"
    write = ("last", f"--{name}", str(path))
    assert jupyter_gpumem(folder, "report", *write) == (0, "")
    written = path.read_bytes()
    code, said = jupyter_gpumem(folder, "report", *write)
    assert (code, "--force" in said) == (2, True)
    assert path.read_bytes() == written
    assert jupyter_gpumem(folder, "report", *write, "--force") == (0, "")


def test_a_file_is_compared_with_a_session(
    session: gpumem.StoredSession, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "monday.gpumem"
    gpumem.open_session(session.id).save(path)
    code, said = jupyter_gpumem(folder, "compare", str(path), session.id)
    assert (code, "◆ same" in said) == (0, True)
    (change,) = json.loads(jupyter_gpumem(folder, "compare", str(path), "last", "--json")[1])
    assert change["change"] == "same"


@pytest.mark.parametrize("which", ["1234", "last", "no such.gpumem"])
def test_what_is_not_there_has_an_exit_code(folder: Path, which: str) -> None:
    code, said = jupyter_gpumem(folder, "report", which)
    assert (code, "no session is kept in" in said) == (2, True)


def test_wrong_arguments_are_refused(folder: Path) -> None:
    assert jupyter_gpumem(folder, "report", "--nothing")[0] == 2
    assert jupyter_gpumem(folder, "who", "--json") == (0, "[]\n")
