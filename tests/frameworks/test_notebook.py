"""`notebooks/pytorch.ipynb` without a GPU: torch on the CPU, the same leak and the same fix."""

from __future__ import annotations

from pathlib import Path

from .test_oom import in_a_shell

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "pytorch.ipynb"


def test_the_leak_is_found_and_its_fix_cures() -> None:
    in_a_shell(
        "torch",
        f"""
    import json
    from pathlib import Path
    cells = json.loads(Path({str(NOTEBOOK)!r}).read_text("utf-8"))["cells"]
    cells = {{it["id"]: "".join(it["source"]) for it in cells if it["cell_type"] == "code"}}
    def leaks():
        found = gpumem.report().findings
        return [it for it in found if it.kind in ("leak", "growing") and it.withdrawn is None]
    for name in ("load", "model", "leak", "why", "report"):
        run(cells[name])
    [leak] = leaks()
    assert (leak.device, leak.holders[0].name) == ("host", "losses"), leak
    assert leak.fix.before == "losses.append(loss)"
    assert leak.fix.after in cells["fixed"], leak.fix
    for name in ("free", "fixed", "footprint"):
        run(cells[name])
    label = leak.cell.label
    again = [it for it in leaks() if it.cell.label != label or it.runs[0] != leak.runs[0]]
    assert not again, again
""",
    )
