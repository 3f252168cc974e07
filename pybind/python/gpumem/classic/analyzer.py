"""Patterns, insights and reports by the classic rules."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpumem._gpumem import ProfileResult
    from gpumem.classic.profiler import GPUMemoryProfiler

_SENSITIVITIES = ("low", "medium", "high")
_SECONDS_A_NANO = 1e-9


@dataclass
class MemoryPattern:
    """A pattern of calls."""

    pattern_type: str
    """``memory_leak``, ``fragmentation``, ``inefficient_allocation``,
    ``memory_spikes`` or ``repeated_allocations``."""
    description: str
    severity: str
    """``critical``, ``warning`` or ``info``."""
    affected_functions: list[str]
    metrics: dict[str, Any]
    suggestions: list[str]


@dataclass
class PerformanceInsight:
    """A statement about the times and sizes of the calls."""

    category: str
    """``execution_time``, ``memory_efficiency``, ``correlation`` or ``temporal``."""
    title: str
    description: str
    impact: str
    """``high`` or ``medium``."""
    confidence: float
    """From 0 to 1."""
    data: dict[str, Any]
    recommendations: list[str]


@dataclass
class GapFinding:
    """A trend of the gap between device-used and allocator-reserved memory."""

    classification: str
    """``transient_spike``, ``persistent_drift`` or ``fragmentation_like``."""
    severity: str
    confidence: float
    """From 0 to 1."""
    evidence: dict[str, Any]
    description: str
    remediation: list[str]


class _Thresholds(dict[str, float]):
    """Thresholds by name; setting an unknown name raises an error."""

    _known = _gpumem.classic_thresholds()

    def __init__(self, thresholds: Mapping[str, float]) -> None:
        super().__init__()
        self.update(thresholds)

    def __setitem__(self, name: str, value: Any) -> None:  # noqa: ANN401 (it is looked at)
        if name not in self._known:
            message = f"unknown threshold {name!r}: there are {', '.join(self._known)}"
            raise KeyError(message)
        is_number = isinstance(value, Real)
        if not is_number:
            message = f"threshold {name} must be a number, not {value!r}"
            raise TypeError(message)
        super().__setitem__(name, value if isinstance(value, int) else float(value))

    def update(self, *others: Mapping[str, float], **named: float) -> None:  # type: ignore[override]
        for name, value in dict(*others, **named).items():
            self[name] = value


class MemoryAnalyzer:
    """Judges profile results by the classic rules.

    ``collective_sensitivity`` is one of ``low``, ``medium``, ``high``. It and its
    overrides are accepted but have no effect, because gpumem does not attribute the
    memory of collectives.
    """

    def __init__(
        self,
        profiler: GPUMemoryProfiler | None = None,
        collective_sensitivity: str = "medium",
        collective_threshold_overrides: Mapping[str, Any] | None = None,
    ) -> None:
        """Judge the results of ``profiler`` by default."""
        if collective_sensitivity not in _SENSITIVITIES:
            message = (
                f"unknown collective_sensitivity {collective_sensitivity!r}: "
                f"there are {', '.join(_SENSITIVITIES)}"
            )
            raise ValueError(message)
        self.profiler = profiler
        self.collective_sensitivity = collective_sensitivity
        self.collective_threshold_overrides = dict(collective_threshold_overrides or {})
        self.left_out: list[str] = []
        """What the last analysis could not judge, one sentence each."""
        defaults = _gpumem.classic_thresholds()
        defaults["min_calls_for_analysis"] = int(defaults["min_calls_for_analysis"])
        self._thresholds = _Thresholds(defaults)
        self._judge = _gpumem.Judge()

    @property
    def thresholds(self) -> dict[str, float]:
        """The rules' thresholds by name; you can change them."""
        return self._thresholds

    @thresholds.setter
    def thresholds(self, thresholds: Mapping[str, float]) -> None:
        self._thresholds = _Thresholds(thresholds)

    def analyze_memory_patterns(
        self, results: Iterable[ProfileResult] | None = None
    ) -> list[MemoryPattern]:
        """Return the patterns of ``results``, by default of everything profiled."""
        patterns, self.left_out = self._judge.patterns(self._chosen(results), self._thresholds)
        return [MemoryPattern(**pattern) for pattern in patterns]

    def generate_performance_insights(
        self, results: Iterable[ProfileResult] | None = None
    ) -> list[PerformanceInsight]:
        """Return the insights into ``results``, by default into everything profiled."""
        insights, self.left_out = self._judge.insights(self._chosen(results), self._thresholds)
        return [PerformanceInsight(**insight) for insight in insights]

    def analyze_memory_gaps(self, events: Iterable[Any]) -> list[GapFinding]:
        """Return findings on the gap between device and allocator, worst first.

        Each event is a mapping or an object with ``timestamp`` (seconds) or
        ``timestamp_ns``, and in bytes ``allocated``, ``reserved``, ``device_used``
        and ``total``, or telemetry's names for them
        (``allocator_allocated_bytes``, ``device_total_bytes``, ...). Events without a
        total are skipped.
        """
        samples = _gap_samples(events)
        gaps = _gpumem.classic_gaps(samples, self._thresholds)
        return [GapFinding(**gap) for gap in gaps]

    def generate_optimization_report(
        self,
        results: Iterable[ProfileResult] | None = None,
        events: Iterable[Any] | None = None,
    ) -> dict[str, Any]:
        """Return patterns, insights, recommendations and a score.

        With ``events``, ``gap_analysis`` contains the findings of
        :meth:`analyze_memory_gaps`, and ``collective_attribution`` is empty, because
        gpumem does not attribute the memory of collectives. ``left_out`` lists what could
        not be judged; it is absent if everything could.
        """
        report = self._judge.report(self._chosen(results), self._thresholds)
        left_out = report.pop("left_out", [])
        if events is not None:
            report["gap_analysis"] = [asdict(gap) for gap in self.analyze_memory_gaps(events)]
            report["collective_attribution"] = []
            left_out.append("collectives: their memory is not attributed")
        if left_out:
            report["left_out"] = left_out
        self.left_out = left_out
        return report

    def _chosen(self, results: Iterable[ProfileResult] | None) -> Iterable[ProfileResult]:
        if results is not None:
            return results
        return [] if self.profiler is None else self.profiler.results


