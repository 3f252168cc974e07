"""`%%gpumem --trace` on the simulated device; `tests/cuda` has that of the real torch."""

from __future__ import annotations

import pickle
from itertools import groupby
from typing import TYPE_CHECKING, Any

import gpumem
import IPython
import pytest
from gpumem import sim

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ipython

MIB = 1 << 20


def last_trace() -> dict[str, Any]:
    """Of the latest cell, not of what is nested in it."""
    report = gpumem.report()
    outermost = {row["run"] for row in report.runs if row["parent"] is None}
    return [trace for trace in report.traces if trace["run"] in outermost][-1]


def last_row(device: str = "sim:0", label: str | None = None) -> dict[str, Any]:
    rows = [row for row in gpumem.report().runs if row["device"] == device]
    return [row for row in rows if row["label"] == label][-1]


def in_mib(trace: dict[str, Any]) -> dict[int | None, tuple[float, float]]:
    """By line: what it kept, and what it held at the peak."""
    return {
        line["line"]: (line["retained_bytes"] / MIB, line["at_peak_bytes"] / MIB)
        for line in trace["lines"]
    }


@pytest.fixture
def device(shell: Any) -> Any:
    """Return a shell that reads an empty simulated device."""
    sim.use(total_bytes=1 << 30)
    shell.run("%gpumem use sim")
    shell.run("from gpumem import sim\nimport gpumem\nkept = []\nMIB = 1 << 20")
    return shell


def test_bytes_are_listed_by_allocating_line(device: Any) -> None:
    device.run(
        "%%gpumem --trace\n"
        "def step():\n"
        "    kept.append(sim.tensor(4 * MIB))\n"
        "    return sim.tensor(64 * MIB)\n"
        "for _ in range(3):\n"
        "    step()\n"
        "kept.append(sim.tensor(2 * MIB))"
    )
    trace = last_trace()
    assert in_mib(trace) == {3: (12, 12), 4: (0, 64), 7: (2, 0)}
    assert trace["lines"][0]["text"] == "    kept.append(sim.tensor(4 * MIB))"
    assert trace["total"]["n_allocations"] == 7
    assert trace["peak"]["low_bytes"] == trace["peak"]["high_bytes"] == 76 * MIB
    assert trace["peak"]["from_before_bytes"] == 0
    assert last_row()["peak_bytes"] == 76 * MIB
    text = gpumem.report().text()
    assert "12 MiB     12 MiB     3      kept.append(sim.tensor(4 * MIB))" in text


def test_each_simulated_device_has_its_history(device: Any, tmp_path: Path) -> None:
    sim.use(total_bytes=1 << 30, n_devices=2)
    file = tmp_path / "run.pickle"
    device.run(f"%%gpumem --trace {file}\na = sim.tensor(MIB)\nb = sim.tensor(MIB * 2, device=1)")
    traces = gpumem.report().traces
    found = {trace["device"]: in_mib(trace) for trace in traces}
    assert found == {"sim:0": {2: (1, 1)}, "sim:1": {3: (2, 2)}}
    snapshot = pickle.loads(file.read_bytes())  # noqa: S301 (written above)
    assert [len(trace) > 0 for trace in snapshot["device_traces"]] == [True, True]
    assert [segment["device"] for segment in snapshot["segments"]] == [0, 1]


def test_a_spike_inside_a_warm_cache_has_its_exact_peak(device: Any) -> None:
    device.run("t = sim.tensor(300 * MIB)\ndel t")
    device.run("%%gpumem\nt = sim.tensor(200 * MIB)\ndel t")
    assert not last_row()["peak_exact"]
    device.run("%%gpumem --trace\nt = sim.tensor(200 * MIB)\ndel t")
    row = last_row()
    assert (row["peak_bytes"], row["peak_exact"]) == (200 * MIB, True)


def test_levels_are_exact_between_the_ends(device: Any) -> None:
    device.run("%%gpumem --trace\nfor n in range(1, 4):\n    t = sim.tensor(n * 32 * MIB)\ndel t")
    steps = last_trace()["steps"]
    levels = [level // MIB for level in steps["allocated_bytes"]]
    assert [level for level, _ in groupby(levels)] == [0, 32, 96, 64, 160, 96, 0]
    row = last_row()
    assert row["started_nanos"] == steps["at_nanos"][0]
    assert row["ended_nanos"] == steps["at_nanos"][-1]
    assert steps["at_nanos"] == sorted(steps["at_nanos"])


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%%gpumem --trace\n\n\nx = sim.tensor(MIB)", 4),
        ("\n\n%%gpumem --trace\nx = sim.tensor(MIB)", 4),
        ("%%capture\n%%gpumem --trace\nx = sim.tensor(MIB)", 3),
        ("%%gpumem --trace\nif True:\n    x = [sim.tensor(MIB)\n        for _ in range(1)]", 3),
        ("%%gpumem --trace\n!true\nx = sim.tensor(MIB)\n\n\n", 3),
    ],
)
def test_lines_are_those_of_the_cell_as_typed(device: Any, cell: str, line: int) -> None:
    device.run(cell)
    trace = last_trace()
    assert list(in_mib(trace)) == [line]
    assert "sim.tensor(MIB)" in trace["lines"][0]["text"]


def test_a_stack_reads_from_the_call_to_the_line(device: Any) -> None:
    device.run("def outer():\n    return inner()\ndef inner():\n    return sim.tensor(MIB)")
    device.run("%%gpumem --trace\nx = outer()")
    frames = last_trace()["stacks"][0]["frames"]
    assert frames[0].startswith("tensor, gpumem/sim.py:")
    # The shell's first cell was the fixture's import, after `%gpumem use sim`.
    assert frames[1:] == ["inner, In [3] line 4", "outer, In [3] line 2", "line 2"]


