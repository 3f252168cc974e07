"""What users are shown with PyTorch, on a card: the notebook and the README's example."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gpumem

from tests.support.in_process import forked_from, in_process

from .notebook import MIB, check, findings, last, run

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "pytorch.ipynb"
README = ROOT / "README.md"


def leak() -> Any:
    """Return the one leak of the card that the report names."""
    [found] = [it for it in findings("leak") if it.device == "cuda:0" and it.withdrawn is None]
    return found


@in_process
def test_the_leak_is_found_and_its_fix_cures() -> None:
    listed = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    cells = {it["id"]: "".join(it["source"]) for it in listed if it["cell_type"] == "code"}
    assert list(cells)[:3] == ["load", "model", "leak"]
    for name in ("load", "model", "leak", "why", "report"):
        assert run(cells[name]) is None, name
    found = leak()
    assert found.cell.label.startswith("losses.append("), found
    assert (found.details.steps, found.n_runs) == (True, 24), found
    # Of each step three activations and what the loss keeps; 4 MiB each.
    assert 12 * MIB <= found.bytes_per_run <= 40 * MIB, found
    assert found.holders[0].name == "losses", found
    assert found.fix.before == "losses.append(loss)", found.fix
    assert found.fix.after in cells["fixed"], (found.fix, cells["fixed"])
    for name in ("free", "fixed", "footprint"):
        assert run(cells[name]) is None, name
    row = last()
    # The last loss and its graph.
    assert 0 < row["kept_bytes"] < found.bytes_per_run + 8 * MIB, row
    on_card = [it for it in findings("leak") if it.device == "cuda:0"]
    assert not [it for it in on_card if it.runs and it.runs[-1] >= row["run"]]
    check()


@forked_from("torch")
def test_the_example_of_the_readme() -> None:
    text = README.read_text("utf-8")
    start = text.index("import torch\n")
    cell = re.search(r"^ +(losses.append\(\(torch.*)$", text, re.MULTILINE)
    assert cell
    assert run(text[start : text.index("```", start)]) is None
    for _ in range(5):
        run(f"%%gpumem\n{cell[1]}")
    row = check()
    assert row["kept_bytes"] == 128 * MIB + 512, row
    [found] = [it for it in gpumem.report().findings if it.device == "cuda:0"]
    assert found.fix is not None
    assert found.holders[0].name == "losses", found
    assert found.fix.before == cell[1], found.fix
