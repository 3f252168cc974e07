"""Verdicts outside the report: on plain levels, and against a baseline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpumem import _gpumem
from gpumem._fields import read
from gpumem._gpumem import OtherFile
from gpumem._report import Cell, Evidence, Live, Report, below
from gpumem._rules import Rules, judged_by, thresholds
from gpumem._table import NOTEBOOK_WIDTH, TextResult, preformatted, size, table

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence


@dataclass(frozen=True)
class GrowthVerdict(TextResult):
    """The verdict on one series of levels. Sizes are bytes."""

    state: str
    """``leak``, ``suspected``, ``stable`` or ``not_enough_data``."""
    shape: str
    """``flat``, ``warm-up``, ``step``, ``sawtooth``, ``spikes``, ``staircase``,
    ``growth``, ``late growth`` or ``reserved-only``."""
    bytes_per_run: int
    """Memory that each run keeps: the Theil-Sen slope without the first quarter."""
    interval: tuple[int, int]
    """The 95 % confidence interval of ``bytes_per_run``."""
    total_bytes: int
    """Last level minus first."""
    n_missing: int
    """Number of further runs needed for a verdict, if there are too few."""
    p: float
    """One-sided p of the trend: the probability that chance alone shows as much."""
    evidence: tuple[Evidence, ...]

    def text(self) -> str:
        """Return the verdict and its evidence, a line each."""
        low, high = (size(bound) for bound in self.interval)
        first = f"{self.state.replace('_', ' ')} ({self.shape}): {size(self.bytes_per_run)} a run"
        missing = f"{self.n_missing} more runs needed" if self.n_missing else ""
        lines = [f"{first}, {low} to {high}", missing, *(it.words for it in self.evidence)]
        return "\n".join(line for line in lines if line)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a row for each piece of evidence."""
        rows = [(it.words, "yes" if it.holds else "no") for it in self.evidence]
        return preformatted(self.text()) if not rows else table((self.state, "holds"), rows)


@dataclass(frozen=True)
class GrowthSide:
    """A cell's growth in one recording. Sizes are bytes."""

    state: str
    n_runs: int
    bytes_per_run: int
    interval: tuple[int, int]
    peak_bytes: int | None
    """The highest level inside a run, above its start."""


@dataclass(frozen=True)
class Change:
    """How the growth of a cell (or loop) changed on one device."""

    change: str
    """``fixed``, ``better``, ``same``, ``worse`` or ``new``."""
    cell: Cell
    path: tuple[str, ...]
    device: str
    steps: bool
    before: GrowthSide | None
    """None if the baseline does not have the cell."""
    after: GrowthSide
    difference_bytes: int
    """Growth per run now minus growth per run then."""
    uncertainty_bytes: int
    """Half of the 95 % interval of ``difference_bytes``."""


