"""Reasons for ``check`` to fail: findings, a peak above a limit, growth beyond a baseline."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem, compare
from gpumem.cli import terminal
from gpumem.types import Cell, Fix, Recording, Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpumem.types import Change, Finding

KINDS = {"leak": {"leak"}, "growing": {"leak", "growing"}, "oom": {"out_of_memory"}}
SURE = {"leak", "suspected", None}
DETAIL = " " * 11
FIX = "  fix      "
FINGERPRINT = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True)
class Limits:
    """What ``check`` does not accept."""

    fail_on: frozenset[str]
    """Of ``leak``, ``growing``, ``oom``."""
    peak_bytes: int | None = None
    against: Recording | None = None
    allow: frozenset[str] = frozenset()
    """Fingerprints of findings that do not fail."""


@dataclass
class Judged:
    """The results of one notebook."""

    violations: list[Violation] = field(default_factory=list)
    """The reasons to fail, worst first."""
    allowed: list[Violation] = field(default_factory=list)
    """Those that ``--allow`` names."""


@dataclass(frozen=True)
class Violation:
    """One reason to fail."""

    kind: str
    """``leak``, ``growing``, ``out_of_memory``, ``peak``, ``worse`` or ``new``."""
    cell: Cell | None
    device: str | None
    title: str
    detail: str
    holder: str | None = None
    """The name that holds the memory, and what it is."""
    fix: Fix | None = None
    fingerprint: str | None = None
    """The same in every session of the notebook."""
    is_new: bool | None = None
    """Whether neither the baseline nor an earlier session has it; None without any."""
    known_since: str | None = None
    """The day of the earliest that has it."""

    @property
    def place(self) -> str:
        """The cell as people know it, or the device."""
        if self.cell is None:
            return self.device or "the whole notebook"
        count = self.cell.execution_count
        return self.cell.label if count is None else f"In [{count}] {self.cell.label}"

    def lines(self) -> list[str]:
        """Return the title, the cell, the device, the holder and the fix."""
        shown = [f"{self.kind}: {self.title}", f"  in       {self.place}"]
        if self.cell is not None and self.device is not None:
            shown.append(f"  on       {self.device}")
        about = [it for it in self.detail.split(" · ") if self._is_news(it)]
        wrapped = textwrap.wrap(
            " · ".join(about), terminal.PLAIN_WIDTH - len(DETAIL), break_long_words=False
        )
        shown += [DETAIL + it for it in wrapped]
        if self.holder is not None:
            shown.append(f"  held by  {self.holder}")
        if self.fingerprint is not None:
            shown.append(f"  id       {self.fingerprint}{self._age()}")
        if self.fix is not None:
            before = (self.fix.before or "").splitlines()
            changed = [f"- {it}" for it in before] + [
                f"+ {it}" for it in self.fix.after.splitlines()
            ]
            shown += [(DETAIL if idx else FIX) + it for idx, it in enumerate(changed)]
        return [terminal.plain(text) for text in shown]

    def _age(self) -> str:
        if self.known_since is not None:
            return f" · known since {self.known_since}"
        return " · new" if self.is_new else ""

    def _is_news(self, words: str) -> bool:
        """Return whether it does not repeat the holder, which has a line of its own."""
        return self.holder is None or not words.startswith("held by ")

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON shows."""
        return asdict(self)


def judged(report: Report, limits: Limits) -> Judged:
    """Return every reason to fail, and what is allowed."""
    kinds = set().union(*(KINDS[name] for name in limits.fail_on))
    known = Judged()
    meant = {_where(it) for it in report.findings if it.withdrawn == "expected"}
    for finding in report.findings:
        if finding.kind in kinds and finding.withdrawn is None and finding.state in SURE:
            is_allowed = finding.fingerprint in limits.allow
            (known.allowed if is_allowed else known.violations).append(_of_finding(finding))
            meant |= {_where(finding)} if is_allowed else set()
    changes = _changes(report, limits.against, meant)
    known.violations += [*_peaks(report, limits.peak_bytes), *changes]
    return known


def dated(violation: Violation, earlier: Iterable[Report]) -> Violation:
    """Return it with the day since when it is known, from the reports of earlier sessions."""
    sessions = [(_day(it), {found.fingerprint for found in it.findings}) for it in earlier]
    if violation.fingerprint is None or not sessions:
        return violation
    days = [day for day, found in sessions if violation.fingerprint in found]
    return replace(violation, is_new=not days, known_since=min(days, default=None))


def _day(report: Report) -> str:
    nanos = int(json.loads(report.to_json())["wall_anchor_nanos"])
    return datetime.fromtimestamp(nanos / 1e9, tz=timezone.utc).date().isoformat()


def _where(it: Finding | Change) -> tuple[str | None, str | None, tuple[str, ...]]:
    return (it.cell.id if it.cell else None, it.device, tuple(it.path))


def _of_finding(finding: Finding) -> Violation:
    holder = finding.holders[0] if finding.holders else None
    return Violation(
        finding.kind,
        finding.cell,
        finding.device,
        finding.title,
        finding.detail,
        None if holder is None else f"{holder.name} · {holder.what}",
        finding.fix,
        finding.fingerprint,
    )


def _peaks(report: Report, limit: int | None) -> list[Violation]:
    """Return the highest run of each accelerator above the limit; of the host without one."""
    if limit is None:
        return []
    devices = json.loads(report.to_json())["devices"]
    judged = {it["label"] for it in devices if it["kind"] != "host"} or {"host"}
    highest: dict[str, dict[str, Any]] = {}
    for row in report.runs:
        peak = row["peak_bytes"]
        if row["device"] not in judged or peak is None or peak <= limit:
            continue
        if row["device"] not in highest or peak > highest[row["device"]]["peak_bytes"]:
            highest[row["device"]] = row
    return [_of_peak(row, limit) for row in highest.values()]


def _of_peak(row: dict[str, Any], limit: int) -> Violation:
    peak, most = _gpumem.bytes_text(row["peak_bytes"]), _gpumem.bytes_text(limit)
    cell = Cell(row["cell"]["id"], row["cell"]["label"], row["execution_count"])
    detail = f"{row['metric']} memory, at most {most} is accepted"
    return Violation("peak", cell, row["device"], f"peak of {peak}", detail)


def _changes(
    report: Report, baseline: Recording | None, meant: set[tuple[Any, ...]]
) -> list[Violation]:
    if baseline is None:
        return []
    changes = compare(report.recording, baseline).changes
    return [
        Violation(
            change.change,
            change.cell,
            change.device,
            f"{change.cell.label} grows {_gpumem.bytes_text(change.after.bytes_per_run)} "
            f"a {'step' if change.steps else 'run'}",
            "the baseline does not grow there"
            if change.before is None
            else f"{_gpumem.bytes_text(change.before.bytes_per_run)} in the baseline",
        )
        for change in changes
        if change.change in {"worse", "new"} and _where(change) not in meant
    ]
