"""How sessions are read, and what counts as wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .run import BEGINNINGS, parse
from .score import Judged, summary

if TYPE_CHECKING:
    from pathlib import Path


def check_order(folder: Path, text: str, expected: str) -> None:
    path = folder / "session.py"
    path.write_text(text, encoding="utf-8")
    assert " ".join(cell.source for cell in parse(path).cells) == expected


def check_wrong(row: dict[str, Any], *expected: str) -> None:
    assert Judged(row, {}).wrong == set(expected)


def test_cells_run_in_the_order_that_their_marks_give(tmp_path: Path) -> None:
    check_order(tmp_path, "# truth: leak\n# %%\na\n# %% x3\nb", "a b b b")
    check_order(tmp_path, "# %% loop x2\n# %%\na\n# %% x2\nb\n# %% end\n# %%\nc", "a b b a b b c")
    check_order(tmp_path, "# %%\n\n# %%\na", "a")


def test_a_session_has_a_header_and_its_cells_have_ids(tmp_path: Path) -> None:
    path = tmp_path / "session.py"
    path.write_text("# truth: leak\n# bytes: 12\n# %% x1 id=c1\n# a: comment", encoding="utf-8")
    session = parse(path)
    assert session.truth == {"truth": "leak", "bytes": "12"}
    assert [(cell.source, cell.cell_id) for cell in session.cells] == [("# a: comment", "c1")]


def test_the_first_cell_imports_the_world_of_its_session(tmp_path: Path) -> None:
    check_order(tmp_path, "# world: host\n# %%\na", "a")
    check_order(tmp_path, "# world: sim\n# %%\na\n# %%\nb", f"{BEGINNINGS['sim']}\na b")
    own = "from gpumem import sim\nsim.use(1 << 30)"
    check_order(tmp_path, f"# world: sim\n# %%\n{own}\n# %%\nb", f"{own} b")


def test_wrong_is_what_differs_from_the_truth() -> None:
    leak = {"truth": "leak", "found": True, "holder": "right", "bytes": True, "fix": "cures"}
    check_wrong(leak)
    check_wrong(leak | {"found": False}, "found")
    check_wrong(leak | {"holder": "no name", "bytes": False}, "holder", "bytes")
    check_wrong(leak | {"holder": "any", "fix": "by hand"})
    check_wrong(leak | {"fix": "still grows"}, "fix")
    check_wrong(leak | {"fix": "raises"}, "fix")
    check_wrong({"truth": "healthy", "clean": False, "quiet": True}, "clean")
    check_wrong({"truth": "undecided", "clean": True, "quiet": False}, "quiet")
    check_wrong({"truth": "leak", "skipped": "no torch"})


def test_the_score_counts_leaks_and_healthy_sessions() -> None:
    rows = [
        {"truth": "leak", "found": True, "holder": "any", "bytes": True, "fix": "cures"},
        {"truth": "leak", "found": False},
        {"truth": "undecided", "clean": True, "quiet": False},
        {"truth": "healthy", "skipped": "no torch"},
    ]
    assert summary(rows) == (
        "leaks 2: found 1, holder right 0 of 1, bytes right 1 of 1,"
        " fix cures 1, raises 0, still grows 0, by hand 0, none 0\n"
        "healthy 1: clean 1, quiet 0; skipped 1"
    )
