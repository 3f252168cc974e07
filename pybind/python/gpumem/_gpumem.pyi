# The extension module. Sizes are bytes, times are nanoseconds.

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, final, overload

from IPython.core.interactiveshell import InteractiveShell
from typing_extensions import Self, disjoint_base

__all__ = [
    "Block",
    "ChildScan",
    "DeviceError",
    "DeviceProfile",
    "Extension",
    "Footprint",
    "FootprintRow",
    "GpuMemError",
    "HolderSearch",
    "HostTensor",
    "JobRanks",
    "Judge",
    "LettingGo",
    "LevelLog",
    "MemorySnapshot",
    "MemoryTimeline",
    "NsightExport",
    "OtherFile",
    "OutOfMemoryError",
    "Probe",
    "ProcessScan",
    "ProfileResult",
    "Recording",
    "RecordingError",
    "RecordingWarning",
    "SessionProcesses",
    "StepsIterator",
    "StoreError",
    "Subscription",
    "Table",
    "Tensor",
    "TorchChange",
    "TorchSnapshot",
    "TorchTrace",
    "_Task",
    "__version__",
    "_baseline_names",
    "_begin_interval",
    "_block_of",
    "_check_interval",
    "_check_rules",
    "_child_begin",
    "_child_ended",
    "_child_forked",
    "_child_place",
    "_classify_growth_json",
    "_close_store",
    "_count_loops",
    "_default_rules",
    "_delete_sessions",
    "_expect",
    "_expected",
    "_fetch",
    "_flight_recorder",
    "_follow",
    "_is_disabled",
    "_is_further",
    "_is_owner",
    "_keep_in",
    "_left_behind",
    "_log",
    "_look_after",
    "_looks",
    "_markdown_code",
    "_markdown_text",
    "_note_missing",
    "_note_outside",
    "_on_run_end",
    "_open",
    "_printable",
    "_printable_report",
    "_ranks",
    "_roll",
    "_save_baseline",
    "_save_snapshot",
    "_sessions_json",
    "_sessions_text",
    "_set_look_patience",
    "_snapshot_on_oom",
    "_stopped",
    "_store_status",
    "_stored_recording",
    "_telling_line",
    "_why_no_looks",
    "_worker_recording",
    "_workers",
    "_write_file",
    "bytes_text",
    "classic_gaps",
    "classic_snapshot",
    "classic_thresholds",
    "device_labels",
    "device_levels",
    "device_scalars",
    "find_children",
    "find_holders",
    "footprint",
    "levels_text",
    "load",
    "load_ipython_extension",
    "mark",
    "outlived",
    "record",
    "record_blocks",
    "recording",
    "register_adapter",
    "reset",
    "scan_gpu_processes",
    "sim_empty_cache",
    "sim_memory_stats",
    "sim_reset_peak_memory_stats",
    "sim_set_grad_enabled",
    "sim_tensor",
    "sim_use",
    "source_states",
    "sources_text",
    "steps",
    "unload_ipython_extension",
    "use_sources",
]

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

__version__: str

class GpuMemError(Exception):
    """What gpumem raises; the other errors are kinds of it."""

class RecordingError(GpuMemError):
    """A file is not what it has to be; the message says what is wrong, and where."""

    offset: int
    """The position in the file, in bytes."""

class RecordingWarning(UserWarning):
    """A recording is incomplete; the message says what is missing."""

class DeviceError(GpuMemError):
    """There is no such device, or it is not read."""

class StoreError(GpuMemError):
    """A session on the disk cannot be read or written."""

@final
class Recording:
    """All runs of one session, with its devices. It does not change.

    `gpumem.recording()` and `gpumem.load(path)` return it, `gpumem.report(it)` judges it.
    """

    @staticmethod
    def from_bytes(data: bytes) -> Recording:
        """Read what `to_bytes` returned.

        Raises:
            RecordingError: these are no bytes of a recording.
        """
    def to_bytes(self) -> bytes:
        """Return the recording as the bytes of its file."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file that `gpumem.load` reads.

        Raises:
            OSError: the file cannot be written.
        """
    def _position(self) -> tuple[str, int]: ...
    def _counts(self) -> str: ...
    def _rules(self) -> dict[str, float]: ...
    def _with_rules(self, thresholds: dict[str, float]) -> Recording: ...
    def _split_at(self, n_runs: int) -> tuple[Recording, Recording]: ...
    def _compare_json(self, baseline: Recording) -> str: ...
    def _compare_text(self, baseline: Recording, name: str, width: int) -> str: ...
    def _held_text(self, run: int, width: int) -> str: ...
    def _report_json(self) -> str: ...
    def _report_text(self, width: int) -> str: ...
    def _processes(self) -> SessionProcesses: ...
    def _report_markdown(self) -> str: ...
    def _report_csv(self) -> str: ...
    def _report_chrome_trace(self) -> str: ...
    def _report_table(self, what: str) -> Table: ...
    def _versions(self) -> dict[str, str]: ...
    def _report_png(self, width: float, scale: float, dark: bool) -> bytes: ...
    def _report_svg(self, width: float, dark: bool) -> str: ...

