"""The report in Python: findings, runs, display and export."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem
from gpumem._fields import read
from gpumem._holders import Holder  # noqa: TC001 (`read` resolves it)
from gpumem._rules import Rules, judged_by
from gpumem._table import NOTEBOOK_WIDTH, preformatted, size, table
from gpumem.details import Details, Reason, details

if TYPE_CHECKING:
    import os

PICTURE_WIDTH = 880


@dataclass(frozen=True)
class Cell:
    """A cell, as users know it."""

    id: str
    """The frontend's id, or the hash of its source."""
    label: str
    """The user's label, or the line of its source that keeps most."""
    execution_count: int | None
    """Jupyter's latest number for it."""


@dataclass(frozen=True)
class Evidence:
    """One figure that a verdict rests on."""

    name: str
    words: str
    value: float
    threshold: float | None
    holds: bool
    """Whether it supports the finding."""


@dataclass(frozen=True)
class Fix:
    """The change that frees a name's memory."""

    before: str | None
    """The line of the cell that keeps the memory; None if the cell does not show it."""
    after: str
    """The line to write instead, or to run once."""
    why: str


@dataclass(frozen=True)
class KnownLeak:
    """A leak that a library is known for."""

    id: str
    """Its name in the catalogue: ``accelerate-prepared-models``."""
    library: str
    version: str | None
    """The version in this session; None if that is not known."""
    title: str
    cause: str
    link: str
    """The issue in which it is reported."""


