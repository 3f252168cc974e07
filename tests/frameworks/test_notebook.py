"""`notebooks/pytorch.ipynb` without a GPU: torch on the CPU, the same leak and the same fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gpumem

from tests.support.in_process import forked_from

from .shell import run

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "pytorch.ipynb"


def leaks() -> list[Any]:
    found = gpumem.report().findings
    return [it for it in found if it.kind in ("leak", "growing") and it.withdrawn is None]


@forked_from("torch")
def test_the_leak_is_found_and_its_fix_cures() -> None:
    written = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    cells = {it["id"]: "".join(it["source"]) for it in written if it["cell_type"] == "code"}
    run(*(cells[name] for name in ("load", "model", "leak", "why", "report")))
    [leak] = leaks()
    assert (leak.device, leak.holders[0].name) == ("host", "losses")
    assert leak.fix.before == "losses.append(loss)"
    assert leak.fix.after in cells["fixed"]
    run(*(cells[name] for name in ("free", "fixed", "footprint")))
    label = leak.cell.label
    assert not [it for it in leaks() if it.cell.label != label or it.runs[0] != leak.runs[0]]
