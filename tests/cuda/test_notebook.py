"""What users are shown with PyTorch, on a card: the notebook and the README's example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .program import Program

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "pytorch.ipynb"
README = ROOT / "README.md"

SCRIPT = """
    import json
    from pathlib import Path
    cells = json.loads(Path(PATH).read_text("utf-8"))["cells"]
    cells = {it["id"]: "".join(it["source"]) for it in cells if it["cell_type"] == "code"}
    assert list(cells)[:3] == ["load", "model", "leak"]
    for name in ("load", "model", "leak", "why", "report"):
        assert run(cells[name]) is None, name
    device = "cuda:0"
    [leak] = [it for it in gpumem.report().findings
              if it.device == device and it.kind == "leak" and it.withdrawn is None]
    assert leak.cell.label.startswith("for batch in gpumem.steps("), leak
    assert leak.details.steps and leak.n_runs == 24, leak
    # Of each step three activations and what the loss keeps; 4 MiB each.
    assert 12 * MIB <= leak.bytes_per_run <= 40 * MIB, leak
    assert leak.holders[0].name == "losses", leak
    assert leak.fix.before == "losses.append(loss)", leak.fix
    assert leak.fix.after in cells["fixed"], (leak.fix, cells["fixed"])
    for name in ("free", "fixed", "footprint"):
        assert run(cells[name]) is None, name
    row = last(device)
    # The last loss and its graph.
    assert 0 < row["kept_bytes"] < leak.bytes_per_run + 8 * MIB, row
    assert not [it for it in gpumem.report().findings if it.kind == "leak" and it.device == device
                and it.runs and it.runs[-1] >= row["run"]]
    check()
    assert_quiet()
"""


def test_the_leak_is_found_and_its_fix_cures(program: Program) -> None:
    program(f"    PATH = {str(NOTEBOOK)!r}\n" + SCRIPT)


def test_the_example_of_the_readme(program: Program) -> None:
    text = README.read_text("utf-8")
    start = text.index("import torch\n")
    cell = re.search(r"`(losses.append\(\(torch[^`]*)`", text)
    assert cell
    program(
        f"""
    START, CELL = {text[start : text.index("```", start)]!r}, {cell[1]!r}
    """
        """
    assert run(START) is None
    for _ in range(5):
        said = printed("%%gpumem\\n" + CELL)
    row = check()
    assert row["kept_bytes"] == 64 * MIB + 512, row
    [leak] = [it for it in gpumem.report().findings if it.device == "cuda:0"]
    assert leak.holders[0].name == "losses", leak
    assert leak.fix.before == CELL, leak.fix
    assert_quiet()
    """
    )