class Comparison(Live):
    """A recording compared with a baseline: one change per growing cell, worst first."""

    def __init__(
        self,
        recording: _gpumem.Recording,
        baseline: _gpumem.Recording,
        name: str = "the baseline",
        notice: str | None = None,
    ) -> None:
        """Compare now; later changes are ignored. ``notice`` is as in ``Report``."""
        self.recording = recording
        self.baseline = baseline
        self.name = name
        self.notice = notice
        entries = json.loads(recording._compare_json(baseline))
        self.changes: list[Change] = [read(Change, entry) for entry in entries]

    def text(self, width: int | None = None) -> str:
        """Return the comparison as text, at most ``width`` columns wide."""
        columns = width or NOTEBOOK_WIDTH
        text = self.recording._compare_text(self.baseline, self.name, columns)
        return below(self.notice, text, columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report with the comparison as one HTML file."""
        from gpumem import widget

        target = Path(path)
        if target.suffix.lower() != ".html":
            message = (
                f"cannot save a comparison as {target.suffix!r}: {target.name}\n"
                "hint: end the name in .html"
            )
            raise _gpumem.GpuMemError(message)
        content = widget.html(Report(self.recording), self).encode()
        _gpumem._write_file(target, content)

    def __repr__(self) -> str:
        """Return the number of changes, and the name of the baseline."""
        n = len(self.changes)
        changes = "1 change" if n == 1 else f"{n} changes"
        return f"<Comparison with {_gpumem._printable(self.name)}: {changes}>"

    def _repr_html_(self) -> str:
        """Return a table of the changes, for what shows no widget."""
        if not self.changes:
            return preformatted(self.text())
        heads = ("change", "cell", "device", "a run kept", "a run keeps", "runs")
        return table(heads, [_shown(change) for change in self.changes])

    def _as_widget(self) -> tuple[Report, Comparison]:
        return Report(self.recording), self


def classify_growth(
    allocated: Sequence[float],
    reserved: Sequence[float] | None = None,
    *,
    times: Sequence[float] | None = None,
    min_growth: float | None = None,
    rules: Rules | None = None,
) -> GrowthVerdict:
    """Judge a series of levels in bytes, one per run, in the order of the runs.

    ``reserved`` distinguishes a leak from an allocator that cannot reuse its memory.
    ``times`` (in any unit) sorts the levels. Growth of less than ``min_growth`` bytes
    (by default that of ``rules``) over the series counts as flat.

    Raises:
        ValueError: a level is negative or not finite, or the lengths differ.
    """
    content = json.loads(
        _gpumem._classify_growth_json(
            allocated,
            reserved,
            times,
            None if min_growth is None else float(min_growth),
            thresholds(Rules() if rules is None else rules),
        )
    )
    return read(GrowthVerdict, content)


def compare(
    recording: _gpumem.Recording, baseline: _gpumem.Recording, *, rules: Rules | None = None
) -> Comparison:
    """Compare each growing cell of ``recording`` with the same cell of ``baseline``.

    Both are judged by ``rules``, by default those of ``recording``. For files of
    other tools (PyTorch's snapshots and traces, logs, JAX's memory profiles) load both, and call
    ``after.compare(before)``.
    """
    return Comparison(judged_by(recording, rules), baseline)


_baselines: dict[str, tuple[str, int]] = {}


def set_baseline(name: str) -> int:
    """Save the runs so far as a baseline of that name; return their number.

    If sessions are kept on the disk, later sessions find it there.

    Raises:
        StoreError: it cannot be written to the disk; this session has it nevertheless.
    """
    session, n_runs = _gpumem.recording()._position()
    shown = _gpumem._printable(name)
    _baselines[shown] = (session, n_runs)
    if n_runs:
        _gpumem._save_baseline(shown)
    return n_runs


def compare_with(
    name: str, found: _gpumem.Recording | OtherFile | None = None
) -> Comparison | OtherFile:
    """Compare what was found, or else this session, with what `gpumem.load` finds for a name.

    For this session, a baseline of its own comes first: the runs since then are compared with the
    runs before.

    Raises:
        GpuMemError: one of the two cannot be read, or they cannot be compared.
        OSError: there is nothing of that name.
    """
    shown = _gpumem._printable(name)
    if found is not None:
        return compared(found, _gpumem.load(name), shown)
    recording = _gpumem.recording()
    session, _ = recording._position()
    own = {known: n_runs for known, (of, n_runs) in _baselines.items() if of == session}
    if shown in own:
        before, after = recording._split_at(own[shown])
        return Comparison(after, before, shown, _gpumem._stopped())
    return compared(recording, _gpumem.load(name), shown, _gpumem._stopped())


def compared(
    after: _gpumem.Recording | OtherFile,
    before: _gpumem.Recording | OtherFile,
    name: str,
    notice: str | None = None,
) -> Comparison | OtherFile:
    """Compare two recordings, or two files of another program; ``name`` is that of ``before``.

    Raises:
        GpuMemError: they are not of one kind, or such files cannot be compared.
    """
    if isinstance(after, _gpumem.Recording) and isinstance(before, _gpumem.Recording):
        return Comparison(after, before, name, notice)
    if isinstance(after, OtherFile) and isinstance(before, type(after)):
        return after.compare(before)
    kinds = [it._kind if isinstance(it, OtherFile) else "a recording" for it in (after, before)]
    message = f"{kinds[0]} cannot be compared with {kinds[1]}"
    raise _gpumem.GpuMemError(message)


def _shown(change: Change) -> tuple[object, ...]:
    before = change.before
    return (
        change.change,
        " > ".join((change.cell.label, *change.path)),
        change.device,
        "not recorded" if before is None else size(before.bytes_per_run),
        size(change.after.bytes_per_run),
        change.after.n_runs,
    )