def test_the_finding_says_which_line_keeps_it(device: Any) -> None:
    for _ in range(9):
        device.run("%%gpumem\nx = sim.tensor(8 * MIB)\nkept.append(sim.tensor(4 * MIB))")
    cell = "%%gpumem --trace\nx = sim.tensor(8 * MIB)\nkept.append(sim.tensor(4 * MIB))"
    for _ in range(9):
        device.run(cell)
    finding = gpumem.report().findings[0]
    assert finding.kind == "growing"
    # x is alive at the end too, and larger; but the next run's takes its place.
    assert finding.detail.endswith(" · line 3 kept 4 MiB")
    [evidence] = [it for it in finding.evidence if it.name == "retained_bytes"]
    assert (evidence.value, evidence.holds) == (12 * MIB, True)
    assert "allocated in In [20], traced" in evidence.words


def test_a_line_holding_through_most_of_the_run_is_listed(device: Any) -> None:
    device.run(
        "%%gpumem --trace\nimport time\n"
        "h = sim.tensor(300 * MIB)\ntime.sleep(0.2)\nt = sim.tensor(MIB)\ndel h, t"
    )
    [finding] = gpumem.report().findings
    assert finding.kind == "long_lived_intermediates"
    assert finding.title.startswith("h = sim.tensor(300 * MIB) holds 300 MiB")


def test_blocks_in_a_traced_run_have_exact_peaks_too(device: Any) -> None:
    device.run("t = sim.tensor(500 * MIB)\ndel t")
    device.run(
        "%%gpumem --trace\n"
        "with gpumem.record('small'):\n    t = sim.tensor(10 * MIB)\n    del t\n"
        "with gpumem.record('large'):\n    t = sim.tensor(90 * MIB)\n    del t\n"
    )
    peaks = [last_row(label=name) for name in ("small", "large")]
    assert [(row["peak_bytes"] // MIB, row["peak_exact"]) for row in peaks] == [
        (10, True),
        (90, True),
    ]


def test_out_of_memory_is_traced_to_its_end_and_no_further(device: Any) -> None:
    device.run("%%gpumem --trace\nx = sim.tensor(900 * MIB)\ny = sim.tensor(200 * MIB)")
    assert last_row()["status"] == "out_of_memory"
    assert in_mib(last_trace()) == {2: (900, 900)}
    n_traces = len(gpumem.report().traces)
    device.run("%%gpumem\nx = None")
    assert len(gpumem.report().traces) == n_traces


def test_nobody_keeps_what_a_trace_has_seen(device: Any) -> None:
    device.run("import weakref\nclass Own:\n    pass\n")
    device.run(
        "%%gpumem --trace\n"
        "def f():\n    own = Own()\n    global ref\n    ref = weakref.ref(own)\n"
        "    return sim.tensor(MIB)\nx = f()"
    )
    assert device.user_ns["ref"]() is None


def test_where_no_source_is_kept_no_function_or_file_is_named(device: Any) -> None:
    device.run("%config GpuMem.source_text = 'hash'")
    device.run("%%gpumem --trace\nkept.append(sim.tensor(MIB))")
    device.run("%config GpuMem.source_text = 'full'")
    trace = last_trace()
    assert (trace["stacks"], trace["modules"]) == ([], [])
    assert [(line["line"], line["text"]) for line in trace["lines"]] == [(2, None)]


def test_traces_are_kept_in_a_file(device: Any, tmp_path: Path) -> None:
    device.run("%%gpumem --trace\nx = sim.tensor(MIB)")
    gpumem.recording().save(tmp_path / "session.gpumem")
    loaded = gpumem.load(tmp_path / "session.gpumem")
    assert gpumem.report(loaded).traces == gpumem.report().traces


def test_a_snapshot_of_the_simulated_device_is_in_torchs_shape(device: Any, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.pickle"
    device.run(f"%%gpumem --trace {file}\nx = sim.tensor(MIB)\ny = sim.tensor(MIB)\ndel y")
    assert device.lines[-1].endswith(f"! wrote {file}: open it at pytorch.org/memory_viz")
    snapshot = pickle.loads(file.read_bytes())  # noqa: S301 (written a line above)
    actions = [event["action"] for event in snapshot["device_traces"][0]]
    assert actions == ["segment_alloc", "alloc", "alloc", "free_requested", "free_completed"]
    assert snapshot["device_traces"][0][1]["frames"][1]["line"] == 2
    assert [segment["allocated_size"] for segment in snapshot["segments"]] == [MIB]


def test_a_file_that_cannot_be_is_refused_before_the_cell_runs(device: Any, tmp_path: Path) -> None:
    outcome = device.run(f"%%gpumem --trace {tmp_path}/none/file\nkept.append(1)")
    assert f"--trace: there is no folder for '{tmp_path}/none/file'" in outcome.stderr
    assert device.user_ns["kept"] == []


def test_what_has_no_history_says_so(device: Any) -> None:
    device.run("%%gpumem --trace --device host\nx = 1")
    assert "! nothing to trace here: " in device.lines[-1]
    assert "host memory has none" in device.lines[-1]
    assert gpumem.report().traces == []


@pytest.mark.skipif(IPython.version_info < (8,), reason="IPython 7 has no such function")
def test_a_trace_that_cannot_be_read_costs_a_note(device: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(device.compile, "format_code_name", lambda _file: 1 / 0)
    outcome = device.run("%%gpumem --trace\nx = sim.tensor(MIB)\nx.nbytes")
    monkeypatch.undo()
    assert outcome.result == str(MIB)
    assert "! the trace could not be read: ZeroDivisionError" in device.lines[-1]
    device.run("%%gpumem --trace\nx = sim.tensor(MIB)")
    assert in_mib(last_trace()) == {2: (1, 1)}