def recording() -> Recording:
    """Return what this session has recorded so far."""

def load(
    path: str | os.PathLike[str], *, notebook: str | os.PathLike[str] | None = None
) -> Recording | OtherFile:
    """Read a file of any kind that gpumem knows; its content tells which.

    A folder holds the recordings of a job's ranks, or the traces of several workers. A text
    that is no file's path is read as a baseline's name, ``"last"``, or the beginning of a kept
    session's id. In a memory snapshot or a trace of PyTorch, stack frames are shown with the cell
    of ``notebook`` that they belong to, by default of this session::

        print(gpumem.load("snapshot.pickle"))

    Raises:
        RecordingError: the content is of no known kind, or damaged.
        StoreError: the session cannot be read.
        OSError: there is no such file, or it cannot be read.
    """

# The same, with what a page needs.
def _open(
    path: str | os.PathLike[str], *, notebook: str | os.PathLike[str] | None = None
) -> Recording | OtherFile: ...

@final
class Table:
    """A table with typed columns, which polars, pyarrow and DuckDB read without a copy."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow's C interface, of one batch."""
    def _columns(self) -> dict[str, list[Any]]: ...
    def __len__(self) -> int: ...

@disjoint_base
class OtherFile:
    """What `gpumem.load` read in a file that is no recording.

    ``str`` and a notebook show the text, ``repr`` one line.
    """

    @property
    def _kind(self) -> str: ...
    @property
    def _page_title(self) -> str | None: ...
    def _page(self) -> bytes | None: ...
    def _page_cells(self) -> str: ...
    def _page_file(self, idx: int) -> bytes: ...
    def _page_files(self) -> list[tuple[str, str]]: ...
    def text(self, width: int = 100) -> str:
        """Return the report as text, at most ``width`` columns wide."""

    def to_json(self) -> str:
        """Return everything as JSON: sizes are bytes, times are nanoseconds."""

    def compare(self, before: Self) -> OtherFile:
        """Return what changed since an earlier file of the same kind."""

    def _repr_pretty_(self, printer: Any, _is_cycle: bool) -> None: ...  # noqa: ANN401 (IPython's)
    def _repr_html_(self) -> str: ...

@final
class TorchSnapshot(OtherFile):
    """A memory snapshot of PyTorch: who holds what on each device, and who did at the peak."""

    def compare(self, before: Self) -> TorchChange:
        """Return what changed since an earlier snapshot of the same program."""

@final
class TorchTrace(OtherFile):
    """A Chrome trace of PyTorch's profiler, or those of several workers."""

    def text(
        self, width: int = 100, by: Literal["name", "shapes", "module", "function"] = "name"
    ) -> str:
        """Return the report as text; operators are grouped ``by`` what is named."""

@final
class TorchChange(OtherFile):
    """Two memory snapshots of PyTorch compared, by stack and by holder."""

@final
class MemoryTimeline(OtherFile):
    """Bytes by category over time, as PyTorch's `export_memory_timeline` writes them."""

@final
class LevelLog(OtherFile):
    """A log of memory levels over time: of nvidia-smi or stormlog."""

@final
class NsightExport(OtherFile):
    """An SQLite export of Nsight Systems: levels, failed calls, what NVTX ranges kept."""

@final
class DeviceProfile(OtherFile):
    """A device memory profile of JAX: what is alive, and which lines allocated it."""

@final
class JobRanks(OtherFile):
    """The ranks of a job, or workers of a cluster, side by side."""

@final
class SessionProcesses(OtherFile):
    """The child processes that a session recorded."""

    def __len__(self) -> int: ...

