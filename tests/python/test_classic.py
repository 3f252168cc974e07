"""The names of gpu-memory-profiler: the classic rules, and a profiler that disturbs nothing."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gpumem
import pytest
from gpumem import _gpumem, classic, sim
from gpumem.classic import (
    GPUMemoryProfiler,
    MemoryAnalyzer,
    MemoryPattern,
    MemorySnapshot,
    PerformanceInsight,
    ProfileResult,
)

from tests.support.programs import run_python

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
# The cases that stand here, and those of a folder that may be named beside them.
SAMPLE = sorted((ROOT / "tests/data/oracle").glob("*.json"))
MORE = (
    sorted(Path(os.environ["GPUMEM_ORACLE"]).glob("*.json"))
    if "GPUMEM_ORACLE" in os.environ
    else []
)
REPORT_KEYS = {
    "summary",
    "critical_issues",
    "high_impact_insights",
    "all_patterns",
    "all_insights",
    "recommendations",
    "optimization_score",
}


def snapshot(level: float, at: float = 0.0, reserved: float | None = None) -> MemorySnapshot:
    reserved = level if reserved is None else reserved
    return MemorySnapshot(at, level, reserved, level, reserved, level, 0, 0)


def call(  # noqa: PLR0913 (each test names the few that it is about)
    name: str = "step",
    *,
    before: Any = 0,
    after: Any = 0,
    seconds: Any = 0.1,
    at: Any = 0.0,
    allocated: Any = 0,
) -> ProfileResult:
    began, ended = snapshot(before, at), snapshot(after, at)
    return ProfileResult(name, seconds, began, ended, ended, allocated, 0, 0, 0)


def growing(n: int, each: int, name: str = "step") -> list[ProfileResult]:
    return [
        call(name, before=idx * each, after=(idx + 1) * each, at=float(idx), allocated=each)
        for idx in range(n)
    ]


# The reference answers.


def as_number(value: Any) -> Any:
    words = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    return words.get(value, value) if isinstance(value, str) else value


def as_record(cls: type, fields: dict[str, Any]) -> Any:
    texts = {"function_name", "operation", "stack_trace"}
    return cls(
        **{
            name: as_record(MemorySnapshot, value)
            if isinstance(value, dict)
            else value
            if name in texts
            else as_number(value)
            for name, value in fields.items()
        }
    )


def check_same(found: Any, expected: Any, path: str) -> None:
    """Compare as far as ``expected`` goes, in what a hash set ordered without its order."""
    expected = as_number(expected)
    if isinstance(expected, dict):
        for key, value in expected.items():
            check_same(found[key], value, f"{path}.{key}")
    elif isinstance(expected, list):
        if path.endswith(("affected_functions", "memory_intensive_functions")):
            found, expected = sorted(found), sorted(expected)
        assert len(found) == len(expected), path
        for idx, value in enumerate(expected):
            check_same(found[idx], value, f"{path}[{idx}]")
    elif isinstance(expected, float | int):
        assert found == pytest.approx(expected, rel=1e-9, abs=0, nan_ok=True), path
        assert isinstance(found, int) == isinstance(expected, int), path
    else:
        assert found == expected, path


def test_the_reference_answers_are_here() -> None:
    assert len(SAMPLE) == 6
    assert MORE or "GPUMEM_ORACLE" not in os.environ, "GPUMEM_ORACLE names a folder without cases"


@pytest.mark.parametrize("path", SAMPLE + MORE, ids=lambda path: path.stem)
@pytest.mark.parametrize("kind", ["records", "other objects"])
def test_the_reference_answers_are_given(path: Path, kind: str) -> None:
    case = json.loads(path.read_text())
    results = [as_record(ProfileResult, fields) for fields in case["input"]["results"]]
    if kind == "other objects":
        results = [
            SimpleNamespace(
                function_name=it.function_name,
                execution_time=it.execution_time,
                memory_allocated=it.memory_allocated,
                memory_before=SimpleNamespace(**it.memory_before.to_dict()),
                memory_after=SimpleNamespace(**it.memory_after.to_dict()),
                memory_peak=SimpleNamespace(**it.memory_peak.to_dict()),
            )
            for it in results
        ]
    analyzer = MemoryAnalyzer()
    report = analyzer.generate_optimization_report(results)
    patterns = [vars(it) for it in analyzer.analyze_memory_patterns(results)]
    insights = [vars(it) for it in analyzer.generate_performance_insights(results)]
    for expected in case["expected"].values():
        check_same(patterns, expected["patterns"], "patterns")
        if expected["insights"] is not None:
            check_same(insights, expected["insights"], "insights")
        if expected["report"] is not None:
            check_same(report, expected["report"], "report")
            assert set(report) == set(expected["report"])
        else:
            assert report["left_out"], "where it raised, we answer and say what is left out"
        assert analyzer.thresholds == expected["thresholds"]


# The records.


def test_a_record_takes_fields_by_name_or_place_and_keeps_them() -> None:
    named = MemorySnapshot(
        timestamp=1.5,
        allocated_memory=2,
        reserved_memory=3,
        max_memory_allocated=4,
        max_memory_reserved=5,
        active_memory=6,
        inactive_memory=7,
        cpu_memory=2**63,
    )
    assert named == MemorySnapshot(1.5, 2, 3, 4, 5, 6, 7, 2**63)
    assert list(named.to_dict().values()) == [1.5, 2, 3, 4, 5, 6, 7, 2**63, 0, None, None]
    named.operation = "mine"
    assert named != MemorySnapshot(1.5, 2, 3, 4, 5, 6, 7, 2**63)
    assert repr(named).startswith("MemorySnapshot(timestamp=1.5, allocated_memory=2, ")


def test_a_result_has_its_difference_and_peak() -> None:
    result = call(before=10, after=30)
    result.memory_after.allocated_memory = 7
    assert result.memory_diff() == -3
    assert result.peak_memory_usage() == 7
    assert result.to_dict()["memory_diff"] == -3
    assert result.to_dict()["memory_before"]["allocated_memory"] == 10
    assert result.call_count == 1
    for copied in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):  # noqa: S301 (ours)
        assert copied == result
    assert result != call(before=10, after=30)
    assert result != "result"


# The analyzer.


def test_a_leak_has_all_its_fields() -> None:
    (leak,) = MemoryAnalyzer().analyze_memory_patterns(growing(5, 300 * MIB))
    assert isinstance(leak, MemoryPattern)
    assert (leak.pattern_type, leak.severity) == ("memory_leak", "critical")
    assert leak.affected_functions == ["step"]
    assert leak.metrics == {
        "total_memory_growth": 1500 * MIB,
        "average_growth_per_call": 300.0 * MIB,
        "positive_growth_ratio": 1.0,
        "call_count": 5,
    }
    assert leak.suggestions


def test_a_trend_has_all_its_fields() -> None:
    insights = MemoryAnalyzer().generate_performance_insights(growing(6, 3 * MIB))
    (trend,) = [it for it in insights if it.category == "temporal"]
    assert isinstance(trend, PerformanceInsight)
    assert trend.impact == "high"
    assert trend.data["growth_rate"] == pytest.approx(3 * MIB)
    assert trend.recommendations


def test_functions_of_equal_cost_have_no_slow_one() -> None:
    results = [call(name) for name, n in [("a", 3), ("b", 5), ("c", 7)] for _ in range(n)]
    insights = MemoryAnalyzer().generate_performance_insights(results)
    assert [it for it in insights if it.category == "execution_time"] == []


def test_thresholds_can_be_set() -> None:
    results = growing(4, 50 * MIB)
    analyzer = MemoryAnalyzer()
    assert analyzer.analyze_memory_patterns(results)
    analyzer.thresholds["min_calls_for_analysis"] = 5
    assert analyzer.analyze_memory_patterns(results) == []
    analyzer.thresholds = {"memory_leak_ratio": 1.0}
    assert analyzer.analyze_memory_patterns(results) == []
    analyzer.thresholds.update(memory_leak_ratio=0.5)
    assert analyzer.analyze_memory_patterns(results)


def test_an_unknown_threshold_is_refused_with_the_known_ones() -> None:
    analyzer = MemoryAnalyzer()
    with pytest.raises(KeyError, match=r"memory_leek_ratio.*there are memory_leak_ratio, min"):
        analyzer.thresholds["memory_leek_ratio"] = 0.1
    with pytest.raises(KeyError, match="memory_leek_ratio"):
        analyzer.thresholds.update({"memory_leek_ratio": 0.1})
    with pytest.raises(TypeError, match="memory_leak_ratio must be a number, not 'much'"):
        analyzer.thresholds["memory_leak_ratio"] = "much"  # type: ignore[assignment]
    with pytest.raises(ValueError, match=r"'extreme': there are low, medium, high"):
        MemoryAnalyzer(collective_sensitivity="extreme")


def test_a_report_of_nothing_is_a_report() -> None:
    report = MemoryAnalyzer().generate_optimization_report()
    assert set(report) == REPORT_KEYS
    assert report["summary"] == {
        "total_functions_analyzed": 0,
        "total_function_calls": 0,
        "total_memory_allocated": 0,
        "total_execution_time": 0.0,
        "analysis_timestamp": None,
    }
    assert report["optimization_score"]["grade"] == "A"
    assert MemoryAnalyzer().analyze_memory_patterns([]) == []
    assert MemoryAnalyzer().generate_performance_insights(iter([call()])) == []


def test_what_changes_after_an_analysis_is_seen_by_the_next() -> None:
    analyzer, results = MemoryAnalyzer(), growing(4, 50 * MIB)

    def growth() -> list[Any]:
        patterns = analyzer.analyze_memory_patterns(results)
        return [it.metrics["total_memory_growth"] // MIB for it in patterns]

    assert growth() == growth() == [200]
    results[0].memory_before.allocated_memory = -100 * MIB
    assert growth() == [300]
    results.append(call(after=7 * MIB))
    assert growth() == [307]
    results[4] = results[3]
    assert growth() == [350]
    results[4].memory_after = snapshot(0)
    assert growth() == []
    results[:] = growing(3, 100 * MIB, "other")
    assert growth() == [300]
    results[2].function_name = "third"
    assert growth() == []


WILD = [math.nan, math.inf, -math.inf, -1, 2**63, -(2**63), 10**400, 1e308, None, "much", object()]


@pytest.mark.parametrize(
    "value", WILD, ids=lambda value: "an object" if type(value) is object else repr(value)
)
@pytest.mark.parametrize("field", ["before", "after", "seconds", "at", "allocated"])
def test_whatever_stands_in_a_result_is_answered(field: str, value: Any) -> None:
    odd = call("odd", **{field: value})
    results = [*growing(12, 50 * MIB), odd, odd, odd]
    report = MemoryAnalyzer().generate_optimization_report(results)
    assert report["summary"]["total_function_calls"] == 15
    leaks = [it for it in report["all_patterns"] if it["pattern_type"] == "memory_leak"]
    assert ["step"] in [it["affected_functions"] for it in leaks], "it hides no other function"
    is_usable = isinstance(value, int | float) and abs(value) < 10**60
    assert is_usable == ("left_out" not in report)
    json.dumps(report, allow_nan=False)


def test_times_that_are_zero_equal_or_out_of_order_are_answered() -> None:
    analyzer = MemoryAnalyzer()
    still = [call(before=idx, after=idx, seconds=0.0, at=5.0) for idx in range(12)]
    report = analyzer.generate_optimization_report(still)
    assert len(report["left_out"]) == 2
    assert any("time does not advance" in words for words in report["left_out"])
    results = growing(20, 30 * MIB)
    in_order = analyzer.generate_performance_insights(results)
    assert analyzer.generate_performance_insights(results[::-1])[-1] == in_order[-1]


def test_very_many_names_are_answered() -> None:
    level = snapshot(MIB)
    results = [
        ProfileResult(f"f{idx}", 0.1, level, level, level, 0, 0, 0, 0) for idx in range(200_000)
    ]
    report = MemoryAnalyzer().generate_optimization_report(results)
    assert report["summary"]["total_functions_analyzed"] == 200_000
    assert report["optimization_score"]["score"] == 100


def test_what_is_no_result_is_refused_by_its_place() -> None:
    with pytest.raises(TypeError, match=r"results\[1\] is no profile result: 'int' object has no"):
        MemoryAnalyzer().analyze_memory_patterns([call(), 7])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not iterable"):
        MemoryAnalyzer().analyze_memory_patterns(7)


def test_a_drifting_gap_is_found_by_either_spelling() -> None:
    plain = [
        {"timestamp": 10.0 + i, "allocated": 8, "reserved": 10, "device_used": 100 + 20 * i}
        for i in range(6)
    ]
    for event in plain:
        event["total"] = 1000
    telemetry = [
        SimpleNamespace(
            timestamp_ns=1_700_000_000_000_000_000 + i * 1_000_000_000,
            allocator_allocated_bytes=8,
            allocator_reserved_bytes=10,
            device_used_bytes=100 + 20 * i,
            device_total_bytes=1000,
        )
        for i in range(6)
    ]
    analyzer = MemoryAnalyzer()
    (gap,) = analyzer.analyze_memory_gaps(plain)
    assert (gap.classification, gap.severity) == ("persistent_drift", "critical")
    assert gap.evidence["slope_bytes_per_sec"] == pytest.approx(20)
    assert analyzer.analyze_memory_gaps(telemetry) == [gap]
    report = analyzer.generate_optimization_report([], events=plain)
    assert report["gap_analysis"] == [vars(gap)]
    assert report["collective_attribution"] == []
    assert "collectives" in report["left_out"][0]
    with pytest.raises(ValueError, match=r"events\[0\] has no reserved or allocator_reserved"):
        analyzer.analyze_memory_gaps([{"timestamp": 1, "allocated": 2, "device_used": 3}])


# The profiler.


@pytest.fixture
def profiler() -> GPUMemoryProfiler:
    _gpumem.use_sources(["auto"])
    sim.use()
    return GPUMemoryProfiler()


def test_a_call_is_measured_and_its_result_returned(profiler: GPUMemoryProfiler) -> None:
    kept = []

    def leak(n_mib: int, *, temporary: int) -> None:
        kept.append(sim.tensor(n_mib * MIB))
        sim.tensor(temporary * MIB)

    result = profiler.profile_function(leak, 20, temporary=100)
    assert profiler.results == [result]
    assert profiler.device == "sim:0"
    assert result.function_name == "leak"
    assert result.memory_allocated == result.memory_diff() == 20 * MIB
    assert result.memory_freed == 0
    assert result.peak_memory_usage() == 120 * MIB
    assert result.memory_peak.max_memory_allocated == 120 * MIB
    assert result.memory_after.device_id == 0
    assert result.memory_after.operation == "after_leak"
    assert result.memory_peak.stack_trace is None
    assert 0 < result.execution_time < 60


def test_the_users_peak_is_left_alone_and_bounds_ours(profiler: GPUMemoryProfiler) -> None:
    del_me = sim.tensor(500 * MIB)
    del del_me
    result = profiler.profile_function(lambda: sim.tensor(100 * MIB).detach())
    profiler.clear_results()
    assert sim.memory_stats()["peak_allocated_bytes"] == 500 * MIB
    assert result.memory_peak.allocated_memory == 0, "what is certain"
    assert result.memory_peak.max_memory_allocated == 500 * MIB, "what it cannot exceed"


def test_a_decorated_function_returns_what_it_returns(profiler: GPUMemoryProfiler) -> None:
    @profiler.profile_function
    def bare() -> int:
        return 1

    @profiler.profile_function()  # type: ignore[untyped-decorator]
    def called(number: int) -> int:
        return number

    assert (bare(), called(2)) == (1, 2)
    assert [result.function_name for result in profiler.results] == ["bare", "called"]
    assert bare.__name__ == "bare"


def test_a_function_without_arguments_is_called_not_decorated(profiler: GPUMemoryProfiler) -> None:
    def step() -> None:
        pass

    assert profiler.profile_function(step).function_name == "step"
    assert profiler.profile_function(lambda: None).function_name == "<lambda>"
    assert profiler.profile_function(SimpleNamespace).function_name == "SimpleNamespace"


def test_an_exception_goes_on_its_way_and_is_measured(profiler: GPUMemoryProfiler) -> None:
    kept = []

    def fail() -> None:
        kept.append(sim.tensor(MIB))
        raise LookupError("mine")

    profiler.collect_stack_traces = True
    with pytest.raises(LookupError, match="mine"):
        profiler.profile_function(fail)
    with pytest.raises(LookupError), profiler.profile_context("block"):
        fail()
    assert [result.memory_diff() for result in profiler.results] == [MIB, MIB]
    assert profiler.results[0].memory_peak.operation == "peak_fail_error"
    assert 'raise LookupError("mine")' in profiler.results[0].memory_peak.stack_trace


def test_blocks_nest(profiler: GPUMemoryProfiler) -> None:
    kept = []
    with profiler.profile_context("outer"):
        kept.append(sim.tensor(2 * MIB))
        with profiler.profile_context("inner"):
            kept.append(sim.tensor(3 * MIB))
    calls = [(it.function_name, it.memory_diff() // MIB) for it in profiler.results]
    assert calls == [("inner", 3), ("outer", 5)]


def test_stack_traces_show_the_users_frames() -> None:
    sim.use()
    profiler = GPUMemoryProfiler(collect_stack_traces=True)

    def suspected() -> None:
        pass

    trace = profiler.profile_function(suspected).memory_peak.stack_trace
    assert "profile_function(suspected)" in trace
    assert trace.endswith("in suspected\n")
    assert "profiler.py" not in trace


def test_monitoring_takes_snapshots_until_it_is_stopped(profiler: GPUMemoryProfiler) -> None:
    seen = threading.Event()

    class Snapshots(list[MemorySnapshot]):
        def append(self, snapshot: MemorySnapshot) -> None:
            super().append(snapshot)
            if len(self) == 3:
                seen.set()

    profiler.snapshots = Snapshots()
    with profiler:
        profiler.start_monitoring(0.001)
        profiler.start_monitoring(0.001)
        assert seen.wait(60)
        assert profiler.get_summary()["monitoring_active"]
    n = len(profiler.snapshots)
    assert profiler.get_summary()["monitoring_active"] is False
    assert not [it for it in threading.enumerate() if it.name == "gpumem-monitor"]
    assert {it.operation for it in profiler.snapshots} == {"monitor"}
    assert len(profiler.snapshots) == n
    with pytest.raises(ValueError, match="above 0, not 0"):
        profiler.start_monitoring(0)


def test_a_summary_adds_up(profiler: GPUMemoryProfiler) -> None:
    assert profiler.get_summary()["total_function_calls"] == 0
    kept = []
    for n_mib in (4, 6):
        profiler.profile_function(lambda n: kept.append(sim.tensor(n)), n_mib * MIB)
    kept.pop()
    summary = profiler.get_summary()
    assert summary["device"] == "sim:0"
    assert summary["total_memory_allocated"] == summary["net_memory_change"] == 10 * MIB
    assert summary["peak_memory_usage"] == 10 * MIB
    assert summary["memory_change_from_baseline"] == 4 * MIB
    assert summary["function_summaries"]["<lambda>"]["avg_memory_allocated"] == 5 * MIB
    profiler.clear_results()
    assert profiler.results == []
    assert profiler.get_summary()["memory_change_from_baseline"] == 0


def test_devices_are_named_as_people_name_them(profiler: GPUMemoryProfiler) -> None:
    assert profiler.device == GPUMemoryProfiler(0).device == GPUMemoryProfiler("sim:0").device
    assert GPUMemoryProfiler("cpu").device == "host"
    for absent in ("cuda:7", 3):
        with pytest.raises(gpumem.DeviceError, match=f"{absent}.* is read now: there are sim:0"):
            GPUMemoryProfiler(absent)


def test_host_memory_is_measured_if_requested() -> None:
    profiler = GPUMemoryProfiler("host", track_cpu_memory=False)
    result = profiler.profile_function(lambda: bytearray(64 * MIB))
    levels = result.memory_before, result.memory_peak, result.memory_after
    before, peak, after = (it.allocated_memory for it in levels)
    assert peak >= max(before, after) > MIB
    assert after == result.memory_after.reserved_memory
    assert result.memory_after.active_memory is None, "nobody knows"
    assert (result.memory_after.device_id, result.memory_after.cpu_memory) == (-1, 0)


def test_profiling_without_a_gpu_says_so_and_imports_nothing() -> None:
    code = """
