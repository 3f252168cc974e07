"""Where levels come from, as `%gpumem status`, `%gpumem use` and the report show it."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import textwrap
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem, sim

from tests.support.programs import output_of, run_python
from tests.support.reports import last_row, state

if TYPE_CHECKING:
    from tests.python.conftest import Shell

MIB = 1 << 20
UUID = "3f1a8c55-0000-4b7e-9d21-00000000000{}"


class FakeTorch:
    """What is read of torch, on two devices, in the shapes in which torch gives it."""

    source, device = "torch", "cuda:0"

    def __init__(self) -> None:
        self.started = False
        self.backend = "native"
        self.allocated = [0, 0]
        self.peak = [0, 0]
        self.failure: BaseException | None = None
        self.n_device_lists = 0
        self.reserved_peak = 0
        self.ever = 0
        self.current = 0
        self.contexts = {0, 1}
        self.fractions = [1.0, 1.0]
        self.module = ModuleType("torch")
        self.module.cuda = SimpleNamespace(  # type: ignore[attr-defined]
            is_initialized=lambda: self.started,
            device_count=self.device_count,
            get_device_properties=lambda ordinal: SimpleNamespace(
                name="Tesla T4", uuid=UUID.format(ordinal), total_memory=16 << 30
            ),
            reset_peak_memory_stats=self.reset_peak,
            get_allocator_backend=lambda: self.backend,
        )
        self.module._C = SimpleNamespace(  # type: ignore[attr-defined]
            _cuda_memoryStats=self.nested,
            _cuda_getMemoryFraction=self.fraction,
            _cuda_getDevice=lambda: self.current,
            _cuda_hasPrimaryContext=lambda ordinal: ordinal in self.contexts,
        )

    def modules(self) -> dict[str, ModuleType]:
        return {"torch": self.module}

    def device_count(self) -> int:
        assert self.started, "asking for the devices would start CUDA"
        self.n_device_lists += 1
        return 2

    def fraction(self, ordinal: int) -> float:
        assert ordinal == self.current, "asking for it would make the device current"
        assert ordinal in self.contexts, "asking for it would make a context"
        return self.fractions[ordinal]

    def nested(self, ordinal: int) -> dict[str, Any]:
        if self.failure is not None:
            raise self.failure
        assert self.backend != "pluggable", "torch refuses to answer"
        is_asked_of_driver = self.backend == "cudaMallocAsync"
        assert not is_asked_of_driver or ordinal in self.contexts, "asking would make a context"
        reserved = -(-self.allocated[ordinal] // (20 * MIB)) * 20 * MIB
        native = self.backend == "native"

        def pools(current: int, peak: int) -> dict[str, dict[str, int]]:
            ever = self.ever * native
            figures = {"current": current, "peak": peak, "allocated": ever, "freed": 0}
            return {"all": figures, "small_pool": figures, "large_pool": figures}

        return {
            "allocated_bytes": pools(self.allocated[ordinal], self.peak[ordinal]),
            "reserved_bytes": pools(reserved, max(reserved, self.reserved_peak)),
            "active_bytes": pools(self.allocated[ordinal] * native, 0),
            "inactive_split_bytes": pools(0, 0),
            "requested_bytes": pools(self.allocated[ordinal] * native, 0),
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }

    def flat(self, ordinal: int) -> dict[str, Any]:
        """`torch.cuda.memory_stats`, which is there where the private one is not."""
        flat: dict[str, Any] = {}
        for name, value in self.nested(ordinal).items():
            if isinstance(value, int):
                flat[name] = value
                continue
            for pool, figures in value.items():
                for which, figure in figures.items():
                    flat[f"{name}.{pool}.{which}"] = figure
        return flat

    def reset_peak(self, ordinal: int) -> None:
        self.peak[ordinal] = self.allocated[ordinal]
        self.reserved_peak = 0

    def allocate(self, n_bytes: int, ordinal: int = 0) -> None:
        self.allocated[ordinal] += n_bytes
        self.ever += max(n_bytes, 0)
        self.peak[ordinal] = max(self.peak[ordinal], self.allocated[ordinal])


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake.module)
    return fake


def test_the_host_is_always_read(shell: Any) -> None:
    _gpumem.use_sources(["torch"])
    assert state("host") == (True, "reads host")
    shell.run("%%gpumem\nkept = b'x' * (64 << 20)")
    row = last_row("host")
    grown = row["process_used_after_bytes"] - row["process_used_before_bytes"]
    assert 60 * MIB < grown < 80 * MIB
    assert row["process_used_after_bytes"] < row["device_used_after_bytes"] < row["capacity_bytes"]


class Mallinfo2(ctypes.Structure):
    """The fields of glibc's `mallinfo2` that are read here."""

    _fields_ = (
        ("others", ctypes.c_size_t * 8),
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    )


