"""The summary of ``pytest --gpumem``, printed at the end like ``--durations``."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_gpumem.suite import SuiteRow

LEFT = {"left", "outlived"}
N_SHOWN = 10
"""The number of tests shown without ``-v``."""


def summary(rows: list[SuiteRow], n_tests: int, n_skipped: int, *, is_whole: bool) -> Iterator[str]:
    """Yield the lines: what was left behind, the most first; then what had a good reason."""
    left = _grouped([row for row in rows if row.kind in LEFT])
    reasons = _grouped([row for row in rows if row.kind not in LEFT])
    if not left:
        yield f"none of {n_tests} tests left memory behind"
    for part in (left, reasons):
        shown = part if is_whole else part[:N_SHOWN]
        for row in shown:
            yield _line(row)
            yield from (f"{'':12}{line}" for line in row.fix)
        if len(shown) < len(part):
            yield f"… {len(part) - len(shown)} more (-v shows them)"
    if n_skipped:
        yield f"after {n_skipped} tests nobody searched: that would have taken too long"


def _grouped(rows: list[SuiteRow]) -> list[SuiteRow]:
    """Return one row for all parameters of a test and a name, the largest first."""
    groups: dict[tuple[str, str, str], list[SuiteRow]] = defaultdict(list)
    for row in rows:
        # Every worker of xdist has a fixture of its own.
        test = "" if row.kind == "fixture" else row.test.partition("[")[0]
        groups[test, row.device, row.name].append(row)
    found = []
    for group in groups.values():
        largest = max(group, key=lambda it: it.n_bytes)
        is_sum = largest.kind in LEFT
        n_bytes = sum(it.n_bytes for it in group) if is_sum else largest.n_bytes
        is_one = len({it.test for it in group}) == 1 or not is_sum
        name, _, _ = largest.test.partition("[")
        test = largest.test if is_one else f"{name}[…]"
        found.append(replace(largest, n_bytes=n_bytes, test=test))
    return sorted(found, key=lambda it: -it.n_bytes)


def _line(row: SuiteRow) -> str:
    size = _gpumem.bytes_text(row.n_bytes)
    device = "" if row.device == "host" else f" on {row.device}"
    where = [f"`{row.path}`" if row.path else row.name, row.what, row.line]
    test = row.test
    if row.kind == "fixture":
        test, where = row.name, ["held until its teardown", *where]
    elif row.kind == "failed":
        where = ["held by its traceback until the next test", *where]
    else:
        test = f"{test}, after its teardown" if row.kind == "outlived" else test
        where = [f"held by {where[0]}", *where[1:]]
    return " · ".join([f"{size:>9}{device}  {test}", *filter(None, where)])