def _ranks(paths: list[str]) -> JobRanks: ...
def _workers(found: list[tuple[str, bytes, str | None]]) -> JobRanks: ...
def _worker_recording(frames: bytes, ending: str | None) -> bytes: ...
def _is_further(first: bytes, second: bytes) -> bool: ...
def _delete_sessions(folder: str | os.PathLike[str]) -> None: ...
def _left_behind(
    folder: str | os.PathLike[str], session: str, n_points: int
) -> tuple[bytes, str] | None: ...
def _begin_interval(interval: str) -> None: ...
def _roll(
    source: str,
    cell_id: str | None,
    label: str | None,
    execution_count: int | None,
    is_last: bool = False,
) -> int | None: ...
def _log(message: str) -> None: ...
def _look_after(run: int) -> None: ...
def _fetch(n_points: int) -> bytes: ...
def _note_missing(words: str) -> None: ...
def _note_outside() -> None: ...

@final
class _Task:
    def __new__(cls) -> Self: ...
    def end(self, name: str, failed: bool, file: str | None) -> None: ...

def _on_run_end(
    listener: Callable[[str, str, str | None, int | None], object] | None,
) -> None: ...
def _write_file(path: str | os.PathLike[str], content: bytes) -> None: ...
def _save_snapshot(path: str | os.PathLike[str]) -> tuple[int, int, str | None]: ...
def _snapshot_on_oom(place: str | os.PathLike[str] | None) -> None: ...
def _count_loops(yes: bool, foretells: bool) -> None: ...
def _flight_recorder(n_bytes: int) -> None: ...
def _telling_line(source: str) -> str: ...
def _classify_growth_json(
    allocated: Sequence[float],
    reserved: Sequence[float] | None,
    times: Sequence[float] | None,
    min_growth: float | None,
    thresholds: dict[str, float],
) -> str: ...
def _default_rules() -> dict[str, float]: ...
def _check_rules(thresholds: dict[str, float]) -> None: ...
def _is_owner() -> bool: ...
def _expected() -> list[str]: ...
def _expect(expected: Sequence[str]) -> None: ...
def _is_disabled() -> bool: ...
def _keep_in(
    store: bool | str | os.PathLike[str],
    notebook: str | None,
    host: str | None,
    command: list[str],
) -> None: ...
def _sessions_text(n_shown: int, width: int) -> str: ...
def _sessions_json() -> str: ...
def _stored_recording(which: str) -> Recording: ...
def _store_status() -> tuple[str | None, str | None]: ...
def _save_baseline(name: str, recording: Recording | None = None) -> None: ...
def _baseline_names() -> list[str]: ...
def _close_store() -> None: ...
def _child_begin(name: str, facts: Sequence[tuple[str, str]]) -> bool: ...
def _child_ended() -> None: ...
def _child_forked() -> bool: ...
def _child_place(words: str) -> None: ...
def reset() -> None: ...
def _follow(session: str, n_runs: int) -> Subscription | None: ...

@final
class Subscription:
    def next(self, pause: float) -> bytes | None: ...
    def close(self) -> None: ...

def mark(label: str | None = None) -> None:
    """End a step of the running cell, and begin the next one.

    Growth from step to step is judged as growth from run to run is. Outside a recorded cell
    nothing happens.
    """

@final
class Block:
    """A named part of a cell, as `record` makes it: a context manager and a decorator."""

    @property
    def name(self) -> str:
        """The label."""
    def __enter__(self) -> Block: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    def __call__(self, function: _F) -> _F: ...

@overload
def record(name_or_function: str, /) -> Block:
    """Record a part of a cell by this name, as a block or as the calls of a function.

    Its memory is judged from run to run, as that of a cell is::

        with gpumem.record("load"):
            batches = load()

        @gpumem.record
        def evaluate(model): ...
    """

@overload
def record(name_or_function: _F, /) -> _F:
    """Record every call of the function by its name."""

def _block_of(name: str, file: str) -> Block: ...
def record_blocks(yes: bool) -> None: ...

@final
class steps(Generic[_T_co]):  # noqa: N801 (it reads as a function)
    """Iterate, and record each iteration of a long cell as a step.

    Growth from step to step is judged as growth from run to run is::

        for batch in gpumem.steps(loader, "train"):
            train(batch)
    """

    def __new__(cls, iterable: Iterable[_T], label: str | None = None) -> steps[_T]: ...
    def __iter__(self) -> StepsIterator[_T_co]: ...
    def __len__(self) -> int: ...

@final
class StepsIterator(Iterator[_T_co]):
    """The iterator of `steps`."""

    def __next__(self) -> _T_co: ...
    def close(self) -> None: ...

@final
class Footprint:
    """What a model should take on each device, next to what is there."""

    @property
    def rows(self) -> list[FootprintRow]:
        """One for each device and part."""
    @property
    def optimizer(self) -> str | None:
        """The name of the optimizer's class."""
    def text(self) -> str:
        """Return the table as text."""

    def _repr_pretty_(self, printer: Any, _is_cycle: bool) -> None: ...  # noqa: ANN401 (IPython's)
    def _repr_html_(self) -> str: ...

