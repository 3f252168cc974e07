"""What the README and the pages of `docs/` show is what happens."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import cli, sim
from IPython.core.inputtransformer2 import TransformerManager

if TYPE_CHECKING:
    from tests.python.conftest import Shell

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]

# Times differ from run to run, and with them how many iterations of a loop are seen.
VARYING = re.compile(r"\d+(\.\d+)? (ns|µs|ms|s)\b|\(\d+ of \d+\)")
# A busy machine may miss the look that tells it, and Colab counts cells of its own.
SINCE = re.compile(r" · since In \[\d+\]")

needs_loops = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="loops are found from Python 3.12 on"
)


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def simulated(shown: str) -> str:
    """Return the README's code or output as it is with a simulated GPU."""
    shown = shown.replace(
        "import torch\n", "from gpumem import sim\n\nsim.use(total_bytes=8 << 30)\n"
    )
    shown = shown.replace('torch.ones(32 << 20, device="cuda"', "sim.tensor(128 << 20")
    return shown.replace("cuda:0", "sim:0")


def name(page: Path) -> str:
    return page.stem


def _without_figures(line: str) -> str:
    return re.sub(r"\d+ (of|iterations|s)\b", r"… \1", VARYING.sub("…", " ".join(line.split())))


@needs_loops
def test_the_three_minutes_of_the_readme_print_what_it_shows(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    start, cell = map(simulated, blocks(README, "python"))
    foretold, printed, why, _report = map(simulated, blocks(README, "text"))
    assert shell.run(start).errors == ["None", "None"]
    shell.run(cell)
    # A busy machine may have known too late.
    for line in shell.lines[:-1]:
        assert _without_figures(line) == _without_figures(foretold)
    assert VARYING.sub("…", shell.lines[-1]) == VARYING.sub("…", printed.rstrip())
    command, _, expected = why.partition("\n\n")
    shell.run(command)
    # Simulated devices of other tests may stand below it.
    assert SINCE.sub("", shell.lines[-1]).startswith(SINCE.sub("", expected.rstrip()))


@needs_loops
def test_the_report_of_the_readme_has_its_fix(shell: Shell) -> None:
    start, cell = map(simulated, blocks(README, "python"))
    shell.run(start)
    shell.run(cell)
    text = gpumem.report().text()
    *_, diff = map(simulated, blocks(README, "text"))
    [(before, after)] = re.findall(r"^- (.*)\n\+ (.*)$", diff, re.MULTILINE)
    assert before in map(str.strip, cell.splitlines())
    assert after.removeprefix("losses.append(") in text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_on_a_page_compiles(page: Path) -> None:
    for block in blocks(page, "python"):
        code = TransformerManager().transform_cell(block)
        ast.parse(code)


def test_the_simulated_gpu_of_the_commands_runs(shell: Shell) -> None:
    found = blocks(ROOT / "docs" / "commands.md", "python")
    simulated = [block for block in found if "sim." in block]
    assert simulated
    for block in simulated:
        assert shell.run(block).errors == ["None", "None"], block
    sim.use(n_devices=1)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_of_a_shell_on_a_page_are_understood(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_run", lambda *_: 0)
    for line in "".join(blocks(page, "sh")).splitlines():
        _, _, typed = line.partition("jupyter gpumem ")
        if typed:
            assert cli.main(shlex.split(typed, comments=True)) == 0, line