def _gap_samples(events: Iterable[Any]) -> list[tuple[float, float, float, float, float | None]]:
    """Return time, allocated, reserved, device used and size of each event."""
    samples: list[tuple[float, float, float, float, float | None]] = []
    start: int | None = None
    for idx, event in enumerate(events):
        read = functools.partial(_read, idx, event)
        nanos = _get(event, "timestamp_ns")
        if nanos is None:
            at = float(read("timestamp"))
        else:
            # As a float, nanoseconds since 1970 lose their last digits.
            start = nanos if start is None else start
            at = (nanos - start) * _SECONDS_A_NANO
        total = _get(event, "total", "device_total_bytes")
        samples.append(
            (
                at,
                float(read("allocated", "allocator_allocated_bytes")),
                float(read("reserved", "allocator_reserved_bytes")),
                float(read("device_used", "device_used_bytes")),
                None if total is None else float(total),
            )
        )
    return samples


def _read(idx: int, event: object, *names: str) -> Any:  # noqa: ANN401 (whatever the event holds)
    value = _get(event, *names)
    if value is None:
        message = f"events[{idx}] has no {' or '.join(names)}"
        raise ValueError(message)
    return value


def _get(event: object, *names: str) -> Any:  # noqa: ANN401 (whatever the event holds)
    """Return the value of the first of these names that exists."""
    for name in names:
        value = event.get(name) if isinstance(event, Mapping) else getattr(event, name, None)
        if value is not None:
            return value
    return None