@final
class FootprintRow:
    """One part of a model on one device. Sizes are bytes."""

    @property
    def device(self) -> str:
        """The device, such as ``cuda:0``."""

    @property
    def part(self) -> str:
        """``parameters``, ``buffers``, ``gradients`` or ``optimizer_state``."""

    @property
    def expected_bytes(self) -> int | None:
        """What it should take; None if that is not known."""

    @property
    def present_bytes(self) -> int:
        """What is there now."""

    @property
    def formula(self) -> str:
        """How ``expected_bytes`` is computed."""

def footprint(model: object, optimizer: object = None) -> Footprint:
    """Compare what a model should take with what is there, without running it.

    ``model`` is a ``torch.nn.Module``, ``optimizer`` one of ``torch.optim`` or bitsandbytes, or
    one that wraps such. Activations depend on the input and are not included::

        print(gpumem.footprint(model, optimizer))

    Raises:
        TypeError: ``model`` is no module, or ``optimizer`` no optimizer.
    """

def levels_text() -> str: ...
def bytes_text(n_bytes: int) -> str: ...
def device_levels() -> list[tuple[str, bool, int | None, int | None, int | None]]: ...
def device_scalars() -> list[tuple[str, bool, list[tuple[str, int]]]]: ...
def device_labels() -> list[str]: ...
def source_states() -> list[tuple[str, bool, str]]: ...
def sources_text(names: Sequence[str] | None = None) -> str: ...
def use_sources(names: list[str]) -> None: ...

@final
class Extension:
    @property
    def stopped(self) -> str | None: ...
    def pre_run_cell(self, info: object) -> None: ...
    def post_run_cell(self, result: object) -> None: ...
    def configure(
        self, record_all: bool, quiet: bool, source_text: str, holders: bool, interval: str
    ) -> None: ...
    def judge_by(self, thresholds: dict[str, float]) -> None: ...
    def resume(self) -> None: ...
    def show(self, text: str) -> None: ...

def load_ipython_extension(ip: InteractiveShell) -> None:
    """Begin to work in this shell: `%load_ext gpumem` calls it."""