@dataclass(frozen=True)
class Finding:
    """One verdict with its evidence. Sizes are bytes."""

    id: str
    """Stays the same while the finding stands."""
    fingerprint: str | None
    """The same for one leak in all sessions of a notebook; None if it is no leak or growth."""
    kind: str
    """Its kind: ``leak``, ``growing``, ``out_of_memory``, ...; docs/findings.md has all."""
    severity: str
    """``critical``, ``warning`` or ``info``."""
    state: str | None
    """``leak``, ``suspected`` (not yet beyond doubt), ``stable`` or ``not_enough_data``; None if
    the finding is about no growth, as ``out_of_memory``."""
    reason: Reason | None
    """Why that is its state; None without one."""
    withdrawn: str | None
    """Why the finding no longer applies: ``given_back``, ``edited``, ``had_enough``, ``let_go``,
    ``returned``; ``expected``: `%gpumem expect` says that it is meant."""
    cell: Cell | None
    """The cell that it is about; None if it is about a whole device."""
    path: tuple[str, ...]
    """Labels of steps and blocks inside the cell."""
    device: str | None
    """None if memory ran out on a device that is not read."""
    metric: str
    """The judged level of the device: ``allocated``, ``process_used`` or ``device_used``."""
    runs: tuple[int, ...]
    """The indices in the recording of the runs it rests on."""
    n_runs: int
    """Number of runs it rests on, or of steps if its details count steps."""
    bytes_per_run: int | None
    """Memory that each run (or step) keeps; None if it is not about growth."""
    title: str
    detail: str
    details: Details
    """The fields of its kind of finding."""
    holders: tuple[Holder, ...]
    """The names that hold it; those that grew most over these runs come first."""
    fix: Fix | None
    """The change that frees the memory of the first holder."""
    known_leak: KnownLeak | None
    """Its entry in the catalogue; None if it is no known leak of a library."""
    suggestions: tuple[str, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class ProcessGrowth:
    """The verdict on the levels of a child process. Sizes are bytes."""

    state: str
    """``leak``, ``suspected``, ``stable`` or ``not_enough_data``."""
    shape: str
    per: str
    """The kind of step: ``step`` of a loop, ``run`` of a cell, or ``span`` without steps."""
    n_steps: int
    bytes_per_step: int
    total_bytes: int
    step_nanos: int | None
    """The length of a span."""


@dataclass(frozen=True)
class ChildProcess:
    """A child process of the session. Sizes are bytes, times nanoseconds since its start."""

    pid: int
    parent_pid: int | None
    name: str
    """``DataLoader worker 3``, ``ForkPoolWorker-2``, ``rank 1``."""
    started_nanos: int
    until_nanos: int
    """When it ended, or the last instant that is known of it."""
    ending: str
    """``running``, ``in_order``, ``failed``, ``killed``, ``killed_by_system`` (out of memory), or
    ``lost``: nobody saw how it ended."""
    exit_code: int | None
    """The exit code; a signal is a negative number."""
    ended_in_run: int | None
    """The index of the session's run that was under way when it ended."""
    first_bytes: int | None
    latest_bytes: int | None
    peak_bytes: int | None
    copied_bytes: int | None
    """Growth by copies of its parent's pages, which a fork shares until one of them writes."""
    device_used_bytes: int | None
    """GPU memory as the driver listed it at the end of the session's latest run."""
    device_peak_bytes: int | None
    """The highest of these levels."""
    growth: ProcessGrowth | None


class Findings(list[Finding]):
    """Findings, worst first, as a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return preformatted("no findings")
        heads = ("severity", "finding", "device", "a run keeps", "held by", "change")
        return table(heads, [_shown(finding) for finding in self])


class ChildProcesses(list[ChildProcess]):
    """Child processes, those that grow first, as a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return preformatted("no child processes")
        heads = ("process", "pid", "memory", "highest", "keeps", "ended")
        return table(heads, [_child_row(child) for child in self])


class Live:
    """A result that a notebook shows as a widget and a terminal as text."""

    def _as_widget(self) -> tuple[Any, ...]:
        """Return what the widget shows: a report, and a comparison if there is one."""
        raise NotImplementedError

    def text(self, width: int | None = None) -> str:
        """Return it as plain text, at most ``width`` columns wide."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the text."""
        return self.text()

    def _display_(self) -> object:
        """Return the widget that marimo shows for this."""
        from gpumem import widget

        return widget.live(*self._as_widget())

    def _ipython_display_(self) -> None:
        from IPython.core.getipython import get_ipython

        if hasattr(get_ipython(), "kernel"):
            from gpumem import widget

            widget.show(*self._as_widget())
        else:
            print(self.text(shutil.get_terminal_size().columns))


@dataclass(frozen=True)
class Twin:
    """Another variable that holds the same shapes, or sizes."""

    name: str
    n_alike: int
    """How many of its storages have one of the same shape, element type and size in the other."""
    n_all: int
    """All its storages, without gradients and the state of optimizers."""
    by_shape: bool
    """Whether the shapes are known; otherwise only the sizes match."""


@dataclass(frozen=True)
class IdleMemory:
    """Memory of a device that no cell has read for a while: no alarm, a later cell may need it."""

    device: str
    names: tuple[str, ...]
    """The variable that holds it; several if only together they do."""
    n_bytes: int
    """Freed if they are deleted."""
    last_run: int
    """The last run that read one of them, or bound it, as counted in the recording."""
    last_execution_count: int | None
    """Jupyter's number of that run."""
    is_read: bool
    """Whether that run read it; otherwise it only bound it."""
    n_runs_since: int
    twin: Twin | None
    words: str
    release: str
    """The statement that frees it: ``del checkpoint``."""


class Report(Live):
    """Findings of a recording, worst first, and one row per run and device."""

    def __init__(self, recording: _gpumem.Recording, notice: str | None = None) -> None:
        """Judge ``recording`` lazily: nothing is computed until it is needed.

        ``notice`` appears above the report: that recording has stopped, and why.
        """
        self.recording = recording
        self.notice = notice

    @property
    def rules(self) -> Rules:
        """The thresholds of the findings."""
        known: Any = self.recording._rules()
        return Rules(**known)

    @cached_property
    def findings(self) -> Findings:
        """The verdicts, worst first: a list, which a notebook shows as a table."""
        return Findings(_finding(entry) for entry in self._content["findings"])

    @cached_property
    def idle(self) -> tuple[IdleMemory, ...]:
        """Memory of names that no cell has read for a while, the largest first on each device."""
        return tuple(read(IdleMemory, entry) for entry in self._content["idle"])

    @cached_property
    def processes(self) -> ChildProcesses:
        """The session's child processes that left a record, those that grow first."""
        return ChildProcesses(read(ChildProcess, entry) for entry in self._content["processes"])

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """One row per (run, device): ``*_bytes``, ``*_nanos``; unknown values are None."""
        rows: list[dict[str, Any]] = self._content["runs"]
        return rows

    @cached_property
    def traces(self) -> list[dict[str, Any]]:
        """For each run with ``%%gpumem --trace``: exact levels, and bytes by line and stack."""
        traces: list[dict[str, Any]] = self._content["traces"]
        return traces

    def to_json(self) -> str:
        """Return the whole report as JSON."""
        return self._json

    def table(self, what: str = "runs") -> _gpumem.Table:
        """Return ``runs``, ``samples`` or ``findings`` as a table with typed columns.

        polars, pyarrow and DuckDB read it: ``polars.DataFrame(report.table("samples"))``. ``cell``
        is the cell's label.

        Raises:
            ValueError: there is no such table.
        """
        return self.recording._report_table(what)

    def to_pandas(self, what: str = "runs") -> Any:  # noqa: ANN401 (pandas is not a dependency)
        """Return one of the tables as a pandas ``DataFrame``.

        Raises:
            ImportError: pandas is not installed.
            ValueError: there is no such table.
        """
        return import_module("pandas").DataFrame(self.table(what)._columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the runs as a stream of Arrow's C interface."""
        return self.table().__arrow_c_stream__(requested_schema)

    def text(self, width: int | None = None) -> str:
        """Return the report as plain text, at most ``width`` columns wide."""
        columns = width or NOTEBOOK_WIDTH
        if self.notice is not None and not self.recording._position()[1]:
            # To ask for a first run would be wrong: it would not be recorded.
            return textwrap.fill(self.notice, columns)
        return below(self.notice, self.recording._report_text(columns), columns)

    def png(self, width: int = PICTURE_WIDTH, scale: float = 2, dark: bool = False) -> bytes:  # noqa: FBT001, FBT002 (as the widget calls it)
        """Return a picture of the report: ``width`` columns of ``scale`` pixels each."""
        return self.recording._report_png(width, scale, dark)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report in the form that the name's ending tells.

        A picture (``.png``, ``.svg``), one page (``.html``), everything (``.json``), or a trace for
        Perfetto and ``chrome://tracing`` (``.trace.json``). `to_pandas` gives the runs as a table.

        Raises:
            GpuMemError: the name has another ending.
            OSError: the file cannot be written.
        """
        target = Path(path)
        match _ending(target):
            case ".trace.json":
                content = self.recording._report_chrome_trace().encode()
            case ".png":
                content = self.png()
            case ".svg":
                content = self.recording._report_svg(PICTURE_WIDTH, dark=False).encode()
            case ".html":
                # The widget's module takes 0.1 s to import.
                from gpumem import widget

                content = widget.html(self).encode()
            case ".json":
                content = self.to_json().encode()
            case suffix:
                message = (
                    f"cannot save a report as {suffix!r}: {target.name}\n"
                    "hint: end the name in .png, .svg, .html, .json or .trace.json"
                )
                raise _gpumem.GpuMemError(message)
        _gpumem._write_file(target, content)

    def __repr__(self) -> str:
        """Return the number of findings and rows."""
        n_findings = len(self.findings)
        findings = "1 finding" if n_findings == 1 else f"{n_findings} findings"
        return f"<Report: {findings}, {len(self.runs)} rows>"

    def _as_widget(self) -> tuple[Report]:
        return (self,)

    @cached_property
    def _json(self) -> str:
        return self.recording._report_json()

    @cached_property
    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._json)
        return content


def report(
    recording: _gpumem.Recording | _gpumem.OtherFile | None = None, *, rules: Rules | None = None
) -> Report:
    """Judge a recording, by default that of this session.

    ``rules`` replace those of the recording. ``recording`` is what :func:`gpumem.load` returned::

        gpumem.report(gpumem.load("last")).findings

    Raises:
        TypeError: it is no recording but a file of another tool, which has no runs to judge.
    """
    if recording is None:
        _gpumem._note_outside()
        return Report(judged_by(_gpumem.recording(), rules), _gpumem._stopped())
    return Report(judged_by(_checked(recording), rules))


def processes_of(found: _gpumem.Recording | _gpumem.OtherFile) -> _gpumem.SessionProcesses:
    """Return the child processes of a session.

    Raises:
        GpuMemError: it is something else.
    """
    if isinstance(found, _gpumem.Recording):
        return found._processes()
    message = f"{found._kind} has no --processes"
    raise _gpumem.GpuMemError(message)


def below(notice: str | None, text: str, width: int = NOTEBOOK_WIDTH) -> str:
    """Return the text with the notice above it, if there is one."""
    return text if notice is None else f"{textwrap.fill(notice, width)}\n\n{text}"


def _ending(path: Path) -> str:
    lowered = path.name.lower()
    return ".trace.json" if lowered.endswith(".trace.json") else path.suffix.lower()


def _checked(recording: object) -> _gpumem.Recording:
    if isinstance(recording, _gpumem.Recording):
        return recording
    message = (
        f"a gpumem.types.Recording is needed, not {recording!r}\nhint: gpumem.load(path) reads one"
    )
    raise TypeError(message)


def _finding(entry: dict[str, Any]) -> Finding:
    holders = [{**holder, "device": entry["device"]} for holder in entry["holders"]]
    return read(Finding, {**entry, "details": details(entry["details"]), "holders": holders})


def _child_row(child: ChildProcess) -> tuple[str, ...]:
    return (
        child.name,
        str(child.pid),
        size(child.latest_bytes),
        size(child.peak_bytes),
        _kept(child.growth),
        child.ending.replace("_", " "),
    )


def _kept(growth: ProcessGrowth | None) -> str:
    if growth is None or growth.state not in {"leak", "suspected"}:
        return ""
    if growth.per == "span":
        return f"{size(growth.total_bytes)} so far"
    return f"{size(growth.bytes_per_step)} a {growth.per}"


def _shown(finding: Finding) -> tuple[str, ...]:
    kept = finding.bytes_per_run
    return (
        finding.severity,
        finding.title,
        finding.device or "not known",
        "" if kept is None else size(kept),
        ", ".join(holder.name for holder in finding.holders),
        "" if finding.fix is None else finding.fix.after,
    )
