"""``jupyter gpumem completion``, in the shells themselves."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from gpumem.cli import COMMANDS

from tests.support.programs import run_gpumem

if TYPE_CHECKING:
    from pathlib import Path

COMPLETE = """
complete -F _of_jupyter jupyter
_of_jupyter() { COMPREPLY=(lab-of-jupyter); }
source completion; source completion
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
[[ $(complete -p "${1##*/}") =~ -F\\ ([^ ]+) ]]
"${BASH_REMATCH[1]}" "$1" "${COMP_WORDS[COMP_CWORD]}"
echo "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "completion").write_text(run_gpumem("completion", "bash").stdout)
    return folder


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["jupyter", "gpumem", ""], " ".join(COMMANDS)),
        (["jupyter", "gpumem", "st"], "status"),
        (["jupyter-gpumem", "com"], "compare completion"),
        (["/usr/bin/jupyter-gpumem", "check", "a.ipynb", "--p"], "--peak"),
        (["jupyter", "gpumem", "report", "--m"], "--markdown"),
        # The shell itself completes files.
        (["jupyter", "gpumem", "report", "a"], ""),
        (["jupyter", "la"], "lab-of-jupyter"),
    ],
)
def test_bash_completes(folder: Path, typed: list[str], expected: str) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    ended = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", *typed],
        capture_output=True,
        check=True,
        cwd=folder,
        text=True,
    )
    assert (ended.stdout.strip(), ended.stderr) == (expected, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_theirs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = run_gpumem("completion", shell).stdout
    subprocess.run([shell, "-n"], check=True, input=script, text=True)
    assert "jupyter-gpumem" in script