def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Stop working in this shell: `%unload_ext gpumem` calls it."""

def _stopped() -> str | None: ...

@final
class HolderSearch:
    def devices(self) -> list[dict[str, Any]]: ...
    def text(self, name: str | None, device: str | None, width: int) -> str: ...
    def fix(self, device: str, name: str, sources: list[str]) -> tuple[str, str] | None: ...

def find_holders(depth: int) -> HolderSearch: ...

@final
class LettingGo:
    def __new__(cls, names: list[str]) -> Self: ...
    def outlived(self, width: int) -> str | None: ...

def outlived(name: str, width: int) -> str | None: ...

@final
class ProcessScan:
    def devices(self) -> list[dict[str, Any]]: ...
    def text(self, width: int) -> str: ...

def scan_gpu_processes() -> ProcessScan: ...

@final
class ChildScan:
    def children(self) -> list[dict[str, Any]]: ...
    def text(self, width: int) -> str: ...
    def end(self, pid: int) -> bool: ...

def find_children() -> ChildScan: ...
def _check_interval(text: str) -> None: ...
def register_adapter(
    type_: type[_T],
    function: Callable[[_T], tuple[str, int] | tuple[str, int, int] | list[Any]],
    /,
    *,
    after_runs: bool = False,
) -> None:
    """Make gpumem understand objects of a type, and of its subclasses.

    ``function(object)`` returns ``(device, n_bytes)``, such as ``("cuda:0", 1 << 20)``, or a
    list of those. A third item, a whole number such as an address, identifies bytes that several
    objects share. `holders()` and `%gpumem why` call it; with ``after_runs``, the search after
    a run that kept memory does, too. What it raises is logged and left out::

        gpumem.register_adapter(Pool, lambda pool: ("cuda:0", pool.n_bytes))
    """

def _looks() -> tuple[int, int, dict[str, int]]: ...
def _set_look_patience(milliseconds: int) -> None: ...
def _why_no_looks() -> str | None: ...

# For tests: only in a process whose environment has GPUMEM_TESTING=1.
_testing: Any

class OutOfMemoryError(RuntimeError): ...

@final
class HostTensor:
    @property
    def nbytes(self) -> int: ...

@final
class Tensor:
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def grad(self) -> Tensor | None: ...
    @grad.setter
    def grad(self, value: None) -> None: ...
    def __add__(self, other: Tensor | float, /) -> Tensor: ...
    def __radd__(self, other: float, /) -> Tensor: ...
    def __mul__(self, other: Tensor | float, /) -> Tensor: ...
    def __rmul__(self, other: float, /) -> Tensor: ...
    def __matmul__(self, other: Tensor, /) -> Tensor: ...
    def __rmatmul__(self, other: Tensor, /) -> Tensor: ...
    def sum(self) -> Tensor: ...
    def detach(self) -> Tensor: ...
    def item(self) -> float: ...
    def __float__(self) -> float: ...
    def cpu(self) -> HostTensor: ...
    def to(self, device: int | str) -> Tensor: ...
    def backward(self) -> None: ...

def sim_use(total_bytes: int, n_devices: int) -> None: ...
def sim_tensor(n_bytes: int, *, requires_grad: bool, device: int | str) -> Tensor: ...
def sim_empty_cache() -> int: ...
def sim_memory_stats(device: int | str) -> dict[str, int]: ...
def sim_reset_peak_memory_stats(device: int | str) -> None: ...
def sim_set_grad_enabled(*, enabled: bool) -> bool: ...

# An unknown level is None; code written for these names does not check for that.
_Level: TypeAlias = int | Any

@disjoint_base
class MemorySnapshot:
    """The memory of a device at one instant: bytes, seconds since 1970; None if unknown."""

    timestamp: float
    allocated_memory: _Level
    reserved_memory: _Level
    max_memory_allocated: _Level
    max_memory_reserved: _Level
    active_memory: _Level
    inactive_memory: _Level
    cpu_memory: _Level
    device_id: int
    operation: str | None
    stack_trace: str | None
    def __new__(
        cls,
        timestamp: float,
        allocated_memory: _Level,
        reserved_memory: _Level,
        max_memory_allocated: _Level,
        max_memory_reserved: _Level,
        active_memory: _Level,
        inactive_memory: _Level,
        cpu_memory: _Level,
        device_id: int = 0,
        operation: str | None = None,
        stack_trace: str | None = None,
    ) -> Self: ...
    def to_dict(self) -> dict[str, Any]:
        """Return the fields by their names."""

    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@disjoint_base
class ProfileResult:
    """One profiled call, or several of one function. Sizes are bytes, times are seconds."""

    function_name: str
    execution_time: float
    memory_before: MemorySnapshot
    memory_after: MemorySnapshot
    memory_peak: MemorySnapshot
    memory_allocated: _Level
    memory_freed: _Level
    tensors_created: int
    tensors_deleted: int
    call_count: int
    def __new__(
        cls,
        function_name: str,
        execution_time: float,
        memory_before: MemorySnapshot,
        memory_after: MemorySnapshot,
        memory_peak: MemorySnapshot,
        memory_allocated: _Level,
        memory_freed: _Level,
        tensors_created: int,
        tensors_deleted: int,
        call_count: int = 1,
    ) -> Self: ...
    def memory_diff(self) -> _Level:
        """Return the allocated bytes after the call minus those before it."""
    def peak_memory_usage(self) -> _Level:
        """Return the allocated bytes at the peak."""
    def to_dict(self) -> dict[str, Any]:
        """Return the fields by their names."""

    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Judge:
    def patterns(
        self, results: Iterable[ProfileResult], thresholds: dict[str, float]
    ) -> tuple[list[dict[str, Any]], list[str]]: ...
    def insights(
        self, results: Iterable[ProfileResult], thresholds: dict[str, float]
    ) -> tuple[list[dict[str, Any]], list[str]]: ...
    def report(
        self, results: Iterable[ProfileResult], thresholds: dict[str, float]
    ) -> dict[str, Any]: ...

@final
class Probe:
    def begin(
        self, device: str | None, current: str | None, cpu: bool
    ) -> tuple[str | None, MemorySnapshot]: ...
    def end(self, cpu: bool) -> tuple[MemorySnapshot, MemorySnapshot]: ...

def classic_snapshot(
    device: str | None, current: str | None, cpu: bool
) -> tuple[str | None, MemorySnapshot]: ...
def classic_gaps(
    samples: list[tuple[float, float, float, float, float | None]], thresholds: dict[str, float]
) -> list[dict[str, Any]]: ...
def classic_thresholds() -> dict[str, float]: ...
def _markdown_code(text: str) -> str: ...
def _markdown_text(text: str) -> str: ...
def _printable(text: str) -> str: ...
def _printable_report(text: str) -> str: ...