needs_mallinfo2 = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="malloc does not tell what it holds free",
)


HOST_ALONE = """
import json, os, sys
import gpumem
from tests.support.shell import open_shell

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

shell = open_shell()
printed = []
for cell in json.loads(sys.argv[1]):
    before = resident()
    result = shell.run_cell("%%gpumem --quiet\\n" + cell)
    result.raise_error()
    grown = resident() - before
    row = [row for row in gpumem.report().runs if row["device"] == "host"][-1]
    after = row["process_used_after_bytes"]
    printed.append([after - row["process_used_before_bytes"], grown, after])
print(json.dumps(printed))
"""


def last_on_host(*cells: str) -> tuple[int, int, int]:
    """Run cells afresh: what the last one kept, how much more is resident, the level."""
    printed = output_of("-c", HOST_ALONE, json.dumps(cells))
    kept, grown, after = json.loads(printed.splitlines()[-1])[-1]
    return kept, grown, after


@needs_mallinfo2
def test_the_host_agrees_with_the_kernel_and_with_malloc(shell: Any) -> None:
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo2
    shell.run("%%gpumem\npass")
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    anonymous = next(line for line in status.splitlines() if line.startswith("RssAnon:"))
    expected = (int(anonymous.split()[1]) << 10) - mallinfo2().fordblks
    assert abs(last_row("host")["process_used_after_bytes"] - expected) < 8 * MIB


# A small block above them keeps the heap from being cut at its end.
GIVEN_BACK = """
blocks = [bytearray(100_000) for _ in range(1000)]
above = bytearray(100_000)
del blocks
"""


@needs_mallinfo2
def test_what_malloc_holds_free_is_not_kept() -> None:
    kept, grown, _ = last_on_host(GIVEN_BACK)
    assert grown > 90 * MIB
    assert abs(kept) < 4 * MIB


@needs_mallinfo2
def test_what_is_taken_from_free_blocks_is_kept() -> None:
    again = "again = [bytearray(100_000) for _ in range(800)]"
    kept, grown, _ = last_on_host(GIVEN_BACK, again)
    assert grown < 10 * MIB
    assert 74 * MIB < kept < 82 * MIB


@needs_mallinfo2
def test_a_trimmed_heap_keeps_what_is_in_use() -> None:
    holes = "many = [bytearray(100_000) for _ in range(2000)]\ndel many[::2]"
    trimmed = "import ctypes\nctypes.CDLL(None).malloc_trim(0)"
    _, grown, after = last_on_host(holes, trimmed)
    assert grown < -80 * MIB
    assert after > 95 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all resident memory counts")
def test_pages_of_a_file_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(64 * MIB))
    kept, grown, _ = last_on_host(f"""
import mmap
with open({str(path)!r}, "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(mapped[at] for at in range(0, len(mapped), 4096))
""")
    assert grown > 60 * MIB
    assert abs(kept) < 4 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all resident memory counts")
def test_gpumems_own_memory_is_not_kept(shell: Any, tmp_path: Path) -> None:
    for n in range(20):
        shell.run(f"%%gpumem --quiet\n# {n} {'x' * 50_000}")
    path = tmp_path / "many.gpumem"
    gpumem.recording().save(path)
    load = f"import gpumem\nrecordings = [gpumem.load({str(path)!r}) for _ in range(40)]"
    kept, grown, _ = last_on_host(load)
    assert grown > 30 * MIB
    assert abs(kept) < 4 * MIB


