"""`%%gpumem --trace`: on the simulated device, on a stand-in for torch, on real snapshots."""

from __future__ import annotations

import os
import pickle
import sys
import time
from itertools import groupby
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gpumem
import IPython
import pytest
from gpumem import sim

pytestmark = pytest.mark.ipython

MIB = 1 << 20
REAL_DATA = Path(os.environ.get("GPUMEM_REAL_DATA", Path(__file__).parents[3] / "shared/data"))
SNAPSHOTS = sorted((REAL_DATA / "pytorch_snapshots").glob("*.pickle"))


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


def test_bytes_are_told_by_the_line_that_allocated_them(device: Any) -> None:
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


def test_what_a_line_holds_through_most_of_the_run_is_told(device: Any) -> None:
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


class FakeTorch:
    """What `--trace` asks of torch, over an allocator that rounds nothing away."""

    def __init__(self) -> None:
        self.initialized = True
        self.enabled: str | None = None
        self.calls: list[tuple[Any, dict[str, Any]]] = []
        self.refuses = False
        self.breaks = False
        self.settings: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.blocks: dict[int, int] = {}
        self.ever = 0
        self.next = 1 << 32
        self.module = ModuleType("torch")
        self.module.cuda = SimpleNamespace(  # type: ignore[attr-defined]
            is_initialized=lambda: self.initialized,
            device_count=lambda: 1,
            get_device_properties=lambda _ordinal: SimpleNamespace(
                name="Tesla T4", uuid="3f1a8c55-0000-4b7e-9d21-000000000000", total_memory=16 << 30
            ),
            get_allocator_backend=lambda: "native",
            memory=SimpleNamespace(_record_memory_history=self.record, _snapshot=self.snapshot),
        )
        self.module._C = SimpleNamespace(  # type: ignore[attr-defined]
            _cuda_memoryStats=self.stats,
            _cuda_isHistoryEnabled=lambda: self.enabled is not None,
            _cuda_getDevice=lambda: 0,
            _cuda_hasPrimaryContext=lambda _ordinal: True,
        )

    def stats(self, _ordinal: int) -> dict[str, Any]:
        def pools(current: int, peak: int) -> dict[str, dict[str, int]]:
            figures = {"current": current, "peak": peak, "allocated": self.ever, "freed": 0}
            return {"all": figures, "small_pool": figures, "large_pool": figures}

        allocated = sum(self.blocks.values())
        # A peak from long before: torch's counter tells nothing of the run's.
        return {
            "allocated_bytes": pools(allocated, 8 << 30),
            "reserved_bytes": pools(8 << 30, 8 << 30),
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }

    def record(self, enabled: str | None = "all", **options: Any) -> None:
        self.calls.append((enabled, options))
        if self.refuses and enabled is not None:
            raise RuntimeError("cudaMallocAsync does not yet support recordHistory")
        self.enabled = enabled
        if enabled is None:
            self.events, self.annotations = [], []

    def snapshot(self) -> dict[str, Any]:
        if self.breaks and self.enabled:
            raise RuntimeError("the snapshot broke")
        segments = [
            {
                "device": 0,
                "address": address,
                "total_size": size,
                "allocated_size": size,
                "blocks": [{"address": address, "size": size, "state": "active_allocated"}],
            }
            for address, size in self.blocks.items()
        ]
        return {
            "segments": segments,
            "device_traces": [list(self.events)],
            "allocator_settings": self.settings,
            "external_annotations": list(self.annotations),
        }

    def allocate(self, n_bytes: int) -> int:
        address, self.next = self.next, self.next + (1 << 32)
        self.blocks[address] = n_bytes
        self.ever += n_bytes
        self.note("alloc", address, n_bytes)
        return address

    def free(self, address: int) -> None:
        size = self.blocks.pop(address)
        self.note("free_requested", address, size)
        self.note("free_completed", address, size)

    def note(self, action: str, address: int, size: int) -> None:
        if self.enabled is None:
            return
        frames = []
        frame = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            frames.append(
                {"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno}
            )
            frame = frame.f_back  # type: ignore[assignment]
        native = [
            {"name": "unwind", "filename": "??", "line": (1 << 64) - 1},
            {"name": "gather", "filename": "memory_snapshot.cpp", "line": 0},
            {"name": "at::empty()", "filename": "/torch/lib/libtorch", "line": 0},
        ]
        self.events.append(
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": 0,
                "time_us": time.time_ns() // 1000,
                "frames": [*native, *frames],
            }
        )

    def label(self, stage: str, name: str) -> None:
        if self.enabled is not None:
            at = time.time_ns() // 1000
            self.annotations.append({"stage": stage, "name": name, "device": 0, "time_us": at})