import sys
import gpumem
profiler = gpumem.classic.GPUMemoryProfiler()
profiler.profile_function(sorted, [2, 1])
profiler.get_summary()
gpumem.classic.MemoryAnalyzer(profiler).generate_optimization_report()
print(profiler.device, [name for name in ("torch", "numpy", "scipy") if name in sys.modules])
"""
    done = run_python("-c", code)
    assert done.stdout == "host []\n"
    assert "no GPU is in use" in done.stderr


def test_tensors_of_torch_are_counted(
    profiler: GPUMemoryProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tensor:
        pass

    class Parameter(Tensor):
        pass

    torch, kept = ModuleType("torch"), []
    torch.Tensor = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    created = profiler.profile_function(lambda: kept.extend([Tensor(), Parameter()]))
    deleted = profiler.profile_function(kept.clear)
    assert (created.tensors_created, created.tensors_deleted) == (2, 0)
    assert (deleted.tensors_created, deleted.tensors_deleted) == (0, 2)
    profiler.track_tensors = False
    assert profiler.profile_function(lambda: kept.append(Tensor())).tensors_created == 0


# The names of `gpumemprof.__all__` in gpu-memory-profiler 0.2.3, and its version.
NAMES = [
    "CPUMemoryProfiler",
    "CPUMemoryTracker",
    "DeviceMemoryCollector",
    "DeviceMemorySample",
    "GPUMemoryProfiler",
    "GapFinding",
    "MemoryAnalyzer",
    "MemorySnapshot",
    "MemoryTracker",
    "MemoryVisualizer",
    "OOMExceptionClassification",
    "OOMFlightRecorder",
    "OOMFlightRecorderConfig",
    "ProfileResult",
    "TelemetryEventV2",
    "__version__",
    "build_device_memory_collector",
    "classify_oom_exception",
    "convert_bytes",
    "detect_torch_runtime_backend",
    "format_bytes",
    "get_gpu_info",
    "load_telemetry_events",
    "profile_context",
    "profile_function",
    "telemetry_event_from_record",
    "telemetry_event_to_dict",
    "validate_telemetry_record",
]


@pytest.mark.parametrize("name", NAMES)
def test_each_original_name_works_or_says_what_to_use(name: str) -> None:
    if name in classic.__all__:
        exec(f"from gpumem.classic import {name}")  # noqa: S102 (as people import it)
        return
    with pytest.raises(ImportError, match=f"gpumem.classic has no {name}\nhint: "):
        exec(f"from gpumem.classic import {name}")  # noqa: S102 (likewise)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(classic, "MemoryProfiller")


def test_functions_share_a_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    sim.use()
    monkeypatch.setattr("gpumem.classic.shared._shared", [])
    kept = []

    @classic.profile_function(name="keep")  # type: ignore[untyped-decorator]
    def step(n_mib: int) -> int:
        kept.append(sim.tensor(n_mib * MIB))
        return n_mib

    assert (step(2), step.__name__) == (2, "step")
    with classic.profile_context("block") as profiler:
        kept.append(sim.tensor(3 * MIB))
    assert profiler is classic.get_global_profiler()
    measured = [(it.function_name, it.memory_diff() // MIB) for it in profiler.results]
    assert measured == [("keep", 2), ("block", 3)]
    classic.set_global_profiler(own := GPUMemoryProfiler())
    step(1)
    assert [it.function_name for it in own.results] == ["keep"]


def test_bytes_are_written_and_converted_as_before() -> None:
    texts = [classic.format_bytes(n) for n in (0, 512, 1536, -5, 5 << 30)]
    assert texts == ["0 B", "512.00 B", "1.50 KB", "-5.00 B", "5.00 GB"]
    assert classic.convert_bytes(2, "GB", "MB") == 2048
    with pytest.raises(ValueError, match="unknown unit 'GiB': there are B, KB, MB, GB, TB"):
        classic.convert_bytes(1, "GiB", "B")