def test_a_choice_leaves_the_others_out_until_auto() -> None:
    sim.use()
    _gpumem.use_sources(["torch"])
    used, reason = state("sim")
    assert not used
    assert "left out by `%gpumem use`" in reason
    assert _gpumem.device_labels() == ["host"]
    _gpumem.use_sources(["auto"])
    assert state("sim") == (True, "reads sim:0")
    assert _gpumem.device_labels() == ["sim:0", "host"]


def test_choosing_sim_makes_its_device() -> None:
    script = """
        from gpumem import _gpumem
        assert ("sim", False) in [state[:2] for state in _gpumem.source_states()]
        _gpumem.use_sources(["sim"])
        assert _gpumem.device_labels() == ["sim:0", "host"]
    """
    assert printed(script) == ""


def test_sim_is_read_as_a_driver_and_as_an_allocator(shell: Any) -> None:
    sim.use(total_bytes=1 << 30)
    shell.run(
        "%%gpumem\nfrom gpumem import sim\n"
        "kept = sim.tensor(3 << 20)\ngone = sim.tensor(64 << 20)\ndel gone"
    )
    row = last_row("sim:0")
    assert (row["allocated_before_bytes"], row["allocated_after_bytes"]) == (0, 3 * MIB)
    assert row["peak_bytes"] == 67 * MIB
    assert row["peak_exact"]
    stats = sim.memory_stats()
    assert row["reserved_after_bytes"] == row["device_used_after_bytes"] == stats["reserved_bytes"]
    assert row["capacity_bytes"] == 1 << 30


def test_a_new_sim_device_starts_from_nothing(shell: Any) -> None:
    sim.use(total_bytes=1 << 30)
    shell.run("%%gpumem\nfrom gpumem import sim\nkept = sim.tensor(3 << 20)")
    shell.run("%%gpumem\nsim.use(total_bytes=2 << 30)")
    row = last_row("sim:0")
    assert (row["device_used_before_bytes"], row["device_used_after_bytes"]) == (20 * MIB, 0)
    assert row["capacity_bytes"] == 2 << 30


def test_torch_is_read_only_once_cuda_runs(torch: FakeTorch) -> None:
    assert state("torch") == (False, "imported, but CUDA is not initialised yet")
    torch.started = True
    assert state("torch") == (True, "reads cuda:0, cuda:1")
    _gpumem.use_sources(["torch"])
    for _ in range(3):
        assert _gpumem.device_labels() == ["cuda:0", "cuda:1", "host"]
    assert torch.n_device_lists == 1


def test_a_counter_that_is_never_moved_bounds_no_peak(shell: Any, torch: FakeTorch) -> None:
    torch.started = True
    torch.backend = "cudaMallocAsync"
    torch.allocate(64 * MIB)
    torch.allocate(-64 * MIB)
    shell.user_ns["torch"] = torch
    shell.run("%%gpumem\ntorch.allocate(8 << 20)\ntorch.allocate(-(8 << 20))")
    row = last_row("cuda:0")
    assert (row["peak_bytes"], row["peak_high_bytes"]) == (0, 64 * MIB)
    assert not row["peak_exact"]


def test_a_device_without_a_context_is_not_read(shell: Any, torch: FakeTorch) -> None:
    torch.started = True
    torch.backend = "cudaMallocAsync"
    torch.contexts = {0}
    shell.run("%%gpumem\npass")
    assert last_row("cuda:0")["allocated_after_bytes"] == 0
    assert last_row("cuda:1")["allocated_after_bytes"] is None


def test_a_plugged_in_allocator_is_unknown_with_its_reason(shell: Any, torch: FakeTorch) -> None:
    torch.started = True
    torch.backend = "pluggable"
    shell.run("%%gpumem\npass")
    assert last_row("cuda:0")["allocated_after_bytes"] is None
    assert "failed" not in gpumem.report().text()
    why = "torch runs on an allocator that was plugged in, and counts nothing itself"
    assert state("torch") == (
        True,
        f"reads cuda:0, cuda:1; allocated of cuda:0, cuda:1 unknown: {why}",
    )