@pytest.fixture
def torch(shell: Any, monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake.module)
    shell.run("%gpumem use torch")
    shell.user_ns["torch"] = fake
    shell.user_ns["MIB"] = MIB
    return fake


CELL = """%%gpumem --trace
torch.free(torch.allocate(8 * MIB))
a = torch.allocate(64 * MIB)
b = torch.allocate(8 * MIB)
torch.free(a)"""
LINES = {2: (0, 0), 3: (0, 64), 4: (8, 8)}


def test_torch_records_for_the_run_and_not_after_it(shell: Any, torch: FakeTorch) -> None:
    old = torch.allocate(100 * MIB)
    shell.run(CELL)
    options = {"context": "alloc", "stacks": "python", "max_entries": 100_000}
    assert torch.calls == [("all", options), (None, {})]
    assert torch.enabled is None
    trace = last_trace()
    assert in_mib(trace) == LINES
    # Nothing of C++, and nothing of the kernel around the cell.
    stacks = [stack["frames"] for stack in trace["stacks"]]
    assert stacks == [["line 4"], ["line 3"], ["line 2"]]
    assert (trace["peak"]["from_before_bytes"], trace["is_cut"]) == (100 * MIB, False)
    # Of a large block that is gone nobody knows how much of its segment was not split off.
    row = last_row("cuda:0")
    assert (row["peak_bytes"], row["peak_high_bytes"]) == (172 * MIB, 173 * MIB)
    torch.free(old)


def test_a_block_of_before_that_is_freed_is_no_gain(shell: Any, torch: FakeTorch) -> None:
    shell.user_ns["old"] = torch.allocate(100 * MIB)
    torch.settings = {"expandable_segments": True}
    shell.run("%%gpumem --trace\na = torch.allocate(MIB)\ntorch.free(old)\nb = torch.allocate(MIB)")
    trace = last_trace()
    assert trace["total"]["retained_bytes"] == 2 * MIB
    assert trace["steps"]["allocated_bytes"][-1] == 2 * MIB
    row = last_row("cuda:0")
    assert (row["peak_bytes"], row["peak_exact"]) == (101 * MIB, True)


def test_settings_of_the_users_own_leave_the_peak_in_bounds(shell: Any, torch: FakeTorch) -> None:
    torch.settings = {"roundup_power2_divisions": {"1": 0, "256": 4}, "max_split_size": -1}
    shell.run(CELL)
    row = last_row("cuda:0")
    assert not row["peak_exact"]
    assert row["peak_bytes"] == 72 * MIB < row["peak_high_bytes"]


def test_what_the_user_records_is_read_and_left_alone(shell: Any, torch: FakeTorch) -> None:
    torch.record("all", max_entries=5)
    torch.calls.clear()
    early = torch.allocate(32 * MIB)
    torch.free(early)
    shell.run(CELL)
    assert torch.calls == []
    assert torch.enabled == "all"
    trace = last_trace()
    assert trace["total"]["n_allocations"] == 3
    assert in_mib(trace) == LINES
    assert not trace["is_cut"]


