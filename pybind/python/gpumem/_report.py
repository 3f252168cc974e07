"""The report in Python: findings, runs, and the ways to show and keep it."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem
from gpumem._holders import Holder, branches
from gpumem._rules import Rules, judged_by

if TYPE_CHECKING:
    import os

NOTEBOOK_WIDTH = 100
PICTURE_WIDTH = 880


@dataclass(frozen=True)
class Cell:
    """A cell as people see it."""

    id: str
    """The frontend's id, or the hash of its source."""
    label: str
    """The first line of its source that says something, or the user's label."""
    execution_count: int | None
    """Jupyter's latest number."""


@dataclass(frozen=True)
class Evidence:
    """One figure that a verdict rests on."""

    name: str
    words: str
    value: float
    threshold: float | None
    holds: bool
    """It speaks for the finding."""


@dataclass(frozen=True)
class Fix:
    """What to change so that a name lets go."""

    before: str | None
    """The line of the cell that makes it hold; None where the cell does not show it."""
    after: str
    """What to write instead, or to run once."""
    why: str


@dataclass(frozen=True)
class Retention:
    """What a place of IPython's or Python's keeps of what no name of yours reaches."""

    place: str
    """``output_history``, ``traceback``, ``debugger`` or ``run_module``."""
    n_bytes: int
    release: str | None
    """What to type so that it lets go."""
    since_run: int | None
    """The run that left it there, as counted in the recording."""
    since_execution_count: int | None
    """Jupyter's number of that run."""


@dataclass(frozen=True)
class Doubling:
    """The two copies that a cell holds at once when it is run again. Sizes are bytes."""

    old_bytes: int
    """What the runs before it had left."""
    new_bytes: int
    """What it built."""
    rose_bytes: int
    """How far it rose above its start."""


@dataclass(frozen=True)
class Finding:
    """One verdict with its evidence. Sizes are bytes."""

    kind: str
    """``leak``, ``growing``, ``settled``, ``fragmentation``, ``pressure``, ``spike``,
    ``repeated_allocation``, ``inefficient_allocation``, ``rerun_doubling``, ``growing_gap``,
    ``long_lived_intermediates``, ``out_of_memory`` or ``retention``."""
    severity: str
    """``critical``, ``warning`` or ``info``."""
    state: str
    """``leak``, ``watch`` (growing, holder unknown), ``none`` or ``not_enough_data``."""
    withdrawn: str | None
    """Why what grew is no concern any more, where the finding is withdrawn."""
    shape: str | None
    """The course of the series: ``growth``, ``warm-up``, ``step``, ..."""
    cell: Cell | None
    """Where; None when it is about a device as a whole."""
    path: tuple[str, ...]
    """The label of the steps inside the cell."""
    device: str | None
    """None where memory ran out on one that nobody read."""
    lane: str
    """Which level of the device: ``allocated``, ``process_used`` or ``device_used``."""
    runs: tuple[int, ...]
    """The runs that it rests on, as counted in the recording."""
    n_runs: int
    """How many runs, or steps where ``steps`` is true, it rests on."""
    steps: bool
    bytes_per_run: int | None
    """What each run (or step) keeps."""
    interval: tuple[int, int] | None
    """The confidence interval of 95 % of ``bytes_per_run``."""
    runs_to_oom: int | None
    """How many more runs (or steps) until memory runs out at this rate."""
    title: str
    detail: str
    retention: Retention | None
    """Of the kind ``retention``."""
    doubling: Doubling | None
    """Of the kind ``rerun_doubling``."""
    holders: tuple[Holder, ...]
    """The names that hold it, those first that have most more over these runs."""
    fix: Fix | None
    """What to change so that the first of them lets go."""
    suggestions: tuple[str, ...]
    evidence: tuple[Evidence, ...]