def test_a_fraction_of_the_device_is_its_capacity(shell: Any, torch: FakeTorch) -> None:
    torch.started = True
    torch.fractions = [0.25, 0.5]
    shell.run("%%gpumem\npass")
    assert last_row("cuda:0")["capacity_bytes"] == 4 << 30
    assert "0 B of 4 GiB used (torch's limit)" in gpumem.report().text()
    # Nobody can tell while it is not current; once known it is remembered.
    assert last_row("cuda:1")["capacity_bytes"] is None
    torch.current = 1
    shell.run("%%gpumem\npass")
    assert last_row("cuda:0")["capacity_bytes"] == 4 << 30
    assert last_row("cuda:1")["capacity_bytes"] == 8 << 30


def test_rocm_is_recognised_by_the_device_name(torch: FakeTorch) -> None:
    torch.started = True
    torch.module.version = SimpleNamespace(hip="6.4.2")  # type: ignore[attr-defined]
    assert "cuda:0  Tesla T4 (ROCm 6.4.2)" in _gpumem.levels_text()


@pytest.mark.parametrize("backend", ["xpu", "npu"])
def test_torch_s_other_backends_are_read_alike(shell: Any, torch: FakeTorch, backend: str) -> None:
    """`npu` is one that an extension registers; it has the public function alone."""
    other = FakeTorch()
    other.module.cuda.memory_stats = other.flat
    setattr(torch.module, backend, other.module.cuda)
    torch.module._C._get_privateuse1_backend_name = lambda: "npu"
    assert state("torch") == (False, "imported, but CUDA is not initialised yet")
    other.started = True
    other.allocate(8 * MIB, 1)
    shell.run("%%gpumem\npass")
    assert last_row(f"{backend}:1")["allocated_after_bytes"] == 8 * MIB


def test_metal_is_read_once_it_is_in_use(shell: Any, torch: FakeTorch) -> None:
    is_available = lru_cache(lambda: True)
    torch.module.backends = SimpleNamespace(  # type: ignore[attr-defined]
        mps=SimpleNamespace(is_available=is_available)
    )
    torch.module.mps = SimpleNamespace(  # type: ignore[attr-defined]
        current_allocated_memory=lambda: 3 * MIB,
        driver_allocated_memory=lambda: 8 * MIB,
        recommended_max_memory=lambda: 10 << 30,
    )
    shell.run("%%gpumem\npass")
    assert is_available.cache_info().currsize == 0
    is_available()
    shell.run("%%gpumem\npass")
    row = last_row("mps:0")
    assert (row["allocated_after_bytes"], row["reserved_after_bytes"]) == (3 * MIB, 8 * MIB)
    assert row["capacity_bytes"] == 10 << 30


def test_a_hidden_reset_shows_in_the_other_peaks(shell: Any, torch: FakeTorch) -> None:
    torch.started = True
    torch.allocate(8 * MIB)
    torch.reserved_peak = 400 * MIB
    shell.user_ns["torch"] = torch
    # Its true peak, 100 MiB, is hidden: the counter rises again above the old one.
    shell.run(
        "%%gpumem\ntorch.allocate(92 << 20)\ntorch.allocate(-(92 << 20))\n"
        "torch.reset_peak(0)\ntorch.allocate(30 << 20)"
    )
    row = last_row("cuda:0")
    assert (row["peak_bytes"], row["peak_exact"]) == (38 * MIB, False)
    assert row["peak_high_bytes"] is None or row["peak_high_bytes"] >= 100 * MIB


def test_a_peak_that_cannot_be_reset_stops_no_cell(
    shell: Any, torch: FakeTorch, caplog: pytest.LogCaptureFixture
) -> None:
    torch.started = True
    torch.module.cuda.reset_peak_memory_stats = None
    outcome = shell.run("%%gpumem --reset-peak\n1 + 1")
    assert outcome.result == "2"
    said = caplog.text + outcome.stderr
    assert "torch did not reset the peak of cuda:0" in said


def test_a_half_imported_torch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    used, reason = state("torch")
    assert not used
    assert reason == "AttributeError: module 'torch' has no attribute 'cuda'"