def test_a_users_history_that_lost_its_beginning_is_told_from_its_end(
    shell: Any, torch: FakeTorch
) -> None:
    torch.record("all")
    shell.run(CELL + "\ndel torch.events[:1]")
    trace = last_trace()
    assert trace["is_cut"]
    assert trace["steps"]["allocated_bytes"][-1] == 8 * MIB
    assert not last_row("cuda:0")["peak_exact"]
    assert "only its end is known" in gpumem.report().text()


def test_a_history_that_the_user_still_has_is_not_written_over(
    shell: Any, torch: FakeTorch
) -> None:
    torch.events.append({"action": "alloc", "addr": 1, "size": 1, "stream": 0, "frames": []})
    shell.run(CELL)
    assert torch.calls == []
    assert "! torch is not traced: it still holds a memory history" in shell.lines[-1]


def test_a_cell_that_records_by_itself_is_left_to_it(shell: Any, torch: FakeTorch) -> None:
    shell.run("%%gpumem --trace\ntorch.module.cuda.memory._record_memory_history('all')")
    assert torch.enabled == "all"
    assert "this cell sets its memory history itself" in shell.lines[-1]


def test_an_old_torch_and_one_that_refuses_are_told_apart(shell: Any, torch: FakeTorch) -> None:
    torch.refuses = True
    shell.run(CELL)
    assert "torch is not traced: RuntimeError: cudaMallocAsync does not yet" in shell.lines[-1]
    assert torch.enabled is None
    del torch.module._C._cuda_isHistoryEnabled
    shell.run(CELL)
    assert "2.1 and later do" in shell.lines[-1]


def test_a_snapshot_that_breaks_leaves_nothing_on(shell: Any, torch: FakeTorch) -> None:
    torch.breaks = True
    outcome = shell.run(CELL + "\nb")
    assert torch.enabled is None
    assert outcome.errors == ["None", "None"]
    assert "! the trace could not be read: RuntimeError: the snapshot broke" in shell.lines[-1]


def test_leaving_gpumem_in_a_traced_cell_leaves_nothing_on(shell: Any, torch: FakeTorch) -> None:
    shell.run(CELL + "\n%unload_ext gpumem")
    assert torch.enabled is None
    shell.run("%load_ext gpumem")
    shell.run(CELL + "\n%gpumem reset")
    assert torch.enabled is None


def test_torch_that_does_not_run_is_asked_for_nothing(shell: Any, torch: FakeTorch) -> None:
    torch.initialized = False
    shell.run("%%gpumem --trace\nx = 1")
    assert torch.calls == []
    assert "nothing to trace here" in shell.lines[-1]