class Report:
    """What a recording says: findings, worst first, and a row per run and device."""

    def __init__(self, recording: _gpumem.Recording, notice: str | None = None) -> None:
        """Judge ``recording``; nothing is computed before it is asked for.

        ``notice`` stands above the report: that the recording has stopped, and why.
        """
        self.recording = recording
        self.notice = notice

    @property
    def rules(self) -> Rules:
        """What the findings are judged by."""
        known: Any = self.recording._rules()
        return Rules(**known)

    @cached_property
    def findings(self) -> list[Finding]:
        """The verdicts, worst first."""
        return [_finding(entry) for entry in self._content["findings"]]

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """A row per (run, device): ``*_bytes``, ``*_nanos``, None where unknown."""
        rows: list[dict[str, Any]] = self._content["runs"]
        return rows

    @cached_property
    def traces(self) -> list[dict[str, Any]]:
        """Of each run under ``%%gpumem --trace``: exact levels, and bytes by line and stack."""
        traces: list[dict[str, Any]] = self._content["traces"]
        return traces

    def to_json(self) -> str:
        """Return the whole report as JSON."""
        return self._json

    def text(self, width: int | None = None) -> str:
        """Return the report as plain text, at most ``width`` columns wide."""
        columns = width or NOTEBOOK_WIDTH
        return below(self.notice, self.recording._report_text(columns), columns)

    def png(self, width: int = PICTURE_WIDTH, scale: float = 2, dark: bool = False) -> bytes:  # noqa: FBT001, FBT002 (as the widget calls it)
        """Return the report as a picture: ``scale`` pixels for each of ``width`` columns."""
        return self.recording._report_png(width, scale, dark)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a picture (``.png``, ``.svg``) or as one HTML file."""
        target = Path(path)
        match target.suffix.lower():
            case ".png":
                content = self.png()
            case ".svg":
                content = self.recording._report_svg(PICTURE_WIDTH, dark=False).encode()
            case ".html":
                # The widget's module takes 0.1 s to import.
                from gpumem import widget

                content = widget.html(self).encode()
            case suffix:
                message = (
                    f"cannot save a report as {suffix!r}: {target.name}\n"
                    "hint: end the name in .png, .svg or .html"
                )
                raise _gpumem.GpuMemError(message)
        _gpumem._write_file(target, content)

    def __repr__(self) -> str:
        """Name what it is about and how much it found."""
        n_findings = len(self.findings)
        findings = "1 finding" if n_findings == 1 else f"{n_findings} findings"
        return f"<gpumem.Report: {findings}, {len(self.runs)} rows>"

    def _display_(self) -> object:
        """Return what marimo shows in place of this."""
        from gpumem import widget

        return widget.live(self)

    def _ipython_display_(self) -> None:
        from IPython.core.getipython import get_ipython

        if hasattr(get_ipython(), "kernel"):
            from gpumem import widget

            widget.show(self)
        else:
            print(self.text(shutil.get_terminal_size().columns))

    @cached_property
    def _json(self) -> str:
        return self.recording._report_json()

    @cached_property
    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._json)
        return content


def report(recording: _gpumem.Recording | None = None, *, rules: Rules | None = None) -> Report:
    """Judge a recording: by default what this session recorded so far.

    ``rules`` take the place of those that stand in the recording.
    """
    if recording is None:
        return Report(judged_by(_gpumem.recording(), rules), _gpumem._stopped())
    return Report(judged_by(_checked(recording), rules))


def below(notice: str | None, text: str, width: int = NOTEBOOK_WIDTH) -> str:
    """Return the text with the notice above it, if there is one."""
    return text if notice is None else f"{textwrap.fill(notice, width)}\n\n{text}"


def _checked(recording: object) -> _gpumem.Recording:
    if isinstance(recording, _gpumem.Recording):
        return recording
    message = f"a gpumem.Recording is needed, not {recording!r}\nhint: gpumem.load(path) reads one"
    raise TypeError(message)


def _finding(entry: dict[str, Any]) -> Finding:
    cell, interval = entry["cell"], entry["interval"]
    retention, doubling = entry["retention"], entry["doubling"]
    own = {
        **entry,
        "cell": None if cell is None else Cell(**_known(Cell, cell)),
        "interval": None if interval is None else tuple(interval),
        "retention": None if retention is None else Retention(**_known(Retention, retention)),
        "doubling": None if doubling is None else Doubling(**_known(Doubling, doubling)),
        "evidence": tuple(evidence(figure) for figure in entry["evidence"]),
        "path": tuple(entry["path"]),
        "runs": tuple(entry["runs"]),
        "holders": tuple(
            Holder(**{**holder, "children": branches(holder["children"])}, device=entry["device"])
            for holder in entry["holders"]
        ),
        "fix": None if entry["fix"] is None else Fix(**entry["fix"]),
        "suggestions": tuple(entry["suggestions"]),
    }
    return Finding(**_known(Finding, own))


def evidence(figure: dict[str, Any]) -> Evidence:
    """Return one figure; JSON has words for numbers that are not finite."""
    threshold = figure["threshold"]
    numbers = {
        "value": float(figure["value"]),
        "threshold": None if threshold is None else float(threshold),
    }
    return Evidence(**_known(Evidence, {**figure, **numbers}))


def _known(cls: type[Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of ``cls``: a report may carry more than Python shows."""
    names = {field.name for field in fields(cls)}
    return {name: value for name, value in entry.items() if name in names}