def printed(script: str) -> str:
    """Run a script in an interpreter of its own; what it printed on both streams."""
    ran = run_python("-c", textwrap.dedent(script))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout + ran.stderr


IN_A_SHELL = """
    import os, sys, threading, time
    from tests.support.shell import open_shell
    shell = open_shell()

    def names_of_threads():
        for task in os.listdir("/proc/self/task"):
            try:
                with open(f"/proc/self/task/{task}/comm") as comm:
                    yield comm.read().strip()
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has just ended

    def wait_for_samplers(n):
        # A thread names itself once it runs, and the kernel lists it a little longer than it lives.
        deadline = time.monotonic() + 30
        while list(names_of_threads()).count("gpumem-sampler") != n:
            assert time.monotonic() < deadline, list(names_of_threads())
"""


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="no fork on Windows")
def test_a_forked_child_runs_its_cells_unrecorded() -> None:
    script = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    from gpumem import _gpumem, sim
    sim.use()
    kept = [sim.tensor(1 << 20)]

    def in_child():
        assert shell.run_cell("%%gpumem --quiet\\nkept = 1 + 1").success
        assert shell.user_ns["kept"] == 2
        kept.append(sim.tensor(1 << 20))
        kept.clear()
        sim.use()
        _gpumem.source_states()
        os._exit(7)

    # Forked while the sampler reads, again and again: a lock that it held would never come free.
    shell.user_ns["pids"] = pids = []
    shell.user_ns["fork"] = lambda: os.fork() or in_child()
    shell.run_cell("%%gpumem --quiet\\nfor _ in range(40):\\n    pids.append(fork())")
    assert len(pids) == 40
    for pid in pids:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert shell.run_cell("%%gpumem --quiet\\npass").success
    """
    assert printed(IN_A_SHELL + script) == ""


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="no fork on Windows")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_says_that_it_records_nothing(shell: Shell, tmp_path: Path) -> None:
    shell.run("from gpumem import sim\nsim.use()\nkept = sim.tensor(1 << 20)")
    shell.run("%gpumem on")
    printed = tmp_path / "printed"
    if os.fork() == 0:
        try:
            controls = ["", "on", "off", "status", "reset", "use sim", "baseline before"]
            for control in controls:
                shell.run(f"%gpumem {control}")
            printed.write_text("\n".join(shell.lines[-len(controls) :]))
            # What needs no source is answered, and a cell whose options name one runs.
            shell.run("%gpumem why")
            assert "1 MiB  kept · Tensor" in shell.lines[-1]
            assert shell.run("%%gpumem --source sim --device sim:0\n1 + 1").result == "2"
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
    forked = "nothing is recorded or read here: this process was forked from the one that records"
    assert set(printed.read_text().splitlines()) == {forked}
    shell.run("%gpumem status")
    assert shell.lines[-1].startswith("recording every cell")


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_there_is_one_sampler_and_it_ends_with_its_session() -> None:
    script = """
    from gpumem import _gpumem
    wait_for_samplers(0)
    for _ in range(5):
        shell.run_cell("%%gpumem --quiet\\npass")
        wait_for_samplers(1)
    _gpumem.reset()
    wait_for_samplers(0)
    """
    assert printed(IN_A_SHELL + script) == ""


@pytest.mark.parametrize("way_out", ["", "sys.exit(0)"])
def test_an_interpreter_ends_inside_a_run(way_out: str) -> None:
    script = f"""
    shell.run_cell("%%gpumem --quiet\\nimport time; time.sleep(0.01)")
    from gpumem import sim
    kept = sim.tensor(1 << 20, requires_grad=True).sum()
    # A thread that is still inside a recorded cell when the interpreter ends.
    shell.user_ns["gate"] = gate = threading.Event()
    cell = "%%gpumem --quiet\\ngate.set()\\ntime.sleep(60)"
    threading.Thread(target=shell.run_cell, args=(cell,), daemon=True).start()
    gate.wait()
    {way_out}
    """
    assert printed(IN_A_SHELL + script) == ""