def test_labels_become_runs_with_their_own_peaks(shell: Any, torch: FakeTorch) -> None:
    torch.settings = {"expandable_segments": True}
    shell.run(
        "%%gpumem --trace\n"
        "for _ in range(2):\n"
        "    torch.label('START', 'step')\n"
        "    torch.label('START', 'forward')\n"
        "    a = torch.allocate(64 * MIB)\n"
        "    torch.label('END', 'forward')\n"
        "    b = torch.allocate(8 * MIB)\n"
        "    torch.free(a)\n"
        "    torch.label('END', 'step')\n"
        "torch.label('START', 'unfinished')"
    )
    rows = [row for row in gpumem.report().runs if row["device"] == "cuda:0"]
    shown = [
        (row["label"], row["parent"], row["kept_bytes"] // MIB, row["peak_bytes"] // MIB)
        for row in rows
    ]
    assert shown == [
        (None, None, 16, 80),
        ("step", 0, 8, 72),
        ("forward", 1, 64, 64),
        ("step", 0, 8, 80),
        ("forward", 3, 64, 72),
    ]
    assert all(row["peak_exact"] for row in rows)


@pytest.mark.usefixtures("torch")
def test_a_label_in_a_block_is_nested_in_it(shell: Any) -> None:
    shell.run(
        "%%gpumem --trace\nimport gpumem\n"
        "with gpumem.record('block'):\n"
        "    torch.label('START', 'label')\n"
        "    a = torch.allocate(MIB)\n"
        "    torch.label('END', 'label')"
    )
    block = last_row("cuda:0", "block")
    assert last_row("cuda:0", "label")["parent"] == block["run"]


def test_modules_are_told_by_the_class_whose_forward_it_is(
    shell: Any, torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("torch.nn.modules.module")
    monkeypatch.setitem(sys.modules, "torch.nn.modules.module", module)
    shell.user_ns["module"] = module
    shell.run(
        "class Nosy(type):\n"
        "    def __getattribute__(cls, name):\n"
        "        raise AssertionError('code of the user ran: ' + name)\n"
        "class Module:\n    pass\n"
        "module.Module = Module"
    )
    shell.run(
        "class Linear(Module):\n"
        "    def forward(self):\n"
        "        return torch.allocate(8 * MIB)\n"
        "class Net(Module):\n"
        "    def forward(self):\n"
        "        torch.allocate(2 * MIB)\n"
        "        return Linear.forward(self)\n"
        "class Odd(Module, metaclass=Nosy):\n"
        "    def forward(self):\n"
        "        pass\n"
        "class Free:\n"
        "    def forward(self):\n"
        "        return torch.allocate(MIB)\n"
    )
    shell.run("%%gpumem --trace\nNet().forward()\nFree().forward()")
    assert not torch.enabled
    modules = {it["path"]: it["retained_bytes"] // MIB for it in last_trace()["modules"]}
    assert modules == {"Net › Linear": 8, "Net": 2}  # noqa: RUF001 (as people see a path)


def test_torchs_own_snapshot_is_saved(shell: Any, torch: FakeTorch, tmp_path: Path) -> None:
    file = tmp_path / "with space.pickle"
    shell.run(CELL.replace("--trace", f"--trace '{file}'"))
    assert torch.calls[0][1]["context"] == "all"
    snapshot = pickle.loads(file.read_bytes())  # noqa: S301 (written a line above)
    assert list(snapshot) == list(torch.snapshot())
    assert len(snapshot["device_traces"][0]) == 7


@pytest.mark.skipif(not SNAPSHOTS, reason=f"no real snapshots in {REAL_DATA}")
@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_real_snapshots_add_up(shell: Any, torch: FakeTorch, path: Path) -> None:
    real: dict[str, Any] = pickle.loads(path.read_bytes())  # noqa: S301 (what torch would hand over)
    stamped = [
        *(event for trace in real["device_traces"] for event in trace),
        *(real.get("external_annotations") or []),
    ]
    latest = max(event.get("time_us", 0) for event in stamped)

    def snapshot() -> dict[str, Any]:
        if torch.enabled is None:
            return {"segments": [], "device_traces": []}
        # It took its time then; here it all happens within the cell.
        now = time.time_ns() // 1000
        for event in stamped:
            if "time_us" in event:
                event["time_us"] = now - (latest - event["time_us"]) // 10_000
        return real

    torch.module.cuda.memory._snapshot = snapshot
    torch.module.cuda.is_initialized = lambda: True
    shell.user_ns["time"] = time
    shell.run("%%gpumem --trace\ntime.sleep(0.05)")
    trace = last_trace()
    segments = [segment for segment in real["segments"] if segment["device"] == 0]
    allocated = sum(segment["allocated_size"] for segment in segments)
    steps = trace["steps"]
    assert steps["allocated_bytes"][-1] == allocated
    assert steps["reserved_bytes"][-1] == sum(segment["total_size"] for segment in segments)
    assert (
        max(steps["allocated_bytes"]) == trace["peak"]["low_bytes"] <= trace["peak"]["high_bytes"]
    )
    assert trace["total"]["retained_bytes"] <= allocated
    n_allocations = sum(event["action"] == "alloc" for event in real["device_traces"][0])
    assert trace["total"]["n_allocations"] == n_allocations
    by_line = sum(line["retained_bytes"] for line in trace["lines"])
    assert by_line == trace["total"]["retained_bytes"]
    labels = {row["label"] for row in gpumem.report().runs if row["parent"] is not None}
    assert labels == {note["name"] for note in real.get("external_annotations") or []}
