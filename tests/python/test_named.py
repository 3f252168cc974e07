"""A file, a baseline or a session by its name: the same in Python, a magic and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _gpumem, cli
from gpumem._verdicts import compare_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Shell

    Entrance = Callable[[str], str]

ENTRANCES = ("load", "compare", "magic", "command")


@pytest.fixture
def folder(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep a file, a baseline and a session, each with a run of its own label."""
    folder = tmp_path / "kept"
    shell.run(f"%config GpuMem.store = {str(folder)!r}")
    monkeypatch.chdir(tmp_path)
    for label in ("of_file", "of_baseline", "of_session"):
        shell.run(f"%%gpumem -q -l {label}\n1")
        if label == "of_file":
            gpumem.recording().save("mine")
        if label == "of_baseline":
            shell.run("%gpumem baseline good")
        _gpumem._close_store()
        _gpumem.reset()
    return folder


@pytest.fixture(params=ENTRANCES)
def entrance(
    request: pytest.FixtureRequest, shell: Shell, folder: Path, capsys: pytest.CaptureFixture[str]
) -> Entrance:
    """Return a function that shows what a name stands for, or the error."""

    def magic(name: str) -> str:
        n_lines = len(shell.lines)
        outcome = shell.run(f"%gpumem_report {name} --text")
        return "\n".join([*shell.lines[n_lines:], outcome.stderr])

    def command(name: str) -> str:
        cli.main(["report", name, "--store", str(folder)])
        return "".join(capsys.readouterr())

    def recorded(read: Callable[[str], gpumem.types.Recording]) -> Entrance:
        def shown(name: str) -> str:
            try:
                return gpumem.report(read(name)).text()
            except (OSError, gpumem.GpuMemError) as error:
                return str(error)

        return shown

    def baseline(name: str) -> gpumem.types.Recording:
        compared = compare_with(name)
        assert isinstance(compared, gpumem.types.Comparison)
        return compared.baseline

    entrances: dict[str, Entrance] = {
        "load": recorded(gpumem.load),
        "compare": recorded(baseline),
        "magic": magic,
        "command": command,
    }
    name: str = request.param
    return entrances[name]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("mine", "of_file"),
        ("./mine", "of_file"),
        ("good", "of_baseline"),
        ("last", "of_session"),
        ("the id's beginning", "of_session"),
    ],
)
def test_a_name_means_the_same_at_each_entrance(entrance: Entrance, name: str, label: str) -> None:
    if name == "the id's beginning":
        name = gpumem.sessions()[0].id[:6]
    assert label in entrance(name)


def test_a_name_that_nothing_has_is_refused(entrance: Entrance, folder: Path) -> None:
    said = entrance("zzz")
    assert (
        f"neither a file nor a baseline (there is good), and no session 'zzz' in {folder}" in said
    )
    assert "Traceback" not in said


def test_a_baseline_comes_before_a_folder(entrance: Entrance, tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    assert "of_baseline" in entrance("good")
    assert "no trace in this folder" in entrance("./good")


@pytest.mark.usefixtures("folder")
def test_a_path_is_no_name() -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: 'last'"):
        gpumem.load(Path("last"))


def test_the_session_itself_is_not_the_last_one(shell: Shell, tmp_path: Path) -> None:
    shell.run(f"%config GpuMem.store = {str(tmp_path)!r}")
    shell.run("%%gpumem -q\n1")
    _gpumem._close_store()
    for cell in ("%gpumem sessions", "%gpumem_report last", "%gpumem_report --session last"):
        n_lines = len(shell.lines)
        outcome = shell.run(cell)
        said = "\n".join([*shell.lines[n_lines:], outcome.stderr])
        assert f"no session but this one is kept in {tmp_path}" in said
